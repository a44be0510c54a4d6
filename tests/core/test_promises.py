"""What does not change a trajectory's bits, and what must be refused."""

import multiprocessing
import os

import numpy as np
import pytest
import torch

from sf3d_envs.agents import make_agent
from sf3d_envs.envs.torch_env import TorchEnv


def drive(env, scenario_seeds, steps, agent="idm17"):
    """Poses and velocities after each of some decisions, [steps, W, V, 13]."""
    env.reset(options={"scenario_seed": scenario_seeds})
    driver = make_agent(agent)
    driver.bind(env.view)
    found = []
    for _ in range(steps):
        env.advance(driver.act(env.view))
        shape = (env.num_worlds, 12, -1)
        found.append(
            np.concatenate([env.view.body_q.numpy().reshape(shape), env.view.body_qd.numpy().reshape(shape)], axis=-1)
        )
    return np.array(found)


def scoring(worlds, **kwargs):
    return TorchEnv(worlds, rules="scoring", decision_hz=60, **kwargs)


@pytest.fixture(scope="module")
def batch():
    env = scoring(64, condition=["reference", "mu018", "gradeN080", "mu008"] * 16)
    seeds = [100000 + w // 4 for w in range(64)]
    trace = drive(env, seeds, 420)
    env.close()
    return seeds, trace


def test_a_world_alone_equals_itself_in_a_batch_of_64(batch):
    seeds, trace = batch
    for world, condition in ((1, "mu018"), (35, "mu008"), (62, "gradeN080")):
        env = scoring(1, condition=condition)
        alone = drive(env, [seeds[world]], 420)
        env.close()
        assert np.array_equal(alone[:, 0], trace[:, world])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_order_and_threads_change_no_bit(batch, threads):
    seeds, trace = batch
    order = np.random.default_rng(0).permutation(64)
    conditions = ["reference", "mu018", "gradeN080", "mu008"]
    env = scoring(64, condition=[conditions[w % 4] for w in order], threads=threads)
    permuted = drive(env, [seeds[w] for w in order], 420)
    env.close()
    assert np.array_equal(permuted, trace[:, order])


@pytest.mark.parametrize("preview", [False, True])
def test_worlds_that_differ_in_friction_agree_until_the_patch_is_touched(preview):
    """Bits of state and observation, from the same scenario on the reference road and at μ 0.18."""
    seeds = list(range(100000, 100008))
    env = TorchEnv(16, condition=["reference"] * 8 + ["mu018"] * 8, rules="scoring", preview=preview)
    obs, _ = env.reset(options={"scenario_seed": seeds + seeds})
    driver = make_agent("idm17")
    driver.bind(env.view)
    first_difference = np.full(8, -1)
    first_touch = np.full(8, -1)
    assert torch.equal(obs[:8, :, :112], obs[8:, :, :112])
    for step in range(150):
        position = env.view.body_q.numpy().reshape(16, 12, 7)
        # A wheel, or with preview a route sample 40 m ahead of one of the projections, can have reached x = 40 m.
        reach = 41.5 if preview else 2.0
        touched = (position[8:, :, 0] + reach >= 40.0).any(axis=1)
        obs, *_ = env.step(driver.act(env.view))
        touched |= (env.view.body_q.numpy().reshape(16, 12, 7)[8:, :, 0] + reach >= 40.0).any(axis=1)
        differs = (obs[:8] != obs[8:]).flatten(1).any(dim=1).numpy()
        state = env.view.body_q.numpy().reshape(16, -1)
        differs |= (state[:8] != state[8:]).any(axis=1)
        first_difference[(first_difference < 0) & differs] = step
        first_touch[(first_touch < 0) & touched] = step
    env.close()
    assert (first_difference >= first_touch).all()
    assert (first_touch >= 0).all()
    assert (first_difference >= 0).any()


def test_ego_and_traffic_agree_with_everyone_driven():
    """One IDM ego among IDM traffic is the same world as twelve IDM vehicles."""
    everyone = TorchEnv(2, decision_hz=60, autoreset_mode="Disabled")
    ego = TorchEnv(2, decision_hz=60, autoreset_mode="Disabled", control="ego", ego=2)
    drivers = []
    for env in (everyone, ego):
        env.reset(options={"scenario_seed": 100002})
        driver = make_agent("idm17")
        driver.bind(env.view)
        drivers.append(driver)
    for _ in range(600):
        obs, *_ = everyone.step(drivers[0].act(everyone.view))
        row, *_ = ego.step(drivers[1].act(ego.view)[:, 2:3].contiguous())
        assert torch.equal(obs[:, 2], row[:, 0])
    assert np.array_equal(everyone.view.body_q.numpy(), ego.view.body_q.numpy())
    everyone.close()
    ego.close()


def test_non_finite_actions_are_zero_and_named():
    env = TorchEnv(3)
    env.reset(seed=1)
    action = torch.zeros(3, 12, 2)
    reference = [v.clone() for v in env.step(action)[:2]]
    env.reset(seed=1)
    action[1, 4, 0] = float("nan")
    given = env.step(action)[:2]
    for a, b in zip(reference, given, strict=True):
        assert torch.equal(a, b)
    assert [str(error)[:18] for error in env.errors()] == ["world 1, vehicle 4"]
    env.close()


@pytest.mark.parametrize(
    ("kwargs", "error", "words"),
    [
        ({"num_worlds": 0}, ValueError, ["num_worlds", "0"]),
        ({"num_worlds": -3}, ValueError, ["num_worlds", "-3"]),
        ({"num_worlds": 2.0}, TypeError, ["num_worlds", "2.0"]),
        ({"condition": "mu0.18"}, ValueError, ["mu0.18", "mu018"]),
        ({"num_worlds": 2, "condition": ["reference"]}, ValueError, ["condition", "num_worlds=2"]),
        ({"control": "some"}, ValueError, ["control", "some", "ego"]),
        ({"ego": 12, "control": "ego"}, ValueError, ["ego", "12", "11"]),
        ({"traffic": "idm18", "control": "ego"}, ValueError, ["traffic", "idm18", "idm17"]),
        ({"decision_hz": 7}, ValueError, ["decision_hz", "7", "60"]),
        ({"horizon_s": 0.0}, ValueError, ["horizon_s", "0.0"]),
        ({"horizon_s": 1.05}, ValueError, ["horizon_s", "1.05"]),
        ({"autoreset_mode": "Always"}, ValueError, ["autoreset_mode", "Always", "NextStep"]),
        ({"device": "cuda:9"}, ValueError, ["device", "cuda:9", "cpu"]),
        pytest.param(
            {"device": "cuda"},
            ValueError,
            ["device", "cuda", "cpu"],
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has such a device"),
        ),
        ({"horizon_s": float("inf")}, ValueError, ["horizon_s", "inf"]),
        ({"horizon_s": float("nan")}, ValueError, ["horizon_s", "nan"]),
        ({"num_worlds": 10**8}, ValueError, ["num_worlds", "100000000", "1000000"]),
        ({"threads": 10**9}, ValueError, ["threads", "1024"]),
        ({"device": "gpu"}, ValueError, ["device", "gpu"]),
        ({"threads": 0}, ValueError, ["threads", "0"]),
        ({"solver": "mujoco"}, ValueError, ["solver", "mujoco", "vehicle"]),
        ({"rules": "race"}, ValueError, ["rules", "race"]),
        ({"render_mode": "ansi"}, ValueError, ["render_mode", "ansi"]),
        ({"reward": {"progress": 1.0}}, TypeError, ["reward", "RewardConfig"]),
        ({"render_size": (0, 0)}, ValueError, ["render_size", "0"]),
        ({"render_size": 5}, TypeError, ["render_size", "5"]),
        ({"condition": None}, TypeError, ["condition", "None"]),
        ({"traffic": "idm"}, ValueError, ["traffic", "idm", "idm17"]),
        ({"config": 3}, TypeError, ["config", "3"]),
        ({"horizon_s": 3.6e7}, ValueError, ["horizon_s", "86400"]),
        ({"reward_fn": 3}, TypeError, ["reward_fn", "3"]),
        ({"vehicle": "truck"}, ValueError, ["vehicle", "truck", "compact"]),
        ({"vehicle": 3}, TypeError, ["vehicle", "3"]),
        ({"worlds": 3}, TypeError, ["worlds", "num_worlds"]),
    ],
)
def test_bad_arguments_are_named(kwargs, error, words):
    with pytest.raises(error) as caught:
        TorchEnv(**kwargs)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (np.zeros((2, 12, 2)), TypeError, ["torch.Tensor", "ndarray"]),
        (torch.zeros(2, 12, 2, dtype=torch.float64), TypeError, ["float32", "float64"]),
        (torch.zeros(2, 12), ValueError, ["(2, 12, 2)", "(2, 12)"]),
        (torch.zeros(24, 2), ValueError, ["(2, 12, 2)", "(24, 2)"]),
    ],
)
def test_bad_actions_are_refused_before_anything_moves(action, error, words):
    env = TorchEnv(2)
    env.reset(seed=1)
    before = env.view.body_q.numpy().copy()
    with pytest.raises(error) as caught:
        env.step(action)
    for word in words:
        assert word in str(caught.value)
    assert np.array_equal(before, env.view.body_q.numpy())
    env.close()


@pytest.mark.parametrize(
    ("seed", "options", "error", "words"),
    [
        (-1, None, ValueError, ["seed", "-1"]),
        (2**64, None, ValueError, ["seed"]),
        (1.5, None, TypeError, ["seed", "1.5"]),
        ([1], None, ValueError, ["seed", "2"]),
        (None, {"scenario_seed": -5}, ValueError, ["scenario_seed", "-5"]),
        (None, {"scenario_seed": [1, 2, 3]}, ValueError, ["scenario_seed", "2"]),
        (None, {"scenario_seed": "a"}, TypeError, ["scenario_seed", "'a'"]),
        (None, {"scenario": 1}, ValueError, ["scenario", "scenario_seed"]),
    ],
)
def test_bad_seeds_are_named(seed, options, error, words):
    env = TorchEnv(2)
    with pytest.raises(error) as caught:
        env.reset(seed=seed, options=options)
    for word in words:
        assert word in str(caught.value)
    env.close()


def test_calls_out_of_order():
    env = TorchEnv(1)
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(torch.zeros(1, 12, 2))
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (lambda: env.step(torch.zeros(1, 12, 2)), env.reset, env.render):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_two_environments_in_one_process_do_not_meet():
    lone = TorchEnv(2)
    lone.reset(seed=9)
    expected = [lone.step(torch.full((2, 12, 2), 0.3))[0].clone() for _ in range(5)]
    lone.close()
    first, second = TorchEnv(2), TorchEnv(3, condition="mu018", decision_hz=20)
    first.reset(seed=9)
    second.reset(seed=1)
    for wanted in expected:
        second.step(torch.full((3, 12, 2), -0.7))
        assert torch.equal(first.step(torch.full((2, 12, 2), 0.3))[0], wanted)
    second.close()
    first.step(torch.zeros(2, 12, 2))
    first.close()


def test_fresh_entropy_without_a_seed():
    env = TorchEnv(2)
    _, infos = env.reset()
    seeds = infos["scenario_seed"].numpy().tolist()
    other = TorchEnv(2)
    _, infos = other.reset()
    assert seeds != infos["scenario_seed"].numpy().tolist()
    assert all(s >= 2**32 for s in seeds)
    env.close()
    other.close()


def test_one_traffic_object_cannot_drive_two_environments():
    driver = make_agent("idm17")
    first = TorchEnv(1, control="ego", traffic=driver)
    first.reset(seed=1)
    second = TorchEnv(1, control="ego", traffic=driver)
    second.reset(seed=2)
    second.step(torch.zeros(1, 1, 2))
    with pytest.raises(RuntimeError, match="'idm17' has since been bound to another environment"):
        first.step(torch.zeros(1, 1, 2))
    first.close()
    second.close()


class CountingTraffic:
    """A driver with memory: it counts its decisions per world since the world's reset."""

    name, decision_hz, digest = "counting", 20, "0"

    def bind(self, view):
        self.count = torch.zeros(view.num_worlds)

    def reset(self, mask=None):
        if mask is None:
            self.count.zero_()
        else:
            self.count[mask] = 0

    def act(self, view):
        self.count += 1
        return torch.zeros(view.num_worlds, view.num_vehicles, 2)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_traffic_with_memory_hears_of_resets_inside_a_step(mode):
    driver = CountingTraffic()
    env = TorchEnv(2, control="ego", traffic=driver, horizon_s=0.3, autoreset_mode=mode)
    env.reset(seed=1)
    for _ in range(3):
        env.step(torch.zeros(2, 1, 2))
    if mode == "NextStep":
        assert driver.count.tolist() == [6, 6]
        env.step(torch.zeros(2, 1, 2))
        assert driver.count.tolist() == [2, 2]
    else:
        assert driver.count.tolist() == [0, 0]
    env.close()


def test_wheels_turn_as_far_as_they_roll():
    env = TorchEnv(1, rules="scoring")
    env.reset(options={"scenario_seed": 100000})
    start = env.view.body_q.numpy()[:, 0].copy()
    env.sim.control_step(30)
    rolled = env.view.body_q.numpy()[:, 0] - start
    expected = np.mod(rolled / 0.32, 2 * np.pi)
    assert env.sim.wheel_angle.numpy()[0] == pytest.approx(np.repeat(expected[:, None], 4, axis=1), abs=0.02)
    env.close()


class StrangeTraffic(CountingTraffic):
    """Returns whatever it was given."""

    name = "strange"

    def __init__(self, value):
        self.value = value

    def act(self, view):
        return self.value


@pytest.mark.parametrize("value", [torch.zeros(2), torch.zeros(1, 2, 12, 2), [[0.0, 0.0]], None])
def test_traffic_of_another_shape_is_refused(value):
    env = TorchEnv(2, control="ego", traffic=StrangeTraffic(value))
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"traffic agent 'strange' must return a tensor of shape \(2, 12, 2\)"):
        env.step(torch.zeros(2, 1, 2))
    env.close()


def test_traffic_that_is_not_finite_is_zero_and_flagged():
    found = []
    for value in (float("nan"), 0.0):
        env = TorchEnv(2, control="ego", traffic=StrangeTraffic(torch.full((2, 12, 2), value)))
        env.reset(seed=1)
        found.append(env.step(torch.zeros(2, 1, 2))[0].clone())
        assert bool(env.errors()) == (value != 0.0)
        env.close()
    assert torch.equal(*found)


def test_user_functions_of_the_wrong_kind_are_refused():
    for name, value in (("termination_fn", torch.zeros(2, 12)), ("reward_fn", torch.zeros(2, 12, dtype=torch.bool))):
        env = TorchEnv(2, **{name: lambda *_, value=value: value})
        env.reset(seed=1)
        with pytest.raises(TypeError, match=f"{name} must return a"):
            env.step(torch.zeros(2, 12, 2))
        env.close()


def test_a_user_reward_that_is_not_finite_is_zero_and_named():
    reward = torch.ones(2, 12)
    reward[1, 3] = float("nan")
    env = TorchEnv(2, reward_fn=lambda view, terms: reward)
    env.reset(seed=1)
    given = env.step(torch.zeros(2, 12, 2))[1]
    assert given[1, 3] == 0.0
    assert given.sum() == 23.0
    assert [str(error)[:18] for error in env.errors()] == ["world 1, vehicle 3"]
    env.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_can_step_an_environment_that_used_threads():
    env = TorchEnv(8, threads=2)
    env.reset(seed=0)
    env.step(torch.zeros(8, 12, 2))
    child = multiprocessing.get_context("fork").Process(target=lambda: env.step(torch.zeros(8, 12, 2)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    env.step(torch.zeros(8, 12, 2))
    env.close()


def test_a_closed_simulator_refuses_every_call():
    sim = TorchEnv(1).sim
    for count in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="count must be an int >= 1"):
            sim.control_step(count)
    sim.close()
    with pytest.raises(RuntimeError, match="closed"):
        sim.control_step()
    with pytest.raises(RuntimeError, match="closed"):
        sim.place([True], np.zeros(3))
