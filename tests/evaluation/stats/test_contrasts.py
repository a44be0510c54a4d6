"""Hand-worked and brute-force values of the statistics, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats as reference

from sf3d_envs.evaluation.stats import (
    BootstrapConfig,
    decompose,
    failure_hazard,
    family_contrast,
    interaction_contrast,
    nested_difference,
    nested_rate,
    ratio_interval,
    spearman,
    summarize_seeds,
    world_table,
    world_weights,
)

from .made_tables import vehicle_table

FEW = BootstrapConfig(replicates=200)


def passages(*rows: str) -> np.ndarray:
    return np.array([[mark == "1" for mark in row] for row in rows])


CELLS = {
    ("a", "reference"): passages("111111111111", "111100001111", "000000000001"),
    ("a", "mu018"): passages("111110000000", "111100001110", "100000000001"),
    ("a", "gradeN045"): passages("111111111110", "111100001111", "000000000001"),
    ("a", "gradeN045-mu018"): passages("111100000000", "111100001100", "000000000000"),
}


@pytest.fixture
def table() -> pl.DataFrame:
    return vehicle_table(CELLS)


def test_tables_are_arranged_whatever_the_order_of_rows(table) -> None:
    found = world_table(table, conditions=["mu018", "reference"])
    assert found.agents == ("a",) and found.conditions == ("mu018", "reference") and found.seeds == (0, 1, 2)
    assert found.counts.tolist() == [[[5, 7, 2], [12, 8, 1]]]
    assert np.array_equal(found.cell("a", "mu018"), CELLS["a", "mu018"])
    closing = world_table(table, lane="closing")
    assert closing.vehicles == (0, 1, 2, 3, 4)
    assert closing.counts[0, closing.conditions.index("reference")].tolist() == [5, 4, 0]


def test_decomposition_by_hand(table) -> None:
    found = decompose(table, "a", "mu018", config=FEW)
    assert found.kept.estimate == 13 / 36 and found.lost.estimate == 8 / 36
    assert found.gained.estimate == 1 / 36 and found.persistent.estimate == 14 / 36
    assert sum(found.lost_by_outcome[name].estimate for name in found.lost_by_outcome) == found.lost.estimate
    assert list(found.lost_by_outcome) == ["collision"]
    assert found.lost.low <= found.lost.estimate <= found.lost.high
    opened = decompose(table, "a", "mu018", lane="open", config=FEW)
    assert opened.lost.estimate == 8 / 21 and opened.kept.estimate == 4 / 21


def test_gained_less_lost_is_the_sensitivity(table) -> None:
    counts = world_table(table, conditions=["mu018", "reference"]).counts[0]
    found = decompose(table, "a", "mu018", config=FEW)
    assert found.gained.estimate - found.lost.estimate == pytest.approx((counts[0] - counts[1]).sum() / 36)


def test_interaction_by_hand(table) -> None:
    found = interaction_contrast(table, "a", "gradeN045-mu018", "mu018", "gradeN045", config=FEW)
    worlds = np.array([4 - 5 - 11 + 12, 6 - 7 - 8 + 8, 0 - 2 - 1 + 1])
    assert found.estimate == worlds.sum() / 36
    resampled = world_weights(3, FEW) @ worlds / 36
    assert found.low == pytest.approx(np.percentile(resampled, 2.5))
    assert found.high == pytest.approx(np.percentile(resampled, 97.5))


def test_family_contrast_by_hand() -> None:
    rng = np.random.default_rng(0)
    names = [f"{family}-{k}" for family in ("child", "parent") for k in range(2)]
    cells = {(n, c): rng.random((4, 12)) < 0.6 for n in names for c in ("reference", "mu018")}
    found = family_contrast(vehicle_table(cells), names[:2], names[2:], "mu018", "reference", FEW)
    by_hand = [
        sum(
            sign * cells[agent, c].mean()
            for agent, c, sign in (
                *((f"child-{k}", "mu018", 1), (f"child-{k}", "reference", -1)),
                *((f"parent-{k}", "mu018", -1), (f"parent-{k}", "reference", 1)),
            )
        )
        for k in range(2)
    ]
    assert found.estimate.tolist() == pytest.approx([*by_hand, np.mean(by_hand)])
    level = family_contrast(vehicle_table(cells), names[:2], names[2:], "mu018", config=FEW)
    assert level.estimate[0] == pytest.approx(cells["child-0", "mu018"].mean() - cells["parent-0", "mu018"].mean())


def test_ratios_are_of_sums_and_not_means_of_ratios() -> None:
    found = ratio_interval(np.array([1.0, 0.0, 3.0]), np.array([10.0, 0.0, 10.0]), FEW)
    assert found.estimate == 0.2
    weights = world_weights(3, FEW)
    bottom = weights @ [10.0, 0.0, 10.0]
    resampled = (weights @ [1.0, 0.0, 3.0])[bottom > 0] / bottom[bottom > 0]
    assert found.low == pytest.approx(np.percentile(resampled, 2.5))
    nothing = ratio_interval(np.zeros((2, 3)), np.zeros((2, 3)), FEW)
    assert np.isnan(nothing.estimate).all() and np.isnan(nothing.low).all()


def test_nested_bootstrap_against_plain_loops() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 13, size=(3, 5))
    config = BootstrapConfig(replicates=50)
    worlds = world_weights(5, config)
    drawn = np.random.Generator(np.random.Philox(key=[config.seed, 1])).integers(0, 3, size=(50, 3))
    plain = [np.mean([(counts[k] * worlds[r]).sum() / 60 for k in drawn[r]]) for r in range(50)]
    found = nested_rate(counts, 12, config)
    assert found.estimate == pytest.approx(counts.mean() / 12)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(plain, [2.5, 97.5])))
    zero = nested_difference(counts, counts, 12, config)
    assert zero.estimate == zero.low == zero.high == 0.0


def test_seed_summary_is_students() -> None:
    values = np.array([0.61, 0.70, 0.66, 0.75])
    found = summarize_seeds(values)
    low, high = reference.t.interval(0.95, 3, values.mean(), values.std(ddof=1) / 2.0)
    assert (float(found.low), float(found.high)) == pytest.approx((low, high)) and found.seeds == 4


def test_spearman_is_exact_for_few_checkpoints() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 5.0])
    found = spearman(x, y)
    assert found.rho == pytest.approx(0.8) and found.count == 5
    rhos = [reference.spearmanr(p, y).statistic for p in itertools.permutations(x)]
    assert found.p_value == pytest.approx(np.mean(np.abs(rhos) >= 0.8 - 1e-12))


def test_hazard_by_hand() -> None:
    """Four vehicles over five seconds; exposure counts two seconds later."""
    risk = passages("11110", "11111", "11100", "11111").reshape(1, 4, 5)
    fail = passages("00010", "00000", "00100", "00001").reshape(1, 4, 5)
    mark = passages("01000", "11100", "10000", "00010").reshape(1, 4, 5)
    found = failure_hazard(risk, fail, mark, FEW)
    # Seconds 2-4 at risk: 2, 3, 1, 3; exposed by seconds 0-2: {3}, {2, 3, 4}, {2}, {}.
    assert (found.exposed_failures, found.exposed_seconds) == (2, 5)
    assert (found.failures, found.seconds) == (1, 4)
    assert found.ratio == pytest.approx((2 / 5) / (1 / 4))
    assert np.isnan(found.low)  # fewer than three exposed failures show counts alone


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.filter(pl.col("scenario_seed") != 2), None),
        (lambda t: t.filter((pl.col("scenario_seed") != 2) | (pl.col("condition") != "mu018")), ["mu018", "world 2"]),
        (lambda t: t.filter((pl.col("vehicle") != 3) | (pl.col("condition") != "mu018")), ["different vehicles"]),
        (lambda t: t.filter((pl.col("vehicle") != 3) | (pl.col("scenario_seed") != 1)), ["rows for 3 worlds"]),
        (lambda t: pl.concat([t, t.filter(pl.col("condition") == "mu018")[:1]]), ["2 times"]),
        (lambda t: t.clear(), ["no rows"]),
        (lambda t: t.drop("outcome"), ["lacks", "outcome"]),
        (lambda t: t.with_columns(pl.lit(None, dtype=pl.String).alias("outcome")), ["nulls"]),
        (lambda t: t.filter(pl.col("condition") != "mu018"), ["mu018", "no rows"]),
    ],
)
def test_tables_that_do_not_pair(table, change, words) -> None:
    changed = change(table)
    if words is None:
        assert decompose(changed, "a", "mu018", config=FEW).kept.estimate == 11 / 24 + 1 / 24
        return
    with pytest.raises(ValueError) as caught:
        decompose(changed, "a", "mu018", config=FEW)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: decompose(t, "a", "reference"), ["both"]),
        (lambda t: decompose(t, "b", "mu018"), ["agent 'b'", "a"]),
        (lambda t: decompose(t, "a", "mu018", lane="left"), ["lane", "left"]),
        (lambda t: interaction_contrast(t, "a", "mu018", "mu018", "gradeN045"), ["four conditions"]),
        (lambda t: family_contrast(t, ["a"], [], "mu018"), ["one to one"]),
        (lambda t: summarize_seeds(np.array([0.5])), ["two seeds"]),
        (lambda t: summarize_seeds(np.array([0.5, np.nan])), ["finite"]),
        (lambda t: spearman(np.arange(3.0), np.arange(4.0)), ["equally many"]),
        (lambda t: spearman(np.ones(4), np.arange(4.0)), ["for every checkpoint"]),
        (lambda t: ratio_interval(np.ones(3), -np.ones(3)), [">= 0"]),
        (lambda t: ratio_interval(np.ones(3), np.ones(4)), ["shape"]),
        (lambda t: nested_rate(np.ones(3), 12), ["[..., seeds, worlds]"]),
        (lambda t: nested_difference(np.ones((2, 3)), np.ones((2, 4)), 12), ["pairs"]),
        (lambda t: failure_hazard(*[np.zeros((1, 1, 2), bool)] * 3), ["3 seconds"]),
        (lambda t: failure_hazard(np.zeros((1, 1, 4), bool), *[np.ones((1, 1, 4), bool)] * 2), ["at risk"]),
    ],
)
def test_what_is_refused(table, call, words) -> None:
    with pytest.raises(ValueError) as caught:
        call(table)
    for word in words:
        assert word in str(caught.value)


def test_hazard_wants_marks() -> None:
    with pytest.raises(TypeError, match="failed must be bool"):
        failure_hazard(np.zeros((1, 1, 4), bool), np.zeros((1, 1, 4)), np.zeros((1, 1, 4), bool))
