"""What went wrong: which world and vehicle, when, in which scenario, and why."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch

import sf3d_envs
from sf3d_envs import TorchEnv
from sf3d_envs.envs.errors import REASONS, WorldError
from sf3d_envs.task import kernels_errors

NAN = float("nan")


class Traffic:
    """Commands that turn bad for one vehicle of one world at a control step."""

    name, decision_hz, digest = "traffic", 60, "-"

    def __init__(self, worlds: int, world: int = 0, vehicle: int = 0, at: int | None = None):
        self.commands = torch.zeros(worlds, 12, 2)
        self.world, self.vehicle, self.at, self.calls = world, vehicle, at, 0

    def bind(self, view) -> None: ...

    def reset(self, mask=None) -> None: ...

    def act(self, view) -> torch.Tensor:
        self.calls += 1
        commands = self.commands.clone()
        if self.calls == self.at:
            commands[self.world, self.vehicle, 1] = NAN
        return commands


def only(env: TorchEnv, **kwargs) -> WorldError:
    (error,) = env.errors(**kwargs)
    return error


def test_the_reasons_are_in_the_order_of_the_devices_log():
    assert [getattr(kernels_errors, name.upper()) for name in REASONS] == list(range(kernels_errors.NUM_REASONS))


def test_a_non_finite_action_names_row_decision_and_scenario():
    env = TorchEnv(3, decision_hz=20, control="ego", ego=7)
    env.reset(options={"scenario_seed": [100, 200, 300]})
    actions = torch.zeros(3, 1, 2)
    for decision in range(1, 6):
        actions[2, 0, 0] = NAN if decision == 4 else 0.0
        actions[1, 0, 1] = float("inf") if decision == 5 else 0.0
        env.step(actions)
    first, second = env.errors()
    assert first == WorldError(
        world=1,
        reason="action",
        vehicle=7,
        row=0,
        step=13,
        decision=5,
        time_s=13 / 60,
        scenario_seed=200,
        running=True,
        episodes=1,
    )
    assert (second.world, second.decision, second.step, second.scenario_seed) == (2, 4, 10, 300)
    assert str(second) == (
        "world 2, vehicle 7, scenario 300, 0.167 s (control step 10, decision 4): "
        "a non-finite action was replaced by zero"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.step = 3  # type: ignore[misc]
    env.close()


def test_only_the_first_of_a_kind_in_an_episode_is_kept():
    env = TorchEnv(1)
    env.reset(seed=0)
    actions = torch.zeros(1, 12, 2)
    for vehicle in (9, 4):
        actions[:] = 0.0
        actions[0, vehicle, 0] = NAN
        env.step(actions)
    error = only(env)
    assert (error.vehicle, error.row, error.decision, error.episodes) == (9, 9, 1, 1)
    env.close()


def test_a_non_finite_traffic_command_names_its_control_step():
    env = TorchEnv(2, control="ego", ego=0, traffic=Traffic(2, world=1, vehicle=5, at=9))
    env.reset(seed=3)
    for _ in range(3):
        env.step(torch.zeros(2, 1, 2))
    error = only(env)
    assert (error.reason, error.world, error.vehicle, error.row) == ("traffic", 1, 5, None)
    assert (error.step, error.decision) == (9, 2)
    env.close()


def test_a_non_finite_user_reward_names_its_decision():
    calls = []

    def reward(view, terms):
        calls.append(0)
        value = torch.ones(2, 12)
        value[0, 3] = NAN if len(calls) == 2 else 1.0
        return value

    env = TorchEnv(2, reward_fn=reward)
    env.reset(seed=0)
    for _ in range(3):
        env.step(torch.zeros(2, 12, 2))
    error = only(env)
    assert (error.reason, error.world, error.row, error.decision, error.step) == ("reward", 0, 3, 2, 12)
    env.close()


def spoil(env: TorchEnv, world: int, vehicle: int) -> None:
    velocity = env.view.body_qd.numpy()
    velocity[12 * world + vehicle] = np.nan
    env.view.body_qd.assign(velocity)


@pytest.mark.parametrize("advance", [False, True])
def test_a_non_finite_state_names_vehicle_and_control_step(advance):
    env = TorchEnv(3, rules="scoring", autoreset_mode="Disabled")
    env.reset(options={"scenario_seed": 7})
    actions = torch.zeros(3, 12, 2)
    go = env.advance if advance else env.step
    go(actions)
    go(actions)
    spoil(env, 1, 4)
    for _ in range(3):
        go(actions)
    error = only(env)
    assert (error.reason, error.world, error.vehicle, error.scenario_seed) == ("state", 1, 4, 8)
    assert (error.step, error.decision, error.time_s) == (13, 3, pytest.approx(13 / 60))
    assert error.step == env.task_numpy()["first_reset_step"][1]
    env.close()


def test_a_contact_overflow_is_noted_and_the_next_one_too():
    env = TorchEnv(2)
    env.reset(seed=0)
    flags = env.sim.dynamics.rigid_contacts.overflow
    flags.assign(np.array([0, 1], dtype=np.int8))  # as the contact kernel sets it
    env.step(torch.zeros(2, 12, 2))
    error = only(env)
    assert (error.reason, error.world, error.vehicle, error.row, error.step) == ("contacts", 1, None, None, 1)
    env.reset(options={"reset_mask": np.array([False, True])})
    assert env.errors() == []
    env.step(torch.zeros(2, 12, 2))
    assert env.errors() == []
    flags.assign(np.array([0, 1], dtype=np.int8))
    env.step(torch.zeros(2, 12, 2))
    assert (only(env).step, only(env).episodes) == (7, 2)
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_errors_of_an_episode_that_autoreset_has_ended_are_kept_as_past(mode):
    env = TorchEnv(2, autoreset_mode=mode)
    env.reset(seed=5)
    seed = int(env.view.seed.numpy()[1])
    actions = torch.zeros(2, 12, 2)
    env.step(actions)
    spoil(env, 1, 6)
    env.step(actions)
    env.step(actions)
    assert int(env.view.seed.numpy()[1]) != seed
    assert env.errors() == []
    error = only(env, past=True)
    assert (error.world, error.vehicle, error.step, error.scenario_seed) == (1, 6, 7, seed)
    assert not error.running
    env.reset(seed=5)
    assert only(env, past=True) == error
    env.close()


def test_a_step_that_ignores_its_action_notes_nothing():
    env = TorchEnv(1, control="ego", horizon_s=0.1, autoreset_mode="NextStep")
    env.reset(seed=0)
    assert env.step(torch.zeros(1, 1, 2))[3].all()
    env.step(torch.full((1, 1, 2), NAN))
    assert env.errors() == []
    env.step(torch.full((1, 1, 2), NAN))
    assert only(env).decision == 1
    env.close()


def test_inactive_rows_and_frozen_worlds_may_be_given_anything():
    env = TorchEnv(1, rules="scoring", horizon_s=0.2, autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(2):
        env.step(torch.zeros(1, 12, 2))
    env.step(torch.full((1, 12, 2), NAN))
    assert env.errors() == []
    env.close()


def test_all_is_well_before_and_after_the_first_reset():
    env = TorchEnv(2)
    assert env.errors() == env.errors(past=True) == []
    env.reset(seed=0)
    env.step(torch.zeros(2, 12, 2))
    assert env.errors(past=True) == []
    env.close()


def test_the_shells_hand_the_errors_on():
    traffic = Traffic(1, vehicle=5, at=1)
    single = gymnasium.make("SF3D/LaneClosure-v0", traffic=traffic)
    single.reset(seed=0)
    single.step(np.zeros(2, dtype=np.float32))
    vector = gymnasium.make_vec("SF3D/LaneClosure-v0", num_envs=2, traffic=Traffic(2, world=1, vehicle=5, at=1))
    vector.reset(seed=0)
    vector.step(np.zeros((2, 2), dtype=np.float32))
    parallel = sf3d_envs.LaneClosureParallelEnv()
    parallel.reset(seed=0)
    parallel.core.step(torch.full((1, 12, 2), NAN))
    for env, world, reason in ((single.unwrapped, 0, "traffic"), (vector, 1, "traffic"), (parallel, 0, "action")):
        (error,) = env.errors()
        assert (error.world, error.reason) == (world, reason)
    for env in (single, vector, parallel):
        env.close()
