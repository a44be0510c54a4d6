"""The wheel: implicit spin update with the friction circle inside the solve, and suspension load."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

EPSILON = wp.constant(1.0e-9)


@wp.struct
class WheelResult:
    """Tyre force in the contact frame [N] and the wheel speed after the substep [rad/s]."""

    force_long: float
    force_lat: float
    spin: float


@wp.func
def suspension_load(compression: float, normal_speed: float, rest_length: float, stiffness: float, damping: float):
    """Load of one raycast leg [N]: max(0, kδ - c·v_n) + 4k·max(0, δ - 0.8·l0); the second term is the bump stop."""
    spring = wp.max(0.0, stiffness * compression - damping * normal_speed)
    return spring + 4.0 * stiffness * wp.max(0.0, compression - 0.8 * rest_length)


@wp.func
def wheel_update(
    spin: float,
    speed_long: float,
    speed_lat: float,
    drive_torque: float,
    resist_torque: float,
    limit: float,
    cornering: float,
    longitudinal: float,
    radius: float,
    inertia: float,
    dt: float,
) -> WheelResult:
    """Backward Euler step of one wheel under the friction circle.

    Solves J·(ω' - ω)/Δt = T_d - σT_b - R·F_x with (F_x, F_y) = λ·(k_x·(Rω' - v_x), -C_α·atan2(v_y, max(|v_x|, 2))) and
    λ = min(1, L/‖·‖). A wheel whose brake holds it locks, and a brake never reverses a wheel. Outside the circle the
    slip force x solves x·(1 + βL/r) = X, r = ‖(x, F_y⁰)‖: monotone and concave, so three Newton steps from the
    unsaturated solution cannot overshoot.

    Args:
        spin: Wheel speed ω [rad/s].
        speed_long: Contact speed along the wheel heading v_x [m/s].
        speed_lat: Contact speed to the left v_y [m/s].
        drive_torque: T_d [N·m].
        resist_torque: Brake and rolling torque T_b >= 0 [N·m].
        limit: Radius of the friction circle L = μF_z [N].
        cornering: C_α [N/rad].
        longitudinal: k_x [N·s/m].
        radius: R [m].
        inertia: J [kg·m²].
        dt: Substep Δt [s].
    """
    result = WheelResult()
    beta = dt * radius * radius * longitudinal / inertia
    lateral = -cornering * wp.atan2(speed_lat, wp.max(wp.abs(speed_long), 2.0))

    locked = -longitudinal * speed_long
    scale = wp.min(1.0, limit / wp.max(wp.sqrt(locked * locked + lateral * lateral), EPSILON))
    torque = inertia * spin / dt + drive_torque - radius * scale * locked
    if wp.abs(torque) <= resist_torque:
        result.force_long = scale * locked
        result.force_lat = scale * lateral
        result.spin = 0.0
        return result

    direction = wp.where(torque >= 0.0, 1.0, -1.0)
    free_spin = spin + dt / inertia * (drive_torque - direction * resist_torque)
    slip_force = longitudinal * (radius * free_spin - speed_long)
    sign = wp.where(slip_force >= 0.0, 1.0, -1.0)
    target = wp.abs(slip_force)
    x = target / (1.0 + beta)
    norm_squared = x * x + lateral * lateral
    if norm_squared <= limit * limit:
        result.force_long = sign * x
        result.force_lat = lateral
    else:
        for _i in range(3):
            r = wp.sqrt(x * x + lateral * lateral)
            gain = beta * limit / r
            x = x - (x * (1.0 + gain) - target) / (1.0 + gain * lateral * lateral / (r * r))
        scale = limit / wp.sqrt(x * x + lateral * lateral)
        result.force_long = sign * (target - x) / beta
        if beta < 1.0e-6:
            result.force_long = sign * scale * x
        result.force_lat = scale * lateral

    new_spin = free_spin - dt / inertia * radius * result.force_long
    if direction * new_spin < 0.0:
        new_spin = 0.0
    result.spin = new_spin
    return result
