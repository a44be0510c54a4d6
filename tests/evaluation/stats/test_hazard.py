"""Discrete-time hazard: hand-worked, plain version, closed form of a constant hazard, bad input."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import FAILURES, SEED0, plain_interval, random_table, rows_of, vehicle_table

from sf3d_envs.evaluation.stats import HAZARD_CLASSES, BootstrapConfig, hazard

CONFIG = BootstrapConfig(replicates=60, seed=3)
AT = HAZARD_CLASSES.index


def test_by_hand():
    """Step 60 ends second 0, step 61 lies in second 1. Five vehicles, the first two in the closing lane."""
    outcome = [["collision", "pass", "censored", "off_road", "not_crossed"]]
    got = hazard(vehicle_table(outcome, end_step=[[60, 61, 61, 180, 0]], closing=2), horizon_s=3.0)
    assert got.at_risk[0].tolist() == [[5, 4, 2], [2, 1, 0], [3, 3, 2]]
    assert got.events[0, 0, AT("any")].tolist() == [1, 1, 1]
    assert got.events[0, 0, AT("own")].tolist() == [1, 0, 1]
    assert got.events[0, 2, AT("censored")].tolist() == [0, 1, 0]
    assert got.hazard.estimate[0, 0, AT("any")].tolist() == [1 / 5, 1 / 4, 1 / 2]
    assert np.isnan(got.hazard.estimate[0, 1, AT("own"), 2])
    frame = got.frame()
    assert frame.height == 3 * len(HAZARD_CLASSES) * 3
    assert frame["second"].unique().sort().to_list() == [0.0, 1.0, 2.0]


def test_classes_add_up():
    got = hazard(random_table(seed=2, worlds=30))
    own = sum(got.events[:, :, AT(name)] for name in FAILURES)
    assert (own == got.events[:, :, AT("own")]).all()
    assert (got.events[:, :, AT("any")] == own + got.events[:, :, AT("censored")]).all()
    assert (got.at_risk[:, :, 0] == [360, 150, 210]).all()
    assert (np.diff(got.at_risk, axis=-1) <= 0).all()


def test_equals_the_plain_version():
    table = random_table(seed=3)
    got = hazard(table, bin_s=11.0, config=CONFIG)
    assert got.events.shape[-1] == 6
    rows = rows_of(table, condition="mu018")
    c = got.conditions.index("mu018")
    for b in range(6):

        def rate(worlds, b=b):
            at_risk = failures = 0
            for key in [(SEED0 + w, v) for w in worlds for v in range(5, 12)]:
                row = rows[key]
                end = row["passage_step"] if row["valid_passage"] else row["first_event_step"]
                end = 3960 if end is None else end
                at_risk += end > 660 * b
                failures += row["outcome"] in FAILURES and 660 * b < end <= 660 * (b + 1)
            return failures / at_risk if at_risk else None

        side = got.hazard
        values = tuple(x[c, 2, AT("own"), b] for x in (side.estimate, side.low, side.high))
        assert values == pytest.approx(plain_interval(rate, 6, CONFIG), abs=1e-12)


def test_a_constant_hazard_comes_back():
    """First events of a geometric law have one hazard in all seconds; four binomial standard errors."""
    rng = np.random.default_rng(9)
    second = rng.geometric(0.05, size=(400, 12)) - 1
    outcome = np.where(second < 20, "collision", "not_crossed")
    end = np.minimum(second, 19) * 60 + rng.integers(1, 61, second.shape)
    got = hazard(vehicle_table(outcome, end_step=end), horizon_s=20.0, by_lane=False)
    error = np.sqrt(0.05 * 0.95 / got.at_risk[0, 0])
    assert (np.abs(got.hazard.estimate[0, 0, AT("own")] - 0.05) < 4 * error).all()


@pytest.mark.parametrize(
    ("outcome", "end", "text"),
    [
        ("collision", 121, r"outcome 'collision' ends at step 121; it must lie in 1 ... 120"),
        ("collision", 0, "ends at step 0"),
        ("pass", 500, "outcome 'pass' ends at step 500"),
    ],
)
def test_steps_outside_the_run(outcome, end, text):
    with pytest.raises(ValueError, match=text):
        hazard(vehicle_table([[outcome] * 2], end_step=[[60, end]]), horizon_s=2.0)


def test_contradictions_are_refused():
    table = vehicle_table([["not_crossed", "collision"]])
    with pytest.raises(ValueError, match="1 rows are 'not_crossed' with a first_event_step"):
        hazard(table.with_columns(first_event_step=pl.lit(5, dtype=pl.Int32)))
    with pytest.raises(ValueError, match="'collision' ends at step -1"):
        hazard(table.with_columns(first_event_step=pl.lit(None, dtype=pl.Int32)))


@pytest.mark.parametrize("settings", [{"bin_s": 0.01}, {"bin_s": 0.0}, {"horizon_s": float("nan")}])
def test_bins_are_whole_steps(settings):
    with pytest.raises(ValueError, match="must be a positive whole number of control steps"):
        hazard(random_table(), **settings)
