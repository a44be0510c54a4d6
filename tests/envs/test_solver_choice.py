"""``solver="xpbd"`` through the environments and the benchmark."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import sf3d_envs  # noqa: F401
from sf3d_envs.benchmark import BenchConfig, measure
from sf3d_envs.envs.torch_env import TorchEnv


def test_both_solvers_give_the_same_first_second() -> None:
    """Ten decisions of one ego among IDM cars, which have not met yet."""
    seen = []
    for solver in ("vehicle", "xpbd"):
        env = gymnasium.make("SF3D/LaneClosure-v0", solver=solver)
        obs, _ = env.reset(seed=3)
        rows = [obs]
        for _ in range(10):
            obs, reward, terminated, truncated, _ = env.step(np.array([1.0, 0.1], dtype=np.float32))
            assert np.isfinite(reward) and not terminated and not truncated
            rows.append(obs)
        env.close()
        seen.append(np.stack(rows))
    np.testing.assert_allclose(seen[0], seen[1], atol=2e-3)


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_episodes_turn_over(autoreset_mode: str) -> None:
    """Resets inside the recorded step, another variant per episode, and no memory of the episode before."""
    env = TorchEnv(
        2, condition=["reference", "gradeN080"], resample_variant=True, solver="xpbd", horizon_s=0.5,
        autoreset_mode=autoreset_mode, threads=2,
    )  # fmt: skip
    env.reset(seed=5)
    action = torch.zeros((2, env.num_rows, 2))
    starts = 0
    for _ in range(13):
        obs, _, _, _, info = env.step(action)
        assert torch.isfinite(obs).all()
        starts += int(info["episode_start"].any())
    assert starts >= 2 and not env.errors()
    env.close()


def test_the_benchmark_measures_the_reference_path() -> None:
    result = measure(BenchConfig(worlds=1, solver="xpbd", threads=2, seconds=1e-3))
    assert result.solver == "xpbd" and result.threads == 1 and result.vehicle_steps_per_s > 0.0
