"""What a table must hold, and how a wrong one is refused, through every public function."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest
from evaluation.stats.tables import SEED0, pass_table, random_table

from sf3d_envs.evaluation import stats

FUNCTIONS = {
    "sensitivity": stats.sensitivity,
    "decomposition": stats.decomposition,
    "hazard": stats.hazard,
    "interactions": partial(stats.interactions, compositions={"both": ("mu018", "mu008")}),
    "exposure_rates": partial(
        stats.exposure_rates,
        rates=[stats.ExposureRate(name="r", unit="1", numerator=pl.col("vehicle"), denominator=pl.lit(1.0))],
    ),
    "losses_by_patch": stats.losses_by_patch,
}


def table():
    frame = random_table(conditions=("reference", "mu018", "mu008", "both"), worlds=3)
    return frame.with_columns(patch_first_step=pl.lit(-1, dtype=pl.Int32))


@pytest.fixture(params=FUNCTIONS, ids=list(FUNCTIONS))
def function(request):
    return FUNCTIONS[request.param]


def test_row_order_does_not_matter(function):
    one, other = function(table()), function(table().sample(fraction=1.0, shuffle=True, seed=9).sort("vehicle"))
    both = (result.frame().sort(pl.all()) for result in (one, other))
    conditions_in_order = [frame.drop("worlds", strict=False) for frame in both]
    assert conditions_in_order[0].equals(conditions_in_order[1])


def test_missing_column(function):
    with pytest.raises(ValueError, match=r"lacks the columns \['lane'\]"):
        function(table().drop("lane"))


def test_not_a_table(function):
    with pytest.raises(ValueError, match=r"must be a polars.DataFrame|vehicles is a"):
        function({"agent": []})


def test_empty_table(function):
    with pytest.raises(ValueError, match="vehicles is empty"):
        function(table().clear())


def test_duplicate_rows(function):
    with pytest.raises(ValueError, match=r"2 duplicate rows; the first is agent 'a', condition 'mu018', scenario_seed"):
        function(pl.concat([table(), table().filter(pl.col("condition") == "mu018").head(1)]))


def test_worlds_that_do_not_pair(function):
    gone = (pl.col("condition") == "mu008") & (pl.col("scenario_seed") == SEED0 + 1)
    text = rf"condition '.*' has \d worlds and '.*' has \d; the first missing seed is {SEED0 + 1}, in 'mu008'"
    with pytest.raises(ValueError, match=text):
        function(table().filter(~gone))


def test_a_lost_vehicle_is_a_trials_mismatch(function):
    gone = (pl.col("condition") == "mu018") & (pl.col("scenario_seed") == SEED0) & (pl.col("vehicle") == 3)
    with pytest.raises(ValueError, match=rf"trials mismatch.*'mu018'.*world {SEED0} has 11"):
        function(table().filter(~gone))


def test_a_vehicle_that_changes_lanes_between_conditions(function):
    swap = (pl.col("condition") == "mu018") & (pl.col("vehicle") == 0)
    wrong = table().with_columns(lane=pl.when(swap).then(pl.lit("open")).otherwise("lane"))
    with pytest.raises(ValueError, match="lanes do not pair: scenario_seed 100000, vehicle 0"):
        function(wrong)


def test_unknown_lane(function):
    with pytest.raises(ValueError, match=r"\['middle'\]; allowed are \['closing', 'open'\]"):
        function(table().with_columns(lane=pl.lit("middle")))


def test_null_key(function):
    hole = (pl.col("vehicle") == 1) & (pl.col("condition") == "both")
    with pytest.raises(ValueError, match=r"vehicles\['vehicle'\] holds 3 nulls"):
        function(table().with_columns(vehicle=pl.when(hole).then(None).otherwise("vehicle")))


def test_two_agents_need_a_name(function):
    two = pl.concat([table(), table().with_columns(agent=pl.lit("b"))])
    with pytest.raises(ValueError, match=r"agent is None, but vehicles holds \["):
        function(two)
    assert function(two, agent="b").agent == "b"
    with pytest.raises(ValueError, match="agent is 'c'; vehicles holds"):
        function(two, agent="c")


@pytest.mark.parametrize("name", ["sensitivity", "decomposition", "interactions", "exposure_rates"])
def test_missing_reference(name):
    with pytest.raises(ValueError, match="'dry'"):
        FUNCTIONS[name](table(), reference="dry")


@pytest.mark.parametrize("name", ["sensitivity", "decomposition", "hazard", "exposure_rates", "losses_by_patch"])
def test_conditions_are_chosen_and_checked(name):
    function = FUNCTIONS[name]
    assert "mu018" not in function(table(), conditions=["mu008", "reference"]).conditions
    with pytest.raises(ValueError, match=r"conditions \['mu0.18'\] have no rows"):
        function(table(), conditions=["mu0.18", "reference"])
    with pytest.raises(ValueError, match="each may appear once"):
        function(table(), conditions=["mu008", "mu008"])


@pytest.mark.parametrize("name", ["sensitivity", "decomposition"])
def test_nothing_to_compare(name):
    with pytest.raises(ValueError, match="a change needs a condition other than 'reference'"):
        FUNCTIONS[name](pass_table([[True, False]] * 3))


@pytest.mark.parametrize("name", ["sensitivity", "decomposition", "hazard", "interactions"])
def test_missing_value(name):
    hole = (pl.col("condition") == "mu018") & (pl.col("vehicle") == 7) & (pl.col("scenario_seed") == SEED0 + 2)
    wrong = table().with_columns(valid_passage=pl.when(hole).then(None).otherwise("valid_passage"))
    text = r"\['valid_passage'\] is missing in 1 rows; the first is condition 'mu018', scenario_seed 100002, vehicle 7"
    with pytest.raises(ValueError, match=text):
        FUNCTIONS[name](wrong)


def test_lanes_of_different_size_between_worlds():
    one, other = pass_table([[True] * 4], closing=2), pass_table([[True] * 4], closing=1, seed0=SEED0 + 1)
    both = pl.concat([one, other])
    both = pl.concat([both, both.with_columns(condition=pl.lit("mu018"))])
    with pytest.raises(ValueError, match="trials mismatch: lane 'closing' has 2 vehicles in the first world and 1"):
        stats.sensitivity(both)
    assert stats.sensitivity(both, by_lane=False).lanes == ("all",)


def test_a_lane_without_vehicles_is_left_out():
    both = pl.concat([pass_table([[True] * 3] * 2, condition=c, closing=0) for c in ("reference", "mu018")])
    assert stats.sensitivity(both).lanes == ("all", "open")


def test_only_booleans_make_rates():
    with pytest.raises(ValueError, match="column is 'vehicle', of type uint8; a rate needs a boolean column"):
        stats.sensitivity(table(), column="vehicle")


def test_keys_are_integers(function):
    with pytest.raises(ValueError, match=r"vehicles\['scenario_seed'\] is of type String; it must hold integers"):
        function(table().with_columns(pl.col("scenario_seed").cast(pl.String)))


def test_settings_are_settings(function):
    with pytest.raises(ValueError, match="config is 3; it must be a BootstrapConfig"):
        function(table(), config=3)
    for settings in ({"replicates": 1.5}, {"replicates": True}, {"seed": "a"}, {"level": None}):
        ((name, value),) = settings.items()
        with pytest.raises(ValueError, match=f"{name} is {value!r}; it must be an? (int|number)"):
            stats.BootstrapConfig(**settings)


@pytest.mark.parametrize("name", ["sensitivity", "decomposition", "hazard", "exposure_rates", "losses_by_patch"])
def test_conditions_are_a_list(name):
    with pytest.raises(ValueError, match="conditions is 'mu018'; give a list of slugs"):
        FUNCTIONS[name](table(), conditions="mu018")


@pytest.mark.parametrize("name", ["decomposition", "hazard", "losses_by_patch"])
def test_a_passage_is_true_or_false(name):
    with pytest.raises(ValueError, match="column is 'valid_passage', of type float64"):
        FUNCTIONS[name](table().with_columns(pl.col("valid_passage").cast(pl.Float64)))


def test_rates_are_of_numbers():
    with pytest.raises(ValueError, match="rates holds 'r'; each must be an ExposureRate"):
        stats.exposure_rates(table(), rates=["r"])
    rate = stats.ExposureRate(name="r", unit="1", numerator=pl.col("outcome"), denominator=pl.lit(1.0))
    with pytest.raises(ValueError, match=r"rate 'r' reads vehicles\['outcome'\], of type String; it must hold numbers"):
        stats.exposure_rates(table(), rates=[rate])


def test_hazard_ratios_are_of_tables():
    for arguments, text in (((None, None), "vehicles is a NoneType"), ((table(), None), "seconds is a NoneType")):
        with pytest.raises(ValueError, match=text):
            stats.hazard_ratio(*arguments, "mu018")
