"""Estimate the road's friction from wheel slip, and see how far it is from the truth.

A car drives over stretches of different friction and taps the brake twice a second. The estimator reads, per wheel,
tyre force, wheel load and slip from ``sim.state``: while force follows slip, friction is at least force / load; once
slip grows and force does not, force / load *is* the friction. The simulator also knows what lies under each wheel
(``wheel_friction``), which a car does not.

Run: python examples/friction_estimator.py [--seconds S | --short] [--out friction_estimator.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from sf3d_envs import Simulator
from sf3d_envs.terrain.friction import Rectangle
from sf3d_envs.terrain.plane import plane

STRETCHES = ((60.0, 0.5), (120.0, 0.2), (180.0, 0.35), (240.0, 0.08), (300.0, 0.7))
"""Where a friction begins [m], up to the next one; 1.0 before and 0.7 to the end."""
SPEED = 20.0
BRAKES = (0.15, 0.5, 1.0)
"""Brake pedal of the taps, one world each."""


class FrictionEstimator:
    """Estimates per wheel; everything is a tensor [E, V, 4].

    Args:
        sim: The simulator; its first vehicle gives the tyre's longitudinal stiffness [N·s/m].
        memory: Share of the lower bound that is kept per control step, so that an old road is forgotten.
    """

    def __init__(self, sim: Simulator, memory: float = 0.995):
        self.state, self.car, self.memory = sim.state, sim.vehicles[0], memory
        self.estimate = torch.full_like(sim.state.wheel_load, float("nan"))
        self.at_least = torch.zeros_like(sim.state.wheel_load)

    def update(self) -> None:
        """Take one control step's readings in."""
        state, car = self.state, self.car
        used = state.tire_force.norm(dim=-1) / state.wheel_load.clamp(min=1.0)
        speed = car.wheel_radius * state.wheel_spin
        # Slip speed from the slip ratio s = (Rw - v) / max(|v|, 1).
        slip_speed = torch.where(state.slip_ratio > -1.0, speed * state.slip_ratio / (1.0 + state.slip_ratio), -SPEED)
        linear = car.tire_longitudinal_stiffness * slip_speed.abs()
        slides = state.tire_force[..., 0].abs() < 0.8 * linear
        slides &= state.wheel_load > 500.0
        self.at_least = torch.maximum(self.memory * self.at_least, used)
        self.at_least = torch.where(slides, used, self.at_least)
        self.estimate = torch.where(slides, used, self.estimate)
        # What the road carries now proves an estimate from another road wrong: nothing is known again.
        self.estimate = torch.where(self.estimate < 0.98 * self.at_least, float("nan"), self.estimate)


def drive(seconds: float) -> dict[str, np.ndarray]:
    """Arrays over [steps, worlds]: x [m], true friction, estimate and lower bound of the front left wheel."""
    ends = [*(x for x, _ in STRETCHES[1:]), 2000.0]
    patches = [
        Rectangle(x=0.5 * (begin + end), y=0.0, length=end - begin, width=40.0, friction=mu)
        for (begin, mu), end in zip(STRETCHES, ends, strict=True)
    ]
    worlds = len(BRAKES)
    sim = Simulator(worlds, [plane(1.0, patches=patches)], num_vehicles=1)
    sim.place(np.ones(worlds, dtype=bool), [0.0, 0.0, sim.vehicles[0].rest_height], speed=SPEED)
    state, estimator = sim.state, FrictionEstimator(sim)
    pedals = torch.zeros(worlds, 1, 3)
    tap = torch.tensor(BRAKES)
    rows = []
    for step in range(round(60 * seconds)):
        braking = step % 30 < 8
        pedals[:, 0, 0] = 0.0 if braking else (0.3 * (SPEED - state.linear_velocity[:, 0, 0])).clamp(0.0, 0.25)
        pedals[:, 0, 1] = tap if braking else 0.0
        sim.commands.pedals(pedals)
        sim.control_step()
        estimator.update()
        wheel = (state.position[..., 0], state.wheel_friction, estimator.estimate, estimator.at_least)
        rows.append(torch.stack([item.reshape(worlds, -1)[:, 0] for item in wheel]))
    sim.close()
    table = torch.stack(rows).numpy().transpose(1, 0, 2)
    return dict(zip(("x", "friction", "estimate", "at_least"), table, strict=True))


def draw(run: dict[str, np.ndarray], path: str) -> None:
    """Truth, estimate and lower bound along the road, a panel per brake pressure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for k, axes in enumerate(figure.subplots(len(BRAKES), 1, sharex=True, sharey=True)):
        x = run["x"][:, k]
        axes.plot(x, run["friction"][:, k], color="#222222", lw=2.0, label="friction under the front left wheel")
        axes.fill_between(x, 0.0, run["at_least"][:, k], color="#d8e3ee", lw=0, label="shown to be there")
        axes.plot(x, run["estimate"][:, k], color="#c8452d", lw=1.2, label="estimate")
        axes.set(ylim=(0.0, 1.1), ylabel="friction [-]", title=f"taps with {100 * BRAKES[k]:.0f} % brake")
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("x [m]")
    figure.axes[0].legend(frameon=False, ncols=3, loc="upper right")
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Drive, print and draw; returns the median error of the estimate by brake pressure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=24.0)
    parser.add_argument("--short", action="store_true", help="two seconds only")
    parser.add_argument("--out", default="friction_estimator.png")
    options = parser.parse_args(arguments)

    if options.short:
        print("a short run: the figures below say nothing yet")
    run = drive(2.0 if options.short else options.seconds)
    errors = []
    for k, brake in enumerate(BRAKES):
        error = np.abs(run["estimate"][:, k] - run["friction"][:, k])
        known = np.isfinite(error)
        errors.append(float(np.median(error[known])) if known.any() else float("nan"))
        print(f"brake {brake:4.2f}: an estimate {known.mean():4.0%} of the time, median error {errors[-1]:.3f}")
    draw(run, options.out)
    print(f"picture in {options.out}")
    return errors


if __name__ == "__main__":
    main()
