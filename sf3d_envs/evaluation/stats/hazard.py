"""Discrete-time hazard of a vehicle's first event, second by second (paper, app. "Hazard analysis")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..outcomes import OUTCOMES
from .bootstrap import BootstrapConfig, RatioInterval, interval_of, ratio_replicates
from .decomposition import check_outcomes
from .frames import columns_of, interval_columns
from .matched import Matched, matched

STEPS_PER_SECOND = 60
OWN_FAILURES = OUTCOMES[1:5]
"""First events of the vehicle itself: collision, off_road, incursion, fault."""

HAZARD_CLASSES = ("any", "own", *OWN_FAILURES, "censored")
"""`own`: any of the vehicle's own failures; `censored`: ended by another vehicle's reset; `any`: both together."""


@dataclass(frozen=True)
class Hazard:
    """Hazard of C conditions, L groups, K classes (`HAZARD_CLASSES`) in B seconds.

    Attributes:
        agent: Name of the agent.
        conditions: Slugs, length C.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        bin_s: Length of a bin [s]; bin b is (b · bin_s, (b + 1) · bin_s].
        events: First events, int64 [C, L, K, B].
        at_risk: Vehicles at risk at the beginning of the bin, int64 [C, L, B].
        hazard: events / at_risk, [C, L, K, B]; NaN where nobody is at risk.
        config: How the intervals were made.
    """

    agent: str
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    bin_s: float
    events: np.ndarray
    at_risk: np.ndarray
    hazard: RatioInterval
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per condition, group, class and bin.

        Columns: agent, condition, lane, failure, second (beginning of the bin [s]), events, at_risk, hazard,
        hazard_low, hazard_high, hazard_undefined.
        """
        shape = self.events.shape
        axes = {"condition": (0, self.conditions), "lane": (1, self.lanes), "failure": (2, HAZARD_CLASSES)}
        return pl.DataFrame(
            {
                **columns_of(shape, self.agent, **axes),
                "second": np.broadcast_to(np.arange(shape[-1]) * self.bin_s, shape).ravel(),
                "events": self.events.ravel(),
                "at_risk": np.broadcast_to(self.at_risk[:, :, None], shape).ravel(),
                **interval_columns("hazard", self.hazard, shape),
            }
        )


def exit_steps(table: Matched, horizon_steps: int) -> np.ndarray:
    """Control step on which a vehicle leaves the risk set, int64 [C, S, V]; it was at risk up to and with that step.

    The crossing of a valid passage, else the first event or the world's reset, else the horizon.

    Raises:
        ValueError: If a passage has no step, an event has none, or a step lies outside 1 ... horizon.
    """
    outcome = table.columns["outcome"]
    passed = outcome == "pass"
    step = np.where(passed, table.columns["passage_step"], table.columns["first_event_step"]).astype(np.int64)
    staying = outcome == "not_crossed"
    if wrong := int((staying & (step >= 0)).sum()):
        raise ValueError(f"{wrong} rows are 'not_crossed' with a first_event_step; they would be 'censored'")
    step = np.where(staying, horizon_steps, step)
    if (step < 1).any() or (step > horizon_steps).any():
        c, s, v = (int(i) for i in np.argwhere((step < 1) | (step > horizon_steps))[0])
        raise ValueError(
            f"condition {table.conditions[c]!r}, scenario_seed {table.seeds[s]}: a vehicle of outcome "
            f"{outcome[c, s, v]!r} ends at step {step[c, s, v]}; it must lie in 1 ... {horizon_steps}"
        )
    return step


def risk_table(
    vehicles: pl.DataFrame,
    agent: str | None,
    conditions: Sequence[str] | None,
    by_lane: bool,
) -> Matched:
    """Matched table with the columns of a hazard, checked."""
    table = matched(
        vehicles,
        ["outcome", "valid_passage"],
        nullable=["first_event_step", "passage_step"],
        agent=agent,
        conditions=conditions,
        by_lane=by_lane,
    )
    check_outcomes(table.columns["outcome"], table.flags("valid_passage"))
    return table


def class_masks(outcome: np.ndarray) -> np.ndarray:
    """Whether a vehicle's end belongs to each of `HAZARD_CLASSES`, bool [K, ...]."""
    own = [outcome == name for name in OWN_FAILURES]
    any_own, censored = np.any(own, axis=0), outcome == "censored"
    return np.stack([any_own | censored, any_own, *own, censored])


def hazard(
    vehicles: pl.DataFrame,
    *,
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    horizon_s: float = 66.0,
    bin_s: float = 1.0,
    config: BootstrapConfig | None = None,
) -> Hazard:
    """Discrete-time hazard by lane and failure class, with intervals over worlds.

    h_k(b) = (first events of class k in second b) / (vehicles at risk at its beginning). A vehicle is at risk in
    second b while it is valid, has not crossed and its world has not reset (paper, app. "Hazard analysis"). Step s of
    the results ends at s/60 s and lies in second ⌊(s − 1)/60⌋. In a replicate events and risk sets are drawn together.

    Args:
        vehicles: Vehicle table (`outcomes.VEHICLE_SCHEMA`).
        agent: Name; None where the table holds one agent.
        conditions: Slugs; None takes all.
        by_lane: Whether to give the lanes beside `all`.
        horizon_s: Length of the runs [s].
        bin_s: Length of a bin [s], a whole number of control steps.
        config: Bootstrap settings.

    Returns:
        The hazard; `frame()` makes the table. Late bins have few vehicles: read `at_risk` beside the rate.

    Raises:
        ValueError: For a bin or horizon that is not a whole number of steps, steps that contradict the outcome or lie
            beyond the horizon, or a table that is not a matched one.
    """
    config = config or BootstrapConfig()
    horizon, width = (whole_steps(*pair) for pair in (("horizon_s", horizon_s), ("bin_s", bin_s)))
    table = risk_table(vehicles, agent, conditions, by_lane)
    bins = -(-horizon // width)
    last = (exit_steps(table, horizon) - 1) // width
    events, at_risk, intervals = [], [], []
    for c in range(len(table.conditions)):
        ending = last[c][..., None] == np.arange(bins)  # [S, V, B]
        staying = last[c][..., None] >= np.arange(bins)
        risk = np.einsum("svb,lsv->lbs", staying.astype(np.float64), table.members.astype(np.float64))
        masks = class_masks(table.columns["outcome"][c]).astype(np.float64)
        ended = np.stack([_ended(ending, mask, table.members) for mask in masks], axis=1)  # [L, K, B, S]
        intervals.append(interval_of(*ratio_replicates(ended, risk[:, None], config), config))
        events.append(ended.sum(axis=-1).astype(np.int64))
        at_risk.append(risk.sum(axis=-1).astype(np.int64))
    fields = (np.stack([getattr(i, n) for i in intervals]) for n in ("estimate", "low", "high", "undefined"))
    return Hazard(
        table.agent,
        table.conditions,
        table.lanes,
        table.worlds,
        width / STEPS_PER_SECOND,
        np.stack(events),
        np.stack(at_risk),
        RatioInterval(*fields),
        config,
    )


def _ended(ending: np.ndarray, mask: np.ndarray, members: np.ndarray) -> np.ndarray:
    chosen = members * mask  # [L, S, V]
    return np.einsum("svb,lsv->lbs", ending.astype(np.float64), chosen)


def whole_steps(name: str, seconds: float) -> int:
    """Control steps of 1/60 s in a time.

    Raises:
        ValueError: If it is not a positive whole number of them.
    """
    steps = seconds * STEPS_PER_SECOND
    if not np.isfinite(steps) or round(steps) < 1 or abs(steps - round(steps)) > 1e-6:
        raise ValueError(f"{name} is {seconds}; it must be a positive whole number of control steps of 1/60 s")
    return round(steps)
