"""Outcome rules on hand-made task arrays: one world of four vehicles, two of which owe a merge; horizon 100 steps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sf3d_envs.evaluation.outcomes import VEHICLE_SCHEMA, WORLD_SCHEMA, RunLabels, vehicle_outcomes, world_outcomes
from sf3d_envs.task.events import Event

HORIZON = 100
CLOSING = (True, True, False, False)


def task_arrays(worlds: int = 1, **changes: list) -> dict[str, np.ndarray]:
    """Task arrays of worlds in which every vehicle drove to the horizon without event, crossing or lane change."""
    shape = (worlds, len(CLOSING))
    task = {
        "event": np.zeros(shape, np.int8),
        "own_fault": np.zeros(shape, np.int8),
        "in_open_lane": np.broadcast_to(~np.array(CLOSING), shape).astype(np.int8),
        "step": np.full(worlds, HORIZON, np.int32),
        "first_reset_step": np.full(worlds, -1, np.int32),
    }
    for name in ("first_event_step", "passage_step", "merge_since"):
        task[name] = np.full(shape, -1, np.int32)
    task["merge_since"][task["in_open_lane"] == 1] = 1
    for name, value in changes.items():
        task[name] = np.array(value, task[name].dtype).reshape(task[name].shape)
    return task


def labels(worlds: int = 1) -> RunLabels:
    """Labels of `worlds` reference worlds with seeds 100000, ..."""
    return RunLabels(
        agent="a",
        condition=["reference"] * worlds,
        scenario_seed=[100_000 + w for w in range(worlds)],
        closing_lane=CLOSING,
        horizon_steps=HORIZON,
    )


def score(**changes: list) -> dict[str, list]:
    """Columns of the vehicle table of one world."""
    return vehicle_outcomes(task_arrays(**changes), labels()).to_dict(as_series=False)


def test_undisturbed_vehicles_that_do_not_cross_are_not_crossed():
    rows = score()
    assert rows["outcome"] == ["not_crossed"] * 4
    assert rows["valid_passage"] == [False] * 4
    assert rows["strict_success"] == [False] * 4
    assert rows["first_event_step"] == [None] * 4
    assert rows["passage_step"] == [None] * 4


def test_merge_is_null_where_not_owed_and_needs_the_open_lane_at_the_horizon():
    rows = score(passage_step=[40, 40, 40, 40], in_open_lane=[1, 0, 1, 0], merge_since=[30, -1, 1, -1])
    assert rows["merge_completed"] == [True, False, None, None]
    assert rows["strict_success"] == [True, False, True, True]
    assert rows["outcome"] == ["pass"] * 4
    assert rows["lane"] == ["closing", "closing", "open", "open"]


@pytest.mark.parametrize(
    ("event", "name"),
    [(Event.COLLISION, "collision"), (Event.OFF_ROAD, "off_road"), (Event.INCURSION, "incursion")],
)
def test_own_failure_before_the_crossing_names_the_class(event, name):
    rows = score(event=[0, 0, event, 0], first_event_step=[-1, -1, 39, -1], passage_step=[-1, -1, -1, 40])
    assert rows["outcome"] == ["not_crossed", "not_crossed", name, "pass"]
    assert rows["first_event_step"] == [None, None, 39, None]


@pytest.mark.parametrize(("event_step", "passed"), [(39, False), (40, False), (41, True)])
def test_an_event_counts_on_its_own_step_and_never_revokes_an_earlier_passage(event_step, passed):
    rows = score(event=[0, 0, 2, 0], first_event_step=[-1, -1, event_step, -1], passage_step=[-1, -1, 40, -1])
    assert rows["valid_passage"][2] is passed
    assert rows["outcome"][2] == ("pass" if passed else "collision")
    assert rows["passage_step"][2] == (40 if passed else None)
    assert rows["strict_success"][2] is False
    assert rows["first_event_step"][2] == event_step


def test_a_reset_is_a_fault_for_everybody_from_its_step_on():
    """Vehicle 3 overturns at step 50. 0 crossed before, 1 had collided, 2 is valid on its way."""
    rows = score(
        event=[0, 2, 0, 1],
        own_fault=[0, 0, 0, 1],
        first_event_step=[-1, 20, -1, 50],
        passage_step=[49, -1, -1, -1],
        in_open_lane=[1, 0, 1, 1],
        merge_since=[30, -1, 1, 1],
        step=[50],
        first_reset_step=[50],
    )
    assert rows["outcome"] == ["pass", "collision", "censored", "fault"]
    assert rows["valid_passage"] == [True, False, False, False]
    assert rows["strict_success"] == [False] * 4
    assert rows["merge_completed"] == [False, False, None, None]
    assert rows["first_event_step"] == [50, 20, 50, 50]


def test_nothing_after_the_first_reset_is_scored():
    """A crossing on the reset step or later, an event later: none of them counts."""
    rows = score(
        event=[1, 0, 2, 0],
        first_event_step=[50, -1, 60, -1],
        passage_step=[-1, 50, -1, 51],
        step=[50],
        first_reset_step=[50],
    )
    assert rows["outcome"] == ["fault", "censored", "censored", "censored"]
    assert rows["passage_step"] == [None] * 4
    assert rows["first_event_step"] == [50] * 4


def test_an_own_event_on_the_reset_step_keeps_its_class():
    rows = score(event=[1, 2, 0, 0], first_event_step=[50, 50, -1, -1], step=[50], first_reset_step=[50])
    assert rows["outcome"] == ["fault", "collision", "censored", "censored"]


def test_every_vehicle_gets_one_class_and_strict_success_is_consistent():
    """On random arrays: classes partition the vehicles; strict success = passage, owed merge, no event."""
    rng = np.random.default_rng(0)
    worlds = 400
    event_step = np.where(rng.random((worlds, 4)) < 0.4, rng.integers(1, 101, (worlds, 4)), -1)
    reset = np.where(rng.random(worlds) < 0.4, rng.integers(1, 101, worlds), -1)
    inside = rng.integers(0, 2, (worlds, 4))
    task = task_arrays(
        worlds,
        event=np.where(event_step >= 0, rng.integers(1, 5, (worlds, 4)), 0),
        first_event_step=event_step,
        passage_step=np.where(rng.random((worlds, 4)) < 0.7, rng.integers(1, 101, (worlds, 4)), -1),
        in_open_lane=inside,
        merge_since=np.where(inside, 10, -1),
        step=np.where(reset >= 0, reset, HORIZON),
        first_reset_step=reset,
    )
    frame = vehicle_outcomes(task, labels(worlds))
    assert frame.height == worlds * 4
    passed = pl.col("outcome") == "pass"
    assert frame.filter(passed != pl.col("valid_passage")).is_empty()
    assert frame.filter(passed != pl.col("passage_step").is_not_null()).is_empty()
    strict = pl.col("valid_passage") & pl.col("merge_completed").fill_null(True) & pl.col("first_event_step").is_null()
    assert frame.filter(strict != pl.col("strict_success")).is_empty()
    assert frame.filter(pl.col("passage_step") >= pl.col("first_event_step")).is_empty()
    assert frame.filter(pl.col("outcome") == "not_crossed", pl.col("first_event_step").is_not_null()).is_empty()
    assert set(frame["outcome"]) >= {"pass", "collision", "censored", "not_crossed"}

    by_world = frame.group_by("scenario_seed", maintain_order=True).agg(
        pl.col("valid_passage").sum(), (pl.col("outcome") == "censored").sum().alias("censored")
    )
    totals = world_outcomes(task, labels(worlds))
    assert totals["passages"].to_list() == by_world["valid_passage"].to_list()
    assert totals["censored"].to_list() == by_world["censored"].to_list()
    assert (totals["closing_passages"] + totals["open_passages"]).to_list() == totals["passages"].to_list()


def test_columns_and_dtypes_are_those_of_the_results_files():
    assert vehicle_outcomes(task_arrays(), labels()).schema == VEHICLE_SCHEMA
    assert world_outcomes(task_arrays(), labels()).schema == WORLD_SCHEMA
    assert VEHICLE_SCHEMA["scenario_seed"] == pl.UInt64
    assert VEHICLE_SCHEMA["vehicle"] == pl.UInt8


def test_large_seeds_survive():
    seed = 2**64 - 1
    big = RunLabels(agent="a", condition=["x"], scenario_seed=[seed], closing_lane=CLOSING, horizon_steps=HORIZON)
    assert set(vehicle_outcomes(task_arrays(), big)["scenario_seed"]) == {seed}


@pytest.mark.parametrize(("x", "edge"), [(98.5, True), (101.0, True), (97.5, False), (np.nan, False)])
def test_a_fault_within_two_metres_of_the_terrain_edge_is_a_map_edge_reset(x, edge):
    task = task_arrays(event=[1, 0, 0, 0], own_fault=[1, 0, 0, 0], first_event_step=[50, -1, -1, -1])
    task["step"][:] = task["first_reset_step"][:] = 50
    position = np.zeros((1, 4, 3))
    position[0, 0, 0] = x
    position[0, 1, 0] = 99.0  # at the edge too, but not the one that faulted
    worlds = world_outcomes(task, labels(), position, (-100.0, 100.0, -50.0, 50.0))
    assert worlds["map_edge_reset"].to_list() == [edge]
    assert worlds["first_reset_step"].to_list() == [50]


def test_a_world_without_reset_has_no_reset_step():
    worlds = world_outcomes(task_arrays(), labels(), np.zeros((1, 4, 3)), (-1.0, 1.0, -1.0, 1.0))
    assert worlds["first_reset_step"].to_list() == [None]
    assert worlds["map_edge_reset"].to_list() == [None]


def test_an_unfinished_world_is_refused():
    with pytest.raises(ValueError, match=r"world 0 has no reset and stands at step 60.*horizon_steps=100"):
        vehicle_outcomes(task_arrays(step=[60]), labels())


def test_an_event_step_without_code_is_refused():
    with pytest.raises(ValueError, match="world 0, vehicle 2"):
        vehicle_outcomes(task_arrays(first_event_step=[-1, -1, 7, -1]), labels())


def test_labels_of_another_size_are_refused():
    with pytest.raises(ValueError, match="condition has 2 entries"):
        vehicle_outcomes(task_arrays(1), labels(2))
