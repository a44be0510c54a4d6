"""The same scenario on two roads: reference and friction 0.18, side by side.

Both worlds start from the same seed and are driven by the same agent, so they are equal until a wheel meets the patch.

Run: python examples/matched_pair.py [--steps N | --short] [--out matched_pair.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import sf3d_envs
from sf3d_envs.agents import make_agent
from sf3d_envs.render.plots import side_by_side

ROADS = ("reference", "mu018")


def main(arguments: Sequence[str] | None = None) -> np.ndarray:
    """Drive both worlds for N control steps and save the picture; returns it, uint8 [H, W, 3]."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="control steps of 1/60 s")
    parser.add_argument("--short", action="store_true", help="60 control steps, small picture")
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--out", default="matched_pair.png")
    options = parser.parse_args(arguments)

    agent = make_agent("idm17")
    env = sf3d_envs.TorchEnv(
        2,
        condition=list(ROADS),
        rules="scoring",
        ego=4,
        decision_hz=agent.decision_hz,
        autoreset_mode="Disabled",
        render_mode="rgb_array",
        render_view="top",
        render_size=(320, 180) if options.short else (640, 360),
    )
    env.reset(options={"scenario_seed": [options.seed, options.seed]})
    agent.bind(env.view)
    parted = None
    steps = 60 if options.short else options.steps
    for step in range(steps):
        env.advance(agent.act(env.view))
        poses = env.sim.body_q.numpy().reshape(2, -1)
        if parted is None and not np.array_equal(poses[0], poses[1]):
            parted = step / 60.0
    print("the worlds are still equal" if parted is None else f"the worlds part after {parted:.2f} s")

    frames = [env.render(world) for world in range(2)]
    picture = side_by_side(*frames, titles=ROADS)
    env.close()
    from PIL import Image

    Image.fromarray(picture).save(options.out)
    print(f"picture in {options.out}")
    return picture


if __name__ == "__main__":
    main()
