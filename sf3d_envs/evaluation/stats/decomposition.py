"""Paired decomposition of passages: kept, lost, gained and persistently failed, on the full fixed set of vehicles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, Interval, rate_interval
from .tables import world_table


@dataclass(frozen=True)
class Decomposition:
    """Shares of all vehicles of all worlds; they add up to 1.

    Attributes:
        kept: Passed on both roads.
        lost: Passed on the reference alone.
        gained: Passed on the changed road alone.
        persistent: Passed on neither.
        lost_by_outcome: Shares of the lost vehicles' outcomes on the changed road; they add up to ``lost``.
    """

    kept: Interval
    lost: Interval
    gained: Interval
    persistent: Interval
    lost_by_outcome: dict[str, Interval]


def decompose(
    vehicles: pl.DataFrame,
    agent: str,
    condition: str,
    reference: str = "reference",
    *,
    lane: str | None = None,
    config: BootstrapConfig | None = None,
) -> Decomposition:
    """Compare every vehicle of a condition with itself on the reference road (paper, sec. 5).

    ``gained - lost`` is the sensitivity. The denominator is the full fixed set, never the vehicles that passed.

    Args:
        vehicles: Vehicle table.
        agent: Agent.
        condition: Changed condition.
        reference: Reference condition.
        lane: Vehicles of one starting lane alone: "closing" or "open".
        config: Bootstrap settings.

    Raises:
        ValueError: If both conditions are the same, one is missing, or the worlds do not pair.
    """
    if condition == reference:
        raise ValueError(f"condition and reference are both {condition!r}; give two")
    select = {"agents": [agent], "conditions": [condition, reference], "lane": lane}
    table = world_table(vehicles, **select)
    changed, base = table.values[0].astype(bool)
    outcome = world_table(vehicles, "outcome", **select).values[0, 0]

    def share(marks: np.ndarray) -> Interval:
        return rate_interval(marks.sum(axis=1), marks.shape[1], config)

    lost = base & ~changed
    names = sorted(set(outcome[lost].tolist()))
    return Decomposition(
        kept=share(base & changed),
        lost=share(lost),
        gained=share(~base & changed),
        persistent=share(~base & ~changed),
        lost_by_outcome={name: share(lost & (outcome == name)) for name in names},
    )
