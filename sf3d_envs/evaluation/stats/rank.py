"""Rank correlation across checkpoints."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation.

    Attributes:
        rho: The correlation, in [-1, 1].
        p_value: Two-sided, exact by permutation up to eight checkpoints, else from the t-distribution.
        count: Number of checkpoints.
    """

    rho: float
    p_value: float
    count: int


def spearman(x: np.ndarray, y: np.ndarray) -> RankCorrelation:
    """Spearman's rho of two quantities of the same checkpoints, for example reference speed and sensitivity.

    Args:
        x: One number per checkpoint, [n], n >= 3.
        y: Likewise.

    Raises:
        ValueError: If the lengths differ, there are fewer than three, one is not finite, or one quantity is constant.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or len(first) < 3:
        raise ValueError(f"x has shape {first.shape} and y {second.shape}; give equally many numbers, at least three")
    for name, value in (("x", first), ("y", second)):
        if not np.isfinite(value).all():
            raise ValueError(f"{name} must be finite")
        if (value == value[0]).all():
            raise ValueError(f"{name} is {value[0]:g} for every checkpoint; there is no rank to correlate")
    found: Any = stats.spearmanr(first, second)
    rho, p_value = float(found.statistic), float(found.pvalue)
    if len(first) <= 8:
        ranks = stats.rankdata(second)
        orders = np.array(list(itertools.permutations(stats.rankdata(first))))
        centred, other = orders - orders[0].mean(), ranks - ranks.mean()
        rhos = centred @ other / np.sqrt((centred[0] @ centred[0]) * (other @ other))
        p_value = float(np.mean(np.abs(rhos) >= abs(rho) - 1e-12))
    return RankCorrelation(rho, p_value, len(first))
