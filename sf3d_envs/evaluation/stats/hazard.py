"""Discrete-time hazard of a vehicle's own failure, second by second, with and without an exposure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .bootstrap import BootstrapConfig, world_weights


@dataclass(frozen=True)
class Hazard:
    """Failures per vehicle-second at risk, by exposure one second earlier.

    Attributes:
        ratio: Hazard of the exposed over that of the unexposed; NaN if either saw no failure or no time at risk.
        low: Lower limit over worlds; NaN with fewer than ``MIN_FAILURES`` exposed failures.
        high: Upper limit.
        exposed_failures: Failures in exposed seconds.
        exposed_seconds: Vehicle-seconds at risk and exposed.
        failures: Failures in unexposed seconds.
        seconds: Vehicle-seconds at risk and not exposed.
    """

    ratio: float
    low: float
    high: float
    exposed_failures: int
    exposed_seconds: int
    failures: int
    seconds: int


MIN_FAILURES = 3
"""Exposed failures below which only counts are given (paper, Table 17)."""


def failure_hazard(
    at_risk: np.ndarray, failed: np.ndarray, indicator: np.ndarray, config: BootstrapConfig | None = None
) -> Hazard:
    """Hazard ratio of failing in a second, given an indicator in the second that ends one second before it begins.

    Discrete time in bins of 1 s (paper, Table 17): the ratio is (d1/n1)/(d0/n0) with failures d and vehicle-seconds at
    risk n, pooled over seconds. A vehicle is at risk in second b while it is valid, has not crossed and its world was
    not reset. Exposure in second b is the indicator of second b - 2, the one that ends 1 s before b begins, which keeps
    the divergence just before contact out of it; the first two seconds carry no exposure and are left out.

    Args:
        at_risk: Whether a vehicle is at risk at the beginning of a second, bool [S, V, B].
        failed: Whether it fails in that second, bool [S, V, B].
        indicator: Whether the indicator was on at any time in a second, bool [S, V, B].
        config: Bootstrap settings; worlds are resampled jointly.

    Raises:
        TypeError: If an array is not bool.
        ValueError: If shapes differ or are not [S, V, B] with B >= 3, or a vehicle fails while it is not at risk.
    """
    config = config or BootstrapConfig()
    arrays = {"at_risk": np.asarray(at_risk), "failed": np.asarray(failed), "indicator": np.asarray(indicator)}
    for name, array in arrays.items():
        if array.dtype != np.bool_:
            raise TypeError(f"{name} must be bool, got {array.dtype}")
    risk, fail, mark = arrays.values()
    if risk.ndim != 3 or risk.shape[-1] < 3 or fail.shape != risk.shape or mark.shape != risk.shape:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"arrays must be [worlds, vehicles, seconds] with at least 3 seconds, got {shapes}")
    if (fail & ~risk).any():
        w, v, b = (int(i) for i in np.argwhere(fail & ~risk)[0])
        raise ValueError(f"world {w}, vehicle {v} fails in second {b} without being at risk")
    risk, fail, mark = risk[..., 2:], fail[..., 2:], mark[..., :-2]
    parts = [part & what for what in (fail, risk) for part in (mark, ~mark)]
    per_world = np.stack([part.sum(axis=(1, 2)) for part in parts])
    d1, d0, n1, n0 = (int(total) for total in per_world.sum(axis=1))
    resampled = _ratio(per_world @ world_weights(risk.shape[0], config).T)
    tail = 50.0 * (1.0 - config.level)
    low = high = float("nan")
    if d1 >= MIN_FAILURES and np.isfinite(resampled).any():
        low, high = (float(x) for x in np.nanpercentile(resampled, [tail, 100.0 - tail]))
    ratio = float(_ratio(np.array([d1, d0, n1, n0], dtype=np.float64)[:, None])[0])
    return Hazard(ratio, low, high, d1, n1, d0, n0)


def _ratio(totals: np.ndarray) -> np.ndarray:
    """(d1/n1)/(d0/n0) of rows d1, d0, n1, n0; NaN where it is not defined."""
    d1, d0, n1, n0 = totals.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (d1 / n1) / (d0 / n0)
    return np.where(np.isfinite(ratio) & (d0 > 0), ratio, np.nan)
