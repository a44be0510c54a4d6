"""Nothing grows: not with steps and resets, not with environments made and closed."""

from __future__ import annotations

import sys

import gymnasium
import pytest
import torch

import sf3d_envs
from sf3d_envs import TorchEnv
from sf3d_envs.envs.sb3 import LaneClosureVecEnv

from .resources import holdings

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.mark.parametrize(("steps", "grown_mb"), [(2_000, 4.0), pytest.param(100_000, 6.0, marks=pytest.mark.slow)])
def test_steps_with_resets_keep_memory_flat(steps: int, grown_mb: float) -> None:
    """100 bytes lost per step, a dictionary entry or a small tensor, would be 10 MB over the long form."""
    env = gymnasium.make("SF3D/LaneClosure-v0", horizon_s=6.0, threads=1)
    env.action_space.seed(0)
    env.reset(seed=0)
    action, episodes, warm = env.action_space.sample(), 0, None
    for step in range(steps):
        if step == steps // 5:
            warm = holdings()
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
            action = env.action_space.sample()
            episodes += 1
    end = holdings()
    env.close()
    assert episodes >= steps // 60
    assert warm is not None
    assert end.memory - warm.memory < grown_mb
    assert end.threads == warm.threads
    assert end.files == warm.files


def test_autoreset_in_a_batch_on_threads_keeps_memory_flat() -> None:
    env = TorchEnv(24, threads=2, horizon_s=2.0, autoreset_mode="SameStep")
    env.reset(seed=0)
    actions = torch.zeros(24, 12, 2)
    for _ in range(100):
        env.step(actions)
    warm = holdings()
    for _ in range(400):
        env.step(actions)
    end = holdings()
    env.close()
    assert end.memory - warm.memory < 4.0
    assert (end.threads, end.files) == (warm.threads, warm.files)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_environments_made_and_closed_leave_nothing_behind(count: int) -> None:
    """Worlds enough for the thread pool; 24 worlds hold about 2.4 MB, so a kept environment in ten would show."""

    def one(seed: int) -> None:
        kind = seed % 3
        if kind == 0:
            env = TorchEnv(24, threads=2)
            env.reset(seed=seed)
            env.step(torch.zeros(24, 12, 2))
            env.close()
        elif kind == 1:
            vector = gymnasium.make_vec("SF3D/LaneClosure-mu018-v0", num_envs=24, threads=2)
            vector.reset(seed=seed)
            vector.step(vector.action_space.sample())
            vector.close()
        else:
            venv = LaneClosureVecEnv(2, control="all", threads=2)
            venv.reset()
            venv.close()

    for seed in range(6):
        one(seed)
    warm = holdings()
    for seed in range(count):
        one(seed)
    end = holdings()
    assert end.memory - warm.memory < 5.0
    assert end.python_threads == warm.python_threads
    assert end.threads <= warm.threads
    assert end.files == warm.files


def test_close_frees_memory_and_threads_while_the_object_lives_on() -> None:
    TorchEnv(8).close()  # libraries and kernels
    before = holdings()
    env = TorchEnv(4096, threads=2)
    env.reset(seed=0)
    env.step(torch.zeros(4096, 12, 2))
    open_now = holdings()
    env.close()
    closed = holdings()
    assert open_now.python_threads > before.python_threads
    assert closed.python_threads == before.python_threads
    held, left = open_now.memory - before.memory, closed.memory - before.memory
    assert held > 100.0
    assert left < 0.3 * held
    env.close()  # again: nothing happens


def test_a_kept_observation_outlives_its_environment() -> None:
    env = TorchEnv(16)
    obs, _ = env.reset(seed=3)
    expected = obs.clone()
    env.close()
    TorchEnv(16).close()
    assert torch.equal(obs, expected)


def test_a_closed_environment_says_so() -> None:
    env = TorchEnv(1)
    sim = env.sim
    env.reset(seed=0)
    env.close()
    for call in (env.all_done, env.errors, env.task_numpy, env.digests, env.reset, env.render):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    with pytest.raises(RuntimeError, match="closed"):
        env.step(torch.zeros(1, 12, 2))
    with pytest.raises(AttributeError, match="'sim' is gone: this TorchEnv is closed"):
        _ = env.sim
    with pytest.raises(RuntimeError, match="closed"):
        sim.control_step()
    with pytest.raises(AttributeError, match="'body_q' is gone: this Simulator is closed"):
        _ = sim.body_q
    assert env.config.num_worlds == env.num_worlds == 1
    with pytest.raises(AttributeError, match="'TorchEnv' object has no attribute 'nothing'"):
        _ = sf3d_envs.TorchEnv(1).nothing
