"""Time-step convergence of the simulator, and of its fine step against the float64 model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..terrain.variants import TerrainVariant
from .agreement import BUMP, road
from .check import Record
from .fleet import CONTROL, Array, Fleet, reference_fleet
from .plots import COLORS, REFERENCE, legend_beside, panels
from .reference.vehicle64 import Vehicle64

RATES = (120, 240, 480, 960)
FINE = 3840
EXACT = 960
SECONDS = 6.0


@dataclass(frozen=True)
class Manoeuvre:
    """What is driven, what is compared, and how far 240 Hz may be from the fine step.

    Attributes:
        variant: Road.
        speed: Start speed [m/s].
        command: (acceleration [m/s²], steering) at a time [s].
        read: What is compared, from the history of positions and velocities, [T, 3] each.
        unit: Its unit.
        bound: Largest difference at 240 Hz.
    """

    variant: TerrainVariant
    speed: float
    command: Callable[[float], tuple[float, float]]
    read: Callable[[Array, Array], Array]
    unit: str
    bound: float


MANOEUVRES = {
    "full brake, μ 1: stopping distance": Manoeuvre(
        road(), 16.0, lambda t: (-8.0, 0.0), lambda position, _: position[-1:, 0], "m", 0.1
    ),
    "full brake, μ 0.35: stopping distance": Manoeuvre(
        road(friction=0.35), 16.0, lambda t: (-8.0, 0.0), lambda position, _: position[-1:, 0], "m", 0.1
    ),
    "launch: speed": Manoeuvre(road(), 0.0, lambda t: (8.0, 0.0), lambda _, velocity: velocity[:, 0], "m/s", 0.03),
    "slalom: path": Manoeuvre(
        road(), 12.0, lambda t: (0.5, 0.15 * np.sin(3.0 * t)), lambda position, _: position[:, :2], "m", 0.05
    ),
    "slalom, μ 0.35: path": Manoeuvre(
        road(friction=0.35),
        12.0,
        lambda t: (0.3, 0.15 * np.sin(2.0 * t)),
        lambda position, _: position[:, :2],
        "m",
        0.1,
    ),
    "bump: height": Manoeuvre(road(BUMP), 10.0, lambda t: (0.0, 0.0), lambda position, _: position[:, 2], "m", 5e-3),
}


def drive(fleet: Fleet | Vehicle64) -> tuple[Array, Array]:
    """Positions and velocities [T, N, 3] of all manoeuvres."""
    position, velocity = [], []
    for step in range(round(SECONDS / CONTROL)):
        commands = np.array([item.command(step * CONTROL) for item in MANOEUVRES.values()])
        fleet.control_step(commands[:, 0], commands[:, 1])
        position.append(fleet.position)
        velocity.append(fleet.velocity)
    return np.array(position), np.array(velocity)


def run(record: Record) -> None:
    """Drive at four rates and with the fine reference; compare one number of each manoeuvre."""
    variants = [item.variant for item in MANOEUVRES.values()]
    speed = np.array([item.speed for item in MANOEUVRES.values()])

    def histories(fleet: Fleet | Vehicle64) -> list[Array]:
        position, velocity = drive(fleet)
        return [item.read(position[:, k], velocity[:, k]) for k, item in enumerate(MANOEUVRES.values())]

    runs = {}
    for rate in (*RATES, FINE):
        fleet = Fleet(variants, speed=speed, rate=rate)
        runs[rate] = histories(fleet)
        fleet.close()
    fine = runs[FINE]
    error = np.array([[np.abs(a - b).max() for a, b in zip(runs[rate], fine, strict=True)] for rate in RATES])
    for k, (name, item) in enumerate(MANOEUVRES.items()):
        listed = ", ".join(f"{rate} Hz: {value:.3g}" for rate, value in zip(RATES, error[:, k], strict=True))
        record.at_most(
            f"{name}, 240 Hz",
            error[1, k],
            item.bound,
            item.unit,
            states=f"Largest difference of 240 Hz from {FINE} Hz in {SECONDS:.0f} s ({listed} {item.unit}).",
            source=f"the simulator at {FINE} Hz",
            plot="timestep",
        )
        record.at_most(
            f"{name}, 960 Hz / 120 Hz",
            error[3, k] / error[0, k],
            0.2,
            states="An eighth of the step leaves at most a fifth of the difference: it converges.",
            source=f"semi-implicit Euler is of first order; that leaves 0.10 against {FINE} Hz",
            plot="timestep",
        )
    if record.full:
        exact = histories(reference_fleet(variants, speed=speed, rate=float(EXACT)))
        for k, (name, item) in enumerate(MANOEUVRES.items()):
            record.at_most(
                f"{name}, float64 at {EXACT} Hz",
                np.abs(runs[EXACT][k] - exact[k]).max(),
                0.05 * item.bound,
                item.unit,
                states=f"At {EXACT} Hz too the simulator follows the float64 model, so it converges to that model.",
                source="independent float64 model of the same equations",
            )
    figure, axes = panels(width=10.0, height=4.4)
    for k, (name, item) in enumerate(MANOEUVRES.items()):
        axes[0].loglog(RATES, error[:, k], "o-", color=COLORS[k], label=f"{name} [{item.unit}]", markersize=4)
    slope = np.array([120.0, 960.0])
    axes[0].loglog(slope, 0.4 * error[0].max() * 120.0 / slope, **REFERENCE, label="first order")
    axes[0].axvline(240.0, color="#888888", linewidth=0.8)
    axes[0].set_xticks(RATES, [str(rate) for rate in RATES])
    axes[0].minorticks_off()
    axes[0].set(title=f"Difference from {FINE:,} Hz", xlabel="physics rate [Hz]", ylabel="difference")
    legend_beside(axes[0])
    record.draw(
        "timestep",
        figure,
        "Largest difference over the run, for braking of the stopping distance; the simulator runs at 240 Hz.",
    )
