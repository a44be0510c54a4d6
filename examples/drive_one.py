"""Drive one vehicle with a rule of three lines and print what became of it.

Run: python examples/drive_one.py [--steps N | --short] [--condition mu018] [--video FILE.mp4]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import gymnasium
import numpy as np

import sf3d_envs


def main(arguments: Sequence[str] | None = None) -> float:
    """Run up to N decisions of one episode; returns the summed reward."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--short", action="store_true", help="20 decisions only")
    parser.add_argument("--condition", default="reference")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--video", default=None)
    options = parser.parse_args(arguments)

    render_mode = "rgb_array" if options.video else None
    env = gymnasium.make("SF3D/LaneClosure-v0", condition=options.condition, ego=5, render_mode=render_mode)
    spec = env.unwrapped.observation_spec
    speed, offset, heading = spec["ego.speed_long"], spec["route.lateral_offset"], spec["route.heading_sin"]
    present, gap = spec["traffic.0.present"], spec["traffic.0.dx"]

    obs, info = env.reset(seed=options.seed)
    frames = [env.render()] if options.video else []
    total = 0.0
    steps = 20 if options.short else options.steps
    for step in range(1, steps + 1):
        close_ahead = obs[present] and 0.0 < obs[gap] * spec.scales[gap] < 12.0
        acceleration = -2.0 if close_ahead else 10.0 * (0.75 - obs[speed])
        steering = -0.5 * obs[offset] - 1.0 * obs[heading]
        obs, reward, terminated, truncated, info = env.step(np.array([acceleration, steering], dtype=np.float32))
        total += reward
        if options.video:
            frames.append(env.render())
        if terminated or truncated or step == steps:
            break
    event = sf3d_envs.Event(info["event"]).name.lower()
    print(f"{step} decisions, return {total:.2f}, passed: {info['passage']}, event: {event}")
    env.close()
    if options.video:
        from sf3d_envs.render.video import write_video

        write_video(frames, options.video, fps=10)
        print(f"video in {options.video}")
    return total


if __name__ == "__main__":
    main()
