"""Paired decomposition on the full fixed set of vehicles: passes kept, lost and gained, and non-passes that persist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..outcomes import OUTCOMES
from .bootstrap import BootstrapConfig, Interval, rate_interval
from .frames import columns_of, interval_columns
from .matched import against_reference, matched

PARTS = ("kept", "lost", "gained", "persistent")
"""Passes on both roads; on the reference alone; on the changed road alone; on neither."""

LOST_TO = OUTCOMES[1:]
"""Outcomes of the changed world in which a passage can be lost."""


@dataclass(frozen=True)
class Decomposition:
    """Shares of all vehicles, for C conditions and L groups.

    kept + lost + gained + persistent = 1, gained − lost = change of passage, and lost is the sum of `lost_to`.

    Attributes:
        agent: Name of the agent.
        reference: Slug of the reference.
        conditions: Slugs, length C, without the reference.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        counts: Vehicles of each part (`PARTS`), int64 [C, L, 4].
        share: Their shares of all vehicles of the group, [C, L, 4].
        lost_to_counts: Vehicles lost, by outcome in the changed world (`LOST_TO`), int64 [C, L, 6].
        lost_to: Their shares of all vehicles of the group, [C, L, 6].
        config: How the intervals were made.
    """

    agent: str
    reference: str
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    counts: np.ndarray
    share: Interval
    lost_to_counts: np.ndarray
    lost_to: Interval
    config: BootstrapConfig

    def _frame(self, counts: np.ndarray, share: Interval, axis: str, labels: Sequence[str]) -> pl.DataFrame:
        shape = counts.shape
        axes = {"condition": (0, self.conditions), "lane": (1, self.lanes), axis: (2, labels)}
        return pl.DataFrame(
            {
                **columns_of(shape, self.agent, **axes),
                "worlds": [self.worlds] * int(np.prod(shape)),
                "vehicles": counts.ravel(),
                **interval_columns("share", share, shape),
            }
        )

    def frame(self) -> pl.DataFrame:
        """One row per condition, group and part: agent, condition, lane, part, worlds, vehicles, share and limits."""
        return self._frame(self.counts, self.share, "part", PARTS)

    def lost_frame(self) -> pl.DataFrame:
        """One row per condition, group and outcome: where the lost passages went, as shares of all vehicles."""
        return self._frame(self.lost_to_counts, self.lost_to, "outcome", LOST_TO)


def decomposition(
    vehicles: pl.DataFrame,
    reference: str = "reference",
    *,
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> Decomposition:
    """Decompose a change of passage, vehicle by vehicle (paper, app. "Sensitivity and paired decomposition").

    The denominator is all vehicles of all worlds, whoever drives: never the worlds that went well.

    Args:
        vehicles: Vehicle table (`outcomes.VEHICLE_SCHEMA`).
        reference: Slug of the reference.
        agent: Name; None where the table holds one agent.
        conditions: Slugs; None takes all.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings.

    Returns:
        The shares; `frame()` and `lost_frame()` make the tables.

    Raises:
        ValueError: If the table is not a matched one, or `outcome` contradicts `valid_passage`.
    """
    config = config or BootstrapConfig()
    wanted = against_reference(reference, vehicles, agent, conditions)
    table = matched(vehicles, ["valid_passage", "outcome"], agent=agent, conditions=wanted, by_lane=by_lane)
    passed = table.flags("valid_passage")
    outcome = table.columns["outcome"]
    check_outcomes(outcome, passed)
    base, then = passed[0], passed[1:]
    parts = np.stack([table.counts(p) for p in (base & then, base & ~then, ~base & then, ~base & ~then)], axis=2)
    lost = np.stack([table.counts(base & (outcome[1:] == name)) for name in LOST_TO], axis=2)
    trials = table.trials[:, None]  # [L, 1], against [C, L, K]
    return Decomposition(
        table.agent,
        reference,
        table.conditions[1:],
        table.lanes,
        table.worlds,
        parts.sum(axis=-1),
        rate_interval(parts, trials, config),
        lost.sum(axis=-1),
        rate_interval(lost, trials, config),
        config,
    )


def check_outcomes(outcome: np.ndarray, passed: np.ndarray) -> None:
    """Refuse unknown outcomes, and rows whose outcome and valid passage disagree.

    Raises:
        ValueError: Naming them.
    """
    if unknown := sorted(set(outcome.ravel().tolist()) - set(OUTCOMES)):
        raise ValueError(f"vehicles['outcome'] holds {unknown}; allowed are {list(OUTCOMES)}")
    if wrong := int(((outcome == "pass") != passed).sum()):
        raise ValueError(f"{wrong} rows have an outcome that contradicts valid_passage; 'pass' means a valid passage")
