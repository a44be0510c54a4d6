"""Paired world bootstrap: the world is the resampling unit (paper, sec. 5).

All conditions of one agent share one set of resampled worlds, so a difference between conditions is resampled as a
per-world difference. Counts stay small integers until the last division, so an interval does not depend on summation
order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BOOTSTRAP_SEED = 20_250_817
"""Seed of the world resampling; fixed, and written into every manifest."""


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
        estimate: Mean over the real worlds.
        low: Lower limit.
        high: Upper limit.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def world_weights(worlds: int, config: BootstrapConfig | None = None) -> np.ndarray:
    """How often each world is drawn in each replicate.

    Args:
        worlds: Number of worlds S, >= 1.
        config: Replicates and seed.

    Returns:
        Counts as float64, shape [replicates, S]; every row sums to S.

    Raises:
        ValueError: If there is no world.
    """
    config = config or BootstrapConfig()
    if worlds < 1:
        raise ValueError(f"worlds is {worlds}; a bootstrap needs at least one world")
    generator = np.random.Generator(np.random.Philox(key=config.seed))
    drawn = generator.integers(0, worlds, size=(config.replicates, worlds))
    flat = drawn + worlds * np.arange(config.replicates)[:, None]
    return np.bincount(flat.ravel(), minlength=config.replicates * worlds).reshape(-1, worlds).astype(np.float64)


def rate_interval(counts: np.ndarray, trials: int, config: BootstrapConfig | None = None) -> Interval:
    """Rate of a per-world count with its percentile interval over worlds.

    Args:
        counts: Integers per world, shape [..., S]; negative values are allowed (a difference of counts).
        trials: Fixed denominator of one world, for example 12 vehicles.
        config: Replicates, level and seed.

    Returns:
        The rate and its limits, shape [...].

    Raises:
        ValueError: If `trials` is below 1 or there is no world.
    """
    config = config or BootstrapConfig()
    if trials < 1:
        raise ValueError(f"trials is {trials}; it must be >= 1")
    values = np.asarray(counts, dtype=np.float64)
    worlds = values.shape[-1]
    resampled = values @ world_weights(worlds, config).T / (trials * worlds)
    tail = 50.0 * (1.0 - config.level)
    low, high = np.percentile(resampled, [tail, 100.0 - tail], axis=-1)
    return Interval(values.sum(axis=-1) / (trials * worlds), low, high)


def paired_difference(
    counts: np.ndarray, reference: np.ndarray, trials: int, config: BootstrapConfig | None = None
) -> Interval:
    """Mean per-world difference of rates against a reference on the same worlds.

    Args:
        counts: Integers per world, shape [..., S].
        reference: Integers of the reference on the same worlds in the same order, shape [S].
        trials: Fixed denominator of one world.
        config: Replicates, level and seed.

    Returns:
        `rate(counts) - rate(reference)` and its limits, shape [...].

    Raises:
        ValueError: If the two do not hold the same number of worlds.
    """
    values, base = np.asarray(counts, dtype=np.int64), np.asarray(reference, dtype=np.int64)
    if base.ndim != 1 or values.shape[-1] != base.shape[0]:
        raise ValueError(
            f"counts hold {values.shape[-1]} worlds and reference has shape {base.shape}; pairs need the same worlds"
        )
    return rate_interval(values - base, trials, config)


def ratio_interval(numerator: np.ndarray, denominator: np.ndarray, config: BootstrapConfig | None = None) -> Interval:
    """Ratio of two sums over worlds, both recomputed in every replicate: an exposure-normalized rate.

    For example seconds with a time to collision below 1.5 s over seconds of valid driving. Replicates without exposure
    are left out of the limits.

    Args:
        numerator: Sums per world, shape [..., S].
        denominator: Exposure per world, >= 0, same shape.
        config: Replicates, level and seed.

    Returns:
        The ratio of the sums and its limits, shape [...]; NaN where there is no exposure.

    Raises:
        ValueError: If the shapes differ, a number is not finite, an exposure is negative or there is no world.
    """
    config = config or BootstrapConfig()
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if top.shape != bottom.shape:
        raise ValueError(f"numerator has shape {top.shape} and denominator {bottom.shape}; they must agree")
    if not (np.isfinite(top).all() and np.isfinite(bottom).all()):
        raise ValueError("numerator and denominator must be finite")
    if (bottom < 0.0).any():
        raise ValueError(f"denominator is {bottom.min():g} in a world; an exposure must be >= 0")
    weights = world_weights(top.shape[-1], config).T
    tail = 50.0 * (1.0 - config.level)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = (top @ weights) / (bottom @ weights)
        estimate = top.sum(axis=-1) / bottom.sum(axis=-1)
    resampled[~np.isfinite(resampled)] = np.nan
    seen = np.asarray(np.isfinite(resampled).any(axis=-1, keepdims=True))
    limits = np.nanpercentile(np.where(seen, resampled, 0.0), [tail, 100.0 - tail], axis=-1)
    low, high = (np.where(seen[..., 0], limit, np.nan) for limit in limits)
    return Interval(estimate, low, high)
