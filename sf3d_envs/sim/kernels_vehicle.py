"""One vehicle over one 240 Hz substep: steering, four raycast legs, tyres, drag, integration."""

import warp as wp

from ..terrain.kernels import Terrain, TerrainGrid, facet_normal, surface_friction, terrain_facet
from .kernels_wheel import suspension_load, wheel_update
from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TURN = wp.constant(6.283185307179586)
MIN_NORMAL_ALIGNMENT = wp.constant(0.15)  # paper, appendix B: no contact beyond acos(0.15)


@wp.struct
class VehicleArrays:
    """State, command and per-wheel readings of all vehicles; [W·V] for Newton's arrays, [W, V] for ours."""

    body_q: wp.array(dtype=wp.transform)
    body_qd: wp.array(dtype=wp.spatial_vector)
    position_residual: wp.array2d(dtype=wp.vec3)
    wheel_spin: wp.array2d(dtype=wp.vec4)
    wheel_angle: wp.array2d(dtype=wp.vec4)
    steer_angle: wp.array2d(dtype=float)
    command: wp.array2d(dtype=wp.vec2)
    wheel_load: wp.array2d(dtype=wp.vec4)
    wheel_friction: wp.array2d(dtype=wp.vec4)
    wheel_compression: wp.array2d(dtype=wp.vec4)
    forward_speed: wp.array2d(dtype=float)
    forward_accel: wp.array2d(dtype=float)
    nonfinite: wp.array2d(dtype=wp.int8)
    home_q: wp.array2d(dtype=wp.transform)
    previous_q: wp.array2d(dtype=wp.transform)
    params: wp.array(dtype=VehicleData)
    params_index: wp.array2d(dtype=int)


@wp.struct
class WheelForces:
    """Sum of the wheel forces about the centre of mass, and what each wheel read."""

    force: wp.vec3
    torque: wp.vec3
    spin: wp.vec4
    load: wp.vec4
    friction: wp.vec4
    compression: wp.vec4


@wp.struct
class RayHit:
    """Distance along the ray [m] and the plane of the facet it hit."""

    distance: float
    facet: wp.vec4


@wp.func
def cast_down(terrain: Terrain, grid: TerrainGrid, origin: wp.vec3, down: wp.vec3, guess: float) -> RayHit:
    """Distance from ``origin`` along ``down`` to the road; negative when the origin is below it.

    Newton's method on the piecewise-linear gap along the ray, started near the expected hit; it stops once the facet
    was read within 0.1 mm of the hit, which on a level road is after one query.
    """
    hit = RayHit()
    hit.distance = guess
    reach = wp.abs(down[0]) + wp.abs(down[1])
    for _i in range(int(4)):
        p = origin + hit.distance * down
        hit.facet = terrain_facet(terrain, grid, p[0], p[1])
        rate = hit.facet[1] * down[0] + hit.facet[2] * down[1] - down[2]
        if rate < 1.0e-3:
            hit.distance = 1.0e6
            break
        move = (p[2] - hit.facet[0]) / rate
        hit.distance += move
        if wp.abs(move) * reach < 1.0e-4:
            break
    return hit


@wp.func
def steer_toward(angle: float, command: float, speed: float, car: VehicleData, dt: float) -> float:
    """Steering angle after one substep [rad]: rate-limited approach to s·δ_max/(1 + (v/v_s)²)."""
    ratio = speed * car.inv_steer_speed
    target = command * car.max_steer / (1.0 + ratio * ratio)
    return angle + wp.clamp(target - angle, -car.steer_rate * dt, car.steer_rate * dt)


@wp.func
def wheel_forces(
    terrain: Terrain,
    grid: TerrainGrid,
    car: VehicleData,
    q: wp.transform,
    qd: wp.spatial_vector,
    spin: wp.vec4,
    steer: float,
    request: float,
    dt: float,
) -> WheelForces:
    """Suspension and tyre forces of the four legs, order FL, FR, RL, RR."""
    out = WheelForces()
    position = wp.transform_get_translation(q)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(q))
    forward = wp.vec3(rotation[0, 0], rotation[1, 0], rotation[2, 0])
    left = wp.vec3(rotation[0, 1], rotation[1, 1], rotation[2, 1])
    up = wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    velocity = wp.spatial_top(qd)
    omega = wp.spatial_bottom(qd)

    throttle = wp.clamp(request * car.inv_throttle_accel, 0.0, 1.0)
    brake = wp.clamp(-request * car.inv_brake_accel, 0.0, 1.0)
    mean_spin = 0.5 * (spin[2] + spin[3])
    drive = 0.5 * throttle * wp.min(car.max_drive_torque, car.max_power / wp.max(mean_spin, 1.0))
    tan_steer = wp.tan(steer)

    for k in range(4):
        side = float(1.0)
        if k == 1 or k == 3:
            side = float(-1.0)
        end = float(1.0)
        heading = forward
        cornering = car.cornering_front
        torque = float(0.0)
        if k < 2:
            # Ackermann: the axle lines of both front wheels meet on the rear axle's line.
            tangent = car.wheelbase * tan_steer / (car.wheelbase - side * car.half_track * tan_steer)
            heading = (forward + tangent * left) / wp.sqrt(1.0 + tangent * tangent)
        else:
            end = float(-1.0)
            cornering = car.cornering_rear
            torque = drive

        arm = (end * car.half_wheelbase) * forward + (side * car.half_track) * left + car.anchor_height * up
        reach = car.rest_length + car.radius
        hit = cast_down(terrain, grid, position + arm, -up, reach - 0.3 * car.rest_length)
        normal = facet_normal(hit.facet)
        load = float(0.0)
        friction = float(0.0)
        compression = float(0.0)
        speed_long = float(0.0)
        speed_lat = float(0.0)
        along = heading
        across = left
        arm = arm - hit.distance * up
        if hit.distance <= reach and wp.dot(normal, up) >= MIN_NORMAL_ALIGNMENT:
            point = position + arm
            contact_velocity = velocity + wp.cross(omega, arm)
            compression = reach - hit.distance
            load = suspension_load(
                compression, wp.dot(contact_velocity, normal), car.rest_length, car.stiffness, car.damping
            )
            friction = surface_friction(terrain, grid, point[0], point[1])
            along = wp.normalize(heading - wp.dot(heading, normal) * normal)
            across = wp.cross(normal, along)
            speed_long = wp.dot(contact_velocity, along)
            speed_lat = wp.dot(contact_velocity, across)

        resist = brake * car.max_brake_torque + car.rolling_resistance * load * car.radius
        wheel = wheel_update(
            spin[k],
            speed_long,
            speed_lat,
            torque,
            resist,
            car.grip * friction * load,
            cornering,
            car.longitudinal,
            car.radius,
            car.wheel_inertia,
            dt,
        )
        if load > 0.0:
            force = load * normal + wheel.force_long * along + wheel.force_lat * across
            out.force += force
            out.torque += wp.cross(arm, force)
        out.spin[k] = wheel.spin
        out.load[k] = load
        out.friction[k] = friction
        out.compression[k] = compression
    return out


@wp.func
def is_finite_pose(q: wp.transform) -> bool:
    """Whether every component of a pose is finite."""
    p = wp.transform_get_translation(q)
    r = wp.transform_get_rotation(q)
    return wp.isfinite(p[0] + p[1] + p[2]) and wp.isfinite(r[0] + r[1] + r[2] + r[3])


@wp.func
def is_finite_motion(qd: wp.spatial_vector, spin: wp.vec4, steer: float) -> bool:
    """Whether velocities, wheel speeds and the steering angle are finite."""
    v = wp.spatial_top(qd)
    w = wp.spatial_bottom(qd)
    return (
        wp.isfinite(v[0] + v[1] + v[2] + w[0] + w[1] + w[2])
        and wp.isfinite(spin[0] + spin[1] + spin[2] + spin[3])
        and wp.isfinite(steer)
    )


@wp.func
def integrate_velocity(
    q: wp.transform,
    qd: wp.spatial_vector,
    car: VehicleData,
    force: wp.vec3,
    torque: wp.vec3,
    gravity: wp.vec3,
    dt: float,
) -> wp.spatial_vector:
    """Velocity after dt: linear in the world frame, angular in the body frame with the gyroscopic term."""
    rotation = wp.transform_get_rotation(q)
    velocity = wp.spatial_top(qd) + (force * car.inv_mass + gravity) * dt
    omega = wp.quat_rotate_inv(rotation, wp.spatial_bottom(qd))
    moment = wp.quat_rotate_inv(rotation, torque) - wp.cross(omega, wp.cw_mul(car.inertia, omega))
    omega = omega + wp.cw_mul(car.inv_inertia, moment) * dt
    return wp.spatial_vector(velocity, wp.quat_rotate(rotation, omega))


@wp.func
def integrate_vehicle(s: VehicleArrays, terrain: Terrain, gravity: wp.array(dtype=wp.vec3), w: int, v: int, dt: float):
    """Forces, velocity and predicted pose of one vehicle over one substep.

    A vehicle that turns non-finite is put back at its start, at rest, and flagged; its world ends as a fault, and no
    other vehicle ever reads the bad numbers.
    """
    body = w * s.params_index.shape[1] + v
    car = s.params[s.params_index[w, v]]
    grid = terrain.grids[terrain.world_variant[w]]
    q = s.body_q[body]
    qd = s.body_qd[body]
    spin = s.wheel_spin[w, v]
    command = s.command[w, v]
    velocity = wp.spatial_top(qd)

    steer = steer_toward(s.steer_angle[w, v], command[1], wp.length(velocity), car, dt)
    wheels = wheel_forces(terrain, grid, car, q, qd, spin, steer, command[0], dt)
    force = wheels.force - car.drag * wp.length(velocity) * velocity
    qd = integrate_velocity(q, qd, car, force, wheels.torque, gravity[w], dt)

    # Compensated summation: the part of the displacement lost to rounding is carried to the next substep.
    position = wp.transform_get_translation(q)
    move = wp.spatial_top(qd) * dt + s.position_residual[w, v]
    moved = position + move
    residual = move - (moved - position)
    rotation = wp.transform_get_rotation(q)
    rotation = wp.normalize(rotation + wp.quat(wp.spatial_bottom(qd), 0.0) * rotation * (0.5 * dt))
    predicted = wp.transform(moved, rotation)

    if not (is_finite_pose(predicted) and is_finite_motion(qd, wheels.spin, steer)):
        s.nonfinite[w, v] = wp.int8(1)
        predicted = s.home_q[w, v]
        q = predicted
        qd = wp.spatial_vector()
        residual = wp.vec3()
        steer = 0.0
        wheels = WheelForces()

    s.previous_q[w, v] = q
    s.body_q[body] = predicted
    s.body_qd[body] = qd
    s.position_residual[w, v] = residual
    s.wheel_spin[w, v] = wheels.spin
    s.steer_angle[w, v] = steer
    s.wheel_load[w, v] = wheels.load
    s.wheel_friction[w, v] = wheels.friction
    s.wheel_compression[w, v] = wheels.compression


@wp.func
def forward_speed(q: wp.transform, qd: wp.spatial_vector) -> float:
    """Speed along the body's forward axis [m/s]."""
    return wp.dot(wp.spatial_top(qd), wp.quat_rotate(wp.transform_get_rotation(q), wp.vec3(1.0, 0.0, 0.0)))


@wp.func
def finish_control_step(s: VehicleArrays, w: int, v: int, elapsed: float):
    """Readings of the control step just done: forward acceleration [m/s²] and how far the wheels have turned [rad]."""
    angle = s.wheel_angle[w, v] + elapsed * s.wheel_spin[w, v]
    for k in range(4):
        angle[k] = angle[k] - TURN * wp.floor(angle[k] / TURN)
    s.wheel_angle[w, v] = angle
    body = w * s.params_index.shape[1] + v
    speed = forward_speed(s.body_q[body], s.body_qd[body])
    s.forward_accel[w, v] = (speed - s.forward_speed[w, v]) / elapsed
    s.forward_speed[w, v] = speed
