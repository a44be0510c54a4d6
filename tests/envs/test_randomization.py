"""Domain randomization: draws, resets, invariance, shells and what is refused."""

import dataclasses
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from sf3d_envs import (
    DomainRandomization,
    EnvConfig,
    LaneClosureEnv,
    LaneClosureParallelEnv,
    LaneClosureVectorEnv,
    TorchEnv,
    VehicleParams,
    check_vector_env,
)
from sf3d_envs.random import Domain, philox4x32

RANGES = {
    "mass": (0.8, 1.3),
    "grip": (0.7, 1.0),
    "cornering_stiffness": (0.75, 1.25),
    "longitudinal_stiffness": (0.6, 1.7),
    "action_delay": (0, 6),
}
EVERYTHING = DomainRandomization(**RANGES, observation_noise=0.05)


def values(env):
    """Host copy of what the running episodes drew."""
    return {name: tensor.numpy().copy() for name, tensor in env.randomization.items()}


def actions_of(seeds, step):
    """Harsh random actions of worlds [W, 12, 2] that depend on their seeds and the step alone."""
    found = [np.random.default_rng([int(seed), step]).uniform([-8, -1], [5, 1], (12, 2)) for seed in seeds]
    return torch.from_numpy(np.array(found, dtype=np.float32))


def trace(env, seeds, steps=25):
    """Observations and poses after each of some decisions, [steps, W, ...]."""
    obs, _ = env.reset(options={"scenario_seed": [int(seed) for seed in seeds]})
    found = [(obs.numpy().copy(), env.view.body_q.numpy().reshape(len(seeds), 12, 7))]
    for step in range(steps):
        obs, *_ = env.step(actions_of(seeds, step))
        found.append((obs.numpy().copy(), env.view.body_q.numpy().reshape(len(seeds), 12, 7)))
    return [np.array(part) for part in zip(*found, strict=True)]


# ---------------------------------------------------------------------- draws


def test_values_follow_from_the_scenario_seeds_alone():
    """Against the formula, with words from NumPy's generator: low + (high - low) n/1024 and a uniform integer."""
    env = TorchEnv(500, randomization=EVERYTHING)
    _, infos = env.reset(seed=11)
    seeds = infos["scenario_seed"].numpy()
    factor_words = philox4x32(seeds, 0, 0, Domain.RANDOMIZATION)
    delay_words = philox4x32(seeds, 1, 0, Domain.RANDOMIZATION)
    drawn = values(env)
    assert set(drawn) == set(RANGES)
    for k, name in enumerate(list(RANGES)[:4]):
        low, high = np.float32(RANGES[name])
        position = np.array([(int(word) * 1025) >> 32 for word in factor_words[:, k]], dtype=np.float32) / 1024
        assert np.array_equal(drawn[name], np.minimum(low + (high - low) * position.astype(np.float32), high))
        assert drawn[name].min() >= low and drawn[name].max() <= high
        # Uniform: over 500 worlds the mean is within five standard errors of the middle, and both ends are neared.
        assert abs(drawn[name].mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * 500)
        assert drawn[name].min() < low + 0.03 * (high - low) and drawn[name].max() > high - 0.03 * (high - low)
    assert np.array_equal(drawn["action_delay"], [(int(word) * 7) >> 32 for word in delay_words[:, 0]])
    assert set(drawn["action_delay"]) == set(range(7))
    for name, expected in EVERYTHING.draw(seeds).items():
        assert expected.dtype == drawn[name].dtype
        assert np.array_equal(expected, drawn[name])
        assert torch.equal(infos[f"randomization/{name}"], env.randomization[name])
    correlation = np.corrcoef([drawn[name] for name in RANGES]) - np.eye(5)
    assert np.abs(correlation).max() < 5 / np.sqrt(500)
    env.close()


def test_a_field_does_not_move_the_others():
    seeds = np.arange(50) + 2**40
    everything = EVERYTHING.draw(seeds)
    for name, limits in RANGES.items():
        alone = DomainRandomization(**{name: limits}).draw(seeds)
        assert set(alone) == {name}
        assert np.array_equal(alone[name], everything[name])


def test_vehicles_of_worlds_are_those_of_their_factors():
    """Every field on the device against a vehicle that was built with the scaled parameters, a truck among cars."""
    cars = [VehicleParams(mass=2000.0, suspension_stiffness=45_000.0), *[VehicleParams()] * 11]
    env = TorchEnv(8, vehicle=cars, randomization=RANGES)
    env.reset(seed=2)
    drawn = values(env)
    rows = env.sim.arrays.params.numpy()
    index = env.sim.arrays.params_index.numpy()
    assert len(rows) == 16
    for world in range(8):
        mass, grip, cornering, longitudinal = (float(drawn[name][world]) for name in list(RANGES)[:4])
        scaled = [
            dataclasses.replace(
                car,
                mass=mass * car.mass,
                inertia=tuple(mass * item for item in car.inertia),
                grip=grip * car.grip,
                tire_cornering_stiffness_front=cornering * car.tire_cornering_stiffness_front,
                tire_cornering_stiffness_rear=cornering * car.tire_cornering_stiffness_rear,
                tire_longitudinal_stiffness=longitudinal * car.tire_longitudinal_stiffness,
            )
            for car in cars
        ]
        plain = TorchEnv(1, vehicle=scaled)
        expected = plain.sim.arrays.params.numpy()[plain.sim.arrays.params_index.numpy()[0]]
        plain.close()
        for name in rows.dtype.names:
            # Float32 rounding of a product or two.
            assert rows[index[world]][name] == pytest.approx(expected[name], rel=1e-6), name
    env.close()


def test_heavy_worlds_start_at_rest_on_their_springs_past_the_bump_stop():
    """At 1.9 times the mass of a softly sprung car the legs rest in the bump stop; the start pose knows it."""
    car = VehicleParams(suspension_stiffness=20_000.0)
    env = TorchEnv(2, vehicle=car, randomization={"mass": (1.9, 1.9)})
    env.reset(seed=0)
    heavy = dataclasses.replace(car, mass=1.9 * car.mass)
    assert heavy.rest_compression > 0.8 * heavy.suspension_rest_length
    height = env.view.body_q.numpy()[:, 2]
    assert height == pytest.approx(heavy.rest_height, abs=1e-6)
    for _ in range(20):
        env.step(torch.zeros(2, 12, 2))
        # A wrong start pose would swing by half the difference of the rest heights, 0.1 m.
        assert env.view.body_q.numpy()[:, 2] == pytest.approx(heavy.rest_height, abs=0.01)
    env.close()


# ---------------------------------------------------------------------- resets


def test_masked_reset_draws_for_its_worlds_only():
    env = TorchEnv(6, autoreset_mode="Disabled", randomization=EVERYTHING)
    env.reset(seed=1)
    before, params = values(env), env.sim.arrays.params.numpy().copy()
    mask = np.array([True, False, False, True, False, True])
    _, infos = env.reset(options={"reset_mask": mask})
    after = values(env)
    expected = EVERYTHING.draw(infos["scenario_seed"].numpy())
    for name in RANGES:
        assert np.array_equal(after[name][~mask], before[name][~mask])
        assert np.array_equal(after[name], expected[name])
    assert all((before[name][mask] != after[name][mask]).any() for name in RANGES)
    changed = (env.sim.arrays.params.numpy()["mass"] != params["mass"]) | (
        env.sim.arrays.params.numpy()["grip"] != params["grip"]
    )
    assert np.array_equal(changed, mask)
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_autoreset_draws_anew(mode):
    env = TorchEnv(4, horizon_s=0.3, autoreset_mode=mode, randomization=EVERYTHING)
    _, infos = env.reset(seed=5)
    action = torch.zeros(4, 12, 2)
    seen = [infos["scenario_seed"].numpy().copy()]
    for _ in range(12):
        _, _, _, truncated, infos = env.step(action)
        seeds = infos["scenario_seed"].numpy().copy()
        for name, expected in EVERYTHING.draw(seeds).items():
            assert np.array_equal(infos[f"randomization/{name}"].numpy(), expected)
        if mode == "SameStep" and truncated.any():
            final = infos["final_info"]
            assert np.array_equal(final["scenario_seed"].numpy(), seen[-1])
            for name, expected in EVERYTHING.draw(seen[-1]).items():
                assert np.array_equal(final[f"randomization/{name}"].numpy(), expected)
        if not np.array_equal(seeds, seen[-1]):
            seen.append(seeds)
    assert len(seen) >= 4
    assert len(np.unique(EVERYTHING.draw(np.concatenate(seen))["mass"])) > 12
    env.close()


# ---------------------------------------------------------------------- bits


@pytest.fixture(scope="module")
def batch():
    seeds = np.random.default_rng(3).integers(0, 2**62, 16)
    env = TorchEnv(16, randomization=EVERYTHING)
    found = trace(env, seeds)
    env.close()
    return seeds, found


def test_a_world_alone_equals_itself_in_a_batch(batch):
    seeds, (obs, pose) = batch
    for world in (0, 9, 15):
        env = TorchEnv(1, randomization=EVERYTHING)
        alone_obs, alone_pose = trace(env, seeds[[world]])
        env.close()
        assert np.array_equal(alone_obs[:, 0], obs[:, world])
        assert np.array_equal(alone_pose[:, 0], pose[:, world])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_order_and_threads_change_no_bit(batch, threads):
    seeds, (obs, pose) = batch
    order = np.random.default_rng(0).permutation(16)
    env = TorchEnv(16, threads=threads, randomization=EVERYTHING)
    again_obs, again_pose = trace(env, seeds[order])
    env.close()
    assert np.array_equal(again_obs, obs[:, order])
    assert np.array_equal(again_pose, pose[:, order])


def launched(env):
    """Modules of all kernels that the environment's step and reset launch, with repetition."""
    lists = [*vars(env._lists).values(), env._episodes._masked]
    return [command.kernel.module.name for each in lists for shard in each._commands for command in shard]


def test_off_costs_nothing():
    plain, nothing, on = (
        TorchEnv(2, randomization=given)
        for given in (None, DomainRandomization(observation_noise={"ego": 0.0}), EVERYTHING)
    )
    assert not any("randomization" in name for name in launched(plain))
    assert any("randomization" in name for name in launched(on))
    assert launched(nothing) == launched(plain)
    assert len(plain.sim.arrays.params) == len(nothing.sim.arrays.params) == 1
    for env in (plain, nothing):
        _, infos = env.reset(seed=0)
        assert env.randomization == {}
        assert not any(name.startswith("randomization") for name in infos)
    for env in (plain, nothing, on):
        env.close()


def test_ranges_of_one_value_that_change_nothing_change_no_bit():
    neutral = dict.fromkeys(list(RANGES)[:4], (1.0, 1.0))
    seeds = np.arange(4)
    found = []
    for given in (None, {**neutral, "action_delay": (0, 0), "observation_noise": 0.0}):
        env = TorchEnv(4, condition="mu018", randomization=given)
        found.append(trace(env, seeds))
        env.close()
    for plain, randomized in zip(*found, strict=True):
        assert np.array_equal(plain, randomized)


def test_the_corners_of_the_allowed_factors_stay_finite_and_on_their_wheels():
    """Light and stiff is the hardest for the 240 Hz step: weaving and braking for 10 s, no fault."""
    for mass in (0.5, 2.0):
        for stiffness in (0.5, 2.0):
            given = {
                "mass": (mass, mass),
                "grip": (1.03, 1.03),
                "cornering_stiffness": (stiffness, stiffness),
                "longitudinal_stiffness": (stiffness, stiffness),
            }
            env = TorchEnv(4, randomization=given, autoreset_mode="Disabled")
            env.reset(seed=0)
            for step in range(100):
                wave = torch.tensor([2.0 if step % 40 < 25 else -4.0, 0.05 * np.sin(step / 3)], dtype=torch.float32)
                env.step(wave.expand(4, 12, 2).contiguous())
            assert not env.errors()
            assert (env.task_numpy()["fault"] == 0).all()
            env.close()


# ---------------------------------------------------------------------- shells

FOR_SHELLS = {**RANGES, "observation_noise": {"ego": 0.02, "traffic": 0.05, "ego.yaw_rate": 0.1}}


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
def test_gymnasium_checker():
    spec = json.loads(json.dumps(FOR_SHELLS))
    env = gym.make("SF3D/LaneClosure-mu018-v0", randomization=spec, horizon_s=1.0)
    check_env(env.unwrapped, skip_render_check=True)
    _, info = env.reset(seed=4)
    expected = DomainRandomization(**RANGES).draw(int(info["scenario_seed"]))
    for name, value in expected.items():
        assert info[f"randomization/{name}"] == value[0]
        assert type(info[f"randomization/{name}"]) is (int if name == "action_delay" else float)
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("control", ["ego", "all"])
def test_vector_contract(mode, control):
    def make():
        arguments = {"control": control, "autoreset_mode": mode, "horizon_s": 0.3, "randomization": EVERYTHING}
        return gym.make_vec("SF3D/LaneClosure-v0", num_envs=24, **arguments)

    check_vector_env(make, steps=6)


def test_pettingzoo_checkers():
    def make():
        return LaneClosureParallelEnv(randomization=FOR_SHELLS)

    parallel_api_test(make(), num_cycles=40)
    parallel_seed_test(make, num_cycles=10)


def test_sb3_rows_end_with_the_values_of_their_own_episode():
    pytest.importorskip("stable_baselines3")
    from sf3d_envs.envs.sb3 import LaneClosureVecEnv

    env = LaneClosureVecEnv(3, control="ego", horizon_s=0.3, randomization=EVERYTHING)
    env.seed(3)
    env.reset()
    ended = 0
    for _ in range(7):
        _, _, dones, infos = env.step(np.zeros((3, 2), dtype=np.float32))
        for info in infos:
            expected = EVERYTHING.draw(info["scenario_seed"])
            assert all(info[f"randomization/{name}"] == pytest.approx(expected[name][0]) for name in RANGES)
        ended += dones.sum()
    assert ended >= 6
    env.close()


def test_configuration_is_picklable_and_keeps_its_ranges():
    config = EnvConfig(randomization=FOR_SHELLS)
    again = pickle.loads(pickle.dumps(config))
    assert again.randomization == config.randomization == DomainRandomization(**FOR_SHELLS)
    assert DomainRandomization(mass=[0.9, 1.1]).mass == (0.9, 1.1)
    copy = pickle.loads(pickle.dumps(LaneClosureEnv(randomization=EVERYTHING)))
    copy.reset(seed=1)
    assert copy.core.randomization["mass"].shape == (1,)


# ---------------------------------------------------------------------- refusals

BAD = [
    ({"mass": (1.1, 0.9)}, ValueError, r"mass must be .*low <= high, got \(1.1, 0.9\)"),
    ({"mass": (900.0, 1500.0)}, ValueError, r"mass must be .*factors within \[0.5, 2.0\]"),
    ({"mass": (-1.0, 1.0)}, ValueError, "mass must be"),
    ({"mass": (float("nan"), 1.0)}, ValueError, "mass must be finite, got nan"),
    ({"mass": (1.0, float("inf"))}, ValueError, "mass must be finite, got inf"),
    ({"mass": (True, 1.0)}, TypeError, "mass must hold numbers, got True"),
    ({"mass": ("0.9", 1.0)}, TypeError, "mass must hold numbers, got '0.9'"),
    ({"mass": 1.1}, TypeError, r"mass must be \(low, high\)"),
    ({"mass": (0.9, 1.0, 1.1)}, TypeError, r"mass must be \(low, high\)"),
    ({"mass": "ab"}, TypeError, r"mass must be \(low, high\)"),
    ({"grip": (0.9, 1.1)}, ValueError, r"grip must be .*within \[0.1, 1.03\]"),
    ({"grip": (0.0, 1.0)}, ValueError, "grip must be"),
    ({"cornering_stiffness": (0.1, 1.0)}, ValueError, "cornering_stiffness must be"),
    ({"longitudinal_stiffness": (1.0, 5.0)}, ValueError, "longitudinal_stiffness must be"),
    ({"action_delay": (0, 61)}, ValueError, r"action_delay must be .*control steps within \[0, 60\]"),
    ({"action_delay": (-1, 2)}, ValueError, "action_delay must be"),
    ({"action_delay": (3, 2)}, ValueError, "action_delay must be .*low <= high"),
    ({"action_delay": (0.0, 2.0)}, TypeError, "action_delay must hold ints"),
    ({"action_delay": (False, True)}, TypeError, "action_delay must hold ints"),
    ({"action_delay": 3}, TypeError, r"action_delay must be \(low, high\)"),
    ({"observation_noise": -0.1}, ValueError, r"observation_noise must be a standard deviation in \[0, 10\]"),
    ({"observation_noise": float("nan")}, ValueError, "observation_noise must be finite"),
    ({"observation_noise": True}, TypeError, "observation_noise must hold numbers, got True"),
    ({"observation_noise": "loud"}, TypeError, "observation_noise must hold numbers, got 'loud'"),
    ({"observation_noise": {"ego": -1.0}}, ValueError, r"observation_noise\['ego'\] must be"),
    (
        {"observation_noise": {"ego.yaw": 0.1}},
        ValueError,
        "observation_noise names 'ego.yaw'; did you mean 'ego.yaw_rate'",
    ),
    ({"observation_noise": {"ego.valid": 0.1}}, ValueError, "observation_noise names 'ego.valid', which is exact"),
    ({"observation_noise": {"planner": 0.1}}, ValueError, "observation_noise names 'planner', which is exact"),
]


@pytest.mark.parametrize(("fields", "kind", "text"), BAD, ids=[str(case[0]) for case in BAD])
def test_bad_fields(fields, kind, text):
    with pytest.raises(kind, match=text):
        DomainRandomization(**fields)
    with pytest.raises(kind, match=text):
        EnvConfig(randomization=fields)


@pytest.mark.parametrize("shell", [TorchEnv, LaneClosureEnv, LaneClosureVectorEnv, LaneClosureParallelEnv])
def test_bad_arguments_of_the_environments(shell):
    with pytest.raises(ValueError, match="randomization has no field 'mas'; did you mean 'mass'"):
        shell(randomization={"mas": (0.9, 1.1)})
    with pytest.raises(TypeError, match=r"randomization must be a DomainRandomization.*got \(0.9, 1.1\)"):
        shell(randomization=(0.9, 1.1))
    with pytest.raises(ValueError, match="randomization needs rules='training', got rules='scoring'"):
        shell(randomization=EVERYTHING, rules="scoring")
    with pytest.raises(ValueError, match="observation_noise names 'preview'"):
        shell(randomization={"observation_noise": {"preview": 0.1}})
    soft = VehicleParams(suspension_stiffness=12_500.0)
    with pytest.raises(ValueError, match=r"randomization.mass \(1.0, 2.0\) does not suit the vehicle"):
        shell(vehicle=soft, randomization={"mass": (1.0, 2.0)})
