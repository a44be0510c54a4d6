"""Contact on both solver paths: momentum, energy, penetration, rest poses, a wall and a pile-up."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

from .crowds import Scene, drive_scene
from .fleets import CONTROL, WarpCars, flat_variant
from .test_contact import CAR, HALF, MEETINGS, Crash, closing_momentum, crashes

Crashes = dict[str, dict[str, Crash]]
"""Solver -> name of a meeting -> what happened."""


def on_both(height: float) -> Crashes:
    """All meetings at a height, one world for each, on the fused and on the reference path."""
    return {solver: crashes(MEETINGS, height=height, solver=solver) for solver in ("vehicle", "xpbd")}


@pytest.fixture(scope="module")
def off_the_ground() -> Crashes:
    return on_both(50.0)


@pytest.fixture(scope="module")
def on_the_road() -> Crashes:
    return on_both(CAR.rest_height)


@pytest.fixture(params=MEETINGS)
def meeting(request: pytest.FixtureRequest, off_the_ground: Crashes) -> tuple[Crash, Crash, float]:
    """A meeting off the ground on the fused and on the reference path, and its scale [N s]."""
    name = request.param
    return off_the_ground["vehicle"][name], off_the_ground["xpbd"][name], closing_momentum(name)


def test_two_bodies_keep_their_momentum(meeting: tuple[Crash, Crash, float]) -> None:
    _, reference, scale = meeting
    assert np.abs(reference.momentum - reference.momentum[0])[:, :2].max() <= 1e-5 * scale
    assert np.abs(reference.spin_momentum - reference.spin_momentum[0]).max() <= 0.01 * scale * CAR.length


def test_contact_adds_no_energy_and_lets_little_through(meeting: tuple[Crash, Crash, float]) -> None:
    _, reference, _ = meeting
    assert np.diff(reference.energy).max() <= 2e-6 * reference.energy[0]
    assert reference.depth.max() <= 0.02


def test_two_cars_leave_alike(meeting: tuple[Crash, Crash, float]) -> None:
    """Speeds after the meeting, and the energy it took: within .4 m/s where friction decides, .04 m/s square on."""
    fused, reference, _ = meeting
    np.testing.assert_allclose(reference.velocity[-1, :, :2], fused.velocity[-1, :, :2], atol=0.4)
    assert reference.energy[-1] / reference.energy[0] == pytest.approx(fused.energy[-1] / fused.energy[0], abs=0.01)


@pytest.mark.parametrize("name", MEETINGS)
def test_they_meet_alike_on_the_road(name: str, on_the_road: Crashes) -> None:
    fused, reference = on_the_road["vehicle"][name], on_the_road["xpbd"][name]
    np.testing.assert_allclose(reference.velocity[-1, :, :2], fused.velocity[-1, :, :2], atol=0.25)
    assert reference.depth.max() <= 0.02


def test_a_car_left_on_its_roof_rests() -> None:
    """Dropped level, and rolled to either side."""
    angle = np.array([np.pi, 2.4, -2.4])
    cars = WarpCars([flat_variant()] * 3, height=1.2, solver="xpbd")
    zero = np.zeros_like(angle)
    cars.set_pose(quat=np.stack([np.sin(0.5 * angle), zero, zero, np.cos(0.5 * angle)], axis=-1))
    for _ in range(300):
        cars.control_step(-8.0, 0.0)
    rest = cars.position
    np.testing.assert_allclose(rest[:, 2], HALF[2], atol=2e-3)
    for _ in range(120):
        cars.control_step(4.0, 1.0)
    assert np.abs(cars.velocity).max() < 1e-2 and np.abs(cars.position - rest).max() < 5e-3
    assert not cars.load.any() and not cars.sim.nonfinite.numpy().any()


def test_a_car_slides_on_its_roof_with_half_the_road_friction() -> None:
    """Newton averages the friction of chassis and road; the road's is set so that the average is ½·μ."""
    mu = np.array([1.0, 0.4])
    car = WarpCars([flat_variant(value) for value in mu], height=HALF[2], speed=8.0, solver="xpbd")
    car.set_pose(quat=[1.0, 0.0, 0.0, 0.0])
    for _ in range(20):
        car.control_step(0.0, 0.0)
    before = np.linalg.norm(car.velocity[:, :2], axis=-1)
    for _ in range(30):
        car.control_step(0.0, 0.0)
    decel = (before - np.linalg.norm(car.velocity[:, :2], axis=-1)) / (30 * CONTROL)
    np.testing.assert_allclose(decel, 0.5 * mu * 9.81 + 0.39 * before**2 / 1350.0, rtol=0.05)


def test_wheels_and_chassis_follow_the_variant_of_their_world() -> None:
    """Worlds may change their variant: wheels and roof then stand on the other road, in that world alone."""
    flat = flat_variant()
    grid = flat.heightfield.grid
    raised = TerrainVariant("raised", Heightfield(grid, np.full((grid.nx, grid.ny), 0.3)))
    wheels, roof = [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]
    cars = WarpCars([flat, raised] * 2, height=np.array([CAR.rest_height, CAR.rest_height, 0.5, 0.5]), solver="xpbd")
    cars.set_pose(quat=np.array([wheels, wheels, roof, roof]))
    rest = np.array([CAR.rest_height, CAR.rest_height, HALF[2], HALF[2]])
    for worlds, ground in (([0, 1, 0, 1], [0.0, 0.3, 0.0, 0.3]), ([0, 0, 0, 0], 0.0)):
        cars.sim.world_variant.assign(np.array(worlds, dtype=np.int32))
        for _ in range(180):
            cars.control_step(0.0, 0.0)
        np.testing.assert_allclose(cars.position[:, 2], rest + ground, atol=2e-3)


def test_worlds_do_not_touch() -> None:
    """Two cars in one place, in different worlds, feel nothing of each other."""
    both = WarpCars([flat_variant()] * 2, speed=np.array([5.0, -5.0]), solver="xpbd")
    alone = WarpCars([flat_variant()], speed=5.0, solver="xpbd")
    for _ in range(30):
        both.control_step(0.0, 0.0)
        alone.control_step(0.0, 0.0)
    assert both.sim.body_q.numpy()[0].tobytes() == alone.sim.body_q.numpy()[0].tobytes()


STEP = HeightfieldGrid(x0=-20.0, y0=-20.0, dx=0.5, dy=2.0, nx=161, ny=21)


def wall(height: float) -> TerrainVariant:
    """A road that ends at a steep step, which rises from x = 20 m to 20.5 m."""
    profile = np.where(STEP.x0 + STEP.dx * np.arange(STEP.nx) > 20.2, height, 0.0)
    return TerrainVariant("wall", Heightfield(STEP, np.broadcast_to(profile[:, None], (STEP.nx, STEP.ny))))


@pytest.mark.parametrize(
    ("height", "speed", "yaw"),
    [
        (1.5, 12.0, 0.3),
        pytest.param(1.5, 12.0, 0.0, marks=pytest.mark.slow),
        pytest.param(3.0, 25.0, 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_steep_step_stops_a_car_alike(height: float, speed: float, yaw: float) -> None:
    """Both paths stop the nose at the foot of the step; what is left is the rebound of the springs."""
    scenes = [drive_scene(wall(height), [0.0], [0.0], [speed], [yaw], solver=s) for s in ("vehicle", "xpbd")]
    for scene in scenes:
        assert scene.position[0, 0] < 20.0 and scene.upright[0] > 0.99 and scene.lowest > 0.45
        assert np.diff(scene.energy).max() <= 2e-3 * scene.energy[0]
    np.testing.assert_allclose(scenes[1].position[0], scenes[0].position[0], atol=0.6)


@pytest.fixture(
    scope="module",
    params=[pytest.param(-8.0, id="braking"), pytest.param(-1.0, id="coasting", marks=pytest.mark.slow)],
)
def pile_up(request: pytest.FixtureRequest) -> tuple[Scene, Scene]:
    """Two columns of six drive into each other at 14 m/s."""
    ahead = 8.0 + 5.0 * np.arange(6)
    y = np.random.default_rng(3).uniform(-0.6, 0.6, 12)
    start = ([*-ahead, *ahead], list(y), [14.0] * 12, [0.0] * 6 + [np.pi] * 6)
    fused, reference = (
        drive_scene(flat_variant(), *start, command=(request.param, 0.0), steps=360, solver=solver)
        for solver in ("vehicle", "xpbd")
    )
    return fused, reference


def test_a_pile_up_ends_alike(pile_up: tuple[Scene, Scene]) -> None:
    """The same twelve have touched, all stand on their wheels, within a third of a car's length of each other."""
    fused, reference = pile_up
    assert reference.touched.all() and (fused.touched == reference.touched).all()
    for scene in pile_up:
        assert scene.speed.max() < 0.05 and scene.upright.min() > 0.99 and scene.lowest > 0.45
        assert np.diff(scene.energy).max() <= 2e-3 * scene.energy[0]
    assert np.abs(reference.position - fused.position)[:, :2].max() < 1.2
    order = np.argsort(fused.position[:, 0])
    assert (np.argsort(reference.position[:, 0]) == order).all()
