"""One vehicle over one 240 Hz substep: steering, four raycast legs, tyres, drag, integration."""

import warp as wp

from ..terrain.kernels import Terrain, TerrainGrid, surface_friction_near, terrain_facet, terrain_facets
from .arrays import VehicleArrays
from .kernels_command import Actuation, actuate
from .kernels_wheel import Rows13, suspension_loads, update_wheels, wheel_contacts, wheel_friction, wheel_wrenches
from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TURN = wp.constant(6.283185307179586)
MIN_CLOSING = wp.constant(1.0e-3)  # a ray that nears the road more slowly than this per metre misses it
MISS = wp.constant(1.0e6)
MIN_NORMAL_ALIGNMENT = wp.constant(0.15)  # paper, appendix B: no contact beyond acos(0.15)


@wp.struct
class WheelForces:
    """Sum of the wheel forces about the centre of mass, and what each wheel read.

    ``frame`` is what ``wheel_contacts`` gives; the arms are the contact points from the centre of mass.
    """

    force: wp.vec3
    torque: wp.vec3
    spin: wp.vec4
    load: wp.vec4
    friction: wp.vec4
    compression: wp.vec4
    force_long: wp.vec4
    force_lat: wp.vec4
    slip_angle: wp.vec4
    frame: Rows13
    arm_x: wp.vec4
    arm_y: wp.vec4
    arm_z: wp.vec4


@wp.struct
class RoadHits:
    """Where the four rays meet the road: distances along the rays [m] and the facets' slopes, per wheel."""

    distance: wp.vec4
    slope_x: wp.vec4
    slope_y: wp.vec4


@wp.func
def refine_hit(
    terrain: Terrain, grid: TerrainGrid, origin: wp.vec3, down: wp.vec3, guess: float, reach: float
) -> wp.vec3:
    """(distance, dh/dx, dh/dy) of the road along a ray: Newton's method on the piecewise-linear gap, from ``guess``.

    Stops once the facet was read within 0.1 mm of the hit; ``reach`` is the ray's horizontal travel per metre.
    """
    distance = float(guess)
    facet = wp.vec4()
    for _i in range(int(3)):
        p = origin + distance * down
        facet = terrain_facet(terrain, grid, p[0], p[1])
        rate = facet[1] * down[0] + facet[2] * down[1] - down[2]
        if rate < MIN_CLOSING:
            distance = MISS
            break
        move = (p[2] - facet[0]) / rate
        distance += move
        if wp.abs(move) * reach < 1.0e-4:
            break
    return wp.vec3(distance, facet[1], facet[2])


@wp.func
def cast_rays(
    terrain: Terrain, grid: TerrainGrid, x: wp.vec4, y: wp.vec4, z: wp.vec4, down: wp.vec3, guess: float
) -> RoadHits:
    """Distances from four origins along ``down`` to the road; negative when an origin is below it.

    The facet read at the expected hit settles a ray that stays on it, which is almost every ray.
    """
    hits = RoadHits()
    one = wp.vec4(1.0)
    facets = terrain_facets(terrain, grid, x + one * (guess * down[0]), y + one * (guess * down[1]))
    gap = z + one * (guess * down[2]) - facets[0]
    hits.slope_x = facets[1]
    hits.slope_y = facets[2]
    across = wp.abs(down[0]) * grid.inv_dx + wp.abs(down[1]) * grid.inv_dy
    reach = wp.abs(down[0]) + wp.abs(down[1])
    margin = facets[3]
    unsettled = float(-1.0)
    for k in range(4):
        rate = hits.slope_x[k] * down[0] + hits.slope_y[k] * down[1] - down[2]
        move = gap[k] / wp.max(rate, MIN_CLOSING)
        hits.distance[k] = wp.where(rate < MIN_CLOSING, MISS, guess + move)
        # How far beyond both tolerances the ray leaves the facet that was read; below 0 it is settled.
        margin[k] = wp.where(
            rate < MIN_CLOSING, -1.0, wp.min(wp.abs(move) * across - margin[k], wp.abs(move) * reach - 1.0e-4)
        )
        unsettled = wp.max(unsettled, margin[k])
    if unsettled >= 0.0:
        for k in range(4):
            if margin[k] >= 0.0:
                hit = refine_hit(terrain, grid, wp.vec3(x[k], y[k], z[k]), down, hits.distance[k], reach)
                hits.distance[k] = hit[0]
                hits.slope_x[k] = hit[1]
                hits.slope_y[k] = hit[2]
    return hits


@wp.func
def lane_sum(a: wp.vec4) -> float:
    """Sum over the four wheels."""
    return (a[0] + a[1]) + (a[2] + a[3])


@wp.func
def tangent_of(angle: float) -> float:
    """tan(angle) for |angle| < π/2, to 6e-7 relative, without the cost of a library call.

    Twice the half-angle's tangent, for which an odd polynomial was fitted on ±π/4.
    """
    half = 0.5 * angle
    z = half * half
    series = 0.3333314 + z * (0.133392 + z * (0.05338125 + z * (0.02452827 + z * (0.002974433 + z * 0.009465603))))
    t = half + half * z * series
    return 2.0 * t / (1.0 - t * t)


@wp.func
def anchor_arms(car: VehicleData, forward: float, left: float, up: float) -> wp.vec4:
    """One world component of the four suspension anchors from the centre of mass, from that of the chassis' axes."""
    end = wp.vec4(1.0, 1.0, -1.0, -1.0)
    side = wp.vec4(1.0, -1.0, 1.0, -1.0)
    return (
        end * (car.half_wheelbase * forward) + side * (car.half_track * left) + wp.vec4(1.0) * (car.anchor_height * up)
    )


@wp.func
def cast_legs(
    terrain: Terrain,
    grid: TerrainGrid,
    car: VehicleData,
    position: wp.vec3,
    up: wp.vec3,
    arm_x: wp.vec4,
    arm_y: wp.vec4,
    arm_z: wp.vec4,
) -> RoadHits:
    """Where the rays of the four legs meet the road; the arms are those of the anchors."""
    one = wp.vec4(1.0)
    guess = car.rest_length + car.radius - 0.3 * car.rest_length
    return cast_rays(
        terrain, grid, one * position[0] + arm_x, one * position[1] + arm_y, one * position[2] + arm_z, -up, guess
    )


@wp.func
def wheel_forces(
    terrain: Terrain,
    grid: TerrainGrid,
    car: VehicleData,
    q: wp.transform,
    qd: wp.spatial_vector,
    spin: wp.vec4,
    steer: float,
    drive: wp.vec4,
    brake: wp.vec4,
    dt: float,
) -> WheelForces:
    """Suspension and tyre forces of the four legs, order FL, FR, RL, RR; vectors over wheels are per component.

    ``drive`` and ``brake`` are torques on the wheels [N·m]; a brake's only holds back.
    """
    out = WheelForces()
    position = wp.transform_get_translation(q)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(q))
    forward = wp.vec3(rotation[0, 0], rotation[1, 0], rotation[2, 0])
    left = wp.vec3(rotation[0, 1], rotation[1, 1], rotation[2, 1])
    up = wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    velocity = wp.spatial_top(qd)
    omega = wp.spatial_bottom(qd)
    one = wp.vec4(1.0)
    arm_x = anchor_arms(car, forward[0], left[0], up[0])
    arm_y = anchor_arms(car, forward[1], left[1], up[1])
    arm_z = anchor_arms(car, forward[2], left[2], up[2])
    reach = car.rest_length + car.radius
    hits = cast_legs(terrain, grid, car, position, up, arm_x, arm_y, arm_z)
    arm_x = arm_x - hits.distance * up[0]
    arm_y = arm_y - hits.distance * up[1]
    arm_z = arm_z - hits.distance * up[2]
    friction = surface_friction_near(
        terrain, grid, one * position[0] + arm_x, one * position[1] + arm_y, position, car.wheel_reach
    )

    # Ackermann: the axle lines of both front wheels meet on the rear axle's line.
    tan_steer = tangent_of(steer)
    span = car.wheelbase * tan_steer
    offset = car.half_track * tan_steer
    tangent = wp.vec4(span / (car.wheelbase - offset), span / (car.wheelbase + offset), 0.0, 0.0)

    cornering = wp.vec4(car.cornering_front, car.cornering_front, car.cornering_rear, car.cornering_rear)

    contact = wheel_contacts(
        hits.distance, hits.slope_x, hits.slope_y, arm_x, arm_y, arm_z, tangent, rotation, velocity, omega, reach
    )
    out.compression = contact[0]
    loads = suspension_loads(out.compression, contact[1], car.rest_length, car.stiffness, car.damping)
    out.load = loads[0]
    out.friction = wheel_friction(friction, out.compression)[0]
    limit = car.grip * wp.cw_mul(out.friction, out.load)
    resist = brake + (car.rolling_resistance * car.radius) * out.load
    wheels = update_wheels(
        spin,
        contact[2],
        contact[3],
        drive,
        resist,
        limit,
        cornering,
        car.longitudinal,
        car.radius,
        car.wheel_inertia,
        dt,
    )
    out.spin = wheels[2]
    out.force_long = wheels[0]
    out.force_lat = wheels[1]
    out.slip_angle = wheels[3]
    out.frame = contact
    out.arm_x = arm_x
    out.arm_y = arm_y
    out.arm_z = arm_z
    wrench = wheel_wrenches(contact, out.load, wheels[0], wheels[1], arm_x, arm_y, arm_z)
    out.force = wp.vec3(lane_sum(wrench[0]), lane_sum(wrench[1]), lane_sum(wrench[2]))
    out.torque = wp.vec3(lane_sum(wrench[3]), lane_sum(wrench[4]), lane_sum(wrench[5]))
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
def external_wrench(s: VehicleArrays, w: int, v: int) -> wp.spatial_vector:
    """Force [N] and torque [N·m] at the centre of mass that a user applies in this control step, world frame."""
    return wp.spatial_vector(s.wrench_force[w, v], s.wrench_torque[w, v])


@wp.func
def write_readings(s: VehicleArrays, w: int, v: int, wheels: WheelForces, act: Actuation):
    """Keep what a substep made of wheels and steering."""
    s.wheel_spin[w, v] = wheels.spin
    s.steer_angle[w, v] = act.steer
    s.steer_rate[w, v] = act.steer_rate
    s.wheel_load[w, v] = wheels.load
    s.wheel_friction[w, v] = wheels.friction
    s.wheel_compression[w, v] = wheels.compression


@wp.func
def write_tire_readings(s: VehicleArrays, car: VehicleData, w: int, v: int, origin: wp.vec3, wheels: WheelForces):
    """Keep the tyres' forces, slip and contact of the last substep of a control step; zero where a wheel is off."""
    for k in range(4):
        force = wp.vec2()
        slip = wp.vec2()
        point = wp.vec3()
        normal = wp.vec3()
        rate = float(0.0)
        if wheels.compression[k] > 0.0:
            speed = wheels.frame[2, k]
            force = wp.vec2(wheels.force_long[k], wheels.force_lat[k])
            slip = wp.vec2((car.radius * wheels.spin[k] - speed) / wp.max(wp.abs(speed), 1.0), wheels.slip_angle[k])
            point = origin + wp.vec3(wheels.arm_x[k], wheels.arm_y[k], wheels.arm_z[k])
            normal = wp.vec3(wheels.frame[4, k], wheels.frame[5, k], wheels.frame[6, k])
            rate = -wheels.frame[1, k]
        s.tire_force[w, v, k] = force
        s.tire_slip[w, v, k] = slip
        s.contact_point[w, v, k] = point
        s.contact_normal[w, v, k] = normal
        s.compression_rate[w, v, k] = rate


@wp.func
def integrate_vehicle(
    s: VehicleArrays, terrain: Terrain, gravity: wp.array(dtype=wp.vec3), w: int, v: int, dt: float, last: bool
):
    """Forces, velocity and predicted pose of one vehicle over one substep; the ``last`` of a control step is read.

    A vehicle that turns non-finite is put back at its start, at rest, and flagged; its world ends as a fault, and no
    other vehicle ever reads the bad numbers.
    """
    body = w * s.params_index.shape[1] + v
    car = s.params[s.params_index[w, v]]
    grid = terrain.grids[terrain.world_variant[w]]
    q = s.body_q[body]
    qd = s.body_qd[body]
    velocity = wp.spatial_top(qd)

    act = actuate(s, car, w, v, wp.length(velocity), dt)
    wheels = wheel_forces(terrain, grid, car, q, qd, s.wheel_spin[w, v], act.steer, act.drive, act.brake, dt)
    outside = external_wrench(s, w, v)  # adding zeros is cheaper than asking for them
    force = wheels.force - car.drag * wp.length(velocity) * velocity + wp.spatial_top(outside)
    torque = wheels.torque + wp.spatial_bottom(outside)
    qd = integrate_velocity(q, qd, car, force, torque, gravity[w], dt)

    # Compensated summation: the part of the displacement lost to rounding is carried to the next substep.
    position = wp.transform_get_translation(q)
    move = wp.spatial_top(qd) * dt + s.position_residual[w, v]
    moved = position + move
    residual = move - (moved - position)
    rotation = wp.transform_get_rotation(q)
    rotation = wp.normalize(rotation + wp.quat(wp.spatial_bottom(qd), 0.0) * rotation * (0.5 * dt))
    predicted = wp.transform(moved, rotation)

    if not (is_finite_pose(predicted) and is_finite_motion(qd, wheels.spin, act.steer)):
        s.nonfinite[w, v] = wp.int8(1)
        predicted = s.home_q[w, v]
        q = predicted
        qd = wp.spatial_vector()
        residual = wp.vec3()
        act = Actuation()
        wheels = WheelForces()

    s.previous_q[w, v] = q
    s.body_q[body] = predicted
    s.body_qd[body] = qd
    s.position_residual[w, v] = residual
    write_readings(s, w, v, wheels, act)
    if last:
        write_tire_readings(s, car, w, v, position, wheels)


@wp.func
def forward_speed(q: wp.transform, qd: wp.spatial_vector) -> float:
    """Speed along the body's forward axis [m/s]."""
    return wp.dot(wp.spatial_top(qd), wp.quat_rotate(wp.transform_get_rotation(q), wp.vec3(1.0, 0.0, 0.0)))


@wp.func
def finish_control_step(s: VehicleArrays, w: int, v: int, elapsed: float):
    """Readings of the control step just done: forward acceleration [m/s²] and how far the wheels have turned [rad].

    The wrench of the step ends with it.
    """
    angle = s.wheel_angle[w, v] + elapsed * s.wheel_spin[w, v]
    for k in range(4):
        angle[k] = angle[k] - TURN * wp.floor(angle[k] / TURN)
    s.wheel_angle[w, v] = angle
    body = w * s.params_index.shape[1] + v
    speed = forward_speed(s.body_q[body], s.body_qd[body])
    s.forward_accel[w, v] = (speed - s.forward_speed[w, v]) / elapsed
    s.forward_speed[w, v] = speed
    s.wrench_force[w, v] = wp.vec3()
    s.wrench_torque[w, v] = wp.vec3()
