"""The measuring tools of the report: penetration, course, bicycle, frequency."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.verification.circle import bicycle_gradient
from sf3d_envs.verification.collisions import deepest_pair, penetration
from sf3d_envs.verification.lane_change import course, least_curvature, path
from sf3d_envs.verification.reference.vehicle64 import rotation
from sf3d_envs.verification.roads import expected_height
from sf3d_envs.verification.step_steer import bicycle_yaw, characterize
from sf3d_envs.verification.suspension import swing
from sf3d_envs.verification.wheel import wheel_case

HALF = np.array([2.0, 1.0, 0.5])


def turned(angle: float, axis: int) -> np.ndarray:
    quat = np.zeros((1, 4))
    quat[0, axis], quat[0, 3] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    return rotation(quat)[0]


@pytest.mark.parametrize(
    ("place", "angle", "depth"),
    [
        ((3.9, 0.0, 0.0), 0.0, 0.1),
        ((4.1, 0.0, 0.0), 0.0, 0.0),
        ((0.0, 1.7, 0.0), 0.0, 0.3),
        ((0.0, 0.0, 0.8), 0.0, 0.2),
        ((2.9, 0.0, 0.0), 0.5 * np.pi, 0.1),  # broadside: 2 + 1 - 2.9
        ((2.0 + 3.0 / np.sqrt(2.0) - 0.05, 0.0, 0.0), 0.25 * np.pi, 0.05),  # a corner points at the front
    ],
)
def test_penetration_of_two_boxes(place: tuple, angle: float, depth: float) -> None:
    turn = np.stack([np.eye(3), turned(angle, 2)])[None]
    assert penetration(np.array([[np.zeros(3), place]]), turn, HALF)[0] == pytest.approx(depth, abs=1e-12)


def test_deepest_pair_looks_at_every_pair_and_world() -> None:
    position = np.zeros((2, 4, 3))
    position[:, :, 0] = [0.0, 10.0, 20.0, 30.0]
    position[1, 3] = [20.0, 1.5, 0.0]
    turn = np.tile(np.eye(3), (2, 4, 1, 1))
    np.testing.assert_allclose(deepest_pair(position, turn, HALF), [0.0, 0.5])


def test_course_is_the_standards() -> None:
    lanes = course(1.78)
    assert [(lane.begin, lane.end) for lane in lanes] == [(0.0, 15.0), (45.0, 70.0), (95.0, 125.0)]
    assert [lane.width for lane in lanes] == pytest.approx([2.208, 2.386, 2.564])


def test_no_path_bends_less_than_the_bound() -> None:
    """The driver's own path, squeezed to the cones' edges, bends more than the bound; so does a wider course's less."""
    x = np.linspace(-10.0, 140.0, 3001)
    bend = np.abs(path(x, np.array(6.0))[2]).max()
    assert 0.003 < least_curvature(1.78) < bend
    assert least_curvature(0.5) > least_curvature(3.0)  # lanes widen with the car, and so does the slack


def test_bicycle_gradient_and_steady_yaw_agree() -> None:
    car = VehicleParams()
    assert np.degrees(bicycle_gradient(car)) * 9.81 == pytest.approx(0.632, abs=1e-3)
    response = characterize(bicycle_yaw(car, 20.0, np.full(300, 0.01)), 0.01)
    assert response.gain == pytest.approx(20.0 / (2.6 + bicycle_gradient(car) * 400.0), rel=1e-4)


def test_swing_reads_frequency_and_damping() -> None:
    time = np.arange(420) / 240.0
    signal = np.exp(-0.4 * 9.0 * time) * np.cos(9.0 * np.sqrt(1.0 - 0.16) * time)
    frequency, damping = swing(signal)
    assert frequency == pytest.approx(9.0 * np.sqrt(0.84) / 2.0 / np.pi, rel=1e-3)
    assert damping == pytest.approx(0.4, abs=0.01)
    assert np.isnan(swing(np.ones(420))).all()


def test_expected_height_joins_level_ground() -> None:
    class Grade:
        grade = -0.08

    height = expected_height(Grade, np.array([0.0, 40.0, 60.0, 180.0, 200.0, 300.0]))
    np.testing.assert_allclose(height, -0.08 * np.array([0.0, 0.0, 10.0, 130.0, 140.0, 140.0]), atol=1e-12)


def test_wheel_case_of_a_rolling_car() -> None:
    car = VehicleParams()
    before = {
        "linear": np.array([[10.0, 0.5, 0.0]]),
        "yaw_rate": np.array([0.2]),
        "spin": np.full((1, 4), 31.25),
        "z": np.array([car.rest_height]),
    }
    case, load = wheel_case(before, np.array([8.0]), np.array([0.5]), car)
    np.testing.assert_allclose(load, 1350.0 * 9.81 / 4.0)
    np.testing.assert_allclose(case.speed_long, [[9.854, 10.146, 9.854, 10.146]])
    np.testing.assert_allclose(case.speed_lat, [[0.76, 0.76, 0.24, 0.24]])
    np.testing.assert_allclose(case.drive_torque, [[0.0, 0.0, 1060.56, 1060.56]])
    np.testing.assert_allclose(case.friction_limit, 0.5 * load)
