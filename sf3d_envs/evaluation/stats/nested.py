"""Nested bootstrap: training seeds, then one common set of worlds for all of them (paper, app. "Statistics").

It is reported beside, not instead of, the seed-level summary, and creates no further training runs. With four seeds it
is too narrow: the variance of resampled seeds is (n − 1)/n of that between training runs, and percentile limits know
nothing of Student's t. A nominal 95 % interval covers 84 % at four seeds; `NESTED_COVERAGE` holds the figures, and
`NestedInterval.note` is the sentence to print beside the interval.

They were simulated with a standard deviation of 0.13 between seeds and 0.10 between the worlds that all seeds share,
twelve vehicles a world, 64 worlds, 20,000 families each (`tests/evaluation/stats/simulated.py`; Monte-Carlo error 0.003
or less). What seeds add decides: at four seeds 97 % with 0.02 between seeds, 91 % with 0.05, 85 % with 0.10, 82 % with
0.18 (and 0.02 between worlds). More worlds do not help: 81 % with 1,024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .bootstrap import BootstrapConfig, Interval, percentile_limits, whole_counts, world_weights

NESTED_COVERAGE: Mapping[int, float] = {2: 0.655, 3: 0.785, 4: 0.838, 5: 0.866, 6: 0.880, 8: 0.904, 10: 0.914}
"""Coverage of a nominal 95 % interval by number of training seeds, simulated with 64 worlds (see the module)."""

NESTED_COVERAGE_LEVEL = 0.95
"""Nominal level that `NESTED_COVERAGE` was measured at."""


@dataclass(frozen=True)
class NestedInterval(Interval):
    """Nested interval with what is needed to judge it.

    Attributes:
        seeds: Number of training seeds n.
        worlds: Number of worlds S.
        level: Nominal coverage.
        reason: Why there is no interval (limits NaN); empty where there is one.
    """

    seeds: int
    worlds: int
    level: float
    reason: str = ""

    @property
    def coverage(self) -> float | None:
        """Coverage simulated for this number of seeds and level; None where it was not."""
        return NESTED_COVERAGE.get(self.seeds) if self.level == NESTED_COVERAGE_LEVEL else None

    @property
    def note(self) -> str:
        """Sentence to print beside the interval."""
        if self.reason:
            return self.reason
        if self.coverage is None:
            return f"nested over {self.seeds} seeds; its coverage was not measured, and few seeds cover too little"
        return (
            f"nested over {self.seeds} seeds: in simulation a nominal {100 * self.level:.0f} % interval of so few "
            f"seeds covers about {100 * self.coverage:.0f} %"
        )


def seed_weights(seeds: int, config: BootstrapConfig) -> np.ndarray:
    """How often each training seed is drawn in each replicate, float64 [replicates, seeds]; a stream of its own."""
    generator = np.random.Generator(np.random.Philox(key=np.array([config.seed, 1], dtype=np.uint64)))
    drawn = generator.integers(0, seeds, size=(config.replicates, seeds))
    return (drawn[:, :, None] == np.arange(seeds)).sum(axis=1).astype(np.float64)


def nested_rate(
    counts: np.ndarray | Sequence, trials: int | np.ndarray, config: BootstrapConfig | None = None
) -> NestedInterval:
    """Family rate with a nested interval.

    mean over seeds i and worlds s of counts_is / trials; a replicate draws n seeds, then S worlds that all drawn
    seeds share.

    Args:
        counts: Integers per seed and world, shape [..., n, S]; the worlds are the same for all seeds.
        trials: Fixed denominator of one world; one number, or an array that broadcasts to the leading shape.
        config: Replicates, level and seed.

    Returns:
        The rate and its limits, shape [...]. One seed has no interval over seeds: NaN limits, and `reason` says so.

    Raises:
        ValueError: If there is no seed or world, `trials` is below 1, or a count is not a finite whole number.
    """
    config = config or BootstrapConfig()
    values = whole_counts("counts", counts).astype(np.float64)
    if values.ndim < 2 or values.shape[-2] < 1:
        raise ValueError(f"counts has shape {values.shape}; it must be [..., seeds, worlds] with at least one seed")
    wide = np.asarray(trials)
    if (wide < 1).any():
        raise ValueError(f"trials is {trials}; it must be >= 1")
    n, worlds = values.shape[-2:]
    denominator = wide * n * worlds
    estimate = values.sum(axis=(-2, -1)) / denominator
    if n == 1:
        none = np.full(np.shape(estimate), np.nan)
        return NestedInterval(estimate, none, none, 1, worlds, config.level, "one seed: there are no seeds to resample")
    per_seed = values @ world_weights(worlds, config).T
    replicates = np.einsum("...nr,rn->...r", per_seed, seed_weights(n, config)) / denominator[..., None]
    low, high = percentile_limits(replicates, config)
    return NestedInterval(estimate, low, high, n, worlds, config.level)


def nested_difference(
    counts: np.ndarray | Sequence,
    reference: np.ndarray | Sequence,
    trials: int | np.ndarray,
    config: BootstrapConfig | None = None,
) -> NestedInterval:
    """Family mean of the per-world difference, paired by seed and by world.

    Args:
        counts: Integers, shape [..., n, S].
        reference: Integers of the same seeds on the same worlds, of a shape that broadcasts and ends with [n, S].
        trials: As `nested_rate`.
        config: Replicates, level and seed.

    Returns:
        The difference and its limits, shape [...].

    Raises:
        ValueError: If seeds or worlds do not pair, and as `nested_rate`.
    """
    values, base = whole_counts("counts", counts), whole_counts("reference", reference)
    if values.ndim < 2 or base.ndim < 2 or values.shape[-2:] != base.shape[-2:]:
        raise ValueError(
            f"counts has shape {values.shape} and reference {base.shape}; both must end with the same [seeds, worlds]"
        )
    return nested_rate(values - base, trials, config)
