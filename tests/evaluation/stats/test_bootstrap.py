"""The world bootstrap against exact enumeration, the normal limit and simulated coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sf3d_envs.evaluation.stats import (
    BootstrapConfig,
    paired_difference,
    rate_interval,
    ratio_interval,
    world_weights,
)


def test_every_replicate_draws_as_many_worlds_as_there_are():
    weights = world_weights(17)
    assert weights.shape == (2000, 17)
    assert (weights.sum(axis=1) == 17).all()
    assert weights.mean() == pytest.approx(1.0)
    assert weights.var(axis=0) == pytest.approx(np.full(17, 16 / 17), rel=0.25)


def test_limits_are_the_percentiles_of_the_enumerated_resamples():
    """Four worlds have 4^4 equally likely resamples; the exact distribution of their mean is known."""
    counts = np.array([0, 2, 5, 12])
    exact = np.sort([sum(counts[list(draw)]) / 48 for draw in itertools.product(range(4), repeat=4)])
    got = rate_interval(counts, 12, BootstrapConfig(replicates=200_000))
    assert got.estimate == counts.sum() / 48
    assert got.low == pytest.approx(np.percentile(exact, 2.5), abs=1 / 48)
    assert got.high == pytest.approx(np.percentile(exact, 97.5), abs=1 / 48)


def test_many_worlds_give_the_normal_interval():
    rng = np.random.default_rng(1)
    counts = rng.binomial(12, 0.6, size=500)
    half = 1.96 * counts.std() / 12 / np.sqrt(counts.size)
    got = rate_interval(counts, 12, BootstrapConfig(replicates=10_000))
    assert got.high - got.estimate == pytest.approx(half, rel=0.05)
    assert got.estimate - got.low == pytest.approx(half, rel=0.05)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Over-dispersed worlds: coverage near 95 %, while pooling the vehicles as if independent falls far short."""
    rng = np.random.default_rng(2)
    trials, worlds, mean = 400, 60, 0.7
    own = rng.beta(1.4, 0.6, size=(trials, worlds))
    counts = rng.binomial(12, own)
    got = rate_interval(counts, 12, BootstrapConfig(replicates=1000))
    covered = np.mean((got.low <= mean) & (mean <= got.high))
    assert 0.91 <= covered <= 0.98
    pooled = 1.96 * np.sqrt(got.estimate * (1 - got.estimate) / (12 * worlds))
    assert np.mean(np.abs(got.estimate - mean) <= pooled) < 0.8


def test_a_constant_shift_has_no_width_when_worlds_are_paired():
    rng = np.random.default_rng(3)
    reference = rng.integers(3, 13, size=40)
    got = paired_difference(reference - 3, reference, 12)
    assert got.estimate == got.low == got.high == -0.25


def test_pairing_narrows_the_interval_of_correlated_worlds():
    rng = np.random.default_rng(4)
    reference = rng.integers(2, 12, size=100)
    counts = reference - rng.integers(0, 2, size=100)
    paired = paired_difference(counts, reference, 12)
    apart = rate_interval(counts, 12)
    assert paired.high - paired.low < 0.25 * (apart.high - apart.low)
    assert paired.estimate == pytest.approx(apart.estimate - rate_interval(reference, 12).estimate)


def test_leading_shapes_are_kept_and_rows_share_their_resamples():
    counts = np.array([[0, 3, 6], [1, 4, 7]])
    got = rate_interval(counts, 12)
    assert got.estimate.shape == got.low.shape == got.high.shape == (2,)
    assert got.low[1] - got.low[0] == pytest.approx(1 / 12)


def test_the_seed_decides():
    counts = np.arange(30) % 13
    one, again = rate_interval(counts, 12), rate_interval(counts, 12)
    other = rate_interval(counts, 12, BootstrapConfig(seed=7, replicates=50))
    assert (one.low, one.high) == (again.low, again.high)
    assert other.low != one.low


@pytest.mark.parametrize(
    ("settings", "name"), [({"replicates": 0}, "replicates"), ({"level": 1.0}, "level"), ({"seed": -1}, "seed")]
)
def test_settings_are_checked(settings, name):
    with pytest.raises(ValueError, match=f"{name} is"):
        BootstrapConfig(**settings)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="worlds is 0"):
        rate_interval(np.zeros(0), 12)
    with pytest.raises(ValueError, match="trials is 0"):
        rate_interval(np.zeros(3), 0)
    with pytest.raises(ValueError, match="same worlds"):
        paired_difference(np.zeros(3), np.zeros(4), 12)


def test_counts_are_whole_numbers():
    with pytest.raises(ValueError, match=r"counts\[1\] is 0.5; counts must be finite whole numbers"):
        rate_interval(np.array([1.0, 0.5]), 12)
    with pytest.raises(ValueError, match=r"reference\[0\] is nan"):
        paired_difference(np.zeros(2), np.array([np.nan, 1.0]), 12)


def test_trials_by_group():
    counts = np.random.default_rng(5).integers(0, 6, (3, 2, 40))
    got = rate_interval(counts, np.array([5, 7]))
    for i, j in np.ndindex(3, 2):
        alone = rate_interval(counts[i, j], (5, 7)[j])
        assert (got.estimate[i, j], got.low[i, j], got.high[i, j]) == (alone.estimate, alone.low, alone.high)


def test_an_interval_says_whether_it_excludes_zero():
    got = paired_difference(np.array([[1, 2, 3], [4, 2, 3], [5, 6, 7]]), np.array([3, 2, 4]), 12)
    assert got.excludes_zero.tolist() == [False, False, True]


def test_replicates_without_exposure_are_left_out_and_counted():
    """Of four worlds one has exposure: a replicate misses it with chance (3/4)^4."""
    got = ratio_interval(np.array([3, 0, 0, 0]), np.array([6, 0, 0, 0]), BootstrapConfig(replicates=20_000))
    assert (got.estimate, got.low, got.high) == (0.5, 0.5, 0.5)
    assert got.undefined == pytest.approx(0.75**4, abs=0.01)
