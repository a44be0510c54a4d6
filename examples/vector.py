"""Step a vector environment and count episodes: every row is a vehicle, twelve to a world.

Run: python examples/vector.py [--steps N | --short] [--worlds W]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import gymnasium
import numpy as np

import sf3d_envs  # noqa: F401  registers the environments


def main(arguments: Sequence[str] | None = None) -> int:
    """Step N times; returns the number of rows that ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--short", action="store_true", help="20 steps only")
    parser.add_argument("--worlds", type=int, default=4)
    options = parser.parse_args(arguments)

    envs = gymnasium.make_vec(
        "SF3D/LaneClosure-mu018-v0", num_envs=12 * options.worlds, control="all", autoreset_mode="SameStep"
    )
    envs.action_space.seed(0)
    _, infos = envs.reset(seed=0)
    returns, ended, used, steps = np.zeros(envs.num_envs), [], 0, 20 if options.short else options.steps
    active = infos["active"]
    for _ in range(steps):
        _, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        # Rows that wait for their world to end are no training data: `active` says which rows acted.
        used += int(active.sum())
        returns[active] += rewards[active]
        done = terminated | truncated
        ended.extend(returns[done])
        returns[done] = 0.0
        active = infos["active"]
    mean = f"mean return {np.mean(ended):.2f}" if ended else "none ended"
    print(f"{steps} steps of {envs.num_envs} rows: {used} transitions of active rows, {len(ended)} ends, {mean}")
    envs.close()
    return len(ended)


if __name__ == "__main__":
    main()
