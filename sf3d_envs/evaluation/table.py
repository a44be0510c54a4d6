"""The summary table of an evaluation: one row per agent and condition, as a frame, as text and on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from .outcomes import OUTCOMES
from .stats import BootstrapConfig, matched, paired_difference, rate_interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

REFERENCE = "reference"
"""Slug of the condition that changes are measured against."""

SUMMARY_SCHEMA = pl.Schema(
    {
        "agent": pl.String(),
        "condition": pl.String(),
        "friction": pl.Float64(),
        "grade": pl.Float64(),
        "worlds": pl.UInt32(),
        "passage": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "change": pl.Float64(),
        "change_low": pl.Float64(),
        "change_high": pl.Float64(),
        "closing_passage": pl.Float64(),
        "open_passage": pl.Float64(),
        "strict_success": pl.Float64(),
        "merge_completed": pl.Float64(),
        **{f"share_{name}": pl.Float64() for name in OUTCOMES[1:]},
        "ttc_share": pl.Float64(),
        "speed_at_20m": pl.Float64(),
        "speed_at_40m": pl.Float64(),
    }
)


@dataclass(frozen=True, kw_only=True)
class ConditionFacts:
    """What the table shows about a condition.

    Attributes:
        slug: Name of the condition.
        friction: Surface friction of the patch; 1 without a patch.
        grade: Slope of the constant-grade section, as a fraction, positive upward.
    """

    slug: str
    friction: float
    grade: float


def _agent_rows(
    agent: str, vehicles: pl.DataFrame, conditions: Sequence[ConditionFacts], config: BootstrapConfig
) -> list[dict[str, object]]:
    slugs = [c.slug for c in conditions]
    table = matched(vehicles, ["valid_passage"], agent=agent, conditions=slugs, by_lane=False)
    counts, per_world = table.counts(table.flags("valid_passage"))[:, 0], int(table.trials[0])
    cells = {key[0]: part for key, part in vehicles.group_by("condition")}
    rate = rate_interval(counts, per_world, config)
    change = (
        paired_difference(counts, counts[slugs.index(REFERENCE)], per_world, config) if REFERENCE in slugs else None
    )
    rows: list[dict[str, object]] = []
    for i, condition in enumerate(conditions):
        part = cells[condition.slug]
        compared = change is not None and condition.slug != REFERENCE
        row: dict[str, object] = {
            "agent": agent,
            "condition": condition.slug,
            "friction": condition.friction,
            "grade": condition.grade,
            "worlds": table.worlds,
            "passage": float(rate.estimate[i]),
            "low": float(rate.low[i]),
            "high": float(rate.high[i]),
            "change": float(change.estimate[i]) if compared and change else None,
            "change_low": float(change.low[i]) if compared and change else None,
            "change_high": float(change.high[i]) if compared and change else None,
            "closing_passage": part.filter(pl.col("lane") == "closing")["valid_passage"].mean(),
            "open_passage": part.filter(pl.col("lane") == "open")["valid_passage"].mean(),
            "strict_success": part["strict_success"].mean(),
            "merge_completed": part["merge_completed"].mean(),
        }
        for name in OUTCOMES[1:]:
            row[f"share_{name}"] = (part["outcome"] == name).mean()
        rows.append(row | _safety(part))
    return rows


def _safety(part: pl.DataFrame) -> dict[str, float | None]:
    """Time below 1.5 s to collision per time of valid driving, and mean speeds of the vehicles that crossed the marks.

    Nulls where the table has no safety measures, or no vehicle counts.
    """
    values: dict[str, float | None] = dict.fromkeys(("ttc_share", "speed_at_20m", "speed_at_40m"))
    if "valid_steps" in part.columns and (exposure := int(part["valid_steps"].sum())):
        values["ttc_share"] = int(part["ttc_below_1_5s_steps"].sum()) / exposure
        for name in ("speed_at_20m", "speed_at_40m"):
            mean = part[name].cast(pl.Float64).mean()
            values[name] = mean if isinstance(mean, float) else None
    return values


def summary_table(
    vehicles: pl.DataFrame,
    conditions: Sequence[ConditionFacts],
    config: BootstrapConfig | None = None,
) -> pl.DataFrame:
    """Rates, intervals and outcome shares per agent and condition.

    The denominator of every passage rate is all vehicles of all worlds. A change is against the same agent's own
    reference on the same worlds, null for the reference itself and where the reference was not run.

    Args:
        vehicles: Vehicle outcomes (`outcomes.VEHICLE_SCHEMA`), with safety measures or without.
        conditions: Conditions in the order of the table.
        config: Bootstrap settings.

    Returns:
        A frame with the columns of `SUMMARY_SCHEMA`, agents in order of appearance, conditions in the given order.

    Raises:
        ValueError: If a condition has no rows or its worlds differ from those of the others.
    """
    config = config or BootstrapConfig()
    rows: list[dict[str, object]] = []
    for (agent,), part in vehicles.group_by("agent", maintain_order=True):
        rows += _agent_rows(str(agent), part, conditions, config)
    return pl.DataFrame(rows, schema=SUMMARY_SCHEMA)


def _number(value: float | None, sign: bool = False) -> str:
    if value is None:
        return "-"
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _range(row: Mapping[str, float | None], keys: tuple[str, str, str], sign: bool = False) -> str:
    middle, low, high = (row[key] for key in keys)
    if middle is None:
        return "-"
    return f"{_number(middle, sign)} [{_number(low, sign)}, {_number(high, sign)}]"


_SHARES = {
    "closing_passage": "clos",
    "open_passage": "open",
    "strict_success": "strict",
    "merge_completed": "merge",
    "share_collision": "coll",
    "share_off_road": "off",
    "share_incursion": "incu",
    "share_fault": "fault",
    "share_censored": "cens",
    "share_not_crossed": "none",
}
WIDE = 158
"""Columns of the terminal that one table with everything needs."""
_LEGEND = (
    "Passage: share of all vehicles with a valid passage; brackets: 95 % over worlds; change: against the same agent's "
    "reference on the same worlds. clos, open: passage by starting lane; strict: passage, merge and no event; merge: "
    "of the merges owed; then shares by outcome: collision, off road, incursion, fault, censored, not crossed. ttc: "
    "time below 1.5 s to collision per time of valid driving; v20, v40: mean speed in m/s at x = 20 and 40 m."
)


def _rate_cells(row: Mapping[str, float | None]) -> list[str]:
    change = _range(row, ("change", "change_low", "change_high"), sign=True)
    return [_range(row, ("passage", "low", "high")), change]


def _safety_cells(row: Mapping[str, float | None]) -> list[str]:
    speeds = (row["speed_at_20m"], row["speed_at_40m"])
    return [_number(row["ttc_share"]), *("-" if speed is None else f"{speed:.1f}" for speed in speeds)]


def _share_cells(row: Mapping[str, float | None]) -> list[str]:
    return [_number(row[key]) for key in _SHARES]


def rich_tables(summary: pl.DataFrame, agent: str, width: int = WIDE) -> list[Table]:
    """Rows of one agent for a terminal: one table; rates, shares and safety apart where `width` is below `WIDE`."""
    from rich import box
    from rich.table import Table

    rows = summary.filter(pl.col("agent") == agent).to_dicts()
    parts: dict[str, Callable[[Mapping[str, float | None]], list[str]]] = {
        "rates": _rate_cells,
        "shares": _share_cells,
        "safety": _safety_cells,
    }
    tables = []
    for shown in ([*parts],) if width >= WIDE else ([name] for name in parts):
        title = f"{agent}: {', '.join(shown)} on {rows[0]['worlds']} matched worlds"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        table.add_column("condition", no_wrap=True)
        if "rates" in shown:
            table.add_column("mu", justify="right", no_wrap=True)
            table.add_column("grade", justify="right", no_wrap=True)
            table.add_column("passage", no_wrap=True)
            table.add_column("change", no_wrap=True)
        if "shares" in shown:
            for name in _SHARES.values():
                table.add_column(name, justify="right", no_wrap=True)
        if "safety" in shown:
            for name in ("ttc", "v20", "v40"):
                table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            grade = f"{100 * row['grade']:+.1f}%" if row["grade"] else "0"
            road = [_number(row["friction"]), grade] if "rates" in shown else []
            table.add_row(row["condition"], *road, *(cell for name in shown for cell in parts[name](row)))
        tables.append(table)
    return tables


def print_tables(summary: pl.DataFrame, console: Console | None = None) -> None:
    """Print all agents' tables with a legend; a pipe or file gets the wide form."""
    from rich.console import Console

    console = console or Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for agent in summary["agent"].unique(maintain_order=True):
        for table in rich_tables(summary, agent, console.width):
            console.print(table)
    console.print(_LEGEND)


def table_text(summary: pl.DataFrame) -> str:
    """All agents' tables as plain text."""
    from rich.console import Console

    buffer = io.StringIO()
    print_tables(summary, Console(file=buffer, width=WIDE, color_system=None))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
