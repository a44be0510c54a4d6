"""Outcome classes of the same worlds on both solver paths."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.verification.outcomes_between_solvers import ConditionComparison, compare_solvers


def test_a_comparison_counts_what_changed() -> None:
    outcome = np.array([[["pass", "collision"], ["pass", "pass"]], [["pass", "pass"], ["pass", "fault"]]])
    result = ConditionComparison(
        condition="mu018",
        seeds=(7, 8),
        outcome=outcome,
        passed=outcome == "pass",
        touch_step=np.array([5, -1]),
        split_step=np.array([9, 4]),
    )
    assert result.changes == {("collision", "pass"): 1, ("pass", "fault"): 1}
    assert result.passage == (0.75, 0.75)
    assert result.split_before_touch.tolist() == [False, True]
    assert "2 of 4 vehicles changed class" in result.describe() and "[7 8]" in result.describe()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="worlds is 0"):
        compare_solvers(0, ["reference"])
    with pytest.raises(ValueError, match="mu999"):
        compare_solvers(1, ["mu999"], horizon_s=1.0)


def test_worlds_run_alike_until_they_touch() -> None:
    """World 100028 has its first collision after 7.1 s, the first of the 32."""
    result = compare_solvers(1, ["reference"], seed0=100_028, horizon_s=9.0)[0]
    assert 420 <= result.touch_step[0] <= 436
    assert result.split_step[0] > result.touch_step[0]


@pytest.mark.slow
def test_32_benchmark_worlds_end_alike() -> None:
    """A few vehicles of hundreds change class, after a touch; passage differs by at most two hundredths."""
    for result in compare_solvers(32, ["reference", "mu018", "gradeN080"]):
        assert result.changed.mean() <= 0.02, result.describe()
        assert abs(result.passage[0] - result.passage[1]) <= 0.02, result.describe()
        assert result.split_before_touch.sum() <= 1, result.describe()
        touching = result.touch_step >= 0
        assert not result.changed[~touching].any(), result.describe()
