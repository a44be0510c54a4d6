"""The headline table in the form of the paper's Table 1: one row per agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ..stats import BootstrapConfig, exposure_rates, matched, rate_interval
from ..stats.exposure import EXPOSURE_RATES
from ..table import REFERENCE, ConditionFacts

SEVERE_FRICTION = 0.08
"""Frictions up to this one form the extreme-severity group (paper, sec. 5)."""
SHOWN_FRICTIONS = (0.35, 0.18)
"""Frictions with a column of their own (paper, Table 1)."""

_LIMITS = ("", "_low", "_high")
_REFERENCE_RATES = {"ttc_below_1_5s_vehicles": "ttc_share", "speed": "speed"}


def change_columns(conditions: Sequence[ConditionFacts]) -> dict[str, list[str]]:
    """Columns of the headline that are changes from the reference, and the conditions that each averages over."""
    flat = {c.slug: c.friction for c in conditions if not c.grade and c.friction < 1.0}
    columns = {
        f"mu{round(100 * mu):03d}": [slug for slug, friction in flat.items() if friction == mu]
        for mu in SHOWN_FRICTIONS
    }
    columns["mu_severe"] = [slug for slug, friction in flat.items() if friction <= SEVERE_FRICTION]
    return {name: slugs for name, slugs in columns.items() if slugs}


def headline_row(
    vehicles: pl.DataFrame, agent: str, conditions: Sequence[ConditionFacts], config: BootstrapConfig
) -> dict[str, object]:
    """Row of one agent.

    Args:
        vehicles: Vehicle table with safety measures.
        agent: Name.
        conditions: Conditions of the evaluation, the reference among them.
        config: Bootstrap settings.

    Returns:
        agent, worlds, vehicles; passage (reference); the columns of `change_columns`; grade, the change on the most
        influential single grade, and grade_condition, its slug; ttc_share, the share of vehicles that fell below
        1.5 s, and speed [m/s], both on the reference. Every value has _low and _high; what was not run is None.
    """
    slugs = [c.slug for c in conditions]
    table = matched(vehicles, ["valid_passage"], agent=agent, conditions=slugs, by_lane=False)
    counts, trials = table.counts(table.flags("valid_passage"))[:, 0], int(table.trials[0])
    base = counts[slugs.index(REFERENCE)]
    row: dict[str, object] = {"agent": agent, "worlds": table.worlds, "vehicles": table.worlds * trials}
    row |= _limits("passage", rate_interval(base, trials, config))
    for name, members in change_columns(conditions).items():
        sides = np.sum([counts[slugs.index(slug)] - base for slug in members], axis=0)
        row |= _limits(name, rate_interval(sides, trials * len(members), config))
    grades = [c.slug for c in conditions if c.grade and c.friction >= 1.0]
    row["grade_condition"] = None
    if grades:
        changes = np.stack([counts[slugs.index(slug)] - base for slug in grades])
        most = int(np.argmax(np.abs(changes.sum(axis=1))))
        row["grade_condition"] = grades[most]
        row |= _limits("grade", rate_interval(changes[most], trials, config))
    rates = [rate for rate in EXPOSURE_RATES if rate.name in _REFERENCE_RATES]
    found = exposure_rates(vehicles, rates, agent=agent, conditions=[REFERENCE], by_lane=False, config=config).frame()
    for found_row in found.to_dicts():
        name = _REFERENCE_RATES[found_row["rate"]]
        row |= {f"{name}{limit}": found_row[f"value{limit}"] for limit in _LIMITS}
    return row


def headline(
    vehicles: pl.DataFrame, agents: Sequence[str], conditions: Sequence[ConditionFacts], config: BootstrapConfig
) -> pl.DataFrame:
    """Rows of all agents; see `headline_row`."""
    rows = [headline_row(vehicles, agent, conditions, config) for agent in agents]
    schema: Mapping[str, pl.DataType] = {"agent": pl.String(), "grade_condition": pl.String()}
    return pl.DataFrame(rows, schema_overrides=dict(schema), infer_schema_length=None)


def _limits(name: str, interval: object) -> dict[str, float]:
    values = (getattr(interval, part) for part in ("estimate", "low", "high"))
    return {f"{name}{limit}": float(value) for limit, value in zip(_LIMITS, values, strict=True)}
