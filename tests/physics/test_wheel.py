"""The wheel's implicit spin update against bisection on the law it solves."""

import numpy as np
import pytest
import warp as wp
from reference.wheel64 import WheelCase, bisect_spin, lateral_demand, random_cases, solve_wheel

from sf3d_envs.sim.kernels_wheel import wheel_update

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

COUNT = 20_000
FIELDS = ("spin", "speed_long", "speed_lat", "drive_torque", "brake_torque", "friction_limit", "cornering_stiffness")


@wp.kernel
def update_wheels(
    spin: wp.array(dtype=float),
    speed_long: wp.array(dtype=float),
    speed_lat: wp.array(dtype=float),
    drive_torque: wp.array(dtype=float),
    brake_torque: wp.array(dtype=float),
    friction_limit: wp.array(dtype=float),
    cornering: wp.array(dtype=float),
    longitudinal: float,
    radius: float,
    inertia: float,
    dt: float,
    out: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    result = wheel_update(
        spin[i],
        speed_long[i],
        speed_lat[i],
        drive_torque[i],
        brake_torque[i],
        friction_limit[i],
        cornering[i],
        longitudinal,
        radius,
        inertia,
        dt,
    )
    out[i] = wp.vec3(result.spin, result.force_long, result.force_lat)


def solve_warp(case: WheelCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arrays = [wp.array(getattr(case, name).astype(np.float32), dtype=float, device="cpu") for name in FIELDS]
    out = wp.zeros(len(case.spin), dtype=wp.vec3, device="cpu")
    scalars = [case.longitudinal_stiffness, case.radius, case.inertia, case.dt]
    wp.launch(update_wheels, dim=len(case.spin), inputs=[*arrays, *scalars, out], device="cpu")
    return tuple(out.numpy().astype(np.float64).T)


@pytest.fixture(scope="module", params=[(1.0, 2.0), (30.0, 5.0)], ids=["driving", "sliding"])
def case(request: pytest.FixtureRequest) -> WheelCase:
    """Random cases whose inputs are exact in float32, so that both precisions solve the same problem."""
    slip, slide = request.param
    drawn = random_cases(COUNT, slip=slip, slide=slide)
    rounded = {name: getattr(drawn, name).astype(np.float32).astype(np.float64) for name in FIELDS}
    return WheelCase(**rounded)


@pytest.mark.parametrize("solve", [solve_warp, solve_wheel], ids=["warp", "float64"])
def test_spin_matches_bisection(case: WheelCase, solve) -> None:
    """Three Newton steps leave at most 1.5e-4 rad/s, where the circle is just reached with a large lateral force.

    That is 0.11 N of tyre force. More than 99.5 % of even the sliding cases are within 4e-5 rad/s.
    """
    spin, _, _ = solve(case)
    error = np.abs(spin - bisect_spin(case))
    assert error.max() <= 1.5e-4
    assert np.quantile(error, 0.995) <= 4e-5


def test_spin_matches_the_reference(case: WheelCase) -> None:
    """The kernel's own error is float32 round-off of speeds up to 200 rad/s."""
    assert np.abs(solve_warp(case)[0] - solve_wheel(case)[0]).max() <= 4e-5


@pytest.mark.parametrize("solve", [solve_warp, solve_wheel], ids=["warp", "float64"])
def test_forces_stay_on_the_friction_circle(case: WheelCase, solve) -> None:
    _, force_long, force_lat = solve(case)
    assert (np.hypot(force_long, force_lat) - case.friction_limit).max() <= 0.15  # newtons: the Newton residual


def test_forces_match_the_reference(case: WheelCase) -> None:
    """Float32 resolves R w - v_x to some 1e-6 m/s, and k_x is 1e4 N s/m."""
    _, force_long, force_lat = solve_warp(case)
    _, expected_long, expected_lat = solve_wheel(case)
    assert np.abs(force_long - expected_long).max() < 0.1
    assert np.abs(force_lat - expected_lat).max() < 0.1


def test_slip_power_is_never_negative(case: WheelCase) -> None:
    """The tyre only takes energy out: F_x (R w' - v_x) >= 0 at the new wheel speed."""
    spin, force_long, force_lat = solve_warp(case)
    assert (force_long * (case.radius * spin - case.speed_long)).min() > -1e-2
    assert (force_lat * lateral_demand(case)).min() >= 0.0


def test_braking_never_reverses_a_wheel(case: WheelCase) -> None:
    undriven = (case.drive_torque == 0.0) & (case.brake_torque > 0.0) & (case.spin > 0.0) & (case.speed_long >= 0.0)
    assert undriven.sum() > 1000
    spin, _, _ = solve_warp(case)
    assert (spin[undriven] >= 0.0).all()


def test_the_cases_reach_every_branch(case: WheelCase) -> None:
    spin, force_long, force_lat = solve_wheel(case)
    sliding = np.hypot(force_long, force_lat) > case.friction_limit * (1 - 1e-9)
    assert (spin == 0.0).sum() > 300
    assert (sliding & (spin != 0.0) & (case.friction_limit > 0.0)).sum() > 1000
    assert (~sliding & (spin != 0.0)).sum() > 1000
    assert (case.friction_limit == 0.0).sum() > 300
