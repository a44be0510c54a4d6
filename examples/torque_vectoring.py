"""A torque-vectoring controller of your own: the torque of every wheel, written at 60 Hz.

Three cars take the same bend with the same throttle on a wet road (friction 0.5), a world each: rear-wheel
drive as the benchmark car has it, four equal wheels, and four wheels by a yaw controller that shifts torque to the
outside while the car turns less than asked and to the inside while it turns more. All commands are tensors; the
controllers read yaw rate, speed and wheel load from ``sim.state``.

Run: python examples/torque_vectoring.py [--seconds S | --short] [--friction MU] [--out torque_vectoring.png]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
import torch

from sf3d_envs import Simulator
from sf3d_envs.terrain.plane import plane

SETUPS = ("rear wheels, equal", "four wheels, equal", "four wheels, vectored")
STEER = 0.06
"""Steering angle of the bend [rad]."""
FORCE = 4000.0
"""Drive force of all wheels together [N]."""
GAIN = 25_000.0
"""Yaw moment per yaw-rate error [N·m·s/rad]."""


def wheel_torques(sim: Simulator, friction: float) -> torch.Tensor:
    """Torque of each wheel [N·m], [3, 1, 4], for the three setups."""
    state, car = sim.state, sim.vehicles[0]
    speed = state.linear_velocity[..., :2].norm(dim=-1)
    # The yaw rate of a car that neither slides nor runs wide, within what the road can hold.
    wanted = speed * torch.tan(state.steer_angle) / car.wheelbase
    wanted = wanted.clamp(-0.9 * friction * 9.81 / speed.clamp(min=1.0), 0.9 * friction * 9.81 / speed.clamp(min=1.0))
    moment = GAIN * (wanted - state.angular_velocity[..., 2])
    side = torch.tensor([-1.0, 1.0, -1.0, 1.0])  # torque on the right wheels turns to the left
    shift = moment[..., None] * side * car.wheel_radius / (2.0 * car.track)
    load = state.wheel_load / state.wheel_load.sum(dim=-1, keepdim=True).clamp(min=1.0)

    total = FORCE * car.wheel_radius
    torque = torch.empty(3, 1, 4)
    torque[0] = torch.tensor([0.0, 0.0, 0.5, 0.5]) * total
    torque[1] = 0.25 * total
    torque[2] = (load * total + shift)[2]
    return torque


def drive(seconds: float, friction: float) -> dict[str, np.ndarray]:
    """Drive the bend; arrays over [steps, setups] of x, y [m], yaw [rad], yaw rate [rad/s] and speed [m/s]."""
    sim = Simulator(3, [plane(friction)], num_vehicles=1)
    sim.place(np.ones(3, dtype=bool), [0.0, 0.0, sim.vehicles[0].rest_height], speed=12.0)
    state = sim.state
    steer = torch.full((3, 1), STEER)
    rows = []
    for _ in range(round(60 * seconds)):
        sim.commands.wheel_torque(wheel_torques(sim, friction), steer)
        sim.control_step()
        qx, qy, qz, qw = state.rotation[:, 0].unbind(-1)
        yaw = torch.atan2(2.0 * (qw * qz + qx * qy), 1.0 - 2.0 * (qy * qy + qz * qz))
        speed = state.linear_velocity[:, 0, :2].norm(dim=-1)
        rows.append(torch.stack([*state.position[:, 0, :2].T, yaw, state.angular_velocity[:, 0, 2], speed]))
    sim.close()
    table = torch.stack(rows).numpy()
    return dict(zip(("x", "y", "yaw", "yaw_rate", "speed"), table.transpose(1, 0, 2), strict=True))


def draw(run: dict[str, np.ndarray], friction: float, path: str) -> None:
    """Paths with the cars twice a second, and yaw rate over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    road, rates = figure.subplots(1, 2, width_ratios=(3, 2))
    colours = ("#c8452d", "#e08a1e", "#1f5fa8")
    time = np.arange(1, len(run["x"]) + 1) / 60.0
    for k, (name, colour) in enumerate(zip(SETUPS, colours, strict=True)):
        road.plot(run["x"][:, k], run["y"][:, k], color=colour, lw=1.0, label=name)
        for step in range(0, len(time), 30):
            x, y, yaw = (run[column][step, k] for column in ("x", "y", "yaw"))
            along, across = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
            corners = [2.12 * a * along + 0.89 * b * across for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1), (1, 1))]
            road.plot(*np.add(corners, (x, y)).T, color=colour, lw=0.8)
        rates.plot(time, np.degrees(run["yaw_rate"][:, k]), color=colour, label=name)
    road.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=f"12 m/s into a bend, 4 kN of drive, μ {friction:g}")
    rates.set(xlabel="time [s]", ylabel="yaw rate [deg/s]", title="a yaw rate that runs away is a spin")
    rates.legend(frameon=False)
    for axes in (road, rates):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Drive, print and draw; returns the largest sideslip angle [deg] by setup."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--short", action="store_true", help="one second only")
    parser.add_argument("--friction", type=float, default=0.5)
    parser.add_argument("--out", default="torque_vectoring.png")
    options = parser.parse_args(arguments)

    if options.short:
        print("a short run: the figures below say nothing yet")
    run = drive(1.0 if options.short else options.seconds, options.friction)
    course = np.arctan2(np.gradient(run["y"], axis=0), np.gradient(run["x"], axis=0))
    slip = np.degrees(np.abs((course - run["yaw"] + math.pi) % (2 * math.pi) - math.pi)).max(axis=0)
    for k, name in enumerate(SETUPS):
        print(f"{name:22s} {run['speed'][-1, k]:5.1f} m/s at the end, at most {slip[k]:5.1f} deg of sideslip")
    draw(run, options.friction, options.out)
    print(f"picture in {options.out}")
    return dict(zip(SETUPS, slip.tolist(), strict=True))


if __name__ == "__main__":
    main()
