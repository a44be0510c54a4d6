"""Outcome rules, one clause at a time, on hand-placed vehicles."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from alone import freeze_finished, update_events
from observation.worlds import CAR, Scene, quaternion

from sf3d_envs.observation.geometry import vehicle_geometry
from sf3d_envs.task import Event, TaskConfig
from sf3d_envs.task.kernels import reset_task, task_rules, task_state
from sf3d_envs.task.kernels_errors import error_log

OPEN, CLOSING = -26.25, -29.75


class Judge:
    """Runs the event kernel on a scene that a test changes between control steps."""

    def __init__(self, scene: Scene, config: TaskConfig | None = None):
        self.scene = scene
        self.task = task_state(scene.num_worlds, scene.num_vehicles, "cpu")
        self.rules = task_rules(config or TaskConfig())
        self.nonfinite = np.zeros((scene.num_worlds, scene.num_vehicles), np.int8)

    def step(self, world_begin: int = 0, num_worlds: int | None = None) -> Judge:
        view = self.scene.view()
        wp.launch(
            update_events,
            dim=self.scene.num_worlds if num_worlds is None else num_worlds,
            inputs=[
                view.body_q,
                view.body_qd,
                wp.array(self.nonfinite, dtype=wp.int8, device="cpu"),
                view.stepping,
                vehicle_geometry([CAR] * self.scene.num_vehicles, "cpu"),
                self.rules,
                view.terrain,
                self.task,
                self.scene.num_vehicles,
                world_begin,
            ],
            device="cpu",
        )
        return self

    def __getattr__(self, name: str) -> np.ndarray:
        return getattr(self.task, name).numpy()


def one_vehicle(x: float, y: float, yaw: float = 0.0) -> Judge:
    scene = Scene(1, 1)
    scene.put(0, 0, x, y, yaw)
    return Judge(scene)


@pytest.mark.parametrize(
    ("x", "y", "event"),
    [
        (149.99, CLOSING, Event.NONE),
        (150.0, CLOSING, Event.INCURSION),
        (150.0, -28.001, Event.INCURSION),
        (150.0, -28.0, Event.NONE),
        (300.0, -31.0, Event.INCURSION),
        (50.0, -31.5, Event.NONE),
        (50.0, -31.501, Event.OFF_ROAD),
        (50.0, -24.5, Event.NONE),
        (50.0, -24.499, Event.OFF_ROAD),
        (200.0, -31.6, Event.OFF_ROAD),
        (200.0, -61.0, Event.FAULT),
        (-301.0, OPEN, Event.FAULT),
        (601.0, OPEN, Event.FAULT),
    ],
)
def test_event_by_position(x, y, event):
    judge = one_vehicle(x, y).step()
    assert judge.event_now[0, 0] == judge.event[0, 0] == event
    assert judge.first_event_step[0, 0] == (1 if event else -1)
    assert judge.valid[0, 0] == (event == Event.NONE)


@pytest.mark.parametrize(
    ("roll", "event"), [(np.arccos(0.201), Event.NONE), (np.arccos(0.199), Event.FAULT), (np.pi, Event.FAULT)]
)
def test_overturned_means_up_axis_below_a_fifth(roll, event):
    judge = one_vehicle(0.0, OPEN)
    judge.scene.body_q[0, 0, 3:] = quaternion(0.3, 0.0, roll)
    assert judge.step().event[0, 0] == event


def test_below_the_terrain_is_a_fault():
    judge = one_vehicle(0.0, OPEN)
    judge.scene.body_q[0, 0, 2] = 0.001
    assert judge.step().event[0, 0] == Event.NONE
    judge.scene.body_q[0, 0, 2] = -0.001
    assert judge.step().event[0, 0] == Event.FAULT


@pytest.mark.parametrize("where", ["position", "rotation", "velocity", "spin", "flag"])
def test_a_non_finite_state_is_a_fault_of_its_vehicle_only(where):
    scene = Scene(2, 3)
    judge = Judge(scene)
    if where == "flag":
        judge.nonfinite[1, 1] = 1
    else:
        target = {"position": (scene.body_q, 1), "rotation": (scene.body_q, 6)}
        target |= {"velocity": (scene.body_qd, 0), "spin": (scene.body_qd, 5)}
        array, column = target[where]
        array[1, 1, column] = np.nan if where != "velocity" else np.inf
    judge.step()
    assert judge.event.tolist() == [[0, 0, 0], [0, Event.FAULT, 0]]
    assert judge.own_fault.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert judge.fault.tolist() == [0, 1]
    assert judge.first_reset_step.tolist() == [-1, 1]
    assert judge.valid.tolist() == [[1, 1, 1], [1, 0, 1]]


@pytest.mark.parametrize(("distance", "event"), [(1.879, Event.COLLISION), (1.881, Event.NONE)])
def test_collision_grows_each_footprint_by_the_margin_and_marks_both(distance, event):
    scene = Scene(1, 3)
    scene.put(0, 0, 0.0, -27.0)
    scene.put(0, 1, 1.0, -27.0 + distance)
    scene.put(0, 2, 60.0, OPEN)
    assert Judge(scene).step().event.tolist() == [[event, event, 0]]


def test_ties_are_fault_collision_off_road_incursion():
    scene = Scene(1, 4)
    scene.put(0, 0, 200.0, -31.6)  # collides, off the road
    scene.put(0, 1, 200.0, -31.0)  # collides, in the closed lane
    scene.put(0, 2, 202.0, -31.0)  # collides, overturned
    scene.body_q[0, 2, 3:] = quaternion(0.0, 0.0, 2.0)
    scene.put(0, 3, 250.0, -31.6)  # off the road beside the closed lane
    assert Judge(scene).step().event.tolist() == [[Event.COLLISION, Event.COLLISION, Event.FAULT, Event.OFF_ROAD]]


def test_first_event_is_kept_and_validity_never_restored():
    judge = one_vehicle(50.0, -31.6).step()
    judge.scene.put(0, 0, 51.0, OPEN)
    judge.step()
    assert (judge.event_now[0, 0], judge.event[0, 0], judge.valid[0, 0]) == (Event.NONE, Event.OFF_ROAD, 0)
    judge.scene.put(0, 0, 160.0, CLOSING)
    judge.step()
    assert (judge.event_now[0, 0], judge.event[0, 0]) == (Event.INCURSION, Event.OFF_ROAD)
    assert judge.first_event_step[0, 0] == 1


def test_passage_is_the_front_bumper_and_a_later_event_keeps_it():
    judge = one_vehicle(167.87, OPEN).step()
    assert judge.passage_step[0, 0] == -1
    judge.scene.put(0, 0, 167.88, OPEN)
    judge.step()
    judge.scene.put(0, 0, 180.0, -20.0)
    judge.step()
    assert (judge.passage_step[0, 0], judge.crossed_step[0, 0]) == (2, 2)
    assert (judge.event[0, 0], judge.first_event_step[0, 0]) == (Event.OFF_ROAD, 3)


def test_the_bumper_turns_with_the_vehicle():
    assert one_vehicle(168.5, OPEN, 0.8).step().passage_step[0, 0] == -1
    assert one_vehicle(168.5, OPEN, 0.7).step().passage_step[0, 0] == 1
    assert one_vehicle(171.0, OPEN, np.pi).step().passage_step[0, 0] == -1


def test_an_event_on_the_crossing_step_is_no_passage():
    judge = one_vehicle(160.0, OPEN).step()
    judge.scene.put(0, 0, 169.0, CLOSING)
    judge.step()
    judge.scene.put(0, 0, 175.0, OPEN)
    judge.step()
    assert (judge.passage_step[0, 0], judge.crossed_step[0, 0]) == (-1, 2)


def test_merge_since_is_the_start_of_the_last_unbroken_stay():
    judge = one_vehicle(100.0, CLOSING)
    history = []
    for y, yaw in ((CLOSING, 0), (-27.12, 0), (-27.1, 0), (-27.1, 0.02), (-26.25, 0), (-26.25, 0.3), (-25.38, 0)):
        judge.scene.put(0, 0, 100.0, y, yaw)
        judge.step()
        history.append((int(judge.in_open_lane[0, 0]), int(judge.merge_since[0, 0])))
    assert history == [(0, -1), (0, -1), (1, 3), (0, -1), (1, 5), (1, 5), (0, -1)]


def test_nothing_is_recorded_after_the_worlds_fault():
    scene = Scene(1, 2)
    scene.put(0, 0, 160.0, OPEN)
    scene.put(0, 1, 700.0, OPEN)
    judge = Judge(scene).step()
    scene.put(0, 0, 175.0, CLOSING)
    judge.step()
    assert (judge.task.step.numpy()[0], judge.passage_step[0, 0], judge.event[0, 0]) == (1, -1, 0)


def test_frozen_worlds_are_left_alone_and_faulted_worlds_are_frozen():
    scene = Scene(3, 1)
    scene.put(1, 0, 50.0, -31.6)
    scene.put(2, 0, 700.0, OPEN)
    scene.stepping[1] = 0
    judge = Judge(scene).step()
    assert judge.task.step.numpy().tolist() == [1, 0, 1]
    assert judge.event[:, 0].tolist() == [0, 0, Event.FAULT]
    stepping = wp.array([1, 1, 1], dtype=wp.int8, device="cpu")
    log = error_log(judge.task.step, "cpu")
    nonfinite, overflow = (wp.zeros(shape, dtype=wp.int8, device="cpu") for shape in ((3, 1), 3))
    wp.launch(freeze_finished, dim=3, inputs=[judge.task, nonfinite, overflow, log, stepping, 3960, 0], device="cpu")
    assert stepping.numpy().tolist() == [1, 1, 0]


def test_reset_clears_the_masked_worlds_only():
    scene = Scene(2, 2)
    for w in range(2):
        scene.put(w, 0, 175.0, OPEN)
        scene.put(w, 1, 700.0, OPEN)
    judge = Judge(scene).step()
    fresh = task_state(1, 2, "cpu")
    mask = wp.array([False, True], dtype=wp.bool, device="cpu")
    before = {name: getattr(judge.task, name).numpy().copy() for name in judge.task._cls.vars}
    wp.launch(reset_task, dim=2, inputs=[mask, judge.task, 2, 0], device="cpu")
    for name, old in before.items():
        now = getattr(judge.task, name).numpy()
        assert (now[0] == old[0]).all(), name
        assert (now[1] == getattr(fresh, name).numpy()[0]).all(), name


def test_shards_and_order_do_not_matter():
    rng = np.random.default_rng(3)
    scene = Scene(6, 12)
    for w, v in np.ndindex(6, 12):
        scene.put(w, v, rng.uniform(100, 190), rng.uniform(-32, -24), rng.normal(0, 0.4))
    whole = Judge(scene).step()
    shards = Judge(scene)
    shards.step(4, 2).step(0, 4)
    turned = Judge(scene.worlds([5, 0])).step()
    assert len(np.unique(whole.event)) >= 4
    for name in whole.task._cls.vars:
        result = getattr(whole.task, name).numpy()
        assert getattr(shards.task, name).numpy().tobytes() == result.tobytes(), name
        assert getattr(turned.task, name).numpy().tobytes() == result[[5, 0]].tobytes(), name
