"""The simulator against the float64 reference, state by state, over ten seconds near the origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..terrain.friction import Rectangle
from ..terrain.heightfield import Heightfield, HeightfieldGrid
from ..terrain.variants import TerrainVariant
from .check import Record
from .fleet import CONTROL, Array, Fleet, rectangle, reference_fleet
from .plots import COLORS, REFERENCE, legend_beside, panels
from .reference.vehicle64 import Vehicle64

GRID = HeightfieldGrid(x0=-100.0, y0=-40.0, dx=5.0, dy=2.0, nx=101, ny=41)
STATION = GRID.x0 + GRID.dx * np.arange(GRID.nx)
COLUMN = GRID.y0 + GRID.dy * np.arange(GRID.ny)
SECONDS = 10.0
BOUNDS = {
    "position": (5e-3, "m"),
    "velocity": (5e-3, "m/s"),
    "orientation": (1e-3, "rad"),
    "wheel speed": (2e-2, "rad/s"),
    "steering angle": (1e-5, "rad"),
}
"""Largest difference allowed in ten seconds near the origin."""

GRADE = -0.045 * np.clip(STATION - 20.0, 0.0, 60.0)
BUMP = 0.15 * np.clip(1.0 - np.abs(STATION - 20.0) / 5.0, 0.0, 1.0)
CROWN = 0.1 * np.cos(0.7 * STATION)[:, None] * np.cos(0.9 * COLUMN)[None, :]


def road(profile: npt.ArrayLike = 0.0, *patches: Rectangle, friction: float = 1.0) -> TerrainVariant:
    """A road with a height profile along x (or a full table) and patches."""
    table = np.asarray(profile) if np.ndim(profile) == 2 else np.reshape(profile, (-1, 1))
    heights = np.broadcast_to(table, (GRID.nx, GRID.ny))
    return TerrainVariant("road", Heightfield(GRID, heights), patches, base_friction=friction)


@dataclass(frozen=True)
class Manoeuvre:
    """A road, a start speed [m/s] and a command (acceleration [m/s²], steering) as a function of time [s]."""

    variant: TerrainVariant
    speed: float
    command: Callable[[float], tuple[float, float]]


MANOEUVRES = {
    "launch": Manoeuvre(road(), 0.0, lambda t: (8.0, 0.0)),
    "launch, μ 0.18": Manoeuvre(road(friction=0.18), 0.0, lambda t: (4.0, 0.0)),
    "brake": Manoeuvre(road(), 16.0, lambda t: (-8.0 if t > 1.0 else 0.0, 0.0)),
    "brake, μ 0.18": Manoeuvre(road(friction=0.18), 16.0, lambda t: (-8.0, 0.0)),
    "slalom": Manoeuvre(road(), 12.0, lambda t: (0.5, 0.15 * np.sin(3.0 * t))),
    "lane change, μ 0.35": Manoeuvre(road(friction=0.35), 12.0, lambda t: (0.3, 0.1 * np.sin(1.5 * t) * (t < 4.2))),
    "grade": Manoeuvre(road(GRADE), 8.0, lambda t: (0.5, 0.02)),
    "split μ": Manoeuvre(road(0.0, rectangle(-90, 390, -30, 0, 0.18)), 16.0, lambda t: (-4.0, 0.0)),
    "onto a patch": Manoeuvre(road(0.0, rectangle(15, 60, -30, 30, 0.18)), 14.0, lambda t: (-3.0, 0.0)),
    "bump": Manoeuvre(road(BUMP), 10.0, lambda t: (0.0, 0.0)),
    "rough ground": Manoeuvre(road(CROWN), 5.0, lambda t: (0.5, 0.2 * np.sin(t))),
}


def state_differences(fleet: Fleet, exact: Vehicle64) -> list[Array]:
    """Differences of the five states of BOUNDS now, each [N]."""
    quat = fleet.quat
    cosine = np.abs(np.sum(quat * exact.quat, axis=-1)) / np.linalg.norm(quat, axis=-1)
    return [
        np.linalg.norm(fleet.position - exact.position, axis=-1),
        np.linalg.norm(fleet.velocity - exact.velocity, axis=-1),
        2.0 * np.arccos(np.minimum(cosine, 1.0)),
        np.abs(fleet.spin - exact.spin).max(axis=-1),
        np.abs(fleet.steer - exact.steer),
    ]


def draw_growth(record: Record, name: str, rows: Array, cases: Iterable[str], title: str, caption: str) -> None:
    """Plot the position difference of each case over time, [steps, 5, cases]."""
    figure, axes = panels(width=10.0, height=4.4)
    time = CONTROL * np.arange(1, len(rows) + 1)
    for k, case in enumerate(cases):
        style = "-" if k < len(COLORS) else ":"
        difference = 1000.0 * np.maximum(rows[:, 0, k], 1e-9)
        axes[0].semilogy(time, difference, style, color=COLORS[k % len(COLORS)], label=case, lw=1.2)
    axes[0].axhline(1000.0 * BOUNDS["position"][0], **REFERENCE)
    axes[0].text(0.1, 1150.0 * BOUNDS["position"][0], "bound, 5 mm", fontsize=8, va="bottom")
    axes[0].set_ylim(1e-5, 30.0)
    axes[0].set(title=title, xlabel="time [s]", ylabel="difference of position [mm]")
    legend_beside(axes[0])
    record.draw(name, figure, caption)


def differences(runs: list[Manoeuvre], seconds: float) -> Array:
    """Differences of the five states of BOUNDS at every control step, [steps, 5, runs]."""
    variants, speed = [run.variant for run in runs], np.array([run.speed for run in runs])
    fleet, exact = Fleet(variants, speed=speed), reference_fleet(variants, speed=speed)
    rows = []
    for step in range(round(seconds / CONTROL)):
        commands = np.array([run.command(step * CONTROL) for run in runs], dtype=np.float32).astype(np.float64)
        fleet.control_step(commands[:, 0], commands[:, 1])
        exact.control_step(commands[:, 0], commands[:, 1])
        rows.append(state_differences(fleet, exact))
    fleet.close()
    return np.array(rows)


def run(record: Record) -> None:
    """Run all manoeuvres in both models side by side."""
    rows = differences(list(MANOEUVRES.values()), SECONDS)
    worst = rows.max(axis=0)
    words = {"source": "independent float64 model of the same equations; bounds: decisions of the specification"}
    for k, name in enumerate(MANOEUVRES):
        for state, (bound, unit) in list(BOUNDS.items())[:3]:
            record.at_most(
                f"{name}: {state}",
                worst[list(BOUNDS).index(state), k],
                bound,
                unit,
                states=f"Largest difference of {state} in {SECONDS:.0f} s.",
                plot="agreement",
                **words,
            )
    for state in ("wheel speed", "steering angle"):
        bound, unit = BOUNDS[state]
        record.at_most(
            f"all: {state}",
            worst[list(BOUNDS).index(state)].max(),
            bound,
            unit,
            states=f"Largest difference of {state} over all manoeuvres.",
            **words,
        )
    near = [Manoeuvre(road(friction=mu), 16.0, lambda t: (-6.0, 0.02)) for mu in (0.5, 0.6, 0.7)]
    short = differences(near, 1.0).max(axis=(0, 2))
    for k, state in enumerate(("position", "velocity", "orientation")):
        bound, unit = BOUNDS[state]
        record.at_most(
            f"near the limit, 1 s: {state}",
            short[k],
            bound,
            unit,
            states="A request of -6 m/s² at μ 0.5 to 0.7 locks the rear wheels and amplifies any disturbance, "
            "so it is compared for one second.",
            **words,
        )
    draw_growth(
        record,
        "agreement",
        rows,
        MANOEUVRES,
        "float32 simulator against float64",
        "Growth of the position difference in each manoeuvre.",
    )
