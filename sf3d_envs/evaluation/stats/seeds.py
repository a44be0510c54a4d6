"""Training variability: mean, standard deviation and t-interval over the estimates of the training seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SeedSummary:
    """Summary of n per-seed estimates; arrays have the leading shape of the estimates.

    Attributes:
        mean: Mean over seeds.
        sd: Standard deviation (n − 1 in the denominator); NaN for one seed.
        low: Lower limit of the t-interval; NaN for one seed.
        high: Upper limit; NaN for one seed.
        seeds: Number of seeds n.
        level: Coverage asked for.
        reason: Why there is no interval; empty where there is one.
    """

    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int
    level: float
    reason: str = ""

    @property
    def dof(self) -> int:
        """Degrees of freedom, n − 1."""
        return self.seeds - 1

    @property
    def excludes_zero(self) -> np.ndarray:
        """Whether zero lies outside the limits; False where there is no interval."""
        return (self.low > 0.0) | (self.high < 0.0)


def seed_summary(values: np.ndarray | Sequence[float], level: float = 0.95) -> SeedSummary:
    """Mean, standard deviation and t-interval over training seeds (paper, app. "Statistics").

    mean ± t(n − 1, (1 + level)/2) · sd / √n: three degrees of freedom for four seeds. It assumes roughly normal
    estimates of independent training runs, and says nothing about the worlds, which the seeds share.

    Args:
        values: One estimate per seed, shape [..., n].
        level: Coverage, in (0, 1).

    Returns:
        The summary, shape [...]. One seed has a mean alone: the rest is NaN, and `reason` says so.

    Raises:
        ValueError: If there is no seed, a value is not finite, or the level lies outside (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] < 1:
        raise ValueError(f"values has shape {array.shape}; a summary needs at least one seed")
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"values{list(at)} is {array[at]}; the estimates must be finite")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must lie in (0, 1)")
    from scipy.special import stdtrit

    n = array.shape[-1]
    mean = array.mean(axis=-1)
    if n == 1:
        none = np.full(mean.shape, np.nan)
        return SeedSummary(mean, none, none, none, 1, level, "one seed: no spread between training runs to measure")
    sd = array.std(axis=-1, ddof=1)
    half = stdtrit(n - 1, 0.5 * (1.0 + level)) * sd / np.sqrt(n)
    return SeedSummary(mean, sd, mean - half, mean + half, n, level)
