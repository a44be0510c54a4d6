"""Summaries over training seeds: textbook values, coverage of the t-interval, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.evaluation.stats import seed_summary


def test_by_hand():
    """-.2, -.3, -.1, -.4: sd 0.1291, t(3, 97.5 %) = 3.18245 (any table)."""
    got = seed_summary([-0.2, -0.3, -0.1, -0.4])
    half = 3.182446 * np.sqrt(0.05 / 3) / 2
    assert got.dof == 3
    assert float(got.mean) == pytest.approx(-0.25)
    assert float(got.sd) == pytest.approx(np.sqrt(0.05 / 3))
    assert (float(got.low), float(got.high)) == pytest.approx((-0.25 - half, -0.25 + half), rel=1e-6)
    assert bool(got.excludes_zero)


def test_leading_shapes_and_level():
    values = np.random.default_rng(0).normal(size=(3, 2, 5))
    got, narrow = seed_summary(values), seed_summary(values, level=0.5)
    assert got.low.shape == (3, 2)
    assert (narrow.low > got.low).all()
    assert got.low[2, 1] == seed_summary(values[2, 1]).low


def test_coverage_of_four_normal_seeds():
    values = np.random.default_rng(1).normal(0.3, 0.2, size=(20_000, 4))
    got = seed_summary(values)
    assert np.mean((got.low <= 0.3) & (0.3 <= got.high)) == pytest.approx(0.95, abs=0.005)


def test_one_seed_has_a_mean_and_a_reason():
    got = seed_summary([[0.5], [0.7]])
    assert got.mean.tolist() == [0.5, 0.7]
    assert np.isnan([got.sd, got.low, got.high]).all()
    assert "one seed" in got.reason
    assert not got.excludes_zero.any()


def test_equal_seeds_have_no_width():
    got = seed_summary([0.25, 0.25])
    assert (got.low, got.high, got.sd) == (0.25, 0.25, 0.0)


@pytest.mark.parametrize(
    ("values", "level", "text"),
    [
        ([], 0.95, "at least one seed"),
        (0.5, 0.95, r"values has shape \(\)"),
        ([0.1, np.nan], 0.95, r"values\[1\] is nan"),
        ([0.1, 0.2], 1.0, "level is 1.0"),
    ],
)
def test_bad_input(values, level, text):
    with pytest.raises(ValueError, match=text):
        seed_summary(values, level)
