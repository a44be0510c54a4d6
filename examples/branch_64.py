"""Branch a running experiment: one world of warmed-up traffic goes on in 64 ways.

Twelve vehicles drive towards the lane closure for some seconds. Then the world is saved and restored into 64 worlds,
where one vehicle holds another acceleration and steering in each, while IDM drives the eleven others on. The 64 worlds
are equal, bit for bit, up to that moment, so every difference afterwards comes from the vehicle's choice.

Run: python examples/branch_64.py [--seconds S | --short] [--condition mu018] [--out branch_64.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

import sf3d_envs
from sf3d_envs.agents import make_agent
from sf3d_envs.terrain import LaneClosureRoad

EGO = 3
"""A vehicle of the closing lane."""
ACCELERATION = torch.linspace(-6.0, 3.0, 8)
STEERING = torch.linspace(-0.06, 0.10, 8)
OUTCOMES = {0: ("drives on", "#1f5fa8"), 2: ("collision", "#c8452d"), 3: ("off the road", "#7a4fb5"),
            4: ("in the closed lane", "#e08a1e"), 1: ("fault", "#222222")}  # fmt: skip


def make_env(worlds: int, condition: str, seed: int) -> sf3d_envs.TorchEnv:
    """Worlds that all hold one scenario."""
    env = sf3d_envs.TorchEnv(
        worlds, condition=condition, control="all", rules="scoring", decision_hz=60, autoreset_mode="Disabled"
    )
    env.reset(options={"scenario_seed": [seed] * worlds})
    return env


def warm_up(seconds: float, condition: str, seed: int) -> sf3d_envs.SavedState:
    """Let IDM drive one world and save it."""
    env, agent = make_env(1, condition, seed), make_agent("idm17")
    agent.bind(env.view)
    for _ in range(round(60 * seconds)):
        env.advance(agent.act(env.view))
    saved = env.sim.save()
    env.close()
    return saved


def branch(saved: sf3d_envs.SavedState, seconds: float, condition: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Go on in 64 ways; positions [m], [steps + 1, 64, 12, 2], and the ego's first event, [64]."""
    worlds = len(ACCELERATION) * len(STEERING)
    env, agent = make_env(worlds, condition, seed), make_agent("idm17")
    env.sim.restore(saved, source=0)
    agent.bind(env.view)
    choice = torch.cartesian_prod(ACCELERATION, STEERING)
    position = env.sim.state.position
    track = [position[..., :2].clone()]
    for _ in range(round(60 * seconds)):
        action = agent.act(env.view).clone()
        action[:, EGO] = choice
        env.advance(action)
        track.append(position[..., :2].clone())
    event = env.task_numpy()["event"][:, EGO]
    env.close()
    return torch.stack(track).numpy(), event


def draw(track: np.ndarray, event: np.ndarray, warm: float, path: str) -> None:
    """The 64 paths of the ego over the cars at the moment of branching, and the outcome by choice."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    road = LaneClosureRoad()
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    paths, grid = figure.subplots(1, 2, width_ratios=(5, 2))
    start = track[0, 0]
    for edge in (road.paved_y_min, road.lane_line_y, road.paved_y_max):
        paths.axhline(edge, color="#999999", lw=1.0, ls="--" if edge == road.lane_line_y else "-")
    for v, (x, y) in enumerate(start):
        colour = "#222222" if v == EGO else "#bbbbbb"
        paths.add_patch(Rectangle((x - 2.12, y - 0.89), 4.25, 1.78, color=colour, lw=0))
    seen = set()
    for w in np.argsort(event == 0)[::-1]:  # those that go wrong are drawn on top
        name, colour = OUTCOMES[int(event[w])]
        paths.plot(*track[:, w, EGO].T, color=colour, lw=0.9, label=None if name in seen else name)
        seen.add(name)
    ends = track[:, :, EGO, 0]
    paths.set(xlim=(ends.min() - 8.0, ends.max() + 4.0), ylim=(road.paved_y_min - 3.0, road.paved_y_max + 3.0))
    paths.set(xlabel="x [m]", ylabel="y [m]", title=f"64 continuations of one world, branched at {warm:g} s")
    figure.legend(frameon=False, ncols=5, loc="outside lower left")

    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(OUTCOMES[int(item)][1]) for item in event]).reshape(8, 8, 3)
    half_a, half_s = (0.5 * float(item[1] - item[0]) for item in (ACCELERATION, STEERING))
    extent = (
        float(STEERING[0]) - half_s,
        float(STEERING[-1]) + half_s,
        float(ACCELERATION[0]) - half_a,
        float(ACCELERATION[-1]) + half_a,
    )
    grid.imshow(colours, origin="lower", aspect="auto", extent=extent)
    grid.set(xlabel="steering [-], positive to the left", ylabel="acceleration [m/s²]", title="outcome by choice")
    paths.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> np.ndarray:
    """Warm up, branch, print and draw; returns the ego's first event of each branch, [64]."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warm", type=float, default=9.0, help="seconds before the branch")
    parser.add_argument("--seconds", type=float, default=4.0, help="seconds after it")
    parser.add_argument("--short", action="store_true", help="half a second before and after")
    parser.add_argument("--condition", default="mu018")
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--out", default="branch_64.png")
    options = parser.parse_args(arguments)

    if options.short:
        print("a short run: the figures below say nothing yet")
    warm, seconds = (0.5, 0.5) if options.short else (options.warm, options.seconds)
    saved = warm_up(warm, options.condition, options.seed)
    track, event = branch(saved, seconds, options.condition, options.seed)
    counts = {name: int((event == code).sum()) for code, (name, _) in OUTCOMES.items()}
    print(", ".join(f"{count} x {name}" for name, count in counts.items() if count))
    draw(track, event, warm, options.out)
    print(f"picture in {options.out}")
    return event


if __name__ == "__main__":
    main()
