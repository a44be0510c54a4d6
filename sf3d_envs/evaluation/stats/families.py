"""A family of training seeds: each seed's change with its interval over worlds, then the spread over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .arms import check_families, stack_counts
from .bootstrap import BootstrapConfig, Interval, paired_difference, rate_interval
from .frames import columns_of, interval_columns, nested_columns, seed_columns
from .nested import NestedInterval, nested_difference
from .seeds import SeedSummary, seed_summary


@dataclass(frozen=True)
class FamilySummary:
    """Changes of one family's n seeds in C conditions and L groups of vehicles.

    Attributes:
        family: Name of the family.
        agents: Agents in seed order, length n.
        reference: Slug of the reference.
        conditions: Slugs, length C, without the reference.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        rate: Rate of each seed, [n, C, L]; intervals over worlds.
        reference_rate: Rate of each seed in the reference, [n, L].
        change: Change of each seed, [n, C, L].
        rate_seeds: Rates over seeds, [C, L].
        reference_seeds: Reference rates over seeds, [L].
        change_seeds: Changes over seeds, [C, L].
        nested: Nested interval of the mean change, [C, L].
        config: How the intervals were made.
    """

    family: str
    agents: tuple[str, ...]
    reference: str
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    rate: Interval
    reference_rate: Interval
    change: Interval
    rate_seeds: SeedSummary
    reference_seeds: SeedSummary
    change_seeds: SeedSummary
    nested: NestedInterval
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per condition and group.

        Columns: family, condition, lane, seeds, worlds, rate, reference_rate, change, change_sd, change_low,
        change_high (t-interval), nested_low, nested_high, nested_coverage (null where not measured).
        """
        shape = self.change_seeds.mean.shape
        size = int(np.prod(shape))
        return pl.DataFrame(
            {
                "family": [self.family] * size,
                **columns_of(shape, None, condition=(0, self.conditions), lane=(1, self.lanes)),
                "seeds": [len(self.agents)] * size,
                "worlds": [self.worlds] * size,
                "rate": self.rate_seeds.mean.ravel(),
                "reference_rate": np.broadcast_to(self.reference_seeds.mean, shape).ravel(),
                **seed_columns("change", self.change_seeds),
                **nested_columns(self.nested),
            }
        )

    def seed_frame(self) -> pl.DataFrame:
        """One row per seed, condition and group: family, seed, agent, condition, lane, rate, change, with intervals."""
        shape = self.change.estimate.shape
        seeds = tuple(str(i) for i in range(len(self.agents)))
        names = columns_of(
            shape, None, seed=(0, seeds), agent=(0, self.agents), condition=(1, self.conditions), lane=(2, self.lanes)
        )
        frame = pl.DataFrame(
            {
                "family": [self.family] * int(np.prod(shape)),
                **names,
                **interval_columns("rate", self.rate, shape),
                **interval_columns("change", self.change, shape),
                "excludes_zero": self.change.excludes_zero.ravel(),
            }
        )
        return frame.with_columns(pl.col("seed").cast(pl.Int32))


def family_summary(
    vehicles: pl.DataFrame,
    families: Mapping[str, Sequence[str]],
    family: str,
    reference: str = "reference",
    *,
    column: str = "valid_passage",
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> FamilySummary:
    """Rates and changes of a family's seeds, with t-intervals and nested intervals (paper, app. "Statistics").

    Args:
        vehicles: Vehicle table with all agents of the family.
        families: Family -> agent names in seed order.
        family: Which of them.
        reference: Slug that changes are measured against.
        column: Boolean column.
        conditions: Slugs; None takes all that the first agent has.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings; its level is also the t-interval's.

    Returns:
        The summary; one seed has NaN for all that is over seeds.

    Raises:
        ValueError: For an unknown family or agent, or agents whose worlds do not pair.
    """
    config = config or BootstrapConfig()
    check_families(families)
    if family not in families:
        raise ValueError(f"family is {family!r}; families holds {list(families)}")
    agents = tuple(families[family])
    table, counts = stack_counts(vehicles, agents, reference, column=column, conditions=conditions, by_lane=by_lane)
    trials = table.trials
    rate = rate_interval(counts[:, 1:], trials, config)
    base = rate_interval(counts[:, 0], trials, config)
    change = paired_difference(counts[:, 1:], counts[:, :1], trials, config)
    by_seed = np.moveaxis(counts, 0, -2)  # [1 + C, L, n, S]
    return FamilySummary(
        family,
        agents,
        reference,
        table.conditions[1:],
        table.lanes,
        table.worlds,
        rate,
        base,
        change,
        seed_summary(np.moveaxis(rate.estimate, 0, -1), config.level),
        seed_summary(np.moveaxis(base.estimate, 0, -1), config.level),
        seed_summary(np.moveaxis(change.estimate, 0, -1), config.level),
        nested_difference(by_seed[1:], by_seed[:1], trials, config),
        config,
    )
