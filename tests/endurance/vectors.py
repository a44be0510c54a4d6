"""Vector environments in worker processes, run as a script by the tests: ``vectors.py NAME CONTEXT``.

A script, because spawned workers import the main module again, and so that a hang ends with the script.
"""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv

import sf3d_envs

ID = "SF3D/LaneClosure-mu018-v0"
STEPS = 12


def make_env() -> gymnasium.Env:
    return gymnasium.make(ID, ego=2, threads=1)


def action(step: int) -> np.ndarray:
    return np.array([1.0 - 0.2 * step, 0.05 * (-1) ** step], dtype=np.float32)


def alone(seed: int) -> np.ndarray:
    env = make_env()
    frames = [env.reset(seed=seed)[0]]
    frames += [env.step(action(k))[0] for k in range(STEPS)]
    env.close()
    return np.stack(frames)


def use_thread_pool() -> sf3d_envs.TorchEnv:
    """An environment whose worker threads run in this process."""
    env = sf3d_envs.TorchEnv(16, threads=2)
    env.reset(seed=0)
    env.step(torch.zeros(16, 12, 2))
    return env


def gymnasium_async(context: str) -> None:
    envs = AsyncVectorEnv([make_env] * 2, context=context)
    frames = [envs.reset(seed=[5, 6])[0]]
    for k in range(STEPS):
        envs.step_async(np.stack([action(k)] * 2))
        frames.append(envs.step_wait(timeout=60)[0])
    seeds = envs.reset(seed=[5, 6])[1]["scenario_seed"]
    envs.close()
    assert len(set(seeds.tolist())) == 2
    check(np.stack(frames))


def gymnasium_async_after_threads(context: str) -> None:
    env = use_thread_pool()
    gymnasium_async(context)
    env.step(torch.zeros(16, 12, 2))
    env.close()


def gymnasium_async_batches(context: str) -> None:
    """Workers that use thread pools of their own after the parent has used one."""
    env = use_thread_pool()
    expected = env.reset(seed=9)[0].numpy().copy()
    envs = AsyncVectorEnv([batch_env] * 2, context=context)
    got, _ = envs.reset(seed=9)
    np.testing.assert_array_equal(got[0], expected[0, 0])
    envs.step_async(np.zeros((2, 2), dtype=np.float32))
    envs.step_wait(timeout=60)
    envs.close()
    env.close()


class BatchEnv(gymnasium.Env):
    """One row of a batch on threads."""

    def __init__(self) -> None:
        self.core = sf3d_envs.TorchEnv(16, threads=2)
        single = make_env()
        self.observation_space, self.action_space = single.observation_space, single.action_space

    def reset(self, *, seed=None, options=None):
        return self.core.reset(seed=seed)[0][0, 0].numpy().copy(), {}

    def step(self, action):
        obs, *_ = self.core.step(torch.zeros(16, 12, 2))
        return obs[0, 0].numpy().copy(), 0.0, False, False, {}

    def close(self) -> None:
        self.core.close()


def batch_env() -> gymnasium.Env:
    return BatchEnv()


def sb3_subproc(context: str) -> None:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv([make_env] * 2, start_method=context)
    envs.seed(5)
    frames = [envs.reset()]
    for k in range(STEPS):
        frames.append(envs.step(np.stack([action(k)] * 2))[0])
    envs.close()
    check(np.stack(frames))


def check(frames: np.ndarray) -> None:
    """The workers' observations [T, 2, D] are those of an environment in this process."""
    for row, seed in enumerate((5, 6)):
        np.testing.assert_array_equal(frames[:, row], alone(seed))


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
    print("ok")
