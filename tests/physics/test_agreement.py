"""The simulator against the float64 reference, state by state, over ten seconds near the origin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from sf3d_envs.terrain.friction import Rectangle
from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

from .fleets import CONTROL, WarpCars, reference_cars

GRID = HeightfieldGrid(x0=-100.0, y0=-40.0, dx=5.0, dy=2.0, nx=101, ny=41)
STATION = GRID.x0 + GRID.dx * np.arange(GRID.nx)
COLUMN = GRID.y0 + GRID.dy * np.arange(GRID.ny)
SECONDS = 10.0


def road(profile: np.ndarray | float = 0.0, *patches: Rectangle, friction: float = 1.0) -> TerrainVariant:
    """A road with a height profile along x (or a full table) and patches."""
    table = profile if np.ndim(profile) == 2 else np.reshape(profile, (-1, 1))
    heights = np.broadcast_to(table, (GRID.nx, GRID.ny))
    return TerrainVariant("road", Heightfield(GRID, heights), patches, base_friction=friction)


def rectangle(x0: float, x1: float, y0: float, y1: float, mu: float) -> Rectangle:
    return Rectangle(x=0.5 * (x0 + x1), y=0.5 * (y0 + y1), length=x1 - x0, width=y1 - y0, yaw=0.0, friction=mu)


@dataclass(frozen=True)
class Manoeuvre:
    """A road, a start speed [m/s] and a command as a function of time [s]."""

    variant: TerrainVariant
    speed: float
    command: Callable[[float], tuple[float, float]]


GRADE = -0.045 * np.clip(STATION - 20.0, 0.0, 60.0)
BUMP = 0.15 * np.clip(1.0 - np.abs(STATION - 20.0) / 5.0, 0.0, 1.0)
CROWN = 0.1 * np.cos(0.7 * STATION)[:, None] * np.cos(0.9 * COLUMN)[None, :]

MANOEUVRES = {
    "launch": Manoeuvre(road(), 0.0, lambda t: (8.0, 0.0)),
    "launch on ice": Manoeuvre(road(friction=0.18), 0.0, lambda t: (4.0, 0.0)),
    "brake": Manoeuvre(road(), 16.0, lambda t: (-8.0 if t > 1.0 else 0.0, 0.0)),
    "brake on ice": Manoeuvre(road(friction=0.18), 16.0, lambda t: (-8.0, 0.0)),
    "slalom": Manoeuvre(road(), 12.0, lambda t: (0.5, 0.15 * np.sin(3.0 * t))),
    "lane change at mu .35": Manoeuvre(road(friction=0.35), 12.0, lambda t: (0.3, 0.1 * np.sin(1.5 * t) * (t < 4.2))),
    "grade": Manoeuvre(road(GRADE), 8.0, lambda t: (0.5, 0.02)),
    "split friction": Manoeuvre(road(0.0, rectangle(-90, 390, -30, 0, 0.18)), 16.0, lambda t: (-4.0, 0.0)),
    "onto a patch": Manoeuvre(road(0.0, rectangle(15, 60, -30, 30, 0.18)), 14.0, lambda t: (-3.0, 0.0)),
    "bump": Manoeuvre(road(BUMP), 10.0, lambda t: (0.0, 0.0)),
    "rough ground": Manoeuvre(road(CROWN), 5.0, lambda t: (0.5, 0.2 * np.sin(t))),
}


@dataclass
class Difference:
    """Largest differences so far of one car between the two models."""

    position: np.ndarray
    velocity: np.ndarray
    angle: np.ndarray
    spin: np.ndarray
    steer: np.ndarray
    travelled: np.ndarray


@pytest.fixture(scope="module")
def difference() -> Difference:
    """All manoeuvres run side by side in both models."""
    runs = list(MANOEUVRES.values())
    variants = [run.variant for run in runs]
    speed = np.array([run.speed for run in runs])
    warp, exact = WarpCars(variants, speed=speed), reference_cars(variants, speed=speed)
    worst = np.zeros((5, len(runs)))
    for step in range(round(SECONDS / CONTROL)):
        accel, steering = np.array([run.command(step * CONTROL) for run in runs], dtype=np.float32).T.astype(np.float64)
        warp.control_step(accel, steering)
        exact.control_step(accel, steering)
        cosine = np.abs(np.sum(warp.quat * exact.quat, axis=-1)) / np.linalg.norm(warp.quat, axis=-1)
        now = [
            np.linalg.norm(warp.position - exact.position, axis=-1),
            np.linalg.norm(warp.velocity - exact.velocity, axis=-1),
            2.0 * np.arccos(np.minimum(cosine, 1.0)),
            np.abs(warp.spin - exact.spin).max(axis=-1),
            np.abs(warp.steer - exact.steer),
        ]
        worst = np.maximum(worst, now)
    return Difference(*worst, travelled=exact.position[:, 0])


@pytest.mark.parametrize("index", range(len(MANOEUVRES)), ids=list(MANOEUVRES))
def test_state_agrees_for_ten_seconds(difference: Difference, index: int) -> None:
    """5 mm, 5 mm/s, 1e-3 rad: round-off growth of float32 near the origin."""
    assert difference.position[index] < 5e-3
    assert difference.velocity[index] < 5e-3
    assert difference.angle[index] < 1e-3
    assert difference.spin[index] < 2e-2
    assert difference.steer[index] < 1e-5


def test_the_manoeuvres_are_what_they_say(difference: Difference) -> None:
    travelled = dict(zip(MANOEUVRES, difference.travelled, strict=True))
    assert travelled["launch"] > 130.0
    assert travelled["split friction"] < 40.0
    assert travelled["rough ground"] > 40.0


def test_near_the_limit_the_models_agree_for_one_second() -> None:
    """-6 m/s^2 at mu .6 locks the rear wheels and amplifies any yaw disturbance; ten seconds would compare noise."""
    variants = [road(friction=mu) for mu in (0.5, 0.6, 0.7)]
    warp, exact = WarpCars(variants, speed=16.0), reference_cars(variants, speed=16.0)
    for _ in range(60):
        warp.control_step(-6.0, 0.02)
        exact.control_step(-6.0, 0.02)
    assert np.abs(warp.position - exact.position).max() < 5e-3
    assert np.abs(warp.velocity - exact.velocity).max() < 5e-3
    assert np.abs(warp.yaw - exact.yaw).max() < 1e-3
