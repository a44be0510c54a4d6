"""Kernels around Newton's XPBD step: wheel forces as a wrench before it, the new state after it.

Newton steps a copy of the bodies, so worlds and vehicles that must not move are simply not copied back.
"""

import warp as wp

from ..terrain.kernels import Terrain
from .arrays import VehicleArrays
from .kernels_command import Actuation, actuate
from .kernels_sense import add_point, begin_substep, finish_substep
from .kernels_vehicle import (
    WheelForces,
    external_wrench,
    finish_control_step,
    integrate_velocity,
    is_finite_motion,
    is_finite_pose,
    wheel_forces,
    write_readings,
    write_tire_readings,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PARKING_HEIGHT = wp.constant(10_000.0)
PARKING_SPACING = wp.constant(100.0)


@wp.struct
class BodyCopies:
    """The bodies as Newton steps them, [W·V]: pose, velocity, wrench at the COM (world frame, linear first).

    ``moves`` is 0 for a vehicle whose step is not copied back.
    """

    q: wp.array(dtype=wp.transform)
    qd: wp.array(dtype=wp.spatial_vector)
    wrench: wp.array(dtype=wp.spatial_vector)
    moves: wp.array(dtype=wp.int8)


@wp.struct
class RoadShapes:
    """Newton's shape rows that hold a road; a world's row is a copy of the row of its variant."""

    of_world: wp.array(dtype=int)
    of_variant: wp.array(dtype=int)
    transform: wp.array(dtype=wp.transform)
    heightfield: wp.array(dtype=wp.int32)
    source: wp.array(dtype=wp.uint64)
    lower: wp.array(dtype=wp.vec3)
    upper: wp.array(dtype=wp.vec3)
    radius: wp.array(dtype=float)
    friction: wp.array(dtype=float)


@wp.kernel
def follow_variants(world_variant: wp.array(dtype=int), roads: RoadShapes):
    """Thread per world: give the world's road shape the geometry of the variant it is mapped to."""
    w = wp.tid()
    to = roads.of_world[w]
    frm = roads.of_variant[world_variant[w]]
    roads.transform[to] = roads.transform[frm]
    roads.heightfield[to] = roads.heightfield[frm]
    roads.source[to] = roads.source[frm]
    roads.lower[to] = roads.lower[frm]
    roads.upper[to] = roads.upper[frm]
    roads.radius[to] = roads.radius[frm]
    roads.friction[to] = roads.friction[frm]


@wp.func
def send_home(s: VehicleArrays, w: int, v: int):
    """Flag a vehicle as non-finite and put it back at its start, at rest."""
    body = w * s.params_index.shape[1] + v
    wheels = WheelForces()
    s.nonfinite[w, v] = wp.int8(1)
    s.body_q[body] = s.home_q[w, v]
    s.body_qd[body] = wp.spatial_vector()
    s.previous_q[w, v] = s.home_q[w, v]
    s.position_residual[w, v] = wp.vec3()
    write_readings(s, w, v, wheels, Actuation())
    write_tire_readings(s, s.params[s.params_index[w, v]], w, v, wp.vec3(), wheels)


@wp.kernel
def apply_vehicle_forces(
    s: VehicleArrays,
    terrain: Terrain,
    gravity: wp.array(dtype=wp.vec3),
    stepping: wp.array(dtype=wp.int8),
    dt: float,
    last: int,
    bodies: BodyCopies,
):
    """Thread per vehicle: wheels and steering of one substep, and their wrench on Newton's copy of the body.

    A vehicle that is or would turn non-finite is put back at its start and flagged before Newton sees it. Newton sees
    frozen worlds parked far above the road, one vehicle over the other, where nothing touches.
    """
    w, v = wp.tid()
    body = w * s.params_index.shape[1] + v
    bodies.wrench[body] = wp.spatial_vector()
    bodies.moves[body] = wp.int8(0)
    if stepping[w] == wp.int8(0):
        height = PARKING_HEIGHT + PARKING_SPACING * float(v)
        bodies.q[body] = wp.transform(wp.vec3(0.0, 0.0, height), wp.quat_identity())
        bodies.qd[body] = wp.spatial_vector()
        return

    car = s.params[s.params_index[w, v]]
    grid = terrain.grids[terrain.world_variant[w]]
    q = s.body_q[body]
    qd = s.body_qd[body]
    velocity = wp.spatial_top(qd)
    act = actuate(s, car, w, v, wp.length(velocity), dt)
    wheels = wheel_forces(terrain, grid, car, q, qd, s.wheel_spin[w, v], act.steer, act.drive, act.brake, dt)
    outside = external_wrench(s, w, v)
    force = wheels.force - car.drag * wp.length(velocity) * velocity + wp.spatial_top(outside)
    torque = wheels.torque + wp.spatial_bottom(outside)

    ahead = integrate_velocity(q, qd, car, force, torque, gravity[w], dt)
    rotation = wp.transform_get_rotation(q)
    predicted = wp.transform(
        wp.transform_get_translation(q) + wp.spatial_top(ahead) * dt,
        wp.normalize(rotation + wp.quat(wp.spatial_bottom(ahead), 0.0) * rotation * (0.5 * dt)),
    )
    if is_finite_pose(predicted) and is_finite_motion(ahead, wheels.spin, act.steer):
        bodies.moves[body] = wp.int8(1)
        bodies.wrench[body] = wp.spatial_vector(force, torque)
        s.previous_q[w, v] = q
        write_readings(s, w, v, wheels, act)
        if last == 1:
            write_tire_readings(s, car, w, v, wp.transform_get_translation(q), wheels)
    else:
        send_home(s, w, v)
    bodies.q[body] = s.body_q[body]
    bodies.qd[body] = s.body_qd[body]


@wp.kernel
def take_newton_step(
    s: VehicleArrays,
    q: wp.array(dtype=wp.transform),
    qd: wp.array(dtype=wp.spatial_vector),
    moves: wp.array(dtype=wp.int8),
):
    """Thread per vehicle: take over what Newton made of the body."""
    w, v = wp.tid()
    body = w * s.params_index.shape[1] + v
    if moves[body] == wp.int8(0):
        return
    if is_finite_pose(q[body]) and is_finite_motion(qd[body], s.wheel_spin[w, v], s.steer_angle[w, v]):
        s.body_q[body] = q[body]
        s.body_qd[body] = qd[body]
    else:
        send_home(s, w, v)


@wp.kernel
def check_capacity(count: wp.array(dtype=int), capacity: int, overflow: wp.array(dtype=wp.int8)):
    """Thread per world: note that a buffer shared by all worlds was too small."""
    if count[0] > capacity:
        overflow[wp.tid()] = wp.int8(1)


@wp.struct
class NewtonPoints:
    """Newton's contacts of a substep, all worlds under each other, and the forces that its solver put on side 0."""

    count: wp.array(dtype=int)
    shape0: wp.array(dtype=int)
    shape1: wp.array(dtype=int)
    point0: wp.array(dtype=wp.vec3)
    point1: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)
    margin0: wp.array(dtype=float)
    margin1: wp.array(dtype=float)
    force: wp.array(dtype=wp.spatial_vector)


@wp.func
def place_of(s: VehicleArrays, world: int, vehicle: int, point: wp.vec3) -> wp.vec3:
    """World position of a point of a vehicle before the substep; roads stand where they are."""
    if vehicle < 0:
        return point
    return wp.transform_point(s.body_q[world * s.params_index.shape[1] + vehicle], point)


@wp.kernel
def report_newton_contacts(s: VehicleArrays, stepping: wp.array(dtype=wp.int8), points: NewtonPoints, dt: float):
    """One thread: sums and lists of a substep's impulses, in the order of Newton's contacts."""
    vehicles = s.params_index.shape[1]
    shapes = vehicles + 1  # of a world: its boxes and its road
    for w in range(s.params_index.shape[0]):
        if stepping[w] != wp.int8(0):
            s.contact_elapsed[w] = s.contact_elapsed[w] + dt
            begin_substep(s, w)
    for k in range(wp.min(points.count[0], points.shape0.shape[0])):
        impulse = dt * wp.spatial_top(points.force[k])
        w = points.shape0[k] / shapes
        if wp.dot(impulse, impulse) > 0.0 and stepping[w] != wp.int8(0):
            a = points.shape0[k] - w * shapes
            b = points.shape1[k] - w * shapes
            a = wp.where(a == vehicles, -1, a)
            b = wp.where(b == vehicles, -1, b)
            normal = points.normal[k]
            place0 = place_of(s, w, a, points.point0[k])
            place1 = place_of(s, w, b, points.point1[k])
            separation = wp.dot(normal, place1 - place0) - points.margin0[k] - points.margin1[k]
            if a < 0 or (b >= 0 and b < a):
                add_point(s, w, b, a, place1, normal, -impulse, separation)
            else:
                add_point(s, w, a, b, place0, -normal, impulse, separation)
    for w in range(s.params_index.shape[0]):
        if stepping[w] != wp.int8(0):
            finish_substep(s, w)


@wp.kernel
def finish_reference_steps(s: VehicleArrays, stepping: wp.array(dtype=wp.int8), elapsed: float):
    """Thread per vehicle: readings of the control step."""
    w, v = wp.tid()
    if stepping[w] != wp.int8(0):
        finish_control_step(s, w, v, elapsed)
