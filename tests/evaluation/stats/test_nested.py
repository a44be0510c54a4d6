"""The nested bootstrap: common worlds, limits by enumeration, and how much less than 95 % it covers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from evaluation.stats.simulated import VEHICLES, nested_coverage

from sf3d_envs.evaluation.stats import NESTED_COVERAGE, BootstrapConfig, nested_difference, nested_rate, rate_interval


def test_limits_are_the_percentiles_of_the_enumerated_resamples():
    """Two seeds, three worlds: 2² · 3³ equally likely replicates, worlds common to both drawn seeds."""
    counts = np.array([[0, 3, 12], [6, 6, 9]])
    exact = [
        counts[np.ix_(seeds, worlds)].sum() / (2 * 3 * 12)
        for seeds in itertools.product(range(2), repeat=2)
        for worlds in itertools.product(range(3), repeat=3)
    ]
    exact = np.repeat(exact, 1000)  # so that limits lie on values, as with many replicates
    got = nested_rate(counts, 12, BootstrapConfig(replicates=200_000))
    assert got.estimate == counts.sum() / 72
    assert got.low == pytest.approx(np.percentile(exact, 2.5), abs=1 / 72)
    assert got.high == pytest.approx(np.percentile(exact, 97.5), abs=1 / 72)


def test_equal_seeds_leave_the_world_interval():
    """With one result four times over, seeds add nothing, and common worlds must not average out."""
    counts = np.random.default_rng(0).integers(0, 13, 50)
    nested, worlds = nested_rate(np.stack([counts] * 4), 12), rate_interval(counts, 12)
    assert (nested.estimate, nested.low, nested.high) == pytest.approx((worlds.estimate, worlds.low, worlds.high))


def test_differences_pair_seeds_and_worlds():
    reference = np.random.default_rng(1).integers(3, 13, (4, 30))
    got = nested_difference(reference - 3, reference, 12)
    assert got.estimate == got.low == got.high == -0.25


def test_leading_shapes_and_trials_by_group():
    counts = np.random.default_rng(2).integers(0, 6, (3, 2, 4, 20))
    got = nested_rate(counts, np.array([5, 7]))
    assert got.low.shape == (3, 2)
    assert got.high[2, 1] == pytest.approx(nested_rate(counts[2, 1], 7).high)


def test_one_seed_has_no_interval_over_seeds():
    got = nested_rate(np.array([[6, 9]]), 12)
    assert got.estimate == 15 / 24
    assert np.isnan([got.low, got.high]).all()
    assert got.note.startswith("one seed")


def test_the_documented_coverage_holds_at_four_seeds():
    """1,000 families; two binomial standard errors are 0.023. Nothing near 95 %."""
    measured = nested_coverage(4)
    assert measured == pytest.approx(NESTED_COVERAGE[4], abs=0.025)
    assert measured < 0.90


@pytest.mark.slow
@pytest.mark.parametrize("seeds", list(NESTED_COVERAGE))
def test_every_documented_coverage_holds(seeds):
    """10,000 families, other ones than the figures were made with."""
    shares = [nested_coverage(seeds, seed=5_000 + k) for k in range(10)]
    assert np.mean(shares) == pytest.approx(NESTED_COVERAGE[seeds], abs=0.012)


def test_the_figure_can_be_printed_beside_the_interval():
    counts = np.random.default_rng(3).integers(0, 13, (7, 20))
    assert nested_rate(counts[:4], 12).coverage == NESTED_COVERAGE[4]
    assert "about 84 %" in nested_rate(counts[:4], 12).note
    assert nested_rate(counts, 12).coverage is None
    assert "not measured" in nested_rate(counts, 12).note
    assert nested_rate(counts[:4], 12, BootstrapConfig(level=0.9)).coverage is None


def test_bad_input():
    with pytest.raises(ValueError, match=r"counts has shape \(3,\)"):
        nested_rate(np.zeros(3), 12)
    with pytest.raises(ValueError, match="trials is 0"):
        nested_rate(np.zeros((2, 3)), 0)
    with pytest.raises(ValueError, match=r"counts\[1, 2\] is nan; counts must be finite whole numbers"):
        nested_rate(np.array([[1, 2, 3], [1, 2, np.nan]]), VEHICLES)
    with pytest.raises(ValueError, match=r"reference \(2, 4\); both must end with the same \[seeds, worlds\]"):
        nested_difference(np.zeros((2, 3)), np.zeros((2, 4)), 12)
