"""What the tables say, in sentences made by fixed rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ..table import ConditionFacts
from .analysis import Analysis
from .text import interval as broken_interval

OPEN_LANE_FRICTION = 0.18
"""Friction at which the open lane is looked at, although only the closing lane is slippery (paper, sec. 6)."""


def interval(row: dict[str, Any], name: str, sign: bool = False) -> str:
    """An interval that stays on one line."""
    return broken_interval(row, name, sign=sign).replace(" ", "\u00a0")


def _excludes(row: dict[str, Any]) -> str:
    return "the interval excludes zero" if row["excludes_zero"] else "the interval includes zero"


def findings(analysis: Analysis, agent: str, conditions: Sequence[ConditionFacts]) -> list[str]:
    """Sentences about one agent.

    Args:
        analysis: From `analyse`.
        agent: Name.
        conditions: Conditions of the evaluation.

    Returns:
        Level on the reference, largest loss, how many changes are resolved, the open lane at friction 0.18 and where
        its passages went, additivity, braking need; each only where it was measured.
    """
    passage = analysis.passage.filter(pl.col("agent") == agent)
    every = passage.filter(pl.col("lane") == "all")
    first = every.row(0, named=True)
    said = [
        f"It passes {interval(first, 'reference_rate')} of {first['vehicles']:,} vehicles on the reference road "
        f"({first['worlds']} worlds)."
    ]
    worst = every.sort("change", maintain_order=True).row(0, named=True)
    if worst["change"] < 0:
        said.append(
            f"The largest loss of passage is {interval(worst, 'change', sign=True)}, on {worst['condition']}; "
            f"{_excludes(worst)}."
        )
    else:
        said.append("No condition lowers its passage.")
    resolved = every.filter(pl.col("excludes_zero"))
    lower = int((resolved["change"] < 0).sum())
    said.append(
        f"Of {every.height} changed roads, {lower} lower and {resolved.height - lower} raise its passage with an "
        "interval that excludes zero."
    )
    said += _open_lane(analysis, passage, agent, conditions)
    if analysis.additivity is not None:
        part = analysis.additivity.filter((pl.col("agent") == agent) & (pl.col("lane") == "all"))
        apart = part.filter(pl.col("excludes_zero"))
        if apart.height:
            listed = ", ".join(f"{r['condition']} {interval(r, 'interaction', sign=True)}" for r in apart.to_dicts())
            said.append(f"Grade and friction together depart from the sum of both on {listed}.")
        else:
            said.append(f"None of {part.height} compositions of grade and friction departs from the sum of both.")
    return said


def _open_lane(
    analysis: Analysis, passage: pl.DataFrame, agent: str, conditions: Sequence[ConditionFacts]
) -> list[str]:
    slugs = [c.slug for c in conditions if c.friction == OPEN_LANE_FRICTION and not c.grade]
    rows = passage.filter((pl.col("lane") == "open") & pl.col("condition").is_in(slugs)).to_dicts()
    if not rows:
        return []
    row = rows[0]
    said = (
        f"On {row['condition']} only the closing lane is slippery; the open lane's passage changes by "
        f"{interval(row, 'change', sign=True)} ({_excludes(row)})"
    )
    lost = analysis.lost_to.filter(
        (pl.col("agent") == agent) & (pl.col("condition") == row["condition"]) & (pl.col("lane") == "open")
    )
    total = int(lost["vehicles"].sum())
    if not total:
        return [said + "."]
    most = lost.sort("vehicles", descending=True, maintain_order=True).row(0, named=True)
    outcome = most["outcome"].replace("_", " ")
    return [f"{said}. Of its {total} open-lane passages lost there, {most['vehicles']} ended as {outcome}."]
