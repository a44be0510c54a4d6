"""Hazard ratio given an earlier indicator: timing by hand, plain version, immortal time, bad input."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import FAILURES, SEED0, plain_interval, random_table, rows_of, vehicle_table

from sf3d_envs.evaluation.stats import BootstrapConfig, hazard_ratio, indicator_seconds

CONFIG = BootstrapConfig(replicates=60, seed=3)


def seconds_of(flags, **labels):
    """Indicator rows from flags [S, V, B]."""
    w, v, b = (i.ravel() for i in np.indices(flags.shape))
    frame = pl.DataFrame(
        {"scenario_seed": (w + SEED0).astype(np.uint64), "vehicle": v.astype(np.uint8), "second": b}
    ).with_columns(exposed=pl.Series(flags.ravel()))
    return frame.with_columns(**{k: pl.lit(x) for k, x in labels.items()})


def test_exposure_is_the_second_that_ends_one_second_before():
    """A failure in second 4 is exposed by the indicator in second 2, not in 3 (too late), nor in 1 (too early)."""
    table = vehicle_table([["collision"] * 4 + ["not_crossed"] * 4], end_step=[[4 * 60 + 30] * 4 + [0] * 4])
    for flagged, exposed in ((1, 0), (2, 4), (3, 0), (4, 0)):
        flags = np.zeros((1, 8, 6), dtype=bool)
        flags[0, :4, flagged] = True
        got = hazard_ratio(table, seconds_of(flags), "reference", horizon_s=6.0)
        assert (got.exposed_failures, got.unexposed_failures) == (exposed, 4 - exposed)
        # At risk in seconds 2, 3, 4 (failed) or 2 ... 5 (to the horizon); seconds 0 and 1 have no exposure second.
        assert got.exposed_seconds == 4 * (flagged <= 2)
        assert got.exposed_seconds + got.unexposed_seconds == 4 * 3 + 4 * 4


def test_ratio_by_hand():
    """Exposed: 3 failures in 4 vehicle-seconds. Not exposed: 1 in 6. Ratio 4.5."""
    outcome = [["collision"] * 4 + ["not_crossed"] * 6]
    flags = np.zeros((1, 10, 3), dtype=bool)
    flags[0, [0, 1, 2, 4], 0] = True
    table = vehicle_table(outcome, end_step=[[179] * 4 + [0] * 6])
    got = hazard_ratio(table, seconds_of(flags), "reference", horizon_s=3.0)
    counts = (got.exposed_failures, got.exposed_seconds, got.unexposed_failures, got.unexposed_seconds)
    assert counts == (3, 4, 1, 6)
    assert got.ratio == 4.5
    assert got.frame()["ratio"].item() == got.ratio


def test_pooled_agents_equal_the_plain_version():
    table = random_table(seed=12, agents=("s0", "s1"), conditions=("mu018",), worlds=8)
    rng = np.random.default_rng(2)
    flags = {name: rng.random((8, 12, 66)) < 0.5 for name in ("s0", "s1")}
    seconds = pl.concat([seconds_of(f, agent=name, condition="mu018") for name, f in flags.items()])
    got = hazard_ratio(table, seconds, "mu018", config=CONFIG)
    rows = {name: rows_of(table, agent=name) for name in flags}

    def ratio(worlds):
        failures, at_risk = [0, 0], [0, 0]
        for name in flags:
            for w in worlds:
                for v in range(12):
                    row = rows[name][SEED0 + w, v]
                    end = row["passage_step"] if row["valid_passage"] else row["first_event_step"]
                    last = ((3960 if end is None else end) - 1) // 60
                    for b in range(2, last + 1):
                        side = int(flags[name][w, v, b - 2])
                        at_risk[side] += 1
                        failures[side] += b == last and row["outcome"] in FAILURES
        return (failures[1] / at_risk[1]) / (failures[0] / at_risk[0])

    assert (got.ratio, got.low, got.high) == pytest.approx(plain_interval(ratio, 8, CONFIG), rel=1e-9)
    assert got.undefined == 0.0


def test_immortal_time_does_not_turn_the_sign():
    """The indicator doubles the hazard; those who ever had it fail less often, because they had to live to have it."""
    rng = np.random.default_rng(4)
    shape = (300, 12, 60)
    flags = rng.random(shape) < 0.10
    chance = np.full(shape, 0.04)
    chance[..., 2:][flags[..., :-2]] = 0.08
    chance[..., :2] = 0.04
    fails = rng.random(shape) < chance
    fails[..., -1] &= False
    failed = fails.any(axis=-1)
    last = np.where(failed, fails.argmax(axis=-1), 59)
    table = vehicle_table(np.where(failed, "collision", "not_crossed"), end_step=last * 60 + 1)
    got = hazard_ratio(table, seconds_of(flags), "reference", horizon_s=60.0)
    assert got.low < 2.0 < got.high
    assert got.low > 1.3
    lived = np.arange(60) <= last[..., None] - 2
    ever = (flags & lived).any(axis=-1)
    assert failed[ever].mean() < failed[~ever].mean()


def test_few_exposed_failures_give_counts_alone():
    flags = np.zeros((1, 4, 3), dtype=bool)
    flags[0, :2, 0] = True
    table = vehicle_table([["collision"] * 4], end_step=[[170] * 4])
    got = hazard_ratio(table, seconds_of(flags), "reference", horizon_s=3.0)
    assert (got.exposed_failures, got.unexposed_failures) == (2, 2)
    assert np.isnan([got.ratio, got.low, got.high]).all()
    assert got.reason.startswith("2 exposed failures")
    all_exposed = hazard_ratio(table, seconds_of(np.ones((1, 4, 3), dtype=bool)), "reference", horizon_s=3.0)
    assert all_exposed.reason.startswith("no failure without exposure")


def test_seconds_from_steps():
    steps = pl.DataFrame(
        {
            "step": pl.Series([1, 60, 61, 120, 121], dtype=pl.Int32),
            "scenario_seed": [7] * 5,
            "vehicle": [0] * 5,
            "need": [False, True, False, False, True],
        }
    )
    got = indicator_seconds(steps, "need")
    assert got["second"].to_list() == [0, 1, 2]
    assert got["exposed"].to_list() == [True, False, True]
    with pytest.raises(ValueError, match="first control step is 1"):
        indicator_seconds(steps.with_columns(step=pl.lit(0)), "need")
    with pytest.raises(ValueError, match=r"steps lacks the columns \['brake'\]"):
        indicator_seconds(steps, "brake")
    with pytest.raises(ValueError, match="give booleans"):
        indicator_seconds(steps, "vehicle")


def test_bad_input():
    table = vehicle_table([["collision", "not_crossed"]], end_step=[[170, 0]])
    good = seconds_of(np.zeros((1, 2, 3), dtype=bool))
    with pytest.raises(ValueError, match="seconds lacks agent 'a', scenario_seed 100000, vehicle 1, second 0"):
        hazard_ratio(table, good.filter(pl.col("vehicle") == 0), "reference", horizon_s=3.0)
    with pytest.raises(ValueError, match="seconds holds 12 duplicate rows"):
        hazard_ratio(table, pl.concat([good, good]), "reference", horizon_s=3.0)
    with pytest.raises(ValueError, match=r"seconds lacks the columns \['exposed'\]"):
        hazard_ratio(table, good.drop("exposed"), "reference")
    with pytest.raises(ValueError, match=r"conditions \['mu018'\] have no rows"):
        hazard_ratio(table, good, "mu018")
    two = pl.concat([table, table.with_columns(agent=pl.lit("b"))])
    with pytest.raises(ValueError, match="no column 'agent', but 2 agents are pooled"):
        hazard_ratio(two, good, "reference", horizon_s=3.0)
    with pytest.raises(ValueError, match="agents is empty"):
        hazard_ratio(table, good, "reference", agents=[])
