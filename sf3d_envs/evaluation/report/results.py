"""A finished result folder, read back and checked before anything is said about it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..columns import VEHICLE_TABLE_SCHEMA, metric_schema
from ..finished import Cell, read_cells
from ..outcomes import WORLD_SCHEMA
from ..stats import BootstrapConfig
from ..store import DamagedCell, file_digest
from ..table import REFERENCE, ConditionFacts


@dataclass(frozen=True, kw_only=True)
class Results:
    """A finished evaluation of A agents on C conditions.

    Attributes:
        folder: Where it lies.
        agents: Names, length A.
        conditions: Slugs with friction and grade in suite order, length C.
        vehicles: One row per vehicle (`columns.VEHICLE_TABLE_SCHEMA`).
        worlds: One row per world (`outcomes.WORLD_SCHEMA`).
        cells: Finished cells, A·C.
        manifest: Manifest of the folder.
        bootstrap: Interval settings of the evaluation.
    """

    folder: Path
    agents: tuple[str, ...]
    conditions: tuple[ConditionFacts, ...]
    vehicles: pl.DataFrame
    worlds: pl.DataFrame
    cells: tuple[Cell, ...]
    manifest: Mapping[str, Any]
    bootstrap: BootstrapConfig

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decided the results and is the same for all cells."""
        return self.manifest["identity"]

    @property
    def slugs(self) -> tuple[str, ...]:
        """Slugs of the conditions."""
        return tuple(c.slug for c in self.conditions)

    def cell(self, agent: str, condition: str) -> Cell:
        """One cell."""
        return next(c for c in self.cells if (c.agent, c.condition) == (agent, condition))

    def rich_file(self, agent: str, condition: str) -> Path | None:
        """Trajectories of a cell; None if none were recorded.

        Raises:
            DamagedCell: If the file is missing or differs from the digest in the manifest.
        """
        cell = self.cell(agent, condition)
        digest = cell.manifest["files"].get("rich.parquet")
        if digest is None:
            return None
        path = cell.folder / "rich.parquet"
        if not path.is_file() or file_digest(path) != digest:
            raise DamagedCell(self.folder, {cell.name: ["rich.parquet"]})
        return path


def read_results(folder: str | Path) -> Results:
    """Read a result folder of `sf3d evaluate`.

    Args:
        folder: The folder.

    Returns:
        Its tables and manifest, after their digests were checked.

    Raises:
        ValueError: If there is no such folder, the evaluation has not finished, it was measured with other metrics,
            or it has no reference or nothing beside it.
        DamagedCell: If a table or a manifest is missing or was changed.
    """
    if not isinstance(folder, (str, Path)):
        raise ValueError(f"DIR is {folder!r}; give the result folder of sf3d evaluate")
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"DIR is {str(folder)!r}; give the result folder of sf3d evaluate")
    if root.parent.parent.name == "cells" and not (root / "cells").exists():
        raise ValueError(f"DIR is {str(folder)!r}, one cell of an evaluation; give the folder that holds cells/")
    cells = read_cells(root, "DIR")
    if not (root / "manifest.json").is_file():
        raise ValueError(
            f"DIR is {str(folder)!r}, whose evaluation has not finished ({len(cells)} cells are there); the command "
            "that began it goes on with what is missing"
        )
    manifest = _manifest(root)
    metrics = manifest["identity"].get("metrics")
    if metrics != metric_schema():
        raise ValueError(
            f"DIR is {str(folder)!r}, measured with the metrics {str(metrics)[:12]}...; this version reads "
            f"{metric_schema()[:12]}..., whose columns mean something else"
        )
    conditions = tuple(ConditionFacts(**facts) for facts in manifest["record"]["conditions"])
    slugs = [c.slug for c in conditions]
    if REFERENCE not in slugs or len(slugs) < 2:
        raise ValueError(
            f"DIR is {str(folder)!r}, with the conditions {slugs}; a report needs {REFERENCE!r} and another one"
        )
    vehicles = _table(root, manifest, "vehicles.parquet", VEHICLE_TABLE_SCHEMA)
    worlds = _table(root, manifest, "worlds.parquet", WORLD_SCHEMA)
    there = set(vehicles.select("agent", "condition").unique().iter_rows())
    if there != {(c.agent, c.condition) for c in cells}:
        raise ValueError(f"DIR is {str(folder)!r}, whose vehicles.parquet holds other cells than its manifest lists")
    return Results(
        folder=root,
        agents=tuple(dict.fromkeys(c.agent for c in cells)),
        conditions=conditions,
        vehicles=vehicles,
        worlds=worlds,
        cells=tuple(cells),
        manifest=manifest,
        bootstrap=BootstrapConfig(**manifest["record"]["bootstrap"]),
    )


def _manifest(root: Path) -> dict[str, Any]:
    import json

    manifest = json.loads((root / "manifest.json").read_bytes())  # read_cells has checked JSON and schema
    wanted = {"identity": (), "record": ("conditions", "bootstrap"), "files": ("vehicles.parquet", "worlds.parquet")}
    for part, keys in wanted.items():
        value = manifest.get(part)
        missing = [part] if not isinstance(value, dict) else [f"{part}.{key}" for key in keys if key not in value]
        if missing:
            raise ValueError(f"{str(root / 'manifest.json')!r} lacks {', '.join(missing)}")
    return manifest


def _table(root: Path, manifest: Mapping[str, Any], name: str, schema: pl.Schema) -> pl.DataFrame:
    path = root / name
    if not path.is_file() or file_digest(path) != manifest["files"][name]:
        raise DamagedCell(root, {name: []})
    frame = pl.read_parquet(io.BytesIO(path.read_bytes()))
    if missing := [column for column in schema if column not in frame.columns]:
        raise ValueError(f"{str(path)!r} lacks the columns {missing}")
    return frame
