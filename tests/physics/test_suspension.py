"""Static load, rest compression and the damped modes of the chassis on its springs."""

from __future__ import annotations

import numpy as np
import pytest

from .fleets import SUBSTEP, flat_variant

MASS, GRAVITY, STIFFNESS = 1350.0, 9.81, 35e3


def settle(car, steps: int = 300) -> None:
    for _ in range(steps):
        car.control_step(0.0, 0.0)


def test_static_load_and_rest_compression(cars) -> None:
    car = cars([flat_variant()], height=0.70)
    settle(car)
    np.testing.assert_allclose(car.load, MASS * GRAVITY / 4.0, atol=0.5)
    np.testing.assert_allclose(car.compression, MASS * GRAVITY / (4.0 * STIFFNESS), atol=2e-5)  # 0.0946 m
    assert car.position[0, 2] == pytest.approx(0.6454, abs=2e-5)
    assert np.abs(car.velocity).max() < 1e-5 and np.abs(car.omega).max() < 1e-5


def test_the_start_height_is_the_rest_height(cars) -> None:
    car = cars([flat_variant()])
    start = car.position
    settle(car, 60)
    np.testing.assert_allclose(car.position, start, atol=2e-6)


def test_load_transfer_under_braking(cars) -> None:
    """Moment balance about the centre of mass once the dive has settled.

    The front axle gains (F h + m g o)/L: the tyre force F at height h, and the legs' tilt, which moves all four contact
    points back by o = h tan(pitch).
    """
    car = cars([flat_variant()], speed=16.0)
    for _ in range(90):
        car.control_step(-4.0, 0.0)
    before = car.forward_speed[0]
    car.control_step(-4.0, 0.0)
    tyre_force = MASS * (before - car.forward_speed[0]) * 60.0 - 0.39 * car.forward_speed[0] ** 2
    height = car.position[0, 2]
    offset = height * np.tan(2.0 * np.arcsin(car.quat[0, 1]))
    shift = (tyre_force * height + MASS * GRAVITY * offset) / 2.60
    assert car.load[0, :2].sum() - 0.5 * MASS * GRAVITY == pytest.approx(shift, rel=0.01)


def swing(car, read) -> tuple[float, float]:
    """(damped frequency [Hz], damping ratio) of a mode from zero crossings and successive extremes at 240 Hz."""
    signal = []
    for _ in range(420):
        car.substep(0.0, 0.0)
        signal.append(read(car))
    signal = np.array(signal)
    before = np.nonzero(signal[:-1] * signal[1:] < 0.0)[0][:4]
    crossing = before + signal[before] / (signal[before] - signal[before + 1])
    first = np.abs(signal[before[0] + 1 : before[1] + 1]).max()
    second = np.abs(signal[before[1] + 1 : before[2] + 1]).max()
    decrement = np.log(first / second)
    return 0.5 / (np.diff(crossing).mean() * SUBSTEP), decrement / np.hypot(np.pi, decrement)


def tilted(car, axis: int, angle: float) -> None:
    """Turn every car by `angle` about a body axis, without using a setter that only one model has."""
    quat = np.zeros(4)
    quat[axis], quat[3] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    if hasattr(car, "set_pose"):
        car.set_pose(quat=quat)
    else:
        car.quat = np.tile(quat, (len(car.position), 1))


@pytest.mark.parametrize(
    ("mode", "frequency", "damping"), [("heave", 1.47, 0.44), ("pitch", 1.48, 0.47), ("roll", 1.13, 0.40)]
)
def test_damped_modes(cars, mode: str, frequency: float, damping: float) -> None:
    """Specification: heave 1.47 Hz (.44), pitch 1.48 (.47), roll 1.13 (.40), standing still."""
    car = cars([flat_variant()], height=0.6654 if mode == "heave" else None)
    rest = 0.64540357
    if mode != "heave":
        tilted(car, 1 if mode == "pitch" else 0, 0.02)
    read = {
        "heave": lambda c: c.position[0, 2] - rest,
        "pitch": lambda c: c.quat[0, 1],
        "roll": lambda c: c.quat[0, 0],
    }[mode]
    measured = swing(car, read)
    assert measured[0] == pytest.approx(frequency, abs=0.01)
    assert measured[1] == pytest.approx(damping, abs=0.01)


def test_off_the_ground_it_falls_freely(cars) -> None:
    """No wheel touches: the exact semi-implicit parabola, drag included in neither figure (it is below 3 mm)."""
    car = cars([flat_variant()], height=50.0)
    n = 240
    for _ in range(n // 4):
        car.control_step(2.0, 0.5)
    fall = GRAVITY * SUBSTEP**2 * n * (n + 1) / 2
    assert 50.0 - car.position[0, 2] == pytest.approx(fall, abs=3e-3)
    assert not car.load.any() and not car.wheel_friction.any()
    assert np.abs(car.position[0, :2]).max() == 0.0 and np.abs(car.omega).max() == 0.0
