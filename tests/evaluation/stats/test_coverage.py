"""Whether intervals hold the truth as often as they say, on simulated studies; vectorized over repeats."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.evaluation.stats import (
    NESTED_COVERAGE_4_SEEDS,
    BootstrapConfig,
    failure_hazard,
    nested_rate,
    paired_difference,
    rate_interval,
    ratio_interval,
    summarize_seeds,
)

from .made_tables import correlated

REPEATS, WORLDS, VEHICLES = 1000, 64, 12
CONFIG = BootstrapConfig(replicates=1000)


def coverage(interval, truth) -> float:
    return float(np.mean((interval.low <= truth) & (truth <= interval.high)))


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(7)
    return correlated(rng, REPEATS, WORLDS, VEHICLES, [0.8, 0.6, 0.7, 0.45])


def test_the_world_bootstrap_covers_rates(study) -> None:
    counts, truth = study
    for k, rate in enumerate(truth):
        assert 0.92 <= coverage(rate_interval(counts[:, k], VEHICLES, CONFIG), rate) <= 0.98


def test_the_world_bootstrap_covers_paired_differences(study) -> None:
    counts, truth = study
    for k in (1, 2, 3):
        difference = rate_interval(counts[:, k] - counts[:, 0], VEHICLES, CONFIG)
        assert 0.92 <= coverage(difference, truth[k] - truth[0]) <= 0.98
    one = paired_difference(counts[0, 1:], counts[0, 0], VEHICLES, CONFIG)
    again = rate_interval(counts[0, 1:] - counts[0, 0], VEHICLES, CONFIG)
    assert np.array_equal(one.low, again.low) and np.array_equal(one.high, again.high)


def test_pairing_narrows_the_interval(study) -> None:
    counts, _ = study
    paired = rate_interval(counts[:, 1] - counts[:, 0], VEHICLES, CONFIG)
    apart = rate_interval(np.concatenate([counts[:, 1], -counts[:, 0]], axis=-1), VEHICLES, CONFIG)
    assert np.median(paired.high - paired.low) < 0.7 * 2.0 * np.median(apart.high - apart.low)


def test_the_interaction_is_covered(study) -> None:
    counts, truth = study
    contrast = counts[:, 3] - counts[:, 1] - counts[:, 2] + counts[:, 0]
    expected = truth[3] - truth[1] - truth[2] + truth[0]
    assert 0.92 <= coverage(rate_interval(contrast, VEHICLES, CONFIG), expected) <= 0.98


def test_exposure_ratios_are_covered() -> None:
    """Seconds of short time to collision over seconds of valid driving, both random and dependent."""
    rng = np.random.default_rng(11)
    exposure = rng.gamma(4.0, 10.0, size=(REPEATS, WORLDS))
    share = rng.beta(2.0, 18.0, size=(REPEATS, WORLDS))
    interval = ratio_interval(share * exposure, exposure, CONFIG)
    assert 0.92 <= coverage(interval, 0.1) <= 0.98


def test_the_t_interval_of_four_seeds_is_covered() -> None:
    rng = np.random.default_rng(3)
    found = summarize_seeds(rng.normal(0.7, 0.05, size=(4, 20_000)))
    assert np.mean((found.low <= 0.7) & (0.7 <= found.high)) == pytest.approx(0.95, abs=0.006)


def nested_study(rng, repeats: int, seeds: int, worlds: int = 64, spread: float = 0.1):
    """Counts [repeats, seeds, worlds]: seeds scatter by ``spread``, worlds share their difficulty over seeds."""
    level = np.clip(0.6 + spread * rng.normal(size=(repeats, seeds, 1)), 0.02, 0.98)
    world = 0.1 * rng.normal(size=(repeats, 1, worlds))
    return rng.binomial(VEHICLES, np.clip(level + world, 0.0, 1.0)), 0.6


def test_the_nested_bootstrap_of_four_seeds_covers_what_is_documented() -> None:
    counts, truth = nested_study(np.random.default_rng(5), 1500, 4)
    found = coverage(nested_rate(counts, VEHICLES, BootstrapConfig(replicates=800)), truth)
    assert found == pytest.approx(NESTED_COVERAGE_4_SEEDS, abs=0.03)
    assert found < 0.92  # it cannot do what it says


def test_the_nested_bootstrap_gets_there_with_many_seeds() -> None:
    counts, truth = nested_study(np.random.default_rng(6), 400, 40)
    assert coverage(nested_rate(counts, VEHICLES, BootstrapConfig(replicates=500)), truth) > 0.91


def test_hazard_ratios_are_covered() -> None:
    """Failures at 2 % per second, five times that after exposure; worlds differ in their exposure."""
    rng = np.random.default_rng(9)
    seconds, hits, repeats = 20, 0, 500
    config = BootstrapConfig(replicates=400)
    for _ in range(repeats):
        chance = np.clip(rng.beta(2.0, 8.0, size=(64, 1, 1)), 0.0, 1.0)
        mark = rng.random((64, VEHICLES, seconds)) < chance
        rate = np.full(mark.shape, 0.02)
        rate[..., 2:] = np.where(mark[..., :-2], 0.10, 0.02)
        fails = rng.random(mark.shape) < rate
        alive = np.cumsum(fails, axis=-1) - fails == 0
        found = failure_hazard(alive, fails & alive, mark, config)
        hits += found.low <= 5.0 <= found.high
    assert 0.92 <= hits / repeats <= 0.98
