"""The four wheels: suspension load and the implicit spin update with the friction circle inside the solve."""

import warp as wp

from ..lanes import lane_code

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Rows1 = wp.types.matrix(shape=(1, 4), dtype=float)
Rows4 = wp.types.matrix(shape=(4, 4), dtype=float)
Rows6 = wp.types.matrix(shape=(6, 4), dtype=float)
Rows13 = wp.types.matrix(shape=(13, 4), dtype=float)

WHEEL_CONTACTS = """
    const lanes sx = at(slope_x);
    const lanes sy = at(slope_y);
    const lanes nz = 1.0f / root(sx * sx + sy * sy + 1.0f);
    const lanes nx = -sx * nz;
    const lanes ny = -sy * nz;
    const lanes x = at(arm_x);
    const lanes y = at(arm_y);
    const lanes z = at(arm_z);
    const lanes alignment = nx * axes.data[0][2] + ny * axes.data[1][2] + nz * axes.data[2][2];
    const lanes deflection = pick(alignment >= 0.15f, reach - at(distance), 0.0f);

    const lanes vx = velocity[0] + (omega[1] * z - omega[2] * y);
    const lanes vy = velocity[1] + (omega[2] * x - omega[0] * z);
    const lanes vz = velocity[2] + (omega[0] * y - omega[1] * x);

    // The wheel's heading, laid into the surface.
    const lanes turn = at(tangent);
    lanes hx = axes.data[0][0] + turn * axes.data[0][1];
    lanes hy = axes.data[1][0] + turn * axes.data[1][1];
    lanes hz = axes.data[2][0] + turn * axes.data[2][1];
    const lanes rise = hx * nx + hy * ny + hz * nz;
    hx = hx - rise * nx;
    hy = hy - rise * ny;
    hz = hz - rise * nz;
    const lanes unit = 1.0f / most(root(hx * hx + hy * hy + hz * hz), 1.0e-9f);
    hx = hx * unit;
    hy = hy * unit;
    hz = hz * unit;
    const lanes lx = ny * hz - nz * hy;
    const lanes ly = nz * hx - nx * hz;
    const lanes lz = nx * hy - ny * hx;

    const mask touches = deflection > 0.0f;
    put(0, pick(touches, deflection, 0.0f));
    put(1, nx * vx + ny * vy + nz * vz);
    put(2, pick(touches, hx * vx + hy * vy + hz * vz, 0.0f));
    put(3, pick(touches, lx * vx + ly * vy + lz * vz, 0.0f));
    put(4, nx);
    put(5, ny);
    put(6, nz);
    put(7, hx);
    put(8, hy);
    put(9, hz);
    put(10, lx);
    put(11, ly);
    put(12, lz);
"""


@wp.func_native(lane_code(WHEEL_CONTACTS, rows=13))
def wheel_contacts(
    distance: wp.vec4,
    slope_x: wp.vec4,
    slope_y: wp.vec4,
    arm_x: wp.vec4,
    arm_y: wp.vec4,
    arm_z: wp.vec4,
    tangent: wp.vec4,
    axes: wp.mat33,
    velocity: wp.vec3,
    omega: wp.vec3,
    reach: float,
) -> Rows13:  # pyright: ignore[reportInvalidTypeForm]
    """Contact frames and velocities of the wheels.

    Rows: compression δ [m], 0 without contact (paper, appendix B: a normal beyond acos(0.15) from the chassis' up axis
    is none); velocity along the normal [m/s]; along the wheel's heading and to its left [m/s], 0 without contact;
    then the unit normal, heading and left axis, three rows each.

    Args:
        distance: Ray lengths from the anchors [m].
        slope_x: dh/dx of the facets.
        slope_y: dh/dy of the facets.
        arm_x: Contact points from the centre of mass, world frame [m].
        arm_y: As ``arm_x``.
        arm_z: As ``arm_x``.
        tangent: Tangent of each wheel's steering angle.
        axes: Columns forward, left, up of the chassis.
        velocity: Velocity of the centre of mass [m/s].
        omega: Angular velocity, world frame [rad/s].
        reach: l0 + R [m].
    """
    ...


SUSPENSION_LOADS = """
    // max(0, k d - c v_n) + 4 k max(0, d - 0.8 l0); the second term is the bump stop.
    lanes deflection = at(compression);
    lanes spring = most(0.0f, stiffness * deflection - damping * at(normal_speed));
    lanes load = spring + 4.0f * stiffness * most(0.0f, deflection - 0.8f * rest_length);
    put(0, pick(deflection > 0.0f, load, 0.0f));
"""


@wp.func_native(lane_code(SUSPENSION_LOADS, rows=1))
def suspension_loads(
    compression: wp.vec4, normal_speed: wp.vec4, rest_length: float, stiffness: float, damping: float
) -> Rows1:  # pyright: ignore[reportInvalidTypeForm]
    """Loads of the legs [N]: max(0, kδ - c·v_n) + 4k·max(0, δ - 0.8·l0) where δ > 0; one row."""
    ...


UPDATE_WHEELS = """
    const float per_torque = dt / inertia;
    const float beta = per_torque * radius * radius * longitudinal;
    const float softening = 1.0f / (1.0f + beta);
    const float inv_beta = 1.0f / (beta > 1.0e-6f ? beta : 1.0e-6f);
    const lanes v = at(speed_long);
    const lanes bound = at(limit);

    // atan2(v_y, max(|v_x|, 2)): the ratio is folded into +-tan(pi/8) about 0, pi/4 or pi/2, where an odd polynomial
    // (fitted; relative error 2e-8 before rounding) gives the angle.
    const lanes x = most(size(v), 2.0f);
    const lanes y = size(at(speed_lat));
    const mask steep = y > 2.414213562373095f * x;
    const mask middle = y > 0.4142135623730951f * x;
    const lanes t = pick(steep, -x, pick(middle, y - x, y)) / pick(steep, y, pick(middle, y + x, x));
    const lanes z = t * t;
    lanes slip_angle = t + t * z * (-0.33332956f + z * (0.19977926f + z * (-0.13879849f + z * 0.08060306f)));
    slip_angle = slip_angle + pick(steep, 1.5707963267948966f, pick(middle, 0.7853981633974483f, 0.0f));
    slip_angle = pick(at(speed_lat) < 0.0f, -slip_angle, slip_angle);
    const lanes lateral = -at(cornering) * slip_angle;
    const lanes lateral_squared = lateral * lateral;

    // Would a wheel at rest stay at rest?
    const lanes locked = -longitudinal * v;
    const lanes lock_scale = least(1.0f, bound / most(root(locked * locked + lateral_squared), 1.0e-9f));
    const lanes torque = (inertia / dt) * at(spin) + at(drive_torque) - radius * lock_scale * locked;
    const mask holds = size(torque) <= at(resist_torque);
    const lanes direction = pick(torque >= 0.0f, 1.0f, -1.0f);
    const lanes free_spin = at(spin) + per_torque * (at(drive_torque) - direction * at(resist_torque));

    // Unsaturated: inside the friction circle.
    const lanes slip_force = longitudinal * (radius * free_spin - v);
    lanes force_long = slip_force * softening;
    lanes force_lat = lateral;
    const mask outside = force_long * force_long + lateral_squared > bound * bound;
    if (any(outside)) {
        // x (1 + beta L / r) = X with r = hypot(x, F_y0): monotone and concave, so Newton from the unsaturated
        // solution cannot overshoot.
        const lanes target = size(slip_force);
        const lanes push = beta * bound;
        lanes slide = target * softening;
        for (int i = 0; i < 3; ++i) {
            const lanes inv_r = 1.0f / most(root(slide * slide + lateral_squared), 1.0e-9f);
            const lanes gain = push * inv_r;
            slide = slide - (slide * (1.0f + gain) - target) / (1.0f + gain * lateral_squared * inv_r * inv_r);
        }
        const lanes scale = bound / most(root(slide * slide + lateral_squared), 1.0e-9f);
        const lanes saturated = beta < 1.0e-6f ? scale * slide : (target - slide) * inv_beta;
        force_long = pick(outside, pick(slip_force >= 0.0f, saturated, -saturated), force_long);
        force_lat = pick(outside, scale * lateral, lateral);
    }
    lanes turned = free_spin - per_torque * radius * force_long;
    turned = pick(direction * turned < 0.0f, 0.0f, turned);
    put(0, pick(holds, lock_scale * locked, force_long));
    put(1, pick(holds, lock_scale * lateral, force_lat));
    put(2, pick(holds, 0.0f, turned));
    put(3, slip_angle);
"""


@wp.func_native(lane_code(UPDATE_WHEELS, rows=4))
def update_wheels(
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
) -> Rows4:  # pyright: ignore[reportInvalidTypeForm]
    """Backward Euler step of four wheels under the friction circle.

    Rows: F_x [N], F_y [N], new spin [rad/s], slip angle atan2(v_y, max(|v_x|, 2)) [rad].

    Solves J·(ω' - ω)/Δt = T_d - σT_b - R·F_x with (F_x, F_y) = λ·(k_x·(Rω' - v_x), -C_α·atan2(v_y, max(|v_x|, 2))) and
    λ = min(1, L/‖·‖). A wheel whose brake holds it locks, and a brake never reverses a wheel.

    Args:
        spin: Wheel speeds ω [rad/s].
        speed_long: Contact speeds along the wheel headings v_x [m/s].
        speed_lat: Contact speeds to the left v_y [m/s].
        drive_torque: T_d [N·m].
        resist_torque: Brake and rolling torque T_b >= 0 [N·m].
        limit: Radius of the friction circle L = μF_z [N].
        cornering: C_α [N/rad].
        longitudinal: k_x [N·s/m].
        radius: R [m].
        inertia: J [kg·m²].
        dt: Substep Δt [s].
    """
    ...


WHEEL_FRICTION = """
    put(0, pick(at(compression) > 0.0f, at(friction), 0.0f));
"""


@wp.func_native(lane_code(WHEEL_FRICTION, rows=1))
def wheel_friction(friction: wp.vec4, compression: wp.vec4) -> Rows1:  # pyright: ignore[reportInvalidTypeForm]
    """Surface friction under the wheels that touch, 0 under the others; one row."""
    ...


WHEEL_WRENCHES = """
    const lanes n = at(load);
    const lanes a = at(force_long);
    const lanes b = at(force_lat);
    const lanes fx = n * at(frame.data[4]) + a * at(frame.data[7]) + b * at(frame.data[10]);
    const lanes fy = n * at(frame.data[5]) + a * at(frame.data[8]) + b * at(frame.data[11]);
    const lanes fz = n * at(frame.data[6]) + a * at(frame.data[9]) + b * at(frame.data[12]);
    put(0, fx);
    put(1, fy);
    put(2, fz);
    put(3, at(arm_y) * fz - at(arm_z) * fy);
    put(4, at(arm_z) * fx - at(arm_x) * fz);
    put(5, at(arm_x) * fy - at(arm_y) * fx);
"""


@wp.func_native(lane_code(WHEEL_WRENCHES, rows=6))
def wheel_wrenches(
    frame: Rows13,  # pyright: ignore[reportInvalidTypeForm]
    load: wp.vec4,
    force_long: wp.vec4,
    force_lat: wp.vec4,
    arm_x: wp.vec4,
    arm_y: wp.vec4,
    arm_z: wp.vec4,
) -> Rows6:  # pyright: ignore[reportInvalidTypeForm]
    """Force [N] and torque about the centre of mass [N·m] of each wheel in the world frame, three rows each."""
    ...
