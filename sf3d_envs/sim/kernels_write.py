"""Writing states: what follows from a new root state, suspension by its deflections, resets."""

import warp as wp

from ..terrain.kernels import Terrain, facet_normal, terrain_facet
from .arrays import VehicleArrays
from .kernels_place import place_vehicle
from .kernels_vehicle import anchor_arms, cast_legs, forward_speed, lane_sum
from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def settle_vehicle(s: VehicleArrays, w: int, v: int):
    """Clear what the physics keeps beside a root state, so that the next step starts from it alone."""
    body = w * s.params_index.shape[1] + v
    s.position_residual[w, v] = wp.vec3()
    s.previous_q[w, v] = s.body_q[body]
    s.forward_speed[w, v] = forward_speed(s.body_q[body], s.body_qd[body])
    s.forward_accel[w, v] = 0.0
    s.nonfinite[w, v] = wp.int8(0)
    if s.velocity_elapsed.shape[0] > 0:
        s.velocity_elapsed[w, v] = 0.0


@wp.kernel
def settle_vehicles(marks: wp.array2d(dtype=wp.bool), s: VehicleArrays):
    """Thread per vehicle: marked ones had their root state overwritten."""
    w, v = wp.tid()
    if marks[w, v]:
        settle_vehicle(s, w, v)


@wp.kernel
def reset_vehicles(marks: wp.array2d(dtype=wp.bool), s: VehicleArrays):
    """Thread per vehicle: marked ones go back to their last placement, at rest."""
    w, v = wp.tid()
    if marks[w, v]:
        place_vehicle(s, w, v, s.home_q[w, v], 0.0)


@wp.struct
class Legs:
    """The four legs of a pose: compression [m] and its rate [m/s]."""

    deflection: wp.vec4
    rate: wp.vec4


@wp.func
def legs_of(
    terrain: Terrain, w: int, car: VehicleData, position: wp.vec3, axes: wp.mat33, qd: wp.spatial_vector
) -> Legs:
    """Compression and its rate of the legs on the world's road; negative compression is a leg off the road."""
    grid = terrain.grids[terrain.world_variant[w]]
    up = wp.vec3(axes[0, 2], axes[1, 2], axes[2, 2])
    x = anchor_arms(car, axes[0, 0], axes[0, 1], axes[0, 2])
    y = anchor_arms(car, axes[1, 0], axes[1, 1], axes[1, 2])
    z = anchor_arms(car, axes[2, 0], axes[2, 1], axes[2, 2])
    hits = cast_legs(terrain, grid, car, position, up, x, y, z)
    legs = Legs()
    legs.deflection = wp.vec4(1.0) * (car.rest_length + car.radius) - hits.distance
    for k in range(4):
        arm = wp.vec3(x[k], y[k], z[k]) - hits.distance[k] * up
        normal = facet_normal(wp.vec4(0.0, hits.slope_x[k], hits.slope_y[k], 0.0))
        speed = wp.dot(normal, wp.spatial_top(qd) + wp.cross(wp.spatial_bottom(qd), arm))
        legs.rate[k] = wp.where(legs.deflection[k] > 0.0, -speed, 0.0)
    return legs


@wp.func
def axes_of(heading: wp.vec3, lean: wp.vec2) -> wp.mat33:
    """Columns forward, left, up of a chassis whose up axis leans ``lean`` forward and left of the vertical.

    Forward stays above the heading, so that solving twice turns nothing.
    """
    side = wp.vec3(-heading[1], heading[0], 0.0)
    up = wp.normalize(lean[0] * heading + lean[1] * side + wp.vec3(0.0, 0.0, 1.0))
    forward = wp.normalize(heading - lean[0] * wp.vec3(0.0, 0.0, 1.0))
    left = wp.cross(up, forward)
    return wp.matrix_from_cols(forward, left, up)


@wp.kernel
def solve_suspension(
    marks: wp.array2d(dtype=wp.bool),
    s: VehicleArrays,
    terrain: Terrain,
    wants_deflection: int,
    wants_rate: int,
    wanted: wp.array3d(dtype=wp.vec4),
    missing: wp.array3d(dtype=wp.vec4),
    pose: wp.array2d(dtype=wp.transform),
    motion: wp.array2d(dtype=wp.spatial_vector),
):
    """Thread per vehicle: the pose and motion whose legs are as wanted, and what is missing; deflections, then rates.

    Height and lean follow from the deflections, vertical speed, roll rate and pitch rate from their rates. For legs at
    (±L/2, ±t/2) the columns of the Jacobian are orthogonal, so each iteration is three sums. A leg off the road has
    rate 0; with such legs the iteration is slower.
    """
    w, v = wp.tid()
    if not marks[w, v]:
        return
    body = w * s.params_index.shape[1] + v
    car = s.params[s.params_index[w, v]]
    q = s.body_q[body]
    position = wp.transform_get_translation(q)
    rotation = wp.transform_get_rotation(q)
    velocity = wp.spatial_top(s.body_qd[body])
    omega = wp.spatial_bottom(s.body_qd[body])
    axes = wp.quat_to_matrix(rotation)
    x = car.half_wheelbase * wp.vec4(1.0, 1.0, -1.0, -1.0)
    y = car.half_track * wp.vec4(1.0, -1.0, 1.0, -1.0)
    inv_x = 0.25 / (car.half_wheelbase * car.half_wheelbase)
    inv_y = 0.25 / (car.half_track * car.half_track)

    if wants_deflection == 1:
        heading = wp.normalize(wp.vec3(axes[0, 0], axes[1, 0], 0.0))
        grid = terrain.grids[terrain.world_variant[w]]
        facet = terrain_facet(terrain, grid, position[0], position[1])
        position[2] = facet[0] + car.rest_height
        lean = wp.vec2(
            -(facet[1] * heading[0] + facet[2] * heading[1]), -(facet[2] * heading[0] - facet[1] * heading[1])
        )
        for _i in range(int(20)):
            axes = axes_of(heading, lean)
            legs = legs_of(terrain, w, car, position, axes, s.body_qd[body])
            lack = wanted[0, w, v] - legs.deflection
            position[2] = position[2] - 0.25 * lane_sum(lack)
            lean = lean + wp.vec2(wp.dot(lack, x) * inv_x, wp.dot(lack, y) * inv_y)
        rotation = wp.normalize(wp.quat_from_matrix(axes))
        axes = wp.quat_to_matrix(rotation)
        legs = legs_of(terrain, w, car, position, axes, s.body_qd[body])
        missing[0, w, v] = wanted[0, w, v] - legs.deflection
    if wants_rate == 1:
        for _i in range(int(60)):
            legs = legs_of(terrain, w, car, position, axes, wp.spatial_vector(velocity, omega))
            lack = wanted[1, w, v] - legs.rate
            missing[1, w, v] = lack
            forward = wp.vec3(axes[0, 0], axes[1, 0], axes[2, 0])
            left = wp.vec3(axes[0, 1], axes[1, 1], axes[2, 1])
            velocity[2] = velocity[2] - 0.25 * lane_sum(lack)
            omega = omega - (wp.dot(lack, y) * inv_y) * forward + (wp.dot(lack, x) * inv_x) * left
    pose[w, v] = wp.transform(position, rotation)
    motion[w, v] = wp.spatial_vector(velocity, omega)


@wp.kernel
def take_suspension(
    marks: wp.array2d(dtype=wp.bool),
    allowed: wp.array(dtype=wp.bool),
    terrain: Terrain,
    pose: wp.array2d(dtype=wp.transform),
    motion: wp.array2d(dtype=wp.spatial_vector),
    s: VehicleArrays,
):
    """Thread per vehicle: take over solved poses and motions, and read the legs."""
    w, v = wp.tid()
    if not marks[w, v] or not allowed[0]:
        return
    body = w * s.params_index.shape[1] + v
    s.body_q[body] = pose[w, v]
    s.body_qd[body] = motion[w, v]
    settle_vehicle(s, w, v)
    car = s.params[s.params_index[w, v]]
    axes = wp.quat_to_matrix(wp.transform_get_rotation(pose[w, v]))
    legs = legs_of(terrain, w, car, wp.transform_get_translation(pose[w, v]), axes, motion[w, v])
    s.wheel_compression[w, v] = wp.max(legs.deflection, wp.vec4())
    for k in range(4):
        s.compression_rate[w, v, k] = legs.rate[k]
