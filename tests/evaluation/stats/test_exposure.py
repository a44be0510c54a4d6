"""Exposure-normalized rates: hand-worked, plain version, worlds without exposure, bad input."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, plain_interval, random_table, rows_of

from sf3d_envs.evaluation.measures import SAFETY_COUNTS, SAFETY_VALUES
from sf3d_envs.evaluation.stats import (
    EXPOSURE_RATES,
    BootstrapConfig,
    ExposureRate,
    available_rates,
    exposure_rates,
    ratio_interval,
)

CONFIG = BootstrapConfig(replicates=60, seed=3)
BY_NAME = {rate.name: rate for rate in EXPOSURE_RATES}


def measured(seed=0, **kwargs):
    """Random table with all safety measures; a third of the entry speeds is null."""
    table = random_table(seed, **kwargs)
    rng = np.random.default_rng(seed)
    size = table.height
    counts = {m.name: pl.Series(rng.integers(1, 900, size), dtype=pl.Int32) for m in SAFETY_COUNTS}
    counts["hard_brake_onsets"] = pl.Series(rng.integers(0, 4, size), dtype=pl.Int32)
    counts["valid_steps"] = pl.Series(rng.integers(900, 3961, size), dtype=pl.Int32)
    values = {m.name: pl.Series(rng.uniform(-300.0, 300.0, size), dtype=pl.Float32) for m in SAFETY_VALUES}
    values["distance"] = pl.Series(rng.uniform(50.0, 900.0, size), dtype=pl.Float32)
    read = rng.random(size) < 2 / 3
    values["speed_at_20m"] = pl.Series([7.5 + i % 5 if r else None for i, r in enumerate(read)], dtype=pl.Float32)
    return table.with_columns(**counts, **values)


def test_by_hand():
    """Two worlds of one vehicle: 60 of 600 steps and 0 of 1,200; 2 onsets in 500 m, 1 in 1,500 m; one entry speed."""
    table = random_table(conditions=("reference",), worlds=2, vehicles=1).sort("scenario_seed")
    table = table.with_columns(
        ttc_below_1_5s_steps=pl.Series([60, 0]),
        valid_steps=pl.Series([600, 1200]),
        hard_brake_onsets=pl.Series([2, 1]),
        distance=pl.Series([500.0, 1500.0]),
        speed_at_20m=pl.Series([14.0, None]),
    )
    names = ["ttc_below_1_5s", "hard_brake_onsets", "valid_driving", "speed", "speed_at_20m", "ttc_below_1_5s_vehicles"]
    got = exposure_rates(table, [BY_NAME[n] for n in names], None, by_lane=False)
    wanted = [60 / 1800, 1000 * 3 / 2000, 1800 / 60 / 2, 2000 / 30, 14.0, 0.5]
    assert got.rate.estimate[0, 0] == pytest.approx(wanted)
    assert (got.rate.low[0, 0, 0], got.rate.high[0, 0, 0]) == (0.0, 0.1)
    assert got.rate.undefined[0, 0, 4] == pytest.approx(0.25, abs=0.03)
    assert got.frame()["denominator"].to_list() == [1800.0, 2000.0, 2.0, 1800.0, 1.0, 2.0]


def test_a_ratio_of_sums_is_not_a_mean_of_ratios():
    got = ratio_interval(np.array([10.0, 0.0]), np.array([100.0, 900.0]))
    assert got.estimate == 0.01


def test_rates_and_changes_equal_the_plain_version():
    table = measured(2)
    rates = [BY_NAME[n] for n in ("hard_brake_onsets", "speed_at_20m", "need_above_capacity")]
    got = exposure_rates(table, rates, config=CONFIG)
    assert got.conditions[0] == "reference"
    read = (
        lambda r: (1000.0 * r["hard_brake_onsets"], r["distance"]),
        lambda r: (r["speed_at_20m"] or 0.0, r["speed_at_20m"] is not None),
        lambda r: (r["need_above_capacity_steps"], r["valid_steps"]),
    )
    for k, terms in enumerate(read):
        cells = {c: rows_of(table, condition=c) for c in ("reference", "mu008")}

        def rate(worlds, condition="mu008", terms=terms, cells=cells):
            pairs = [terms(cells[condition][SEED0 + w, v]) for w in worlds for v in range(5)]
            return sum(a for a, _ in pairs) / sum(b for _, b in pairs)

        def change(worlds, rate=rate):
            return rate(worlds) - rate(worlds, "reference")

        at = got.conditions.index("mu008"), 1, k
        assert got.change is not None
        for side, plain in ((got.rate, rate), (got.change, change)):
            values = (side.estimate[at], side.low[at], side.high[at])
            assert values == pytest.approx(plain_interval(plain, 6, CONFIG), rel=1e-5, abs=1e-6)


def test_all_rates_come_out_of_a_full_table():
    table = measured()
    assert available_rates(table) == EXPOSURE_RATES
    got = exposure_rates(table)
    frame = got.frame()
    assert frame.height == 3 * 3 * len(EXPOSURE_RATES)
    assert frame.filter(pl.col("condition") == "reference")["change"].null_count() == 3 * len(EXPOSURE_RATES)
    assert frame.filter(pl.col("condition") != "reference")["change"].null_count() == 0
    assert all(rate.doc and rate.unit for rate in EXPOSURE_RATES)


def test_no_exposure_gives_no_rate():
    table = measured().with_columns(speed_at_40m=pl.lit(None, dtype=pl.Float32))
    got = exposure_rates(table, [BY_NAME["speed_at_40m"]])
    assert np.isnan(got.rate.estimate).all()
    assert np.isnan(got.rate.low).all()
    assert (got.rate.undefined == 1.0).all()


def test_sums_are_the_same_in_any_order_and_width():
    """Measured metres are rounded to 1/65536 before they are added, so a permutation of worlds changes no bit."""
    rng = np.random.default_rng(7)
    above, below = rng.integers(0, 9, 300), rng.uniform(100.0, 900.0, 300).astype(np.float32)
    order = rng.permutation(300)
    one, other = ratio_interval(above, below), ratio_interval(above[order], below[order])
    assert one.estimate == other.estimate
    wide = ratio_interval(np.stack([above] * 7), below)
    assert (wide.low == one.low).all()
    assert (wide.high == one.high).all()


def test_a_rate_of_your_own():
    pedal = ExposureRate(
        name="on_patch_hard", unit="1", numerator=pl.col("hard_brake_steps"), denominator=pl.col("patch_steps")
    )
    assert pedal.columns == ["hard_brake_steps", "patch_steps"]
    assert exposure_rates(measured(), [pedal], None).change is None


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"distance": None}, r"vehicles\['denominator of rate hard_brake_onsets'\] is missing in 216 rows"),
        ({"distance": math.nan}, r"denominator of rate hard_brake_onsets'\] is missing"),
        ({"distance": math.inf}, r"denominator of rate hard_brake_onsets\[0, 0, 0\] is inf"),
        ({"distance": -1.0}, "an exposure is never negative"),
    ],
)
def test_bad_values(values, text):
    table = measured().with_columns(**{k: pl.lit(v, dtype=pl.Float32) for k, v in values.items()})
    with pytest.raises(ValueError, match=text):
        exposure_rates(table, [BY_NAME["hard_brake_onsets"]])


def test_bad_rates():
    with pytest.raises(ValueError, match=r"rate 'speed' needs the columns \['distance', 'valid_steps'\]"):
        exposure_rates(random_table(), [BY_NAME["speed"]])
    with pytest.raises(ValueError, match="rates is empty"):
        exposure_rates(measured(), [])
    with pytest.raises(ValueError, match="each may appear once"):
        exposure_rates(measured(), [BY_NAME["speed"]] * 2)
    with pytest.raises(ValueError, match="both need the same worlds"):
        ratio_interval(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match=r"numerator\[1\] is nan"):
        ratio_interval(np.array([1.0, np.nan]), np.ones(2))
