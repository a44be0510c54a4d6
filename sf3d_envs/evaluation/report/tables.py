"""The tables of a report: which columns of which frame, under which heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ..table import ConditionFacts
from .analysis import Analysis
from .headline import change_columns
from .text import Column, PrintedTable, wide

_OVER_WORLDS = "Brackets: 95 % bootstrap over worlds; bold: the interval excludes zero, not adjusted for many looks."
_CHANGES = {
    "mu035": "\u0394 at \u03bc .35",
    "mu018": "\u0394 at \u03bc .18",
    "mu_severe": "\u0394 at \u03bc \u2264 .08",
}
_LOSSES = {
    "collision": "collision",
    "off_road": "off road",
    "incursion": "incursion",
    "fault": "fault",
    "censored": "censored",
    "not_crossed": "not crossed",
}


def _agent(agents: Sequence[str]) -> list[Column]:
    return [Column(title="agent", source="agent")] if len(agents) > 1 else []


def _road(rows: Sequence[dict[str, Any]], conditions: Sequence[ConditionFacts]) -> list[dict[str, Any]]:
    """Rows with friction and grade [%] of their condition."""
    facts = {c.slug: {"friction": c.friction, "grade": 100.0 * c.grade} for c in conditions}
    return [{**row, **facts[row["condition"]]} for row in rows]


_ROAD = (
    Column(title="condition", source="condition"),
    Column(title="\u03bc", source="friction", kind="number"),
    Column(title="grade %", source="grade", kind="number", digits=1, sign=True),
)


def headline_table(analysis: Analysis, conditions: Sequence[ConditionFacts]) -> PrintedTable:
    """Valid passage on the reference and its changes, one row per agent."""
    columns = [Column(title="agent", source="agent"), Column(title="reference", source="passage", kind="interval")]
    for name in change_columns(conditions):
        columns.append(Column(title=_CHANGES[name], source=name, kind="interval", sign=True, bold=True))
    if analysis.headline["grade_condition"].null_count() < analysis.headline.height:
        columns += [
            Column(title="\u0394 at the most influential grade", source="grade", kind="interval", sign=True, bold=True),
            Column(title="which", source="grade_condition"),
        ]
    columns += [
        Column(title="TTC < 1.5 s", source="ttc_share", kind="interval"),
        Column(title="speed m/s", source="speed", kind="interval", digits=1),
    ]
    row = analysis.headline.row(0, named=True)
    return PrintedTable(
        name="headline",
        title=f"Valid passage on the reference road and its change on the same {row['worlds']} worlds",
        note=(
            "\u0394: mean over worlds of the paired difference from the agent's own reference; \u03bc \u2264 .08: mean "
            "of those conditions. TTC: share of vehicles below 1.5 s, and speed over valid driving, on the reference. "
            + _OVER_WORLDS
        ),
        columns=columns,
        rows=analysis.headline.to_dicts(),
    )


def passage_table(analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]) -> PrintedTable:
    """Passage and change by condition and lane."""
    rows = wide(analysis.passage, ("agent", "condition"), "lane", ("rate", "change", "reference_rate"))
    first: list[dict[str, Any]] = []
    for agent in agents:
        own = [row for row in rows if row["agent"] == agent]
        base = {
            f"{lane}_rate{limit}": own[0].get(f"{lane}_reference_rate{limit}")
            for lane in ("all", "closing", "open")
            for limit in ("", "_low", "_high")
        }
        first += [{"agent": agent, "condition": "reference", **base}, *own]
    columns = [*_agent(agents), *_ROAD]
    for lane in ("all", "closing", "open"):
        columns.append(Column(title=f"passage, {lane}", source=f"{lane}_rate", kind="interval"))
        title = f"\u0394, {lane}"
        columns.append(Column(title=title, source=f"{lane}_change", kind="interval", sign=True, bold=True))
    return PrintedTable(
        name="passage",
        title="Valid passage and its change from the reference, by starting lane",
        note=_OVER_WORLDS,
        columns=columns,
        rows=_road(first, conditions),
    )


_RATES = (
    ("ttc_below_1_5s", "time TTC < 1.5 s", 4),
    ("ttc_below_1_5s_vehicles", "vehicles TTC < 1.5 s", 2),
    ("drac_above_limit", "time DRAC > 3.35 m/s\u00b2", 4),
    ("hard_brake", "time braking > 3 m/s\u00b2", 3),
    ("hard_brake_onsets", "hard braking per km", 1),
    ("need_above_capacity", "time need > capacity", 4),
    ("patch_contact", "vehicles on the patch", 2),
    ("valid_driving", "valid driving s", 1),
    ("realized_accel", "realized m/s\u00b2", 2),
    ("requested_accel", "requested m/s\u00b2", 2),
)


def safety_table(analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]) -> PrintedTable:
    """Exposure-normalized safety measures of all vehicles."""
    rows = wide(analysis.rates.filter(pl.col("lane") == "all"), ("agent", "condition"), "rate", ("value",))
    columns = [*_agent(agents), *_ROAD[:1]]
    columns += [Column(title=t, source=f"{n}_value", kind="interval", digits=d) for n, t, d in _RATES]
    return PrintedTable(
        name="safety",
        title="Safety measures over valid driving",
        note=(
            "Ratios of sums over worlds: time columns are shares of the time of valid driving, which shrinks where "
            "vehicles fail early. Capacity contains \u03bc: need exceeds it more often on less friction anyway. "
            "Brackets: 95 % bootstrap over worlds. By lane, and as changes: rates.csv."
        ),
        columns=columns,
        rows=_road(rows, conditions),
    )


def speed_table(analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]) -> PrintedTable:
    """Entry speeds by lane."""
    part = analysis.rates.filter(pl.col("rate").is_in(["speed_at_20m", "speed_at_40m"]))
    rows = wide(part, ("agent", "condition", "lane"), "rate", ("value", "change"))
    columns = [*_agent(agents), *_ROAD[:1], Column(title="lane", source="lane")]
    for at in (20, 40):
        columns.append(Column(title=f"at {at} m, m/s", source=f"speed_at_{at}m_value", kind="interval", digits=1))
        columns.append(
            Column(
                title=f"\u0394 at {at} m",
                source=f"speed_at_{at}m_change",
                kind="interval",
                digits=2,
                sign=True,
                bold=True,
            )
        )
    return PrintedTable(
        name="entry_speed",
        title="Speed 20 m before the changed road and where it begins (x = 40 m)",
        note="Mean over the vehicles that crossed the mark in valid driving. " + _OVER_WORLDS,
        columns=columns,
        rows=_road(rows, conditions),
    )


def loss_table(analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]) -> PrintedTable:
    """Vehicles without a passage by outcome, and how many of them never touched the patch."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in analysis.losses.to_dicts():
        key = (row["agent"], row["condition"], row["lane"])
        out = found.setdefault(key, dict(zip(("agent", "condition", "lane"), key, strict=True)))
        if row["outcome"] == "any":
            out[row["where"]] = row["share"]
        else:
            out[row["outcome"]] = out.get(row["outcome"], 0.0) + row["share"]
    columns = [*_agent(agents), *_ROAD[:1], Column(title="lane", source="lane")]
    columns += [Column(title=title, source=name, kind="number") for name, title in _LOSSES.items()]
    columns += [
        Column(title="before the patch", source="before", kind="number"),
        Column(title="after", source="after", kind="number"),
    ]
    return PrintedTable(
        name="losses",
        title="Vehicles without a valid passage by outcome, as shares of all vehicles of the lane",
        note=(
            "Censored: still valid when another vehicle's fault reset the world. Before the patch: no wheel of the "
            "vehicle had touched it by the end of its valid driving, or there is none. Intervals: losses.csv."
        ),
        columns=columns,
        rows=_road(list(found.values()), conditions),
    )


def decomposition_table(
    analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]
) -> PrintedTable:
    """Passages kept, lost and gained, vehicle by vehicle."""
    rows = wide(analysis.decomposition, ("agent", "condition", "lane"), "part", ("share",))
    columns = [*_agent(agents), *_ROAD[:1], Column(title="lane", source="lane")]
    for part, title in (("kept", "kept"), ("lost", "lost"), ("gained", "gained"), ("persistent", "passed on neither")):
        columns.append(Column(title=title, source=f"{part}_share", kind="interval"))
    return PrintedTable(
        name="decomposition",
        title="Passages kept, lost and gained against the reference, vehicle by vehicle",
        note="Shares of all vehicles of the fixed set. Brackets: 95 % bootstrap over worlds.",
        columns=columns,
        rows=_road(rows, conditions),
    )


def additivity_table(frame: pl.DataFrame, agents: Sequence[str]) -> PrintedTable:
    """Interaction contrasts of grade and friction."""
    columns = [
        *_agent(agents),
        Column(title="composition", source="condition"),
        Column(title="lane", source="lane"),
        Column(title="\u0394 measured", source="change", kind="interval", sign=True),
        Column(title="sum of the single \u0394", source="sum_of_parts", kind="interval", sign=True),
        Column(title="interaction", source="interaction", kind="interval", sign=True, bold=True),
    ]
    return PrintedTable(
        name="additivity",
        title="Additivity of grade and friction",
        note="Interaction: measured minus sum; negative where both together lose more than each alone. " + _OVER_WORLDS,
        columns=columns,
        rows=frame.to_dicts(),
    )


def hazard_ratio_table(frame: pl.DataFrame) -> PrintedTable:
    """Hazard of own failure given an indicator in the second before last."""
    columns = [
        Column(title="agents", source="group"),
        Column(title="condition", source="condition"),
        Column(title="indicator 1\u20132 s earlier", source="indicator"),
        Column(title="hazard ratio", source="ratio", kind="interval", digits=1),
        Column(title="failures, exposed", source="exposed_failures", kind="count"),
        Column(title="vehicle-seconds", source="exposed_seconds", kind="count"),
        Column(title="failures, not exposed", source="unexposed_failures", kind="count"),
        Column(title="vehicle-seconds", source="unexposed_seconds", kind="count"),
    ]
    worlds = frame["worlds"][0]
    return PrintedTable(
        name="hazard_ratio",
        title=f"Hazard ratio of a vehicle's own failure, {worlds} recorded worlds",
        note=(
            "An association in time, not a causal effect. With fewer than three exposed failures counts stand alone. "
            "Brackets: 95 % bootstrap over worlds, seeds of a family pooled."
        ),
        columns=columns,
        rows=frame.to_dicts(),
    )


def family_table(frame: pl.DataFrame) -> PrintedTable:
    """Families of training seeds."""
    coverage = frame["nested_coverage"].drop_nulls()
    said = (
        f"holds the truth in {100 * coverage[0]:.0f} % of simulated studies"
        if len(coverage)
        else "has no known coverage"
    )
    columns = [
        Column(title="family", source="family"),
        Column(title="condition", source="condition"),
        Column(title="lane", source="lane"),
        Column(title="seeds", source="seeds", kind="count"),
        Column(title="passage", source="rate", kind="number"),
        Column(title="\u0394, t-interval over seeds", source="change", kind="interval", sign=True, bold=True),
        Column(title="sd", source="change_sd", kind="number"),
        Column(title="nested low", source="nested_low", kind="number", sign=True),
        Column(title="nested high", source="nested_high", kind="number", sign=True),
    ]
    return PrintedTable(
        name="families",
        title="Families of training seeds",
        note=f"The nested interval, over seeds and worlds, of this many seeds {said}, whatever its nominal 95 %.",
        columns=columns,
        rows=frame.to_dicts(),
    )


def rank_table(frame: pl.DataFrame) -> PrintedTable:
    """Rank correlation of reference passage and change across agents."""
    columns = [
        Column(title="condition", source="condition"),
        Column(title="Spearman's rho", source="rho", kind="number", sign=True),
        Column(title="agents", source="n", kind="count"),
    ]
    return PrintedTable(
        name="ranks",
        title="Rank correlation across agents: passage on the reference and its change",
        note="Few agents; read it as a description.",
        columns=columns,
        rows=frame.to_dicts(),
    )


def printed_tables(
    analysis: Analysis, conditions: Sequence[ConditionFacts], agents: Sequence[str]
) -> Mapping[str, PrintedTable]:
    """All tables that there are, by name."""
    tables = [
        headline_table(analysis, conditions),
        passage_table(analysis, conditions, agents),
        safety_table(analysis, conditions, agents),
        speed_table(analysis, conditions, agents),
        loss_table(analysis, conditions, agents),
        decomposition_table(analysis, conditions, agents),
    ]
    if analysis.additivity is not None:
        tables.append(additivity_table(analysis.additivity, agents))
    if analysis.hazard_ratio is not None:
        tables.append(hazard_ratio_table(analysis.hazard_ratio))
    if analysis.families is not None:
        tables.append(family_table(analysis.families))
    if analysis.ranks is not None:
        tables.append(rank_table(analysis.ranks))
    return {table.name: table for table in tables}
