"""The kernel that writes one observation row per vehicle, in the order of the table in `spec`."""

import warp as wp

from ..scenario.route import ROUTE_SPACING
from ..terrain.kernels import Terrain, surface_friction, terrain_facet
from .geometry import (
    VehicleGeometry,
    angle_between,
    footprint_within,
    planar_heading,
    route_deviation,
    to_frame,
)
from .spec import CLIP, LOOK_AHEAD_M, NUM_NEIGHBOURS, ObservationSpec

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SPACING = wp.constant(ROUTE_SPACING)
SPEC = ObservationSpec(preview=True)
EGO = wp.constant(SPEC.slice("ego").start)
ROUTE = wp.constant(SPEC.slice("route").start)
ROUTE_POINTS = wp.constant(SPEC["route.preview_lateral_00"])
TRAFFIC = wp.constant(SPEC.slice("traffic").start)
PLANNER = wp.constant(SPEC.slice("planner").start)
PLANNER_END = wp.constant(SPEC.slice("planner").stop)
PREVIEW = wp.constant(SPEC.slice("preview").start)
NEIGHBOURS = wp.constant(NUM_NEIGHBOURS)
LOOK_AHEADS = wp.constant(len(LOOK_AHEAD_M))
LOOK_AHEAD_SAMPLES = wp.constant(round((LOOK_AHEAD_M[1] - LOOK_AHEAD_M[0]) / ROUTE_SPACING))
LIMIT = wp.constant(CLIP)
FAR = wp.constant(3.0e38)

# One slot more than neighbours: the farthest is pushed into it instead of past the end.
SlotDistance = wp.types.vector(length=NUM_NEIGHBOURS + 1, dtype=wp.float32)
SlotVehicle = wp.types.vector(length=NUM_NEIGHBOURS + 1, dtype=wp.int32)


@wp.struct
class ObservationInputs:
    """What the rows read. W worlds, V vehicles, R routes of at most N samples, D channels."""

    body_q: wp.array(dtype=wp.transform)  # [W*V]
    body_qd: wp.array(dtype=wp.spatial_vector)  # [W*V]
    wheel_spin: wp.array2d(dtype=wp.vec4)  # [W, V] rad/s
    steer_angle: wp.array2d(dtype=float)  # [W, V] rad
    forward_accel: wp.array2d(dtype=float)  # [W, V] m/s^2
    command: wp.array2d(dtype=wp.vec2)  # [W, V] previous request
    valid: wp.array2d(dtype=wp.int8)  # [W, V]
    geometry: wp.array(dtype=VehicleGeometry)  # [V]
    own_route: wp.array(dtype=int)  # [V]
    route_index: wp.array3d(dtype=int)  # [W, V, R]
    route_points: wp.array2d(dtype=wp.vec4)  # [R, N] x, y, cosine and sine of the heading
    route_curvature: wp.array2d(dtype=float)  # [R, N] 1/m
    route_count: wp.array(dtype=int)  # [R]
    route_marks: wp.array(dtype=wp.vec4)  # [R] arc length of merge start, merge end, counting line; owes a merge
    scale: wp.array(dtype=float)  # [D]
    terrain: Terrain
    desired_speed: float
    open_lane_low: float
    open_lane_high: float


@wp.func
def put(obs: wp.array3d(dtype=float), scale: wp.array(dtype=float), w: int, row: int, channel: int, value: float):
    """Write one channel: clip(value / scale); a non-finite value becomes 0 so that no policy ever reads one."""
    scaled = value / scale[channel]
    if not wp.isfinite(scaled):
        scaled = 0.0
    obs[w, row, channel] = wp.clamp(scaled, -LIMIT, LIMIT)


@wp.func
def driven_slip(wheel_spin: wp.vec4, wheel_radius: float, speed: float) -> float:
    """Mean slip of the rear wheels: (R w - v) / max(|v|, 1)."""
    return (0.5 * wheel_radius * (wheel_spin[2] + wheel_spin[3]) - speed) / wp.max(wp.abs(speed), 1.0)


@wp.func
def roll_angle(q: wp.quat) -> float:
    """Roll [rad] of yaw-pitch-roll angles: atan2(z of the left axis, z of the up axis)."""
    return wp.atan2(2.0 * (q[3] * q[0] + q[1] * q[2]), 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]))


@wp.func
def pitch_angle(q: wp.quat) -> float:
    """Pitch [rad] of yaw-pitch-roll angles: asin(-z of the forward axis)."""
    return wp.asin(wp.clamp(2.0 * (q[3] * q[1] - q[2] * q[0]), -1.0, 1.0))


@wp.func
def nearest_vehicles(body_q: wp.array(dtype=wp.transform), first_body: int, num_vehicles: int, v: int) -> SlotVehicle:
    """Indices of the nearest vehicles by planar distance, nearest first, ties by index; -1 marks an empty slot."""
    here = body_q[first_body + v]
    distance = SlotDistance(FAR)
    vehicle = SlotVehicle(-1)
    for other in range(num_vehicles):
        if other != v:
            there = body_q[first_body + other]
            dx = there[0] - here[0]
            dy = there[1] - here[1]
            squared = dx * dx + dy * dy
            slot = int(NEIGHBOURS)
            for m in range(NEIGHBOURS):
                k = NEIGHBOURS - 1 - m
                if squared < distance[k]:
                    distance[k + 1] = distance[k]
                    vehicle[k + 1] = vehicle[k]
                    slot = k
            if slot < NEIGHBOURS:
                distance[slot] = squared
                vehicle[slot] = other
    return vehicle


@wp.kernel
def observe(
    inputs: ObservationInputs,
    row_vehicle: wp.array(dtype=int),
    row_active: wp.array2d(dtype=wp.int8),
    preview: int,
    num_vehicles: int,
    obs: wp.array3d(dtype=float),
    world_begin: int,
):
    """Write ``obs`` [W, rows, D]; dim (W, rows). ``row_active``: 1 writes a row, 0 zeroes it, 2 leaves it as it is."""
    w, row = wp.tid()
    w = w + world_begin
    if row_active[w, row] == wp.int8(2):
        return
    if row_active[w, row] == wp.int8(0):
        for channel in range(obs.shape[2]):
            obs[w, row, channel] = 0.0
        return
    v = row_vehicle[row]
    body = w * num_vehicles + v
    pose = inputs.body_q[body]
    q = wp.transform_get_rotation(pose)
    world_velocity = wp.spatial_top(inputs.body_qd[body])
    velocity = wp.quat_rotate_inv(q, world_velocity)
    rates = wp.quat_rotate_inv(q, wp.spatial_bottom(inputs.body_qd[body]))
    shape = inputs.geometry[v]
    heading = planar_heading(q)
    command = inputs.command[w, v]

    put(obs, inputs.scale, w, row, EGO + 0, velocity[0])
    put(obs, inputs.scale, w, row, EGO + 1, velocity[1])
    put(obs, inputs.scale, w, row, EGO + 2, rates[2])
    put(obs, inputs.scale, w, row, EGO + 3, inputs.forward_accel[w, v])
    put(obs, inputs.scale, w, row, EGO + 4, roll_angle(q))
    put(obs, inputs.scale, w, row, EGO + 5, pitch_angle(q))
    put(obs, inputs.scale, w, row, EGO + 6, inputs.steer_angle[w, v])
    put(obs, inputs.scale, w, row, EGO + 7, command[0])
    put(obs, inputs.scale, w, row, EGO + 8, command[1])
    put(obs, inputs.scale, w, row, EGO + 9, inputs.desired_speed)
    put(obs, inputs.scale, w, row, EGO + 10, driven_slip(inputs.wheel_spin[w, v], shape.wheel_radius, velocity[0]))
    put(obs, inputs.scale, w, row, EGO + 11, float(inputs.valid[w, v]))

    route = inputs.own_route[v]
    index = inputs.route_index[w, v, route]
    sample = inputs.route_points[route, index]
    marks = inputs.route_marks[route]
    offset = route_deviation(sample, pose[0], pose[1])
    error = to_frame(wp.vec2(sample[2], sample[3]), heading[0], heading[1])
    arc = float(index) * SPACING + offset[0]
    put(obs, inputs.scale, w, row, ROUTE + 0, offset[1])
    put(obs, inputs.scale, w, row, ROUTE + 1, error[1])
    put(obs, inputs.scale, w, row, ROUTE + 2, error[0])
    put(obs, inputs.scale, w, row, ROUTE + 3, inputs.route_curvature[route, index])
    merged = footprint_within(
        pose[1], heading, shape.half_length, shape.half_width, inputs.open_lane_low, inputs.open_lane_high
    )
    owes = float(0.0)
    if marks[3] > 0.0 and not merged:
        owes = 1.0
    put(obs, inputs.scale, w, row, ROUTE + 4, owes * (marks[0] - arc))
    put(obs, inputs.scale, w, row, ROUTE + 5, owes * (marks[1] - arc))
    put(obs, inputs.scale, w, row, ROUTE + 6, marks[2] - arc)
    put(obs, inputs.scale, w, row, ROUTE + 7, owes)

    variant = inputs.terrain.world_variant[w]
    grid = inputs.terrain.grids[variant]
    for k in range(LOOK_AHEADS):
        ahead = wp.min(index + k * LOOK_AHEAD_SAMPLES, inputs.route_count[route] - 1)
        point = inputs.route_points[route, ahead]
        direction = wp.vec2(point[2], point[3])
        local = to_frame(heading, point[0] - pose[0], point[1] - pose[1])
        put(obs, inputs.scale, w, row, ROUTE_POINTS + 2 * k, local[1])
        put(obs, inputs.scale, w, row, ROUTE_POINTS + 2 * k + 1, angle_between(heading, direction))
        if preview != 0:
            facet = terrain_facet(inputs.terrain, grid, point[0], point[1])
            grade = facet[1] * direction[0] + facet[2] * direction[1]
            friction = surface_friction(inputs.terrain, grid, point[0], point[1])
            put(obs, inputs.scale, w, row, PREVIEW + 2 * k, friction)
            put(obs, inputs.scale, w, row, PREVIEW + 2 * k + 1, grade)

    nearest = nearest_vehicles(inputs.body_q, w * num_vehicles, num_vehicles, v)
    for k in range(NEIGHBOURS):
        first = TRAFFIC + 7 * k
        if nearest[k] >= 0:
            other = w * num_vehicles + nearest[k]
            there = inputs.body_q[other]
            other_velocity = wp.spatial_top(inputs.body_qd[other])
            place = to_frame(heading, there[0] - pose[0], there[1] - pose[1])
            closing = to_frame(heading, other_velocity[0] - world_velocity[0], other_velocity[1] - world_velocity[1])
            other_heading = planar_heading(wp.transform_get_rotation(there))
            turn = to_frame(heading, other_heading[0], other_heading[1])
            put(obs, inputs.scale, w, row, first + 0, 1.0)
            put(obs, inputs.scale, w, row, first + 1, place[0])
            put(obs, inputs.scale, w, row, first + 2, place[1])
            put(obs, inputs.scale, w, row, first + 3, closing[0])
            put(obs, inputs.scale, w, row, first + 4, closing[1])
            put(obs, inputs.scale, w, row, first + 5, turn[1])
            put(obs, inputs.scale, w, row, first + 6, turn[0])
        else:
            for channel in range(7):
                obs[w, row, first + channel] = 0.0
    for channel in range(PLANNER, PLANNER_END):
        obs[w, row, channel] = 0.0
