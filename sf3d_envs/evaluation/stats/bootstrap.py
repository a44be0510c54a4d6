"""Paired world bootstrap: the world is the resampling unit (paper, app. "Statistics").

All conditions of one agent share one set of resampled worlds, so a difference between conditions is resampled as a
per-world difference. Counts stay integers until the last division, so an interval does not depend on summation order.

A percentile interval shows what the worlds at hand show: where no vehicle (or every one) failed in any of them, it has
no width. That is no proof of a rate of 0 or 1; read the number of worlds beside it.

Intervals are pointwise. Nothing in this package corrects for the number of intervals that are looked at: of 20
independent 95 % intervals around a true zero one is expected to exclude it, and a table should say how many it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

BOOTSTRAP_SEED = 20_250_817
"""Seed of the world resampling; fixed, and written into every manifest."""

FIXED_POINT = 2.0**16
"""Measured sums are rounded to multiples of 1/65536 of their unit, so that adding them is exact in any order."""


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """How intervals are made.

    Attributes:
        replicates: Resampled world sets.
        level: Coverage of the percentile interval, in (0, 1).
        seed: Seed of the resampling.
    """

    replicates: int = 2000
    level: float = 0.95
    seed: int = BOOTSTRAP_SEED

    def __post_init__(self) -> None:
        """Refuse settings that give no interval."""
        for name, kind in (("replicates", int), ("level", (int, float)), ("seed", int)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind):
                raise ValueError(f"{name} is {value!r}; it must be {'a number' if name == 'level' else 'an int'}")
        if self.replicates < 1:
            raise ValueError(f"replicates is {self.replicates}; it must be >= 1")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level is {self.level}; it must lie in (0, 1)")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; it must be >= 0")


@dataclass(frozen=True)
class Interval:
    """Estimates with percentile limits; each array has the leading shape of the counts.

    Attributes:
        estimate: Value on the real worlds.
        low: Lower limit.
        high: Upper limit.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def excludes_zero(self) -> np.ndarray:
        """Whether zero lies outside the limits (the tables' bold figures); False where a limit is NaN."""
        return (np.asarray(self.low) > 0.0) | (np.asarray(self.high) < 0.0)


@dataclass(frozen=True)
class RatioInterval(Interval):
    """Interval of a ratio of sums.

    Attributes:
        undefined: Share of replicates without a value (no exposure was drawn); the limits are those of the others.
    """

    undefined: np.ndarray


@lru_cache(maxsize=4)
def _weights(worlds: int, config: BootstrapConfig) -> np.ndarray:
    generator = np.random.Generator(np.random.Philox(key=config.seed))
    drawn = generator.integers(0, worlds, size=(config.replicates, worlds))
    flat = drawn + worlds * np.arange(config.replicates)[:, None]
    counts = np.bincount(flat.ravel(), minlength=config.replicates * worlds).reshape(-1, worlds).astype(np.float64)
    counts.setflags(write=False)
    return counts


def world_weights(worlds: int, config: BootstrapConfig | None = None) -> np.ndarray:
    """How often each world is drawn in each replicate.

    Args:
        worlds: Number of worlds S, >= 1.
        config: Replicates and seed.

    Returns:
        Counts as float64, read-only, shape [replicates, S]; every row sums to S.

    Raises:
        ValueError: If there is no world, or `config` is something else.
    """
    if config is not None and not isinstance(config, BootstrapConfig):
        raise ValueError(f"config is {config!r}; it must be a BootstrapConfig")
    if worlds < 1:
        raise ValueError(f"worlds is {worlds}; a bootstrap needs at least one world")
    return _weights(worlds, config or BootstrapConfig())


def whole_counts(name: str, values: np.ndarray | Sequence) -> np.ndarray:
    """Values as int64.

    Raises:
        ValueError: If one is not a finite whole number; the text has its name and position.
    """
    array = np.asarray(values)
    if array.dtype.kind == "b" or array.dtype.kind in "iu":
        return array.astype(np.int64)
    array = array.astype(np.float64)
    wrong = ~np.isfinite(array) | (array != np.round(array))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{name}{list(at)} is {array[at]}; counts must be finite whole numbers")
    return array.astype(np.int64)


def fixed_point(name: str, values: np.ndarray | Sequence) -> np.ndarray:
    """Values as whole multiples of 1/65536, float64: sums of them are exact below 2**53, whatever their order.

    Raises:
        ValueError: If one is not finite; the text has its name and position.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(at)} is {array[at]}; a sum needs finite values")
    return np.round(array * FIXED_POINT)


def percentile_limits(replicates: np.ndarray, config: BootstrapConfig) -> tuple[np.ndarray, np.ndarray]:
    """Percentile limits over the last axis, shape [..., R] to twice [...]; NaN replicates are left out.

    A row of NaN alone has NaN limits.
    """
    tail = 50.0 * (1.0 - config.level)
    if np.isfinite(replicates).all():
        low, high = np.percentile(replicates, [tail, 100.0 - tail], axis=-1)
        return low, high
    ordered = np.sort(replicates, axis=-1)
    kept = (~np.isnan(ordered)).sum(axis=-1)
    limits = []
    for percent in (tail, 100.0 - tail):
        position = np.maximum(kept - 1, 0) * percent / 100.0
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(kept - 1, 0))
        left, right = (np.take_along_axis(ordered, i[..., None], axis=-1)[..., 0] for i in (below, above))
        with np.errstate(invalid="ignore"):
            between = left + (right - left) * (position - below)
        limits.append(np.where((left == right) | (position == below), left, between))
    return limits[0], limits[1]


def rate_interval(counts: np.ndarray, trials: int | np.ndarray, config: BootstrapConfig | None = None) -> Interval:
    """Rate of a per-world count with its percentile interval over worlds.

    The mean over worlds of count / trials.

    Args:
        counts: Integers per world, shape [..., S]; negative values are allowed (a difference of counts).
        trials: Fixed denominator of one world, for example 12 vehicles; one number, or an array that broadcasts to
            the leading shape [...].
        config: Replicates, level and seed.

    Returns:
        The rate and its limits, shape [...].

    Raises:
        ValueError: If `trials` is below 1, there is no world, or a count is not a finite whole number.
    """
    config = config or BootstrapConfig()
    wide = np.asarray(trials)
    if (wide < 1).any():
        raise ValueError(f"trials is {trials}; it must be >= 1")
    values = whole_counts("counts", counts).astype(np.float64)
    worlds = values.shape[-1]
    resampled = values @ world_weights(worlds, config).T / (wide[..., None] * worlds)
    low, high = percentile_limits(resampled, config)
    return Interval(values.sum(axis=-1) / (wide * worlds), low, high)


def paired_difference(
    counts: np.ndarray, reference: np.ndarray, trials: int | np.ndarray, config: BootstrapConfig | None = None
) -> Interval:
    """Mean per-world difference of rates against a reference on the same worlds.

    Args:
        counts: Integers per world, shape [..., S].
        reference: Integers of the reference on the same worlds in the same order, shape [S], or any shape that ends
            with S and broadcasts against `counts`.
        trials: Fixed denominator of one world; one number, or an array that broadcasts to the leading shape.
        config: Replicates, level and seed.

    Returns:
        `rate(counts) - rate(reference)` and its limits, shape [...].

    Raises:
        ValueError: If the two do not hold the same number of worlds, and as `rate_interval`.
    """
    values, base = whole_counts("counts", counts), whole_counts("reference", reference)
    if base.ndim < 1 or values.ndim < 1 or values.shape[-1] != base.shape[-1]:
        raise ValueError(
            f"counts has shape {values.shape} and reference has shape {base.shape}; pairs need the same worlds"
        )
    return rate_interval(values - base, trials, config)


def ratio_replicates(
    numerator: np.ndarray, denominator: np.ndarray, config: BootstrapConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of sums on the real worlds, shape [...], and in every replicate, shape [..., R]; NaN without exposure.

    Args:
        numerator: Exactly summable values per world (integers, or `fixed_point`), shape [..., S].
        denominator: The same, never negative, broadcasting against it.
        config: Replicates and seed.
    """
    above, below = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if above.shape[-1:] != below.shape[-1:]:
        raise ValueError(f"numerator has shape {above.shape} and denominator {below.shape}; both need the same worlds")
    if (below < 0.0).any():
        raise ValueError(f"denominator holds {below.min()}; an exposure is never negative")
    weights = world_weights(above.shape[-1], config).T
    with np.errstate(invalid="ignore", divide="ignore"):
        real = above.sum(axis=-1) / below.sum(axis=-1)
        drawn = (above @ weights) / (below @ weights)
    # Without exposure there is no rate, whatever was counted.
    return np.where(below.sum(axis=-1) > 0.0, real, np.nan), np.where(np.isfinite(drawn), drawn, np.nan)


def interval_of(estimate: np.ndarray, replicates: np.ndarray, config: BootstrapConfig) -> RatioInterval:
    """Percentile interval of replicates [..., R] that may hold NaN, around estimates [...]."""
    low, high = percentile_limits(replicates, config)
    return RatioInterval(estimate, low, high, np.isnan(replicates).mean(axis=-1))


def ratio_interval(
    numerator: np.ndarray, denominator: np.ndarray, config: BootstrapConfig | None = None
) -> RatioInterval:
    """Ratio of sums over worlds, recomputed in every replicate (paper, "Exposure-normalized safety rates").

    sum_s numerator_s / sum_s denominator_s. Numerator and denominator of a world are drawn together.

    Args:
        numerator: Values per world, shape [..., S]; sums are exact to 1/65536.
        denominator: Exposure per world, >= 0, broadcasting against it.
        config: Replicates, level and seed.

    Returns:
        The ratio and its limits, shape [...]; NaN where there was no exposure.

    Raises:
        ValueError: If the worlds differ in number, a value is not finite, or an exposure is negative.
    """
    config = config or BootstrapConfig()
    above, below = fixed_point("numerator", numerator), fixed_point("denominator", denominator)
    return interval_of(*ratio_replicates(above, below, config), config)
