"""Steering, the lateral friction limit, split friction."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.terrain.friction import Rectangle

from .fleets import CONTROL, flat_variant

GRAVITY, WHEELBASE = 9.81, 2.60


def lateral_acceleration(velocity: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Acceleration of the centre of mass normal to its path [m/s^2], [N]."""
    normal = np.stack([-velocity[:, 1], velocity[:, 0]], axis=-1)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.sum((velocity - previous)[:, :2] * normal, axis=-1) / CONTROL


def test_steering_angle_is_rate_and_speed_limited(cars) -> None:
    """1.3 rad/s towards s * 0.6 / (1 + (v/22)^2)."""
    speed = np.array([0.0, 11.0, 20.0])
    car = cars([flat_variant()] * 3, speed=speed)
    for _ in range(6):
        car.control_step(0.0, np.array([1.0, -0.5, 0.5]))
    np.testing.assert_allclose(car.steer, [0.13, -0.13, 0.13], atol=1e-6)
    for _ in range(60):
        car.control_step(0.0, np.array([1.0, -0.5, 0.5]))
    now = np.linalg.norm(car.velocity, axis=-1)
    np.testing.assert_allclose(car.steer, np.array([0.6, -0.3, 0.3]) / (1 + (now / 22) ** 2), atol=1e-3)


def test_slow_circle_is_kinematic(cars) -> None:
    """At walking pace the path curvature is tan(delta)/L: Ackermann wheels roll without fighting each other."""
    car = cars([flat_variant()], speed=2.0)
    for _ in range(240):
        car.control_step(0.5 * (2.0 - car.forward_speed[0]), 0.5)
    curvature = car.omega[0, 2] / np.linalg.norm(car.velocity[0, :2])
    delta = car.steer[0]
    slip_angle = np.arctan(0.5 * np.tan(delta))  # of the centre of mass, midway between the axles
    assert curvature == pytest.approx(np.tan(delta) * np.cos(slip_angle) / WHEELBASE, rel=0.01)


def test_lateral_acceleration_limit_is_mu_g(cars) -> None:
    """Steering slowly into a circle at 15 m/s: the lateral acceleration saturates at mu g, with understeer."""
    mu = np.array([1.0, 0.5, 0.18])
    car = cars([flat_variant(value) for value in mu], speed=15.0)
    peak, previous = np.zeros(3), car.velocity
    for step in range(round(8.5 / CONTROL)):
        car.control_step(1.5 * (15.0 - car.forward_speed), min(1.0, step * CONTROL / 20.0))
        velocity = car.velocity
        peak = np.maximum(peak, lateral_acceleration(velocity, previous))
        previous = velocity
    ratio = peak / (mu * GRAVITY)
    assert (ratio <= 1.005).all()
    assert (ratio >= 0.97).all()


def test_understeer_gradient(cars) -> None:
    """0.66 deg/g from the axles' stiffnesses: steer needed beyond the kinematic angle on a steady circle."""
    steering = 0.1
    car = cars([flat_variant()] * 2, speed=np.array([4.0, 14.0]))
    for _ in range(360):
        car.control_step(2.0 * (np.array([4.0, 14.0]) - car.forward_speed), steering)
    speed = np.linalg.norm(car.velocity[:, :2], axis=-1)
    curvature = car.omega[:, 2] / speed
    excess = np.degrees(car.steer - WHEELBASE * curvature)
    accel = speed**2 * curvature / GRAVITY
    assert (excess[1] - excess[0]) / (accel[1] - accel[0]) == pytest.approx(0.66, abs=0.1)


def split_road(mu: float):
    """Dry on the left of y = 0, `mu` on the right."""
    return flat_variant(patches=[Rectangle(x=0.0, y=-50.0, length=1900.0, width=100.0, yaw=0.0, friction=mu)])


def test_split_friction_braking_yaws_towards_the_dry_side(cars) -> None:
    """-4 m/s^2 with the right wheels on mu .18 turns the car about 6 degrees left before it stands.

    Full brake locks the wheels on both sides and spins it.
    """
    car = cars([split_road(0.18)] * 2, speed=16.0)
    turned = np.zeros(2)
    for _ in range(300):
        car.control_step(np.array([-4.0, -8.0]), 0.0)
        turned += np.degrees(car.omega[:, 2]) * CONTROL
    assert np.abs(car.velocity).max() < 0.05
    assert turned[0] == pytest.approx(5.7, abs=0.2)
    assert turned[1] > 90.0


def test_mirrored_steering_gives_a_mirrored_path(cars) -> None:
    """The fixed order of the wheel sum costs float32 round-off only."""
    car = cars([flat_variant()] * 2, speed=12.0)
    for step in range(240):
        car.control_step(0.0, 0.3 * np.sin(step * CONTROL * 3.0) * np.array([1.0, -1.0]))
    left, right = car.position
    np.testing.assert_allclose(left, right * np.array([1.0, -1.0, 1.0]), atol=1e-3)
    assert abs(left[1]) > 0.1
