"""Reward terms worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from alone import accumulate_reward
from observation.worlds import Scene, arc_route, merge_route

from sf3d_envs.task import Event
from sf3d_envs.task.kernels import task_state
from sf3d_envs.task.reward import REWARD_TERMS, RewardConfig, begin_decision

DT = 1.0 / 60.0


class Account:
    """Reward buffers of a scene."""

    def __init__(self, scene: Scene, config: RewardConfig | None = None):
        self.scene = scene
        shape = (scene.num_worlds, scene.num_vehicles)
        self.active = np.ones(shape, np.int8)
        self.task = task_state(*shape, "cpu")
        self.weights = (config or RewardConfig()).weights()
        self.terms = wp.full((*shape, len(REWARD_TERMS)), 99.0, dtype=float, device="cpu")

    def begin(self, action: np.ndarray) -> dict[str, np.ndarray]:
        inputs = [
            wp.array(action.astype(np.float32), dtype=wp.vec2, device="cpu"),
            wp.array(self.scene.command, dtype=wp.vec2, device="cpu"),
            wp.array(self.active, dtype=wp.int8, device="cpu"),
            self.weights,
            self.terms,
            self.scene.num_vehicles,
            0,
        ]
        wp.launch(begin_decision, dim=self.scene.num_worlds, inputs=inputs, device="cpu")
        return self.read()

    def add(self, step: int = 1, stop_at_event: int = 1) -> dict[str, np.ndarray]:
        self.task.step.fill_(step)
        view = self.scene.view()
        inputs = [
            view.body_q,
            view.body_qd,
            view.stepping,
            wp.array(self.active, dtype=wp.int8, device="cpu"),
            view.own_route,
            view.routes.points,
            view.route_index,
            self.task,
            self.weights,
            stop_at_event,
            DT,
            self.terms,
            self.scene.num_vehicles,
            0,
        ]
        wp.launch(accumulate_reward, dim=self.scene.num_worlds, inputs=inputs, device="cpu")
        return self.read()

    def read(self) -> dict[str, np.ndarray]:
        terms = self.terms.numpy().copy()
        return {name: terms[..., i] for i, name in enumerate(REWARD_TERMS)}


def account(num_vehicles: int = 1) -> Account:
    scene = Scene(1, num_vehicles)
    for v in range(num_vehicles):
        scene.put(0, v, 10.0 + 20.0 * v, -26.25, 0.0, 6.0)
    result = Account(scene)
    result.begin(scene.command)
    return result


def test_a_decision_starts_at_zero_and_charges_the_change_of_acceleration():
    scene = Scene(2, 2)
    scene.command[:] = [[[1.0, 0.3], [0.0, 0.0]], [[-2.0, 0.0], [4.0, 0.0]]]
    book = Account(scene)
    book.active[1, 1] = 0
    terms = book.begin(np.array([[[3.0, -0.9], [0.0, 1.0]], [[-6.0, 0.0], [0.0, 0.0]]]))
    assert terms.pop("comfort") == pytest.approx(np.array([[-0.02, 0.0], [-0.04, 0.0]]))
    assert all(not value.any() for value in terms.values())


def test_progress_and_route_follow_the_routes_tangent():
    scene = Scene(1, 1, [arc_route(100.0, 150.0)])
    x, y, heading, _ = arc_route(100.0, 150.0)[80]
    left = np.array([-np.sin(heading), np.cos(heading)])
    scene.put(0, 0, x + 1.5 * left[0], y + 1.5 * left[1], heading + 0.5, 8.0)
    book = Account(scene)
    book.begin(scene.command)
    for count in (1, 2, 3):
        terms = book.add()
        assert terms["progress"][0, 0] == pytest.approx(0.1 * count * DT * 8.0 * np.cos(0.5), rel=1e-4)
        assert terms["route"][0, 0] == pytest.approx(-0.05 * count * DT * 1.5, rel=1e-4)


def test_progress_uses_the_own_route():
    scene = Scene(1, 2)
    scene.own_route[:] = (0, 1)
    route = merge_route()
    x, y, heading, _ = route[np.argmin(np.abs(route[:, 0] - 80.0))]
    for v in range(2):
        scene.put(0, v, x, y, heading, 10.0)
    book = Account(scene)
    book.begin(scene.command)
    progress = book.add()["progress"][0]
    assert progress[1] == pytest.approx(0.1 * DT * 10.0, rel=1e-6)
    assert progress[0] == pytest.approx(0.1 * DT * 10.0 * np.cos(heading), rel=1e-5)


@pytest.mark.parametrize(
    ("event", "penalty"),
    [(Event.FAULT, -20.0), (Event.COLLISION, -10.0), (Event.OFF_ROAD, -10.0), (Event.INCURSION, -10.0)],
)
def test_the_first_event_is_charged_once(event, penalty):
    book = account()
    book.task.event.fill_(int(event))
    book.task.event_now.fill_(int(event))
    book.task.first_event_step.fill_(5)
    assert book.add(step=5, stop_at_event=0)["event"][0, 0] == penalty
    assert book.add(step=6, stop_at_event=0)["event"][0, 0] == penalty


def test_passage_is_paid_once():
    book = account()
    book.task.passage_step.fill_(3)
    assert [book.add(step=step)["passage"][0, 0] for step in (2, 3, 4)] == [0.0, 10.0, 10.0]


def test_under_training_rules_nothing_is_collected_after_the_event():
    training, scoring = account(2), account(2)
    for book, stop in ((training, 1), (scoring, 0)):
        book.task.first_event_step.numpy()[0, 0] = 2
        book.task.event.numpy()[0, 0] = Event.COLLISION
        for step in (1, 2, 3, 4):
            terms = book.add(step=step, stop_at_event=stop)
        assert terms["progress"][0] == pytest.approx(np.array([2.0 if stop else 4.0, 4.0]) * 0.1 * DT * 6.0)


def test_inactive_rows_and_frozen_worlds_collect_nothing():
    book = account(2)
    book.active[0, 0] = 0
    assert book.add()["progress"][0].tolist() == [0.0, pytest.approx(0.1 * DT * 6.0)]
    book.scene.stepping[0] = 0
    assert book.add()["progress"][0, 1] == pytest.approx(0.1 * DT * 6.0)


def test_a_faulted_world_is_paid_for_its_last_step_only_and_never_non_finite():
    book = account(2)
    book.scene.body_qd[0, 0] = np.nan
    book.task.fault.fill_(1)
    book.task.first_reset_step.fill_(7)
    terms = book.add(step=7)
    assert terms["progress"][0].tolist() == [0.0, pytest.approx(0.1 * DT * 6.0)]
    assert book.add(step=8)["progress"][0, 1] == terms["progress"][0, 1]


def test_weights_are_validated():
    with pytest.raises(ValueError, match="passage must be finite, got nan"):
        RewardConfig(passage=float("nan"))
