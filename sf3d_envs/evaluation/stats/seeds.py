"""Summary over training seeds: mean, standard deviation and a t-interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class SeedSummary:
    """Estimates over K training seeds; arrays have the shape of one seed's estimate.

    Attributes:
        mean: Mean over seeds.
        sd: Sample standard deviation.
        low: Lower limit of the t-interval.
        high: Upper limit.
        seeds: K.
    """

    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int


def summarize_seeds(estimates: np.ndarray, level: float = 0.95) -> SeedSummary:
    """Mean, standard deviation and t-interval with K - 1 degrees of freedom (paper, sec. 5: four seeds, three).

    It assumes about normal estimates of the seeds, and speaks of training variability alone: worlds are not resampled.

    Args:
        estimates: One estimate per seed, [K, ...].
        level: Coverage, in (0, 1).

    Raises:
        ValueError: If there are fewer than two seeds, an estimate is not finite, or ``level`` is out of range.
    """
    values = np.asarray(estimates, dtype=np.float64)
    if values.ndim == 0 or values.shape[0] < 2:
        raise ValueError(f"estimates has shape {values.shape}; a t-interval needs at least two seeds")
    if not np.isfinite(values).all():
        raise ValueError("estimates must be finite")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must lie in (0, 1)")
    count = values.shape[0]
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    half = stats.t.ppf(0.5 + 0.5 * level, count - 1) * sd / np.sqrt(count)
    return SeedSummary(mean, sd, mean - half, mean + half, count)
