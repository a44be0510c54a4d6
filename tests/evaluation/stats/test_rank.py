"""Spearman's ρ: closed form without ties, ties by mean rank, tables, bad input."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import random_table

from sf3d_envs.evaluation.stats import rank_by_condition, sensitivity, spearman


def test_closed_form_without_ties():
    """1 − 6 Σd² / (n(n² − 1)); the differences are 0, 1, 1, 1, 1."""
    got = spearman([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 30.0, 20.0, 50.0, 40.0])
    assert got.rho == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert got.n == 5


def test_ties_take_mean_ranks():
    """Ranks 1.5, 1.5, 3 against 1, 2, 3: Pearson of the ranks is √3/2."""
    assert spearman([4.0, 4.0, 9.0], [1.0, 2.0, 3.0]).rho == pytest.approx(np.sqrt(3) / 2)


def test_only_ranks_count():
    x = np.random.default_rng(0).normal(size=12)
    assert spearman(x, np.exp(x)).rho == pytest.approx(1.0)
    assert spearman(x, -(x**3)).rho == pytest.approx(-1.0)


def test_a_constant_side_has_a_reason():
    got = spearman([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    assert np.isnan(got.rho)
    assert got.reason == "all 3 values of y are equal"


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], "x holds 2 checkpoints"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "one number per checkpoint"),
        ([1.0, 2.0, 3.0], [1.0, np.nan, 2.0], r"y\[1\] is nan"),
    ],
)
def test_bad_input(x, y, text):
    with pytest.raises(ValueError, match=text):
        spearman(x, y)


def tables():
    frame = random_table(agents=("a", "b", "c", "d"), worlds=10)
    return pl.concat([sensitivity(frame, agent=name).frame() for name in "abcd"])


def test_across_agents_by_condition():
    table = tables()
    got = rank_by_condition(table)
    assert got["n"].to_list() == [4, 4]
    part = table.filter(pl.col("lane") == "all", pl.col("condition") == got["condition"][0])
    assert got["rho"][0] == spearman(part["reference_rate"], part["change"]).rho


def test_bad_tables():
    with pytest.raises(ValueError, match=r"lacks the columns \['speed'\]"):
        rank_by_condition(tables(), x="speed")
    with pytest.raises(ValueError, match="lane is 'middle'"):
        rank_by_condition(tables(), lane="middle")
    with pytest.raises(ValueError, match="holds agent 'a' twice"):
        rank_by_condition(pl.concat([tables(), tables()]))


def test_agrees_with_scipy():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 5, 12), rng.normal(size=12)
    assert spearman(x, y).rho == pytest.approx(spearmanr(x, y)[0])
