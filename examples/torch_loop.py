"""Work on the tensor environment itself: no copies, actions and observations stay on the device.

Run: python examples/torch_loop.py [--steps N | --short] [--worlds W] [--device cuda:0]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch

import sf3d_envs


def main(arguments: Sequence[str] | None = None) -> torch.Tensor:
    """Step W worlds N times with an untrained network; returns the mean reward per row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--short", action="store_true", help="10 steps only")
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)

    env = sf3d_envs.TorchEnv(options.worlds, device=options.device, preview=True, autoreset_mode="SameStep")
    torch.manual_seed(0)
    policy = torch.nn.Sequential(
        torch.nn.Linear(env.observation_spec.size, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2), torch.nn.Tanh()
    ).to(env.device)
    scale = torch.tensor([4.0, 1.0], device=env.device)

    obs, _ = env.reset(seed=0)
    steps = 10 if options.short else options.steps
    total = torch.zeros(env.num_worlds, env.num_rows, device=env.device)
    begin = time.perf_counter()
    for _ in range(steps):
        with torch.no_grad():
            action = scale * policy(obs)
        # obs and reward are views of the environment's memory: clone what has to outlive the next step.
        obs, reward, _, _, _ = env.step(action)
        total += reward
    seconds = time.perf_counter() - begin
    print(f"{steps} steps of {env.num_worlds} worlds, {env.num_worlds * 12 * steps / seconds:,.0f} vehicle decisions/s")
    env.close()
    return total / steps


if __name__ == "__main__":
    main()
