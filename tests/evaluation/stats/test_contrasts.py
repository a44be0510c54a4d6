"""Families, contrasts by parent seed, and additivity: hand-worked and plain versions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, pass_table, plain_interval, random_table, rows_of

from sf3d_envs.evaluation.stats import (
    BootstrapConfig,
    family_contrast,
    family_summary,
    find_compositions,
    interactions,
    seed_summary,
    sensitivity,
)
from sf3d_envs.registry import load_suite

CONFIG = BootstrapConfig(replicates=60, seed=3)
FAMILIES = {"L0-T": ["t0", "t1", "t2"], "L1": ["p0", "p1", "p2"], "small": ["s0"], "tiny": ["s1"]}
NAMES = [name for agents in FAMILIES.values() for name in agents]


@pytest.fixture(scope="module")
def table():
    return random_table(seed=4, agents=NAMES, conditions=("reference", "mu018"))


def test_a_family_is_its_seeds(table):
    got = family_summary(table, FAMILIES, "L1", config=CONFIG)
    alone = [sensitivity(table, agent=name, config=CONFIG) for name in FAMILIES["L1"]]
    assert (got.change.low == np.stack([s.change.low for s in alone])).all()
    assert (got.rate.high == np.stack([s.rate.high for s in alone])).all()
    over_seeds = seed_summary(np.stack([s.change.estimate for s in alone], axis=-1))
    assert (got.change_seeds.low == over_seeds.low).all()
    assert got.nested.estimate == pytest.approx(got.change_seeds.mean)
    assert got.frame().height == 3
    assert got.frame()["nested_coverage"].to_list() == [got.nested.coverage] * 3
    assert got.seed_frame()["agent"].unique().sort().to_list() == ["p0", "p1", "p2"]


def test_contrast_by_hand():
    """Two parent seeds, two worlds of two vehicles: changes −1/2, −1/4 of the first arm and −1/4, 0 of the second."""
    passes = {
        ("p0", "reference"): [[1, 1], [1, 1]],
        ("p0", "mu018"): [[0, 1], [1, 0]],
        ("p1", "reference"): [[1, 1], [1, 0]],
        ("p1", "mu018"): [[1, 1], [0, 0]],
        ("t0", "reference"): [[1, 1], [0, 1]],
        ("t0", "mu018"): [[1, 0], [0, 1]],
        ("t1", "reference"): [[0, 0], [1, 0]],
        ("t1", "mu018"): [[0, 0], [1, 0]],
    }
    table = pl.concat([pass_table(p, agent=a, condition=c, closing=1) for (a, c), p in passes.items()])
    got = family_contrast(table, {"L1": ["p0", "p1"], "L0-T": ["t0", "t1"]}, "L1", "L0-T", by_lane=False)
    assert got.per_seed.estimate[:, :, 0].tolist() == [[1 / 4, -1 / 4], [2 / 4, -1 / 4]]
    assert got.seeds.mean[:, 0].tolist() == [3 / 8, -1 / 4]
    assert (got.seeds.low[1, 0], got.seeds.high[1, 0]) == (-1 / 4, -1 / 4)
    frame = got.frame()
    assert frame["quantity"].to_list() == ["level", "change"]
    assert frame["contrast"].to_list() == [3 / 8, -1 / 4]
    assert got.pairs == (("p0", "t0"), ("p1", "t1"))


def test_contrast_equals_the_plain_version(table):
    got = family_contrast(table, FAMILIES, "L1", "L0-T", config=CONFIG)
    for i, pair in enumerate(got.pairs):
        cells = {(a, c): rows_of(table, agent=a, condition=c) for a in pair for c in got.conditions}

        def contrast(worlds, pair=pair, cells=cells):
            keys = [(SEED0 + w, v) for w in worlds for v in range(5)]
            rate = {k: sum(rows[key]["valid_passage"] for key in keys) / len(keys) for k, rows in cells.items()}
            first, second = (rate[a, "mu018"] - rate[a, "reference"] for a in pair)
            return first - second

        values = tuple(x[i, 1, 1] for x in (got.per_seed.estimate, got.per_seed.low, got.per_seed.high))
        assert values == pytest.approx(plain_interval(contrast, 6, CONFIG), abs=1e-12)


def test_swapped_arms_swap_the_sign(table):
    one, other = (family_contrast(table, FAMILIES, *arms) for arms in (("L1", "L0-T"), ("L0-T", "L1")))
    assert (one.per_seed.estimate == -other.per_seed.estimate).all()
    assert one.nested.low == pytest.approx(-other.nested.high)


def test_one_seed_leaves_the_interval_over_worlds(table):
    got = family_contrast(table, FAMILIES, "small", "tiny")
    assert np.isfinite(got.per_seed.low).all()
    assert np.isnan(got.seeds.low).all()
    assert "one seed" in got.seeds.reason
    assert "one seed" in got.nested.reason
    assert family_summary(table, FAMILIES, "small").frame()["nested_coverage"].null_count() == 3


@pytest.mark.parametrize(
    ("families", "arms", "text"),
    [
        ({}, ("L1", "L0"), "families is empty"),
        ({"L1": "p0"}, ("L1", "L1"), r"families\['L1'\] is 'p0'; it must be a list"),
        ({"L1": []}, ("L1", "L1"), r"families\['L1'\] is \[\]"),
        ({"L1": ["p0"], "L0": ["p0"]}, ("L1", "L0"), "agent 'p0' is named in 'L1' and 'L0'"),
        ({"L1": ["p0"], "L0": ["t0", "t1"]}, ("L1", "L0"), "have 1 and 2 agents"),
        ({"L1": ["p0"]}, ("L1", "L2"), r"second is 'L2'; families holds \['L1'\]"),
        ({"L1": ["p0"]}, ("L1", "L1"), "needs two families"),
        ({"L1": ["p9"], "L0": ["t0"]}, ("L1", "L0"), "agent is 'p9'; vehicles holds"),
    ],
)
def test_bad_families(table, families, arms, text):
    with pytest.raises(ValueError, match=text):
        family_contrast(table, families, *arms)


def test_agents_on_other_worlds(table):
    wrong = table.filter((pl.col("agent") != "t1") | (pl.col("scenario_seed") != SEED0 + 3))
    text = f"agent 't1' has 5 worlds and 'p0' has 6; the first missing seed is {SEED0 + 3}, of 't1'"
    with pytest.raises(ValueError, match=text):
        family_contrast(wrong, FAMILIES, "L1", "L0-T")


PARTS = {"both": ("mu", "grade")}


def cells(reference, mu, grade, both):
    named = {"reference": reference, "mu": mu, "grade": grade, "both": both}
    return pl.concat([pass_table(p, condition=c, closing=1) for c, p in named.items()])


def test_interaction_by_hand():
    """World 1: 2 − 1 − 2 + 1 (additive). World 2: all lost in the composition, one lost to friction alone."""
    got = interactions(
        cells([[1, 1], [1, 1]], [[1, 0], [1, 0]], [[1, 1], [1, 1]], [[0, 1], [0, 0]]), PARTS, by_lane=False
    )
    assert got.change.estimate.item() == -3 / 4
    assert got.sum_of_parts.estimate.item() == -2 / 4
    assert got.interaction.estimate.item() == -1 / 4
    assert (got.interaction.low.item(), got.interaction.high.item()) == (-0.5, 0.0)
    row = got.frame().row(0, named=True)
    assert (row["condition"], row["friction_part"], row["grade_part"]) == ("both", "mu", "grade")


def test_additive_losses_have_no_interaction_and_no_width():
    rng = np.random.default_rng(5)
    friction, grade = np.zeros((2, 20, 12), dtype=bool)
    friction[:, :6], grade[:, 6:] = rng.random((20, 6)) < 0.4, rng.random((20, 6)) < 0.3
    got = interactions(cells(np.ones((20, 12)), ~friction, ~grade, ~(friction | grade)), PARTS)
    assert not np.any([got.interaction.estimate, got.interaction.low, got.interaction.high])


def test_interaction_equals_the_plain_version():
    table = random_table(seed=6, conditions=("reference", "mu", "grade", "both"))
    got = interactions(table, PARTS, config=CONFIG)
    rows = {c: rows_of(table, condition=c) for c in ("reference", "mu", "grade", "both")}

    def contrast(worlds):
        keys = [(SEED0 + w, v) for w in worlds for v in range(5, 12)]
        vp = {c: sum(r[k]["valid_passage"] for k in keys) / len(keys) for c, r in rows.items()}
        return vp["both"] - vp["mu"] - vp["grade"] + vp["reference"]

    values = tuple(x[0, 2] for x in (got.interaction.estimate, got.interaction.low, got.interaction.high))
    assert values == pytest.approx(plain_interval(contrast, 6, CONFIG), abs=1e-12)


def test_the_registry_names_its_compositions():
    found = find_compositions(load_suite("ucx-conditions-1").conditions)
    assert found == {
        "gradeN045-mu035": ("mu035", "gradeN045"),
        "gradeN045-mu018": ("mu018", "gradeN045"),
        "gradeP030-mu035": ("mu035", "gradeP030"),
        "gradeP030-mu018": ("mu018", "gradeP030"),
    }


def test_bad_compositions():
    table = random_table()
    with pytest.raises(ValueError, match="compositions is empty"):
        interactions(table, {})
    with pytest.raises(ValueError, match=r"compositions\['mu018'\].*needs four different conditions"):
        interactions(table, {"mu018": ("mu018", "mu008")})
    with pytest.raises(ValueError, match=r"conditions \['grade'\] have no rows"):
        interactions(table, {"mu018": ("mu008", "grade")})
