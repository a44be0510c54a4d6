"""Grades: free roll with wheel inertia, and the creep of a braked car."""

from __future__ import annotations

import numpy as np
import pytest

from .fleets import flat_variant

GRAVITY, MASS = 9.81, 1350.0


@pytest.mark.parametrize("slope", [0.045, 0.08])
def test_free_roll_carries_the_wheels_along(cars, slope: float) -> None:
    """a = g sin(theta) m / (m + 4 J / R^2), 2.8 % below g sin(theta), less drag at the mean speed."""
    car = cars([flat_variant(slope_x=-slope)])
    speeds = []
    for _ in range(240):
        car.control_step(0.0, 0.0)
        speeds.append(np.linalg.norm(car.velocity[0]))
    measured = (speeds[239] - speeds[119]) / 2.0
    free = GRAVITY * np.sin(np.arctan(slope))
    effective = MASS + 4.0 * 1.0 / 0.32**2
    drag = 0.39 * np.mean(np.square(speeds[119:])) / effective
    assert measured == pytest.approx(free * MASS / effective - drag, rel=5e-4)
    assert (measured + drag) / free == pytest.approx(0.972, abs=1e-3)


def test_a_braked_car_creeps_on_a_grade(cars) -> None:
    """Locked wheels hold by slip: 26 mm/s down 8 %, 9.6 mm/s across it, and no wheel turns."""
    car = cars([flat_variant(slope_x=-0.08), flat_variant(slope_y=-0.08)])
    for _ in range(180):
        car.control_step(-8.0, 0.0)
    assert car.velocity[0, 0] == pytest.approx(0.0263, abs=3e-4)
    assert car.velocity[1, 1] == pytest.approx(0.0096, abs=2e-4)
    assert not car.spin.any()


def test_climbing_costs_the_grade(cars) -> None:
    """At one request, speed gained on +-4 % differs from the flat by g sin(theta) m/(m + 4J/R^2) each way."""
    car = cars([flat_variant(slope_x=slope) for slope in (-0.04, 0.0, 0.04)], speed=8.0)
    for _ in range(120):
        car.control_step(1.5, 0.0)
    gained = np.sqrt(np.sum(car.velocity**2, axis=-1)) - 8.0
    grade = 2.0 * GRAVITY * np.sin(np.arctan(0.04)) * MASS / (MASS + 4.0 / 0.32**2)
    np.testing.assert_allclose(gained - gained[1], [grade, 0.0, -grade], atol=0.02)
