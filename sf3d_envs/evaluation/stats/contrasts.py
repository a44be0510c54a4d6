"""Differences between families of training seeds, paired by parent seed and by world (paper, Table 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .arms import check_families, stack_counts
from .bootstrap import BootstrapConfig, Interval, rate_interval
from .frames import columns_of, interval_columns, nested_columns, seed_columns
from .nested import NestedInterval, nested_rate
from .seeds import SeedSummary, seed_summary


@dataclass(frozen=True)
class FamilyContrast:
    """First family minus second, over n parent seeds, 1 + C conditions and L groups.

    The first condition is the reference and holds the difference in level; the others hold the difference in the
    change from each arm's own reference.

    Attributes:
        first: Family that is subtracted from.
        second: Family that is subtracted.
        pairs: Agents (first, second) in parent seed order, length n.
        conditions: Slugs, length 1 + C, the reference first.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        per_seed: Contrast of each parent seed with its interval over worlds, [n, 1 + C, L].
        seeds: Contrast over parent seeds, [1 + C, L].
        nested: Nested interval, [1 + C, L].
        config: How the intervals were made.
    """

    first: str
    second: str
    pairs: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    per_seed: Interval
    seeds: SeedSummary
    nested: NestedInterval
    config: BootstrapConfig

    def _names(self, size: int) -> dict[str, list[str]]:
        return {"first": [self.first] * size, "second": [self.second] * size}

    def frame(self) -> pl.DataFrame:
        """One row per condition and group.

        Columns: first, second, condition, lane, quantity (`level` or `change`), seeds, worlds, contrast, contrast_sd,
        contrast_low, contrast_high (t-interval), nested_low, nested_high, nested_coverage.
        """
        shape = self.seeds.mean.shape
        size = int(np.prod(shape))
        kinds = ("level", *("change" for _ in self.conditions[1:]))
        return pl.DataFrame(
            {
                **self._names(size),
                **columns_of(shape, None, condition=(0, self.conditions), lane=(1, self.lanes), quantity=(0, kinds)),
                "seeds": [len(self.pairs)] * size,
                "worlds": [self.worlds] * size,
                **seed_columns("contrast", self.seeds),
                **nested_columns(self.nested),
            }
        )

    def seed_frame(self) -> pl.DataFrame:
        """One row per parent seed, condition and group: contrast with its interval over worlds, excludes_zero."""
        shape = self.per_seed.estimate.shape
        seeds = tuple(str(i) for i in range(len(self.pairs)))
        frame = pl.DataFrame(
            {
                **self._names(int(np.prod(shape))),
                **columns_of(shape, None, seed=(0, seeds), condition=(1, self.conditions), lane=(2, self.lanes)),
                **interval_columns("contrast", self.per_seed, shape),
                "excludes_zero": self.per_seed.excludes_zero.ravel(),
            }
        )
        return frame.with_columns(pl.col("seed").cast(pl.Int32))


def family_contrast(
    vehicles: pl.DataFrame,
    families: Mapping[str, Sequence[str]],
    first: str,
    second: str,
    reference: str = "reference",
    *,
    column: str = "valid_passage",
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> FamilyContrast:
    """Contrast of two families paired by parent seed (paper, app. "Statistics", Table 15).

    With VP the per-world rate of seed i: the reference holds VP_first(ref) − VP_second(ref), a condition p holds
    [VP_first(p) − VP_first(ref)] − [VP_second(p) − VP_second(ref)]; differences are taken per world, then averaged.

    Args:
        vehicles: Vehicle table with all agents of both families.
        families: Family -> agent names in seed order; parent seeds pair by position.
        first: Family that is subtracted from.
        second: Family that is subtracted.
        reference: Slug of the reference.
        column: Boolean column.
        conditions: Slugs; None takes all that the first agent has.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings; its level is also the t-interval's.

    Returns:
        The contrast; one pair has NaN for all that is over seeds.

    Raises:
        ValueError: For an unknown family, families of different size, or agents whose worlds do not pair.
    """
    config = config or BootstrapConfig()
    check_families(families)
    for name, value in (("first", first), ("second", second)):
        if value not in families:
            raise ValueError(f"{name} is {value!r}; families holds {list(families)}")
    if first == second:
        raise ValueError(f"first and second are both {first!r}; a contrast needs two families")
    one, two = tuple(families[first]), tuple(families[second])
    if len(one) != len(two):
        raise ValueError(
            f"families {first!r} and {second!r} have {len(one)} and {len(two)} agents; parent seeds pair by position"
        )
    table, counts = stack_counts(
        vehicles, (*one, *two), reference, column=column, conditions=conditions, by_lane=by_lane
    )
    change = counts - counts[:, :1]
    change[:, 0] = counts[:, 0]
    apart = change[: len(one)] - change[len(one) :]  # [n, 1 + C, L, S]
    per_seed = rate_interval(apart, table.trials, config)
    return FamilyContrast(
        first,
        second,
        tuple(zip(one, two, strict=True)),
        table.conditions,
        table.lanes,
        table.worlds,
        per_seed,
        seed_summary(np.moveaxis(per_seed.estimate, 0, -1), config.level),
        nested_rate(np.moveaxis(apart, 0, -2), table.trials, config),
        config,
    )
