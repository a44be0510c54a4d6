"""Matched comparisons: two cells, or all pairs of two result folders, that differ along one axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from .compare_table import comparison_text, print_comparison
from .finished import Cell, read_cells
from .matching import check_axis, manifest_fields
from .pairing import admit_pairs, cell_errors, pair_cells, unpaired_cells
from .stats import PARTS, BootstrapConfig, decomposition, sensitivity
from .stats.matched import check_columns
from .store import DamagedCell, check_writable, write_bytes, write_json

COMPARISON_SCHEMA = "sf3d.comparison/1"

_PAIR = {name: pl.String() for name in ("agent_a", "condition_a", "solver_a", "agent_b", "condition_b", "solver_b")}
_ESTIMATES = ("rate_a", "rate_b", "difference", *PARTS)
_LIMITS = ("", "_low", "_high")
COMPARE_SCHEMA = pl.Schema(
    {
        **_PAIR,
        "lane": pl.String(),
        "worlds": pl.UInt32(),
        "vehicles": pl.UInt32(),
        **{f"{name}{limit}": pl.Float64() for name in _ESTIMATES for limit in _LIMITS},
    }
)
"""One row per pair and lane; `vehicles` are those of all worlds, the denominator of every share."""
LOSS_SCHEMA = pl.Schema(
    {
        **_PAIR,
        "lane": pl.String(),
        "outcome": pl.String(),
        "lost": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)
"""What became on B of the vehicles that passed on A alone; the shares of a pair and lane add up to its `lost`."""
_FILES = ("compare.csv", "compare.txt", "compare.json")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Pairs that were admitted along one axis.

    Attributes:
        axis: `terrain`, `agent` or `solver`.
        table: Rates, difference B - A and decomposition (`COMPARE_SCHEMA`), one row per pair and lane.
        losses: Where the lost vehicles ended (`LOSS_SCHEMA`).
        matched: Per pair the fields that differ and digests of the files, as JSON values.
        remarks: What a reader should know: cells without a counterpart, worlds with errors.
        bootstrap: Settings of the intervals.
    """

    axis: str
    table: pl.DataFrame
    losses: pl.DataFrame
    matched: Sequence[dict[str, Any]]
    remarks: tuple[str, ...]
    bootstrap: BootstrapConfig

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.matched)

    def print(self) -> None:
        """Print the tables to the terminal, in two parts where it is narrow."""
        print_comparison(self.table, self.axis, self.remarks)

    def text(self) -> str:
        """The tables as plain text."""
        return comparison_text(self.table, self.axis, self.remarks)

    def write(self, out: str | Path) -> tuple[Path, ...]:
        """Write `compare.csv`, `compare.txt` and `compare.json` (last), each complete or not at all.

        Args:
            out: Folder; made if needed.

        Returns:
            The files.

        Raises:
            ValueError: If the folder cannot be written.
            OSError: If writing fails.
        """
        folder = check_compare_folder(out)
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / "compare.csv", self.table.write_csv().encode())
        write_bytes(folder / "compare.txt", self.text().encode())
        content = {
            "schema": COMPARISON_SCHEMA,
            "axis": self.axis,
            "bootstrap": dataclasses.asdict(self.bootstrap),
            "pairs": list(self.matched),
            "rows": self.table.to_dicts(),
            "losses": self.losses.to_dicts(),
            "remarks": list(self.remarks),
        }
        write_json(folder / "compare.json", content)
        return tuple(folder / name for name in _FILES)


def check_compare_folder(out: str | Path) -> Path:
    """Make sure that a comparison can be written to a folder, before anything is computed.

    Raises:
        ValueError: If it cannot be written, or a folder is in the way of a file.
    """
    folder = check_writable(out)
    for name in _FILES:
        if (folder / name).is_dir():
            raise ValueError(f"--out is {str(out)!r}, but its {name!r} is a folder; move it or give another folder")
    return folder


def compare_vehicles(
    a: pl.DataFrame, b: pl.DataFrame, config: BootstrapConfig | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare two vehicle tables on the same worlds. Nothing is known here about how they were made.

    Args:
        a: Vehicle outcomes of one cell (`outcomes.VEHICLE_SCHEMA`): the side that changes are measured against.
        b: Vehicle outcomes of the other cell, on the same worlds.
        config: Bootstrap settings.

    Returns:
        Rows by lane with the columns of `COMPARE_SCHEMA` from `lane` on, and losses with those of `LOSS_SCHEMA` from
        `lane` on.

    Raises:
        ValueError: If a table is empty or holds several cells, or their worlds or vehicles differ.
    """
    config = config or BootstrapConfig()
    columns = ("scenario_seed", "vehicle", "lane", "valid_passage", "outcome")
    for name, frame in (("a", a), ("b", b)):
        try:
            check_columns(frame, columns)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if frame.select("agent", "condition").n_unique() != 1:
            raise ValueError(f"{name} must hold the vehicles of one cell, one agent on one condition")
    sides = pl.concat(
        frame.select(*columns, agent=pl.lit("pair"), condition=pl.lit(side)) for frame, side in ((a, "a"), (b, "b"))
    )
    rates = sensitivity(sides, "a", config=config).frame()
    parts = decomposition(sides, "a", config=config)
    shares, lost = parts.frame(), parts.lost_frame()
    rows, losses = [], []
    for rate in rates.to_dicts():
        own = pl.col("lane") == rate["lane"]
        row = {name: rate[name] for name in ("lane", "worlds", "vehicles")}
        for limit in _LIMITS:
            sources = {"rate_a": "reference_rate", "rate_b": "rate", "difference": "change"}
            row |= {f"{name}{limit}": rate[f"{source}{limit}"] for name, source in sources.items()}
        for part in shares.filter(own).to_dicts():
            row |= {f"{part['part']}{limit}": part[f"share{limit}"] for limit in _LIMITS}
        rows.append(row)
        for end in lost.filter(own & (pl.col("vehicles") > 0)).to_dicts():
            limits = {"lost": end["share"], "low": end["share_low"], "high": end["share_high"]}
            losses.append({"lane": rate["lane"], "outcome": end["outcome"], **limits})
    row_schema = {name: kind for name, kind in COMPARE_SCHEMA.items() if name not in _PAIR}
    loss_schema = {name: kind for name, kind in LOSS_SCHEMA.items() if name not in _PAIR}
    return pl.DataFrame(rows, schema=row_schema), pl.DataFrame(losses, schema=loss_schema)


def compare(
    a: str | Path, b: str | Path, *, axis: str, worlds: int | None = None, config: BootstrapConfig | None = None
) -> Comparison:
    """Compare all pairs of two results that differ along one axis.

    Pairs: `terrain`: the cell `a`, or the reference cell of each agent of a folder `a`, with the same agent's other
    conditions in `b`. `agent`: cells of the same condition. `solver`: cells of the same agent and condition. A folder
    may be compared with itself.

    Example:
        ```python
        from sf3d_envs.evaluation import compare

        compare("results", "results", axis="terrain").print()
        ```

    Args:
        a: Result folder, or a cell folder `DIR/cells/<agent>/<condition>`.
        b: The other side, likewise.
        axis: A key of `matching.AXES`.
        worlds: Compare the first N worlds of both sides; None takes all and wants the same worlds.
        config: Bootstrap settings.

    Returns:
        Tables of all pairs.

    Raises:
        UnmatchedPair: If a pair differs in more than the axis, or not along it.
        DamagedCell: If a file of a paired cell is missing or changed.
        ValueError: If the axis is unknown, a side holds no finished cells or mixed ones, or nothing pairs.
    """
    check_axis(axis)
    config = config or BootstrapConfig()
    left, right = read_cells(a, "A"), read_cells(b, "B")
    pairs = pair_cells(left, right, axis, same=Path(a).resolve() == Path(b).resolve())
    differ = admit_pairs(pairs, axis, worlds)
    frames = _vehicles(cell for pair in pairs for cell in pair)
    tables, losses, matched = [], [], []
    for (one, other), fields in zip(pairs, differ, strict=True):
        count = worlds or len(one.seeds)
        last = pl.lit(one.seeds[count - 1], dtype=pl.UInt64)
        halves = [frames[cell.folder].filter(pl.col("scenario_seed") <= last) for cell in (one, other)]
        rows, lost = compare_vehicles(halves[0], halves[1], config)
        names = [pl.lit(value).alias(name) for name, value in _names(one, other).items()]
        tables.append(rows.with_columns(names).select(COMPARE_SCHEMA.names()))
        losses.append(lost.with_columns(names).select(LOSS_SCHEMA.names()))
        matched.append(
            {
                "a": one.name,
                "b": other.name,
                "worlds": count,
                "differs": {name: list(values) for name, values in fields.items()},
                "vehicles_a": one.manifest["files"]["vehicles.parquet"],
                "vehicles_b": other.manifest["files"]["vehicles.parquet"],
            }
        )
    return Comparison(
        axis=axis,
        table=pl.concat(tables),
        losses=pl.concat(losses),
        matched=matched,
        remarks=(*unpaired_cells(left, right, pairs, axis), *cell_errors(pairs, worlds)),
        bootstrap=config,
    )


def _vehicles(cells: Iterable[Cell]) -> dict[Path, pl.DataFrame]:
    """Checked vehicle tables by folder; all damaged cells of a result folder are named at once."""
    frames: dict[Path, pl.DataFrame] = {}
    damaged: dict[Path, dict[str, list[str]]] = {}
    for cell in {cell.folder: cell for cell in cells}.values():
        try:
            frames[cell.folder] = cell.vehicles()
        except DamagedCell:
            damaged.setdefault(cell.folder.parents[2], {})[cell.name] = ["vehicles.parquet"]
    for root, files in damaged.items():
        raise DamagedCell(root, files)
    return frames


def _names(one: Cell, other: Cell) -> dict[str, str]:
    names = {}
    for side, cell in (("a", one), ("b", other)):
        solver = str(manifest_fields(cell.manifest).get("solver", ""))
        names |= {f"agent_{side}": cell.agent, f"condition_{side}": cell.condition, f"solver_{side}": solver}
    return names
