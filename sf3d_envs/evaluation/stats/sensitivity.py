"""Sensitivity: what a condition changes against the same agent's reference, on the same worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, Interval, paired_difference, rate_interval
from .frames import columns_of, interval_columns
from .matched import against_reference, matched


@dataclass(frozen=True)
class Sensitivity:
    """Rates and paired changes of C conditions in L groups of vehicles.

    Attributes:
        agent: Name of the agent.
        reference: Slug of the reference.
        conditions: Slugs, length C, without the reference.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        trials: Vehicles of a group in each world, int64 [L].
        rate: Rate in the condition, [C, L].
        reference_rate: Rate in the reference, [L].
        change: Mean over worlds of the per-world difference, [C, L].
        config: How the intervals were made.
    """

    agent: str
    reference: str
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    trials: np.ndarray
    rate: Interval
    reference_rate: Interval
    change: Interval
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per condition and group.

        Columns: agent, condition, lane, worlds, vehicles (all of the group), rate, rate_low, rate_high, reference_rate,
        reference_rate_low, reference_rate_high, change, change_low, change_high, excludes_zero.
        """
        shape = self.change.estimate.shape
        return pl.DataFrame(
            {
                **columns_of(shape, self.agent, condition=(0, self.conditions), lane=(1, self.lanes)),
                "worlds": [self.worlds] * int(np.prod(shape)),
                "vehicles": np.broadcast_to(self.trials * self.worlds, shape).ravel(),
                **interval_columns("rate", self.rate, shape),
                **interval_columns("reference_rate", self.reference_rate, shape),
                **interval_columns("change", self.change, shape),
                "excludes_zero": self.change.excludes_zero.ravel(),
            }
        )


def sensitivity(
    vehicles: pl.DataFrame,
    reference: str = "reference",
    *,
    column: str = "valid_passage",
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> Sensitivity:
    """Sensitivity of an agent to conditions (paper, app. "Sensitivity and paired decomposition").

    S(p) = mean over worlds of [VP_w(p) − VP_w(reference)], VP_w the share of the world's vehicles for which `column`
    holds. The denominator is all vehicles of all worlds. Both sides of a pair are drawn together.

    Args:
        vehicles: Vehicle table (`outcomes.VEHICLE_SCHEMA`).
        reference: Slug that changes are measured against.
        column: Boolean column, for example `valid_passage` or `strict_success`.
        agent: Name; None where the table holds one agent.
        conditions: Slugs; None takes all.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings.

    Returns:
        Rates and changes; `frame()` makes the table.

    Raises:
        ValueError: If the table is not a matched one (see `matched`), or the column is not boolean.
    """
    config = config or BootstrapConfig()
    wanted = against_reference(reference, vehicles, agent, conditions)
    table = matched(vehicles, [column], agent=agent, conditions=wanted, by_lane=by_lane)
    flags = table.flags(column)
    counts = table.counts(flags)
    return Sensitivity(
        table.agent,
        reference,
        table.conditions[1:],
        table.lanes,
        table.worlds,
        table.trials,
        rate_interval(counts[1:], table.trials, config),
        rate_interval(counts[0], table.trials, config),
        paired_difference(counts[1:], counts[0], table.trials, config),
        config,
    )
