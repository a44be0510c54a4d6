"""Where passage is lost: before or after the first wheel on the patch, by lane and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, Interval, RatioInterval, interval_of, rate_interval, ratio_replicates
from .decomposition import LOST_TO, check_outcomes
from .frames import columns_of, interval_columns
from .matched import matched

WHERE = ("before", "after")
"""No wheel was on the patch by the end of valid driving; one was."""

LOSS_CLASSES = ("any", *LOST_TO)


@dataclass(frozen=True)
class Losses:
    """Vehicles without a valid passage, for C conditions, L groups, K classes (`LOSS_CLASSES`), before and after.

    Attributes:
        agent: Name of the agent.
        conditions: Slugs, length C.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        counts: Vehicles, int64 [C, L, K, 2].
        share: Of all vehicles of the group, [C, L, K, 2].
        of_losses: Of the vehicles of that class, [C, L, K, 2]; a ratio of sums, NaN where the class is empty.
        config: How the intervals were made.
    """

    agent: str
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    counts: np.ndarray
    share: Interval
    of_losses: RatioInterval
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per condition, group, class and side of the patch.

        Columns: agent, condition, lane, outcome, where, vehicles, share, of_losses (each with limits).
        """
        shape = self.counts.shape
        axes = {
            "condition": (0, self.conditions),
            "lane": (1, self.lanes),
            "outcome": (2, LOSS_CLASSES),
            "where": (3, WHERE),
        }
        return pl.DataFrame(
            {
                **columns_of(shape, self.agent, **axes),
                "vehicles": self.counts.ravel(),
                **interval_columns("share", self.share, shape),
                **interval_columns("of_losses", self.of_losses, shape),
            }
        )


def losses_by_patch(
    vehicles: pl.DataFrame,
    *,
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> Losses:
    """Shares of vehicles that lost their passage before and after they touched the patch.

    After: `patch_first_step` is a step of the valid-driving window. A vehicle censored by another's reset may have
    touched nothing: that is how a patch on one lane takes passages on the other.

    Args:
        vehicles: Vehicle table with `patch_first_step`.
        agent: Name; None where the table holds one agent.
        conditions: Slugs; None takes all.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings.

    Returns:
        The shares; `frame()` makes the table.

    Raises:
        ValueError: If the table lacks a column or is not a matched one, or a contact lies after the first event.
    """
    config = config or BootstrapConfig()
    table = matched(
        vehicles,
        ["outcome", "valid_passage", "patch_first_step"],
        nullable=["first_event_step"],
        agent=agent,
        conditions=conditions,
        by_lane=by_lane,
    )
    outcome, contact = table.columns["outcome"], table.columns["patch_first_step"].astype(np.int64)
    check_outcomes(outcome, table.flags("valid_passage"))
    event = table.columns["first_event_step"].astype(np.int64)
    if wrong := int(((event >= 0) & (contact > event)).sum()):
        raise ValueError(f"{wrong} rows have a patch_first_step after the first_event_step; contact ends with validity")
    classes = np.stack([outcome != "pass", *(outcome == name for name in LOST_TO)], axis=1)  # [C, K, S, V]
    touched = (contact >= 0)[:, None]
    sides = np.stack([classes & ~touched, classes & touched], axis=2)  # [C, K, 2, S, V]
    counts = np.moveaxis(table.counts(sides), 3, 1)  # [C, L, K, 2, S]
    both = counts.sum(axis=3, keepdims=True)
    return Losses(
        table.agent,
        table.conditions,
        table.lanes,
        table.worlds,
        counts.sum(axis=-1),
        rate_interval(counts, table.trials[:, None, None], config),
        interval_of(*ratio_replicates(counts, both, config), config),
        config,
    )
