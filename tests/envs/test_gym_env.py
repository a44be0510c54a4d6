"""The single-agent shell: Gymnasium's checker on every ID, determinism, its page."""

import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sf3d_envs
from sf3d_envs import LaneClosureEnv, ObservationSpec
from sf3d_envs.registry import Condition

IDS = list(sf3d_envs.environment_ids(aliases=True))


# The space is in physical units, on purpose.
@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_checker(name):
    env = gym.make(name, horizon_s=1.0, preview=name.startswith("SF3D"))
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_docstring_is_generated_from_the_observation_table():
    page = LaneClosureEnv.__doc__
    rows = [line.strip() for line in page.splitlines()]
    for line in ObservationSpec(preview=True).markdown_table().splitlines():
        assert line in rows
    assert "{observation_table}" not in page


def test_action_table_is_the_action_space():
    rows = re.findall(r"^\s*\| \d \| (acceleration|steering) \| \S+ \| (\S+) \| (\S+) \|", LaneClosureEnv.__doc__, re.M)
    env = gym.make("SF3D/LaneClosure-v0")
    assert [float(low) for _, low, _ in rows] == env.action_space.low.tolist()
    assert [float(high) for _, _, high in rows] == env.action_space.high.tolist()
    assert env.observation_space == gym.spaces.Box(-10.0, 10.0, (112,), np.float32)
    env.close()


def episode(env, seed, steps):
    """All that an episode under a simple driving rule returns, as comparable values, until it ends."""
    spec = env.observation_spec
    obs, info = env.reset(seed=seed)
    yield obs.tobytes(), sorted(info.items())
    for _ in range(steps):
        action = [10.0 * (0.7 - obs[spec["ego.speed_long"]]), -0.5 * obs[spec["route.lateral_offset"]]]
        obs, reward, terminated, truncated, info = env.step(action)
        yield obs.tobytes(), reward, terminated, truncated, sorted(info.items())
        if terminated or truncated:
            return


def test_a_whole_episode_repeats_bit_for_bit():
    env, other = LaneClosureEnv("mu018", ego=5, preview=True), LaneClosureEnv("mu018", ego=5, preview=True)
    first = list(episode(env, 3, 660))
    assert len(first) > 300
    assert first[-1][2] or first[-1][3]
    assert list(episode(env, 3, 660)) == first
    assert list(episode(other, 3, 660)) == first
    assert list(episode(other, 4, 5)) != first[:6]
    env.close()
    other.close()


def test_two_environments_in_one_process_do_not_meet():
    alone = LaneClosureEnv(horizon_s=3.0)
    expected = list(episode(alone, 1, 30))
    env, other = LaneClosureEnv(horizon_s=3.0), LaneClosureEnv("gradeP040", preview=True, traffic="random")
    other.reset(seed=9)
    seen = []
    for step, result in enumerate(episode(env, 1, 30)):
        seen.append(result)
        if step < 15:
            other.step([0.5, 0.0])
        elif step == 15:
            other.close()
    assert seen == expected
    env.close()
    alone.close()


def test_arguments_reach_the_core(tmp_path):
    toml = tmp_path / "wet.toml"
    toml.write_text('slug = "wet"\nfriction = 0.4\n')
    env = gym.make(
        "SF3D/LaneClosure-v0", condition=str(toml), ego=7, traffic="constant", decision_hz=20, solver="vehicle",
        device="cpu", horizon_s=0.1, rules="scoring",
    ).unwrapped  # fmt: skip
    assert env.core.conditions[0].friction == 0.4
    assert env.metadata["render_fps"] == 20
    assert LaneClosureEnv.metadata["render_fps"] == 10
    _, info = env.reset(options={"scenario_seed": 100_000})
    assert info["scenario_seed"] == 100_000
    assert env.core.config.ego == 7
    ends = [env.step([0.0, 0.0])[2:4] for _ in range(2)]
    assert ends == [(False, False), (False, True)]
    env.close()
    env = LaneClosureEnv(Condition("own", friction=0.7))
    assert env.core.conditions[0].slug == "own"
    env.close()


def test_returned_types_are_python_scalars():
    env = LaneClosureEnv()
    env.reset(seed=0)
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert type(reward) is float
    assert type(terminated) is bool
    assert type(truncated) is bool
    assert type(info["event"]) is int
    assert type(info["reward_terms/progress"]) is float
    assert reward == pytest.approx(sum(v for k, v in info.items() if k.startswith("reward_terms/")), abs=1e-6)
    assert obs.base is None
    env.close()


def test_actions_are_clipped_to_the_space():
    def after(action):
        env = LaneClosureEnv()
        env.reset(seed=0)
        obs = env.step(action)[0]
        env.close()
        return obs

    expected = after(np.array([4.0, -1.0], dtype=np.float32))
    for same in ([100.0, -7.0], np.array([4, -1], dtype=np.int8), (np.inf, -np.inf), np.array([1e300, -1.0])):
        assert np.array_equal(after(same), expected)


def test_wrappers():
    env = gym.wrappers.RecordEpisodeStatistics(gym.make("SF3D/LaneClosure-v0", horizon_s=0.5))
    env.reset(seed=0)
    total = 0.0
    for _ in range(5):
        _, reward, _, truncated, info = env.step([0.0, 0.0])
        total += reward
    assert truncated
    assert info["episode"]["l"] == 5
    assert info["episode"]["r"] == pytest.approx(total)
    env.close()
    limited = gym.make("SF3D/LaneClosure-v0", max_episode_steps=2)
    limited.reset(seed=0)
    assert [limited.step([0.0, 0.0])[3] for _ in range(2)] == [False, True]
    limited.close()


def test_gymnasium_can_batch_the_single_environment():
    envs = gym.make_vec("SF3D/LaneClosure-v0", num_envs=2, vectorization_mode="sync", horizon_s=0.3)
    native = gym.make_vec("SF3D/LaneClosure-v0", num_envs=2, horizon_s=0.3)
    a, b = envs.reset(seed=5), native.reset(seed=5)
    actions = np.array([[1.0, 0.1], [-1.0, -0.1]], dtype=np.float32)
    for _ in range(8):
        assert np.array_equal(a[0], b[0])
        assert np.array_equal(a[-1]["scenario_seed"], b[-1]["scenario_seed"])
        a, b = envs.step(actions), native.step(actions)
        for x, y in zip(a[1:4], b[1:4], strict=True):
            assert np.array_equal(x, y)
    envs.close()
    native.close()
