"""Free roll, held brakes and climbing on inclined planes."""

from __future__ import annotations

import numpy as np

from ..sim.vehicle import GRAVITY
from ..terrain.plane import plane
from .check import Record
from .fleet import CONTROL, Fleet
from .plots import COLORS, REFERENCE, panels

ROLL = (0.02, 0.045, 0.08)
SPEC = "specification, reference values (float64, 240 Hz)"


def run(record: Record) -> None:
    """All slopes in one batch, four seconds."""
    variants = [plane(slope_x=-slope) for slope in ROLL]
    variants += [plane(slope_x=-0.08), plane(slope_y=-0.08), plane()]  # brakes held: down, across, level
    variants += [plane(slope_x=slope) for slope in (-0.04, 0.0, 0.04)]  # climbing at one request
    accel = np.array([0.0] * 3 + [-8.0] * 3 + [1.5] * 3)
    fleet = Fleet(variants, speed=[0.0] * 6 + [8.0] * 3)
    car = fleet.car
    effective = car.mass + 4.0 * car.wheel_inertia / car.wheel_radius**2
    speeds, start = [np.linalg.norm(fleet.velocity, axis=-1)], fleet.position
    creep = np.zeros(3)
    for step in range(240):
        fleet.control_step(accel, 0.0)
        speeds.append(np.linalg.norm(fleet.velocity, axis=-1))
        if step == 179:
            creep = np.array([fleet.velocity[3, 0], fleet.velocity[4, 1], speeds[-1][5]])
    moved = np.linalg.norm(fleet.position[5] - start[5])
    turned = np.abs(fleet.spin[3:6]).max()
    fleet.close()
    speed = np.array(speeds)
    expected = []
    for k, slope in enumerate(ROLL):
        measured = (speed[240, k] - speed[120, k]) / 2.0
        drag = car.drag * np.mean(speed[120:, k] ** 2) / effective
        expected.append(GRAVITY * np.sin(np.arctan(slope)) * car.mass / effective - drag)
        record.add(
            f"free roll on {100 * slope:g} %",
            measured,
            expected[-1],
            5e-4 * expected[-1] + 1e-5,
            "m/s²",
            states="A car rolls down with its wheels as flywheels, 2.8 % below g sin θ, less drag.",
            source="g sin θ · m/(m + 4 J/R²)",
            plot="slopes",
        )
    for name, value, wanted, tolerance in (("down", creep[0], 0.0263, 3e-4), ("across", creep[1], 0.0096, 2e-4)):
        record.add(
            f"creep {name} 8 %",
            1000.0 * value,
            1000.0 * wanted,
            1000.0 * tolerance,
            "mm/s",
            states=f"With its brakes held a car creeps {name} an 8 % slope: tyres hold by slip (a documented limit).",
            source=SPEC,
        )
    record.at_most(
        "static hold on level ground",
        1000.0 * moved,
        0.01,
        "mm",
        states="With its brakes held on level ground a car stays where it is for 4 s.",
        source="no force acts",
    )
    record.at_most(
        "braked wheels stand",
        turned,
        0.0,
        "rad/s",
        states="No wheel of a car that holds its brakes turns, on level ground or 8 %.",
        source="lock test of the wheel update: |τ| ≤ T_b gives ω = 0",
    )
    gained = speed[120, 6:] - 8.0
    grade = 2.0 * GRAVITY * np.sin(np.arctan(0.04)) * car.mass / effective
    for k, sign, name in ((6, 1.0, "down"), (8, -1.0, "up")):
        record.add(
            f"grade {name} 4 %",
            gained[k - 6] - gained[1],
            sign * grade,
            0.02,
            "m/s",
            states=f"Speed gained in 2 s at one request going {name} 4 %, against level ground.",
            source="g sin θ · m/(m + 4 J/R²) · 2 s",
        )
    figure, axes = panels(width=7.5, height=3.6)
    time = CONTROL * np.arange(len(speed))
    for k, slope in enumerate(ROLL):
        axes[0].plot(time, speed[:, k], color=COLORS[k], label=f"{100 * slope:g} %, simulator")
        axes[0].plot(time, expected[k] * time, **REFERENCE, label="g sin θ · m/(m + 4J/R²)" if k == 2 else None)
    axes[0].set(title="Free roll from rest", xlabel="time [s]", ylabel="speed [m/s]")
    axes[0].legend(fontsize="small", frameon=False, loc="upper left")
    record.draw("slopes", figure, "Cars that roll freely down three slopes; dashed: the closed form.")
