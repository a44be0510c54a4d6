"""The wheel's implicit spin update against bisection on the law it solves."""

import numpy as np
import pytest
import warp as wp
from reference.wheel64 import WheelCase, bisect_spin, lateral_demand, random_cases, solve_wheel

from sf3d_envs.lanes import lane_code
from sf3d_envs.sim.kernels_wheel import UPDATE_WHEELS, Rows4, update_wheels

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

COUNT = 20_000
FIELDS = ("spin", "speed_long", "speed_lat", "drive_torque", "brake_torque", "friction_limit", "cornering_stiffness")


@wp.func_native(lane_code(UPDATE_WHEELS, rows=4, form="one by one"))
def update_wheels_lane_by_lane(
    spin: wp.vec4,
    speed_long: wp.vec4,
    speed_lat: wp.vec4,
    drive_torque: wp.vec4,
    resist_torque: wp.vec4,
    limit: wp.vec4,
    cornering: wp.vec4,
    longitudinal: float,
    radius: float,
    inertia: float,
    dt: float,
) -> Rows4: ...


@wp.kernel
def solve_wheels(
    spin: wp.array(dtype=wp.vec4),
    speed_long: wp.array(dtype=wp.vec4),
    speed_lat: wp.array(dtype=wp.vec4),
    drive: wp.array(dtype=wp.vec4),
    brake: wp.array(dtype=wp.vec4),
    limit: wp.array(dtype=wp.vec4),
    cornering: wp.array(dtype=wp.vec4),
    longitudinal: float,
    radius: float,
    inertia: float,
    dt: float,
    lane_by_lane: bool,
    out: wp.array2d(dtype=wp.vec4),
):
    """Four independent cases per thread, one in each lane."""
    i = wp.tid()
    result = Rows4()
    if lane_by_lane:
        result = update_wheels_lane_by_lane(
            spin[i],
            speed_long[i],
            speed_lat[i],
            drive[i],
            brake[i],
            limit[i],
            cornering[i],
            longitudinal,
            radius,
            inertia,
            dt,
        )
    else:
        result = update_wheels(
            spin[i],
            speed_long[i],
            speed_lat[i],
            drive[i],
            brake[i],
            limit[i],
            cornering[i],
            longitudinal,
            radius,
            inertia,
            dt,
        )
    for row in range(3):
        out[row, i] = result[row]


def launch(case: WheelCase, *, lane_by_lane: bool = False) -> np.ndarray:
    """F_x [N], F_y [N] and spin [rad/s] of every case, float32 [3, N]."""
    arrays = [
        wp.array(getattr(case, name).astype(np.float32).reshape(-1, 4), dtype=wp.vec4, device="cpu") for name in FIELDS
    ]
    out = wp.zeros((3, len(case.spin) // 4), dtype=wp.vec4, device="cpu")
    scalars = [case.longitudinal_stiffness, case.radius, case.inertia, case.dt]
    wp.launch(solve_wheels, dim=out.shape[1], inputs=[*arrays, *scalars, lane_by_lane, out], device="cpu")
    return out.numpy().reshape(3, -1)


def solve_warp(case: WheelCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    force_long, force_lat, spin = launch(case).astype(np.float64)
    return spin, force_long, force_lat


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


def test_vector_and_lane_by_lane_forms_give_the_same_bits(case: WheelCase) -> None:
    assert launch(case).tobytes() == launch(case, lane_by_lane=True).tobytes()


def test_a_wheel_does_not_depend_on_the_other_lanes(case: WheelCase) -> None:
    """Rotating the lanes rotates the results: the saturated solve of one lane leaves the others alone."""
    turned = WheelCase(**{name: np.roll(getattr(case, name), 1) for name in FIELDS})
    assert np.roll(launch(case), 1, axis=1).tobytes() == launch(turned).tobytes()


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
