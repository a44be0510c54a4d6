"""Hazard ratio of a vehicle's own failure given an indicator earlier (paper, app. "Hazard analysis", Table 17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, interval_of, world_weights
from .hazard import OWN_FAILURES, STEPS_PER_SECOND, exit_steps, risk_table, whole_steps
from .matched import Matched, check_columns

MIN_EXPOSED_FAILURES = 3
"""Cells with fewer exposed failures show counts only (paper, Table 17)."""

LAG_BINS = 2
"""Seconds from the beginning of the exposure second to that of the failure second: the second that ends 1 s before."""


@dataclass(frozen=True)
class HazardRatio:
    """Hazard ratio of one condition; seeds pooled, worlds resampled jointly.

    Attributes:
        agents: Agents whose vehicles are pooled.
        condition: Slug.
        worlds: Number of worlds S.
        exposed_failures: Own failures in seconds whose exposure second had the indicator.
        exposed_seconds: Vehicle-seconds at risk with it.
        unexposed_failures: Own failures without it.
        unexposed_seconds: Vehicle-seconds at risk without it.
        ratio: Hazard with over hazard without; NaN where `reason` says so.
        low: Lower limit over worlds.
        high: Upper limit; infinite where some replicates drew no unexposed failure.
        undefined: Share of replicates without a ratio.
        reason: Why only counts are given; empty otherwise.
        config: How the interval was made.
    """

    agents: tuple[str, ...]
    condition: str
    worlds: int
    exposed_failures: int
    exposed_seconds: int
    unexposed_failures: int
    unexposed_seconds: int
    ratio: float
    low: float
    high: float
    undefined: float
    reason: str
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row: agents, condition, worlds, the four counts, ratio with limits, ratio_undefined, reason."""
        counts = [f"{side}_{what}" for side in ("exposed", "unexposed") for what in ("failures", "seconds")]
        return pl.DataFrame(
            {
                "agents": [", ".join(self.agents)],
                **{name: [getattr(self, name)] for name in ("condition", "worlds", *counts)},
                "ratio": [self.ratio],
                "ratio_low": [self.low],
                "ratio_high": [self.high],
                "ratio_undefined": [self.undefined],
                "reason": [self.reason],
            }
        )


def indicator_seconds(steps: pl.DataFrame, flag: str) -> pl.DataFrame:
    """Reduce a flag per control step to one per second: set where it was set on any step of it.

    Args:
        steps: Rows with step (1 for the first), scenario_seed, vehicle, the boolean `flag`, and agent and condition
            where there are several; for example the rich subset with a column added.
        flag: Name of the boolean column.

    Returns:
        Rows of the same keys with `second` in place of step, and `exposed`.

    Raises:
        ValueError: For a missing column, a flag that is not boolean or holds nulls, or a step below 1.
    """
    keys = [name for name in ("agent", "condition") if name in steps.columns]
    if missing := [name for name in ("step", "scenario_seed", "vehicle", flag) if name not in steps.columns]:
        raise ValueError(f"steps lacks the columns {missing}; it has {steps.columns}")
    if steps[flag].dtype != pl.Boolean or steps[flag].null_count():
        raise ValueError(f"steps[{flag!r}] is {steps[flag].dtype} with {steps[flag].null_count()} nulls; give booleans")
    if steps.height and int(steps.select(pl.col("step").cast(pl.Int64).min()).item()) < 1:
        raise ValueError(f"steps['step'] holds {steps['step'].min()}; the first control step is 1")
    second = ((pl.col("step").cast(pl.Int64) - 1) // STEPS_PER_SECOND).alias("second")
    grouped = steps.with_columns(second).group_by([*keys, "scenario_seed", "vehicle", "second"])
    return grouped.agg(pl.col(flag).any().alias("exposed")).sort([*keys, "scenario_seed", "vehicle", "second"])


def _indicator(seconds: pl.DataFrame, table: Matched, numbers: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Indicator and whether it is known, bool [S, V, B]."""
    wanted = ("scenario_seed", "vehicle", "second", "exposed")
    if missing := [name for name in wanted if name not in seconds.columns]:
        raise ValueError(f"seconds lacks the columns {missing}; it has {seconds.columns}")
    for name, value in (("agent", table.agent), ("condition", table.conditions[0])):
        if name in seconds.columns:
            seconds = seconds.filter(pl.col(name) == value)
    if seconds["exposed"].dtype != pl.Boolean or seconds["exposed"].null_count():
        raise ValueError(f"seconds['exposed'] is {seconds['exposed'].dtype}; it must be boolean without nulls")
    inside = pl.col("scenario_seed").is_in(table.seeds.tolist()) & pl.col("vehicle").is_in(numbers.tolist())
    part = seconds.filter(inside & (pl.col("second") >= 0) & (pl.col("second") < bins))
    twice = part.select("scenario_seed", "vehicle", "second").is_duplicated()
    if twice.any():
        raise ValueError(f"seconds holds {int(twice.sum())} duplicate rows; the first is {part.filter(twice).row(0)}")
    at = (
        np.searchsorted(table.seeds, part["scenario_seed"].to_numpy()),
        np.searchsorted(numbers, part["vehicle"].to_numpy()),
        part["second"].to_numpy().astype(np.int64),
    )
    known = np.zeros((table.worlds, len(numbers), bins), dtype=bool)
    exposed = np.zeros_like(known)
    known[at], exposed[at] = True, part["exposed"].to_numpy()
    return exposed, known


def hazard_ratio(
    vehicles: pl.DataFrame,
    seconds: pl.DataFrame,
    condition: str,
    *,
    agents: Sequence[str] | None = None,
    horizon_s: float = 66.0,
    config: BootstrapConfig | None = None,
) -> HazardRatio:
    """Hazard ratio of own failure given an indicator in the second that ended 1 s before (paper, Table 17).

    HR = (Σ own failures | exposed / Σ at risk | exposed) / (the same | not exposed), over all vehicles and seconds b
    in which a vehicle is at risk: valid at its beginning, not across, its world not reset. Exposure in [b, b + 1) is
    the indicator in [b − 2, b − 1), so the approach to a contact within the last second does not count. Seconds 0 and
    1 have no exposure second and are left out. An association, not a causal effect.

    Args:
        vehicles: Vehicle table of the worlds that have an indicator.
        seconds: One row per vehicle-second, with scenario_seed, vehicle, second, exposed (boolean), and agent and
            condition where it holds several; from `indicator_seconds`.
        condition: Slug.
        agents: Agents to pool, for example the seeds of a family; None pools all of the table.
        horizon_s: Length of the runs [s].
        config: Bootstrap settings.

    Returns:
        The ratio; with fewer than three exposed failures counts alone.

    Raises:
        ValueError: If a vehicle at risk has no indicator, agents' worlds do not pair, rows are twice there, or the
            table is not a matched one.
    """
    config = config or BootstrapConfig()
    check_columns(vehicles, ())
    if not isinstance(seconds, pl.DataFrame):
        raise ValueError(f"seconds is a {type(seconds).__name__}; it must be a polars.DataFrame")
    names = tuple(vehicles["agent"].unique(maintain_order=True)) if agents is None else tuple(agents)
    if not names:
        raise ValueError("agents is empty; name at least one")
    steps = whole_steps("horizon_s", horizon_s)
    bins = -(-steps // STEPS_PER_SECOND)
    totals, seeds = [], None
    for agent in names:
        table = risk_table(vehicles, agent, [condition], by_lane=False)
        if seeds is not None and not np.array_equal(table.seeds, seeds):
            raise ValueError(
                f"worlds do not pair: agent {agent!r} has {table.worlds} worlds and {names[0]!r} has {len(seeds)}, or "
                f"others; the first missing seed is {np.setxor1d(table.seeds, seeds)[0]}"
            )
        seeds = table.seeds
        numbers = np.sort(vehicles.filter(pl.col("agent") == agent)["vehicle"].unique().to_numpy())
        if len(names) > 1 and "agent" not in seconds.columns:
            raise ValueError(f"seconds has no column 'agent', but {len(names)} agents are pooled")
        totals.append(_counts(seconds, table, numbers, exit_steps(table, steps)[0], bins))
    counts = np.sum(totals, axis=0)  # [4, S]
    return _ratio(names, condition, counts, config)


def _counts(seconds: pl.DataFrame, table: Matched, numbers: np.ndarray, exit_step: np.ndarray, bins: int) -> np.ndarray:
    """Exposed failures, exposed seconds, unexposed failures, unexposed seconds per world, int64 [4, S]."""
    exposed, known = _indicator(seconds, table, numbers, bins)
    last = (exit_step - 1) // STEPS_PER_SECOND
    later = np.arange(LAG_BINS, bins)
    at_risk = last[..., None] >= later  # [S, V, B - lag]
    failed = np.isin(table.columns["outcome"][0], OWN_FAILURES)[..., None] & (last[..., None] == later)
    exposed, known = exposed[..., :-LAG_BINS], known[..., :-LAG_BINS]
    if (at_risk & ~known).any():
        s, v, b = (int(i) for i in np.argwhere(at_risk & ~known)[0])
        raise ValueError(
            f"seconds lacks agent {table.agent!r}, scenario_seed {table.seeds[s]}, vehicle {numbers[v]}, second {b}, "
            f"but the vehicle is at risk in second {b + LAG_BINS}"
        )
    parts = (failed & exposed, at_risk & exposed, failed & ~exposed, at_risk & ~exposed)
    return np.stack([part.sum(axis=(1, 2)) for part in parts])


def _ratio(names: tuple[str, ...], condition: str, counts: np.ndarray, config: BootstrapConfig) -> HazardRatio:
    sums = [int(n) for n in counts.sum(axis=1)]
    reason, limits, undefined = "", (np.nan, np.nan, np.nan), np.nan
    if sums[0] < MIN_EXPOSED_FAILURES:
        reason = f"{sums[0]} exposed failures; a ratio is given from {MIN_EXPOSED_FAILURES} on"
    elif sums[2] == 0:
        reason = "no failure without exposure: the ratio is infinite or undefined"
    else:
        drawn = counts.astype(np.float64) @ world_weights(counts.shape[1], config).T
        with np.errstate(divide="ignore", invalid="ignore"):
            replicates = (drawn[0] * drawn[3]) / (drawn[1] * drawn[2])
        interval = interval_of(np.asarray((sums[0] * sums[3]) / (sums[1] * sums[2])), replicates, config)
        limits = (float(interval.estimate), float(interval.low), float(interval.high))
        undefined = float(interval.undefined)
    return HazardRatio(
        agents=names,
        condition=condition,
        worlds=counts.shape[1],
        exposed_failures=sums[0],
        exposed_seconds=sums[1],
        unexposed_failures=sums[2],
        unexposed_seconds=sums[3],
        ratio=limits[0],
        low=limits[1],
        high=limits[2],
        undefined=undefined,
        reason=reason,
        config=config,
    )
