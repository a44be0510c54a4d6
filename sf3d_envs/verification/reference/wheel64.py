"""The wheel's implicit spin update in float64: the eight equations, and bisection on the same implicit law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class WheelCase:
    """Inputs of one wheel update; every field broadcasts.

    Attributes:
        spin: Wheel speed before the step [rad/s].
        speed_long: Contact velocity along the wheel heading [m/s].
        speed_lat: Contact velocity to the left of it [m/s].
        drive_torque: Drive torque [N m].
        brake_torque: Brake and rolling torque, >= 0 [N m].
        friction_limit: Radius of the friction circle mu_vehicle * mu_surface * F_z [N].
        cornering_stiffness: C_alpha [N/rad].
        longitudinal_stiffness: k_x [N s/m].
        radius: R [m].
        inertia: J [kg m^2].
        dt: Substep [s].
    """

    spin: np.ndarray
    speed_long: np.ndarray
    speed_lat: np.ndarray
    drive_torque: np.ndarray
    brake_torque: np.ndarray
    friction_limit: np.ndarray
    cornering_stiffness: np.ndarray | float = 50e3
    longitudinal_stiffness: np.ndarray | float = 10e3
    radius: float = 0.32
    inertia: float = 1.0
    dt: float = 1.0 / 240.0


def sign(value: np.ndarray) -> np.ndarray:
    """Sign with sgn 0 = 1."""
    return np.where(value < 0.0, -1.0, 1.0)


def lateral_demand(case: WheelCase) -> np.ndarray:
    """Unsaturated lateral force -C_alpha atan2(v_y, max(|v_x|, 2)) [N]."""
    return -case.cornering_stiffness * np.arctan2(case.speed_lat, np.maximum(np.abs(case.speed_long), 2.0))


def locked_state(case: WheelCase) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The locked wheel: (torque to turn it [N m], longitudinal demand [N], circle scale, lateral demand [N])."""
    lateral = lateral_demand(case)
    demand = -case.longitudinal_stiffness * case.speed_long
    scale = np.minimum(1.0, case.friction_limit / np.maximum(np.hypot(demand, lateral), 1e-300))
    torque = case.inertia * case.spin / case.dt + case.drive_torque - case.radius * scale * demand
    return torque, demand, scale, lateral


def solve_wheel(case: WheelCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The specification's eight equations: (new spin [rad/s], F_x [N], F_y [N])."""
    torque, locked_demand, locked_scale, lateral = locked_state(case)
    locked = np.abs(torque) <= case.brake_torque
    gain = case.dt * case.radius**2 * case.longitudinal_stiffness / case.inertia
    turning = sign(torque)
    applied = case.drive_torque - turning * case.brake_torque
    free_spin = case.spin + case.dt / case.inertia * applied
    free_demand = case.longitudinal_stiffness * (case.radius * free_spin - case.speed_long)
    side, size = sign(free_demand), np.abs(free_demand)
    x = size / (1.0 + gain)
    limit = case.friction_limit
    inside = np.hypot(x, lateral) <= limit
    for _ in range(3):
        r = np.where(inside, 1.0, np.hypot(x, lateral))
        newton = x - (x * (1.0 + gain * limit / r) - size) / (1.0 + gain * limit * lateral**2 / r**3)
        x = np.where(inside, x, newton)
    r = np.where(inside, 1.0, np.hypot(x, lateral))
    scale = np.where(inside, 1.0, limit / r)
    force_long = side * np.where(inside, x, (size - x) / gain)
    spin = case.spin + case.dt / case.inertia * (applied - case.radius * force_long)
    spin = np.where(turning * spin < 0.0, 0.0, spin)
    return (
        np.where(locked, 0.0, spin),
        np.where(locked, locked_scale * locked_demand, force_long),
        np.where(locked, locked_scale, scale) * lateral,
    )


def bisect_spin(case: WheelCase, iterations: int = 200) -> np.ndarray:
    """New wheel speed [rad/s] by bisection on the implicit law J (w' - w)/dt = T_d - T_b sgn w' - R F_x(w').

    F_x(w') is the circle-limited slip force at w'. The right side falls with w', so the root is unique; the brake's
    sign jump at w' = 0 holds the wheel where the remaining torque is within +-T_b.
    """
    lateral = lateral_demand(case)

    def residual(spin: np.ndarray, brake_sign: np.ndarray) -> np.ndarray:
        demand = case.longitudinal_stiffness * (case.radius * spin - case.speed_long)
        scale = np.minimum(1.0, case.friction_limit / np.maximum(np.hypot(demand, lateral), 1e-300))
        torque = case.drive_torque - brake_sign * case.brake_torque - case.radius * scale * demand
        return case.inertia * (spin - case.spin) / case.dt - torque

    at_rest = residual(np.zeros_like(case.spin), np.zeros_like(case.spin))
    brake_sign = np.where(at_rest < 0.0, 1.0, -1.0)
    reach = np.abs(case.spin) + np.abs(case.speed_long) / case.radius + 1.0
    reach = reach + case.dt / case.inertia * (
        np.abs(case.drive_torque) + case.brake_torque + case.radius * case.friction_limit
    )
    low, high = np.where(brake_sign > 0, 0.0, -reach), np.where(brake_sign > 0, reach, 0.0)
    for _ in range(iterations):
        middle = 0.5 * (low + high)
        above = residual(middle, brake_sign) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.where(np.abs(at_rest) <= case.brake_torque, 0.0, 0.5 * (low + high))


def random_cases(count: int, seed: int = 7, slip: float = 1.0, slide: float = 2.0) -> WheelCase:
    """Random wheel states, with standstill, air, locked and ice corners included.

    Args:
        count: Number of cases.
        seed: Seed of the draw.
        slip: Largest of three standard deviations of w - v_x/R before the step [rad/s].
        slide: Largest of three standard deviations of the lateral contact speed [m/s].
    """
    rng = np.random.default_rng(seed)
    speed = rng.uniform(-5.0, 30.0, count) * rng.choice([1.0, 0.05, 0.0], count, p=[0.8, 0.15, 0.05])
    slipping = rng.normal(0.0, 1.0, count) * rng.choice([0.1, 0.3, 1.0], count) * slip
    load = rng.uniform(0.0, 9000.0, count) * rng.choice([1.0, 0.0], count, p=[0.95, 0.05])
    brake_torque = np.where(rng.random(count) < 0.5, rng.uniform(0.0, 900.0, count), 0.0)
    locked = (rng.random(count) < 0.1) & (brake_torque > 0.0)
    return WheelCase(
        spin=np.where(locked, 0.0, speed / 0.32 + slipping),
        speed_long=speed,
        speed_lat=rng.normal(0.0, 1.0, count) * rng.choice([0.02, 0.2, 1.0], count) * slide,
        drive_torque=np.where(rng.random(count) < 0.5, rng.uniform(0.0, 1100.0, count), 0.0),
        brake_torque=brake_torque,
        friction_limit=load * rng.uniform(0.03, 1.0, count),
        cornering_stiffness=rng.choice([50e3, 60e3], count),
    )
