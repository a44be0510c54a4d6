"""Rigid contact: momentum, energy and penetration of two cars, and a car on its roof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest

from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.heightfield import Heightfield
from sf3d_envs.terrain.variants import TerrainVariant

from .fleets import CONTROL, WarpCars, flat_variant

# Without drag the road is the only outside force; off the ground or at friction 0 it has no horizontal part.
CAR = VehicleParams(drag=0.0)
HALF = np.array([0.5 * CAR.length, 0.5 * CAR.width, 0.5 * CAR.height])


@dataclass
class Crash:
    """History of two cars, one row per control step (the first is the start).

    Attributes:
        momentum: [T, 3] N s.
        spin_momentum: Angular momentum about the common centre of mass [T, 3] N m s.
        energy: Kinetic energy without the common fall [T] J.
        depth: Penetration of the two boxes by the separating-axis test, 0 when apart [T] m.
        velocity: [T, 2, 3] m/s.
    """

    momentum: np.ndarray
    spin_momentum: np.ndarray
    energy: np.ndarray
    depth: np.ndarray
    velocity: np.ndarray


def matrices(quat: np.ndarray) -> np.ndarray:
    """Rotation matrices [N, 3, 3] of quaternions xyzw."""
    x, y, z, w = quat.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        axis=1,
    )


def penetration(position: np.ndarray, turn: np.ndarray) -> float:
    """Smallest overlap of two boxes over the fifteen separating axes [m], 0 when they are apart."""
    a, b = turn
    axes = [*a.T, *b.T, *(np.cross(p, q) for p in a.T for q in b.T)]
    overlap = np.inf
    for axis in axes:
        if (length := np.linalg.norm(axis)) > 1e-6:
            unit = axis / length
            reach = (HALF * np.abs(unit @ a)).sum() + (HALF * np.abs(unit @ b)).sum()
            overlap = min(overlap, reach - abs(unit @ (position[1] - position[0])))
    return max(overlap, 0.0)


MEETINGS = {
    "rear-end": ((0.0, 8.0), (0.0, 0.0), (12.0, 5.0), (0.0, 0.0)),
    "head-on": ((0.0, 20.0), (0.0, 0.0), (10.0, 10.0), (0.0, np.pi)),
    "fast head-on": ((0.0, 20.0), (0.0, 0.0), (30.0, 30.0), (0.0, np.pi)),
    "offset": ((0.0, 20.0), (0.0, 0.9), (10.0, 10.0), (0.0, np.pi)),
    "side": ((0.0, 6.0), (0.0, -6.0), (10.0, 10.0), (0.0, 0.5 * np.pi)),
    "side swipe": ((0.0, 0.0), (0.0, 2.5), (15.0, 10.0), (0.1, -0.1)),
}


def crashes(
    names: Iterable[str], *, height: float, friction: float = 0.0, steps: int = 120, solver: str = "vehicle"
) -> dict[str, Crash]:
    """Let two coasting cars meet, one world for each name of `MEETINGS`."""
    names = list(names)
    x, y, speed, yaw = (np.array(column) for column in zip(*(MEETINGS[name] for name in names), strict=True))
    sim = Simulator(len(names), [flat_variant(friction)], vehicle=CAR, num_vehicles=2, threads=1, solver=solver)
    start = np.stack([x, y, np.full_like(x, height)], axis=-1)
    sim.place(np.ones(len(names), dtype=bool), start, yaw, speed)
    rows = []
    for step in range(steps + 1):
        if step:
            sim.control_step()
        pose = sim.body_q.numpy().astype(np.float64).reshape(len(names), 2, 7)
        twist = sim.body_qd.numpy().astype(np.float64).reshape(len(names), 2, 6)
        rows.append([_readings(*world) for world in zip(pose, twist, strict=True)])
    sim.close()
    worlds = zip(*rows, strict=True)
    return {
        name: Crash(*(np.array(column) for column in zip(*world, strict=True)))
        for name, world in zip(names, worlds, strict=True)
    }


def _readings(pose: np.ndarray, twist: np.ndarray) -> tuple:
    """One row of a `Crash` from two cars' poses [2, 7] and velocities [2, 6]."""
    linear, omega = np.split(twist, 2, axis=1)
    turn = matrices(pose[:, 3:])
    inertia = turn * np.array(CAR.inertia) @ turn.transpose(0, 2, 1)
    spin = np.einsum("nij,nj->ni", inertia, omega)
    relative = linear - linear.mean(axis=0) * np.array([0.0, 0.0, 1.0])
    about = linear - linear.mean(axis=0)
    arm = pose[:, :3] - pose[:, :3].mean(axis=0)
    return (
        CAR.mass * linear.sum(axis=0),
        (spin + CAR.mass * np.cross(arm, about)).sum(axis=0),
        0.5 * CAR.mass * (relative**2).sum() + 0.5 * (spin * omega).sum(),
        penetration(pose[:, :3], turn),
        linear,
    )


def closing_momentum(name: str) -> float:
    """Scale of a meeting: momentum of one car at the closing speed [N s]."""
    _, _, speed, yaw = MEETINGS[name]
    velocity = np.array(speed) * np.exp(1j * np.array(yaw))
    return CAR.mass * abs(velocity[0] - velocity[1])


@pytest.fixture(scope="module")
def free_flights() -> dict[str, Crash]:
    """All meetings high above the ground."""
    return crashes(MEETINGS, height=50.0)


@pytest.fixture(params=MEETINGS)
def free_flight(request: pytest.FixtureRequest, free_flights: dict[str, Crash]) -> tuple[Crash, float]:
    """A meeting high above the ground, and its scale [N s]."""
    return free_flights[request.param], closing_momentum(request.param)


def test_they_meet(free_flight: tuple[Crash, float]) -> None:
    history, scale = free_flight
    assert np.abs(np.diff(history.velocity[:, 0], axis=0)[:, :2]).max() * CAR.mass > 0.02 * scale


def test_momentum_is_kept(free_flight: tuple[Crash, float]) -> None:
    history, scale = free_flight
    change = np.abs(history.momentum - history.momentum[0])[:, :2].max()
    assert change <= 1e-5 * scale
    fall = 2.0 * CAR.mass * 9.81 * CONTROL * np.arange(len(history.momentum))
    np.testing.assert_allclose(history.momentum[:, 2], -fall, rtol=1e-5, atol=1e-3)


def test_angular_momentum_is_kept(free_flight: tuple[Crash, float]) -> None:
    """Impulses act at points that penetration sets apart, so this holds to a fraction of impulse times car length."""
    history, scale = free_flight
    change = np.abs(history.spin_momentum - history.spin_momentum[0]).max()
    assert change <= 0.01 * scale * CAR.length


def test_contact_adds_no_energy(free_flight: tuple[Crash, float]) -> None:
    history, _ = free_flight
    assert np.diff(history.energy).max() <= 2e-6 * history.energy[0]


def test_they_hardly_penetrate(free_flight: tuple[Crash, float]) -> None:
    history, _ = free_flight
    assert history.depth.max() <= 0.02


def test_restitution_is_zero(free_flights: dict[str, Crash]) -> None:
    """After a square rear-end hit both move on at the mean speed."""
    np.testing.assert_allclose(free_flights["rear-end"].velocity[-1, :, 0], 8.5, atol=0.01)


@pytest.mark.parametrize("name", ["rear-end", "head-on"])
def test_momentum_is_kept_on_the_road(name: str) -> None:
    """On a frictionless road, standing on the springs; the road carries the weight and nothing sideways."""
    history = crashes([name], height=CAR.rest_height)[name]
    assert np.abs(history.momentum - history.momentum[0])[:, :2].max() <= 0.1
    assert history.depth.max() <= 0.02
    assert history.energy[-1] < 0.9 * history.energy[0]


@pytest.mark.parametrize("angle", [np.pi, 2.4, -2.4], ids=["level", "left", "right"])
def test_a_car_left_on_its_roof_rests(angle: float) -> None:
    car = WarpCars([flat_variant()], height=1.2)
    car.set_pose(quat=[np.sin(0.5 * angle), 0.0, 0.0, np.cos(0.5 * angle)])
    for _ in range(300):
        car.control_step(-8.0, 0.0)
    rest = car.position
    assert rest[0, 2] == pytest.approx(HALF[2], abs=2e-3)  # on the roof, neither sunk in nor floating
    for _ in range(300):
        car.control_step(4.0, 1.0)  # the wheels have no ground to push
        assert np.abs(car.velocity).max() < 2e-3 and np.abs(car.omega).max() < 2e-3
    assert np.abs(car.position - rest).max() < 5e-3
    assert not car.load.any() and not car.sim.nonfinite.numpy().any()


def test_a_car_slides_on_its_roof_with_half_the_road_friction() -> None:
    """Chassis-road friction is 0.5 mu_surface."""
    mu = np.array([1.0, 0.4])
    car = WarpCars([flat_variant(value) for value in mu], height=HALF[2], speed=8.0)
    car.set_pose(quat=[1.0, 0.0, 0.0, 0.0])
    for _ in range(20):
        car.control_step(0.0, 0.0)
    before = np.linalg.norm(car.velocity[:, :2], axis=-1)
    for _ in range(30):
        car.control_step(0.0, 0.0)
    decel = (before - np.linalg.norm(car.velocity[:, :2], axis=-1)) / (30 * CONTROL)
    drag = 0.39 * before**2 / 1350.0
    np.testing.assert_allclose(decel, 0.5 * mu * 9.81 + drag, rtol=0.03)


def test_worlds_do_not_touch() -> None:
    """Two cars in one place, in different worlds, feel nothing of each other."""
    car = WarpCars([flat_variant()] * 2, speed=np.array([5.0, -5.0]))
    alone = WarpCars([flat_variant()], speed=5.0)
    for _ in range(30):
        car.control_step(0.0, 0.0)
        alone.control_step(0.0, 0.0)
    assert car.sim.body_q.numpy()[0].tobytes() == alone.sim.body_q.numpy()[0].tobytes()


def test_wheels_and_chassis_read_the_road_of_their_own_world() -> None:
    """Raising one world's road lifts its rest height and its roof contact, and nothing in the world beside it."""
    flat = flat_variant()
    grid = flat.heightfield.grid
    raised = TerrainVariant("raised", Heightfield(grid, np.full((grid.nx, grid.ny), 0.3)))
    wheels = WarpCars([flat, raised])
    roof = WarpCars([flat, raised], height=0.5)
    roof.set_pose(quat=[1.0, 0.0, 0.0, 0.0])
    for _ in range(180):
        wheels.control_step(0.0, 0.0)
        roof.control_step(0.0, 0.0)
    np.testing.assert_allclose(wheels.position[:, 2], [CAR.rest_height, CAR.rest_height + 0.3], atol=1e-4)
    np.testing.assert_allclose(roof.position[:, 2], [HALF[2], HALF[2] + 0.3], atol=2e-3)
