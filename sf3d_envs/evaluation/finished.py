"""Finished cells of result folders, read back: manifests of today's schema, files that still have their digest."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from .store import CELL_SCHEMA, MANIFEST_SCHEMA, DamagedCell, differences, file_digest


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One finished cell.

    Attributes:
        folder: Where it lies, `DIR/cells/<agent>/<condition>`.
        agent: Agent.
        condition: Condition slug.
        manifest: Its manifest, with the two names among the fields of `identity.cell`.
    """

    folder: Path
    agent: str
    condition: str
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """`<agent>/<condition>`."""
        return f"{self.agent}/{self.condition}"

    @property
    def manifest_digest(self) -> str:
        """SHA-256 (hex) of the manifest's file."""
        return file_digest(self.folder / "manifest.json")

    @property
    def seeds(self) -> range:
        """Scenario seeds of the cell's worlds, in order."""
        identity = self.manifest["identity"]
        return range(identity["seed0"], identity["seed0"] + identity["worlds"])

    def vehicles(self) -> pl.DataFrame:
        """The vehicle table, after its digest was checked.

        Returns:
            Rows in the order of worlds and vehicles.

        Raises:
            DamagedCell: If the file is missing or differs from the digest in the manifest.
            ValueError: If the rows belong to another cell or to other worlds than the manifest says.
        """
        try:
            data = (self.folder / "vehicles.parquet").read_bytes()
        except FileNotFoundError:
            data = None
        if data is None or hashlib.sha256(data).hexdigest() != self.manifest["files"]["vehicles.parquet"]:
            raise DamagedCell(self.folder.parents[2], {self.name: ["vehicles.parquet"]})
        frame = pl.read_parquet(io.BytesIO(data)).sort("scenario_seed", "vehicle")
        names = [f"{agent}/{condition}" for agent, condition in frame.select("agent", "condition").unique().iter_rows()]
        if names != [self.name]:
            raise ValueError(f"{self.folder} holds rows of {', '.join(sorted(names)) or 'no cell'}, not of {self.name}")
        if frame["scenario_seed"].unique().sort().to_list() != list(self.seeds):
            raise ValueError(f"{self.folder} holds other worlds than its manifest lists")
        return frame


def _manifest(path: Path, name: str) -> dict[str, Any]:
    """A cell manifest that this version can read.

    Raises:
        DamagedCell: If it is no JSON object.
        ValueError: If it has another schema or lacks a part.
    """
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        raise DamagedCell(path.parents[3], {name: [path.name]})
    if manifest.get("schema") != CELL_SCHEMA:
        raise ValueError(f"{path} has the schema {manifest.get('schema')!r}; this version reads {CELL_SCHEMA!r}")
    wanted = {
        "identity": ("worlds", "seed0", "cell"),
        "record": ("scenario", "initial_state", "terrain", "route"),
        "files": ("vehicles.parquet",),
    }
    for part, keys in wanted.items():
        value = manifest.get(part)
        missing = keys if not isinstance(value, dict) else [key for key in keys if key not in value]
        if missing:
            raise ValueError(f"{path} lacks {', '.join(f'{part}.{key}' for key in missing)}")
    identity, record = manifest["identity"], manifest["record"]
    counted = all(type(identity[name]) is int for name in ("worlds", "seed0")) and isinstance(identity["cell"], dict)
    lists = [record[name] for name in ("scenario", "initial_state")]
    if not counted or any(not isinstance(held, list) or len(held) != identity["worlds"] for held in lists):
        raise ValueError(f"{path} contradicts itself: it says {identity['worlds']} worlds and lists others")
    return manifest


def read_cell(folder: str | Path) -> Cell:
    """A finished cell.

    Args:
        folder: `DIR/cells/<agent>/<condition>`.

    Raises:
        DamagedCell: If the manifest is no JSON object.
        ValueError: If there is no finished cell, or its manifest has another schema or lacks a part.
    """
    folder = Path(folder).resolve()
    agent, condition = folder.parent.name, folder.name
    path = folder / "manifest.json"
    if folder.parent.parent.name != "cells":
        raise ValueError(f"{str(folder)!r} is no cell folder; give DIR/cells/<agent>/<condition>")
    if not path.is_file():
        raise ValueError(f"{str(folder)!r} holds no finished cell: it has no manifest.json")
    manifest = _manifest(path, f"{agent}/{condition}")
    identity = manifest["identity"]
    named = {**identity["cell"], "agent": agent, "condition": condition}
    return Cell(
        folder=folder, agent=agent, condition=condition, manifest={**manifest, "identity": {**identity, "cell": named}}
    )


def read_cells(path: str | Path, argument: str = "path") -> list[Cell]:
    """All finished cells of a result folder, or the one of a cell folder.

    Args:
        path: `DIR`, or `DIR/cells/<agent>/<condition>`.
        argument: Name used in errors.

    Returns:
        Cells by agent, conditions in the order of the evaluation where the folder says it, else by name.

    Raises:
        DamagedCell: If a manifest is no JSON object, or a cell that the evaluation had finished is gone.
        ValueError: If there is no such folder or no finished cell in it, a manifest has another schema, or the cells
            come from different evaluations.
    """
    root = Path(path)
    if not root.is_dir():
        raise ValueError(f"{argument} is {str(path)!r}; give a result folder or one of its cells/<agent>/<condition>")
    if not (root / "cells").is_dir():
        if not (root / "vehicles.parquet").is_file() and not (root / "manifest.json").is_file():
            raise ValueError(f"{argument} is {str(path)!r}, which holds neither cells/ nor the files of a cell")
        return [read_cell(root)]
    found = {cell.name: cell for cell in map(read_cell, sorted(p.parent for p in root.glob("cells/*/*/manifest.json")))}
    if not found:
        raise ValueError(f"{argument} is {str(path)!r}, which holds no finished cell")
    first, *others = found.values()
    for cell in others:
        if mixed := differences(_shared(first), _shared(cell)):
            raise ValueError(
                f"{argument} is {str(path)!r}, which mixes evaluations: {first.name} and {cell.name} differ in "
                f"{', '.join(mixed)}"
            )
    committed = _committed(root)
    if committed is None:
        return sorted(found.values(), key=lambda cell: (cell.agent, cell.condition))
    listed: dict[str, Any] = committed["cells"]
    if gone := {name: ["manifest.json"] for name in listed if name not in found}:
        raise DamagedCell(root, gone)
    named = {n: {**own, **dict(zip(("agent", "condition"), n.split("/"), strict=True))} for n, own in listed.items()}
    there = {"identity": committed.get("identity"), "cells": named}
    here = {"identity": _shared(first), "cells": {n: cell.manifest["identity"]["cell"] for n, cell in found.items()}}
    if mixed := differences(there, here):
        raise ValueError(
            f"{argument} is {str(path)!r}, which mixes evaluations: its cells are not those of its manifest.json "
            f"({', '.join(mixed)})"
        )
    digests = committed.get("cell_manifests", {})
    changed = [c for c in found.values() if digests.get(c.name, c.manifest_digest) != c.manifest_digest]
    if changed:
        raise DamagedCell(root, {cell.name: ["manifest.json"] for cell in changed})
    slugs = [facts["slug"] for facts in committed.get("record", {}).get("conditions", [])]
    rank = {slug: i for i, slug in enumerate(slugs)}
    return sorted(found.values(), key=lambda c: (c.agent, rank.get(c.condition, len(rank)), c.condition))


def _shared(cell: Cell) -> dict[str, Any]:
    """What all cells of one evaluation have in common."""
    return {name: value for name, value in cell.manifest["identity"].items() if name != "cell"}


def _committed(root: Path) -> dict[str, Any] | None:
    """Manifest of a finished evaluation; None if it was interrupted.

    Raises:
        ValueError: If it is damaged or of another schema.
    """
    path = root / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); the evaluation's command writes it anew") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != MANIFEST_SCHEMA or not isinstance(manifest.get("cells"), dict):
        raise ValueError(f"{str(path)!r} has the schema {schema!r}; this version reads {MANIFEST_SCHEMA!r}")
    return manifest
