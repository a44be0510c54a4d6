"""A side wind as an external wrench: the same gust on the same car on a dry, a wet and an icy road.

Force and yaw moment of a gust of the form 1 - cos are written into ``sim.state`` before every control step; a wrench
holds for one step only, so the wind ends when nothing is written any more. The driver steers back by lateral offset
and heading. Worlds are roads x wind speeds, all stepped together.

Run: python examples/wrench_gust.py [--seconds S | --short] [--out wrench_gust.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from sf3d_envs import Simulator
from sf3d_envs.terrain.plane import plane

FRICTION = (1.0, 0.35, 0.1)
WIND = (10.0, 20.0, 30.0)
"""Peak wind speeds [m/s]."""
SPEED = 25.0
AREA, COEFFICIENT, LEVER = 3.6, 1.1, 0.5
"""Side area [m²], side force coefficient [-] and distance of the centre of pressure before the centre of mass [m]."""
AIR = 1.2
BEGIN, LENGTH = 1.0, 1.5
"""Begin and length of the gust [s]."""


def gust(time: float, peak: torch.Tensor) -> torch.Tensor:
    """Side force [N] on a car at a time [s] for peak wind speeds [m/s]."""
    phase = (time - BEGIN) / LENGTH
    wind = peak * (0.5 * (1.0 - np.cos(2.0 * np.pi * phase)) if 0.0 <= phase <= 1.0 else 0.0)
    return 0.5 * AIR * AREA * COEFFICIENT * wind * wind


def drive(seconds: float) -> np.ndarray:
    """Lateral offsets [m], [steps, roads, winds]."""
    worlds = len(FRICTION) * len(WIND)
    road = np.repeat(np.arange(len(FRICTION)), len(WIND))
    sim = Simulator(worlds, [plane(mu) for mu in FRICTION], road.tolist(), num_vehicles=1)
    sim.place(np.ones(worlds, dtype=bool), [0.0, 0.0, sim.vehicles[0].rest_height], speed=SPEED)
    state = sim.state
    peak = torch.tensor(WIND).repeat(len(FRICTION))
    force, torque = torch.zeros(worlds, 1, 3), torch.zeros(worlds, 1, 3)
    command = torch.zeros(worlds, 1, 2)
    offsets = []
    for step in range(round(60 * seconds)):
        side = gust(step / 60.0, peak)
        if side.any():
            force[:, 0, 1], torque[:, 0, 2] = side, LEVER * side
            state.set_wrench(force, torque)
        qz, qw = state.rotation[..., 2], state.rotation[..., 3]
        heading = 2.0 * torch.atan2(qz, qw)
        command[..., 0] = 0.5 * (SPEED - state.linear_velocity[..., 0])
        command[..., 1] = (-0.04 * state.position[..., 1] - 0.6 * heading).clamp(-1.0, 1.0)
        sim.commands.driver(command)
        sim.control_step()
        offsets.append(state.position[:, 0, 1].clone())
    sim.close()
    return torch.stack(offsets).numpy().reshape(-1, len(FRICTION), len(WIND))


def draw(offsets: np.ndarray, path: str) -> None:
    """One panel per wind speed, one line per road."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    panels = figure.subplots(1, len(WIND))
    time = np.arange(1, len(offsets) + 1) / 60.0
    for k, (axes, peak) in enumerate(zip(panels, WIND, strict=True)):
        axes.axvspan(BEGIN, BEGIN + LENGTH, color="#d8e3ee", lw=0, label="gust")
        for r, (mu, colour) in enumerate(zip(FRICTION, ("#1f5fa8", "#e08a1e", "#c8452d"), strict=True)):
            axes.plot(time, offsets[:, r, k], color=colour, lw=4.0 - 1.4 * r, label=f"μ {mu:g}")
        axes.set(xlabel="time [s]", title=f"{peak:g} m/s of side wind")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("lateral offset [m]")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> np.ndarray:
    """Drive, print and draw; returns the largest offsets [m], [roads, winds]."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--short", action="store_true", help="1.5 seconds only")
    parser.add_argument("--out", default="wrench_gust.png")
    options = parser.parse_args(arguments)

    if options.short:
        print("a short run: the figures below say nothing yet")
    offsets = drive(1.5 if options.short else options.seconds)
    largest = np.abs(offsets).max(axis=0)
    for r, mu in enumerate(FRICTION):
        print(f"mu {mu:<5g}" + "  ".join(f"{peak:g} m/s: {largest[r, k]:5.2f} m" for k, peak in enumerate(WIND)))
    draw(offsets, options.out)
    print(f"picture in {options.out}")
    return largest


if __name__ == "__main__":
    main()
