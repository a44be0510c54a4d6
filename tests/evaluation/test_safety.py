"""Safety measures in real traffic against a plain float64 implementation, their bits, and the window they cover."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation.safety64 import Trace, safety64, yaw_of

from sf3d_envs.agents import make_agent
from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation.logged import logging_probes
from sf3d_envs.evaluation.measures import SAFETY_COUNTS, SAFETY_DERIVED, SAFETY_VALUES, TRAJECTORY
from sf3d_envs.evaluation.safety import SafetyProbe

CONDITIONS = ["reference", "mu018", "gradeN080", "mu005"]
STEPS = 1200


def drive(env, steps, agent="idm17", watch=None):
    """Drive a freshly reset environment at 60 Hz."""
    driver = make_agent(agent)
    driver.bind(env.view)
    for _ in range(steps):
        env.advance(driver.act(env.view))
        if watch is not None:
            watch(env)


def scoring(worlds, **kwargs):
    """Environment under the scoring rules at 60 decisions per second."""
    return TorchEnv(worlds, rules="scoring", decision_hz=60, autoreset_mode="Disabled", **kwargs)


@pytest.fixture(scope="module")
def traffic():
    """20 s of IDM traffic in four conditions: safety measures, trajectories, and the state itself."""
    safety, rich = logging_probes(len(CONDITIONS))
    env = scoring(len(CONDITIONS), condition=CONDITIONS, probes=[safety, rich])
    env.reset(options={"scenario_seed": [100000, 100001, 100003, 100002]})
    trace = Trace()
    trace.take(env)
    drive(env, STEPS, watch=trace.take)
    expected = safety64(trace, env.routes.routes, env.view.own_route.numpy())
    found, recorded = safety.result(), rich.result()
    env.close()
    return found, recorded, trace, expected


@pytest.mark.parametrize("name", [m.name for m in (*SAFETY_COUNTS, *SAFETY_VALUES, *SAFETY_DERIVED)])
def test_measures_agree_with_float64(traffic, name):
    found, _, _, expected = traffic
    wanted = np.array([[vehicle[name] for vehicle in world] for world in expected], dtype=np.float64)
    assert found[name].shape == (len(CONDITIONS), 12)
    if found[name].dtype == np.int32:
        assert np.array_equal(found[name], wanted)
    else:
        # Float32 sums over 1,200 steps; an extreme TTC divides by a closing speed of mm/s that float32 rounds.
        np.testing.assert_allclose(found[name], wanted, rtol=1e-3 if name == "ttc_min" else 1e-4, atol=1e-3)


def test_the_traffic_exercises_every_count(traffic):
    found, _, trace, _ = traffic
    for measure in SAFETY_COUNTS:
        assert (found[measure.name] > 0).any(), f"{measure.name} never counted: the comparison is empty"
    assert (trace["event"][-1] > 0).any()
    assert np.isnan(found["speed_at_20m"]).any()


def test_valid_driving_ends_with_the_step_before_the_first_event(traffic):
    found, _, trace, _ = traffic
    valid = (trace["valid"][1:] != 0) & (trace["fault"][1:, :, None] == 0)
    assert np.array_equal(found["valid_steps"], valid.sum(axis=0))


def test_trajectories_hold_the_conflicts_of_every_step(traffic):
    found, recorded, _, _ = traffic
    ttc, ratio, stepped = recorded["ttc"], recorded["need_ratio"], (recorded.step >= 0)[..., None]
    assert np.array_equal((stepped & (ttc < 1.5)).sum(axis=0), found["ttc_below_1_5s_steps"])
    assert np.array_equal((stepped & (ratio > 1.0)).sum(axis=0), found["need_above_capacity_steps"])
    assert np.array_equal(np.where(stepped, ttc, np.inf).min(axis=0), found["ttc_min"])
    assert np.array_equal(np.where(stepped, ratio, 0.0).max(axis=0), found["need_ratio_max"])


def test_trajectories_are_the_states(traffic):
    _, recorded, trace, _ = traffic
    stepped = np.diff(trace["step"], axis=0) > 0
    assert not stepped[:, 3].all(), "no world froze: the comparison misses that case"
    assert np.array_equal(recorded.step, np.where(stepped, trace["step"][1:], -1))
    assert np.isnan(recorded.data[~stepped]).all()
    assert (recorded.seed == np.array([100000, 100001, 100003, 100002])).all()
    q, qd = trace["body_q"][1:], trace["body_qd"][1:]
    x, y, z, w = np.moveaxis(q[..., 3:], -1, 0)
    forward = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=-1)
    left = np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=-1)
    up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1)
    load = trace["load"][1:]
    total = load.sum(axis=-1)
    expected = {
        "x": q[..., 0],
        "y": q[..., 1],
        "z": q[..., 2],
        "yaw": yaw_of(q[..., 3:]),
        "pitch": np.arcsin(-forward[..., 2]),
        "roll": np.arctan2(left[..., 2], up[..., 2]),
        "speed_long": (qd[..., :3] * forward).sum(-1),
        "speed_lat": (qd[..., :3] * left).sum(-1),
        "yaw_rate": (qd[..., 3:] * up).sum(-1),
        "accel": trace["accel"][1:],
        "command_accel": trace["command"][1:, ..., 0],
        "command_steer": trace["command"][1:, ..., 1],
        "steer_angle": trace["steer_angle"][1:],
        **{f"load_{name}": load[..., k] for k, name in enumerate(("fl", "fr", "rl", "rr"))},
        "friction": (load * trace["friction"][1:]).sum(-1) / np.where(total > 0.0, total, 1.0),
        "event": trace["event"][1:],
        "valid": trace["valid"][1:],
    }
    conflicts = ["ttc", "need_ratio"]  # compared with the measures above
    assert [*expected, *conflicts] == [column.name for column in TRAJECTORY]
    for name, values in expected.items():
        # Float32 rotates velocities of some 10 m/s: 1e-6 of them.
        np.testing.assert_allclose(recorded[name][stepped], values[stepped], rtol=1e-6, atol=1e-5, err_msg=name)


def measured(order, threads=1, fused=None, steps=300):
    """Results of some of 16 worlds, in that order, run together."""
    probe = SafetyProbe(fused=fused)
    env = scoring(len(order), condition=[CONDITIONS[w % 4] for w in order], threads=threads, probes=[probe])
    env.reset(options={"scenario_seed": [100000 + w // 4 for w in order]})
    drive(env, steps)
    env.close()
    return probe.result()


def assert_same_bits(a, b):
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.fixture(scope="module")
def batch():
    """Measures of 16 worlds after 5 s."""
    return measured(range(16))


@pytest.mark.parametrize("world", [1, 10, 15])
def test_bits_do_not_depend_on_the_batch(batch, world):
    assert_same_bits(measured([world]), {name: value[world : world + 1] for name, value in batch.items()})


def test_bits_depend_neither_on_order_nor_threads_nor_launch_shape(batch):
    order = np.random.default_rng(1).permutation(16)
    permuted = {name: value[order] for name, value in batch.items()}
    assert_same_bits(measured(order, threads=2), permuted)
    assert_same_bits(measured(order, threads=2, fused=False), permuted)


def test_a_masked_reset_clears_its_worlds_only():
    probe = SafetyProbe()
    env = scoring(3, condition="mu018", probes=[probe])
    env.reset(options={"scenario_seed": 100000})
    drive(env, 400)
    before = probe.result()
    env.reset(options={"reset_mask": np.array([False, True, False]), "scenario_seed": 100000})
    after = probe.result()
    for measure in (*SAFETY_COUNTS, *SAFETY_VALUES):
        assert np.array_equal(after[measure.name][1], np.full(12, measure.start), equal_nan=True), measure.name
        for world in (0, 2):
            assert np.array_equal(after[measure.name][world], before[measure.name][world], equal_nan=True)
    drive(env, 400)
    again = probe.result()
    for name, value in again.items():
        assert value[1].tobytes() == before[name][1].tobytes(), name
    assert (again["valid_steps"][0] == 800).all()
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_autoreset_starts_the_measures_anew(mode):
    probe = SafetyProbe()
    env = TorchEnv(2, horizon_s=1.0, autoreset_mode=mode, probes=[probe])
    env.reset(options={"scenario_seed": 100000})
    driver = make_agent("idm17")
    driver.bind(env.view)
    counted = []
    for _ in range(13):
        env.step(driver.act(env.view))
        counted.append(int(probe.result()["valid_steps"][0, 0]))
    expected = [6, 12, 18, 24, 30, 36, 42, 48, 54]
    expected += [60, 0, 6, 12] if mode == "NextStep" else [0, 6, 12, 18]
    assert counted == expected
    env.close()


def test_a_frozen_world_adds_nothing():
    probe = SafetyProbe()
    env = scoring(1, horizon_s=1.0, probes=[probe])
    env.reset(options={"scenario_seed": 100000})
    drive(env, 60)
    at_the_end = probe.result()
    drive(env, 20)
    assert_same_bits(probe.result(), at_the_end)
    assert (at_the_end["valid_steps"] == 60).all()
    env.close()


def test_a_probe_serves_one_environment_and_needs_one():
    with pytest.raises(RuntimeError, match="has measured nothing"):
        SafetyProbe().result()
    probe = SafetyProbe()
    env = scoring(1, probes=[probe])
    with pytest.raises(RuntimeError, match="one per environment"):
        scoring(1, probes=[probe])
    env.close()
