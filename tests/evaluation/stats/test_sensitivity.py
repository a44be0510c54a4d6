"""Sensitivity against hand-worked and plain versions."""

from __future__ import annotations

import polars as pl
import pytest
from evaluation.stats.tables import SEED0, pass_table, plain_interval, random_table, rows_of

from sf3d_envs.evaluation.stats import BootstrapConfig, sensitivity

CONFIG = BootstrapConfig(replicates=60, seed=3)


def test_by_hand():
    """Two worlds of three vehicles, the first in the closing lane: passes 3 and 2 become 1 and 2."""
    table = pl.concat(
        [
            pass_table([[1, 1, 1], [0, 1, 1]], closing=1),
            pass_table([[0, 1, 0], [1, 1, 0]], condition="mu018", closing=1),
        ]
    )
    got = sensitivity(table)
    assert got.lanes == ("all", "closing", "open")
    assert got.reference_rate.estimate.tolist() == [5 / 6, 1 / 2, 1.0]
    assert got.rate.estimate.tolist() == [[3 / 6, 1 / 2, 2 / 4]]
    assert got.change.estimate.tolist() == [[-2 / 6, 0.0, -2 / 4]]
    assert (got.change.low[0, 0], got.change.high[0, 0]) == (-2 / 3, 0.0)
    assert got.change.low[0, 2] == got.change.high[0, 2] == -0.5
    assert got.change.excludes_zero.tolist() == [[False, False, True]]
    frame = got.frame()
    assert frame["vehicles"].to_list() == [6, 2, 4]
    assert frame.filter(pl.col("lane") == "open").row(0, named=True)["change"] == -0.5


def test_equals_the_plain_version():
    table = random_table(seed=5)
    got = sensitivity(table, config=CONFIG)
    for c, condition in enumerate(got.conditions):
        for lane, name in enumerate(got.lanes):
            then, base = (rows_of(table, condition=x) for x in (condition, "reference"))

            def change(worlds, name=name, then=then, base=base):
                keys = [(SEED0 + w, v) for w in worlds for v in range(12)]
                keys = [k for k in keys if name in ("all", base[k]["lane"])]
                return sum(then[k]["valid_passage"] - base[k]["valid_passage"] for k in keys) / len(keys)

            values = (got.change.estimate[c, lane], got.change.low[c, lane], got.change.high[c, lane])
            assert values == pytest.approx(plain_interval(change, 6, CONFIG), abs=1e-12)


def test_the_table_has_a_row_for_each_condition_and_lane():
    got = sensitivity(random_table(), conditions=["mu008", "mu018"])
    frame = got.frame()
    assert frame.height == 6
    assert frame["condition"].unique(maintain_order=True).to_list() == ["mu008", "mu018"]
    assert frame.null_count().sum_horizontal().item() == 0
    assert (frame["rate"] - frame["reference_rate"] - frame["change"]).abs().max() < 1e-12


def test_the_first_worlds_do_not_depend_on_the_others():
    wide = random_table(worlds=8)
    narrow = wide.filter(pl.col("scenario_seed") < SEED0 + 4)
    again = sensitivity(narrow.sort("scenario_seed"))
    assert sensitivity(narrow).frame().sort("condition").equals(again.frame().sort("condition"))
    assert again.worlds == 4
