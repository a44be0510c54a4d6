"""Train a shared policy for all twelve vehicles with Stable-Baselines3's PPO. Needs the extra ``sb3``.

Run: python examples/sb3_ppo.py [--steps N | --short] [--worlds W]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from stable_baselines3.common.vec_env import VecMonitor

from sf3d_envs.envs.sb3 import LaneClosureVecEnv, MaskedPPO


def main(arguments: Sequence[str] | None = None) -> float:
    """Train for N transitions; returns the mean return of the last episodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--short", action="store_true", help="two small updates only")
    parser.add_argument("--worlds", type=int, default=8)
    options = parser.parse_args(arguments)

    worlds, steps, n_steps = (2, 2 * 24 * 32, 32) if options.short else (options.worlds, options.steps, 128)
    env = VecMonitor(LaneClosureVecEnv(worlds, stagger=True, horizon_s=3.0 if options.short else 66.0))
    model = MaskedPPO(
        "MlpPolicy",
        env,
        n_steps=n_steps,
        batch_size=256,
        n_epochs=2 if options.short else 10,
        seed=0,
        device="cpu",
        verbose=0 if options.short else 1,
    )
    model.learn(steps)
    mean = float(np.mean([episode["r"] for episode in model.ep_info_buffer]))
    used = float(model.rollout_buffer.active.mean())
    print(f"{model.num_timesteps} transitions, {used:.0%} of the last rollout active, mean return {mean:.2f}")
    env.close()
    return mean


if __name__ == "__main__":
    main()
