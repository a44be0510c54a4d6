"""Planar geometry that observation, task and agents share."""

from collections.abc import Sequence

import numpy as np
import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class VehicleGeometry:
    """Sizes of one vehicle, from `VehicleParams`. Lengths in m, angles in rad, speeds in m/s."""

    half_length: float
    half_width: float
    wheel_radius: float
    front_axle: float  # distance from the centre to the front axle
    max_steer: float
    steer_speed_scale: float


def vehicle_geometry(vehicles: Sequence, device: wp.Device | str) -> wp.array:
    """Upload the sizes of the V vehicles of a world.

    Args:
        vehicles: V `VehicleParams`.
        device: Warp device.

    Returns:
        Array of `VehicleGeometry`, shape [V].
    """
    rows = [
        (0.5 * p.length, 0.5 * p.width, p.wheel_radius, 0.5 * p.wheelbase, p.max_steer, p.steer_speed_scale)
        for p in vehicles
    ]
    return wp.array(np.array(rows, dtype=VehicleGeometry.numpy_dtype()), dtype=VehicleGeometry, device=device)


@wp.func
def planar_heading(q: wp.quat) -> wp.vec2:
    """(cos, sin) of the yaw: the body's forward axis projected onto the ground; (1, 0) if it is vertical."""
    forward = wp.quat_rotate(q, wp.vec3(1.0, 0.0, 0.0))
    length = wp.sqrt(forward[0] * forward[0] + forward[1] * forward[1])
    heading = wp.vec2(1.0, 0.0)
    if length > 1.0e-6:
        heading = wp.vec2(forward[0] / length, forward[1] / length)
    return heading


@wp.func
def to_frame(heading: wp.vec2, dx: float, dy: float) -> wp.vec2:
    """Planar vector in the frame whose x axis is `heading`."""
    return wp.vec2(heading[0] * dx + heading[1] * dy, heading[0] * dy - heading[1] * dx)


@wp.func
def route_deviation(sample: wp.vec4, x: float, y: float) -> wp.vec2:
    """(along, left) offset [m] of a point from a route sample, in the sample's frame."""
    return to_frame(wp.vec2(sample[2], sample[3]), x - sample[0], y - sample[1])


@wp.func
def angle_between(reference: wp.vec2, heading: wp.vec2) -> float:
    """Angle from `reference` to `heading` in (-pi, pi], both (cos, sin)."""
    relative = to_frame(reference, heading[0], heading[1])
    return wp.atan2(relative[1], relative[0])


@wp.func
def footprint_within(
    y: float, heading: wp.vec2, half_length: float, half_width: float, low: float, high: float
) -> bool:
    """Whether the footprint's extent in y, |sin| l/2 + |cos| w/2 to either side, lies in [low, high]."""
    reach = wp.abs(heading[1]) * half_length + wp.abs(heading[0]) * half_width
    return y - reach >= low and y + reach <= high


@wp.func
def separated_on(axis: wp.vec2, delta: wp.vec2, a: wp.vec2, a_size: wp.vec2, b: wp.vec2, b_size: wp.vec2) -> bool:
    """Whether two boxes (headings a, b; half sizes) are apart on one axis; a NaN counts as apart."""
    reach_a = wp.abs(wp.dot(axis, a)) * a_size[0] + wp.abs(axis[1] * a[0] - axis[0] * a[1]) * a_size[1]
    reach_b = wp.abs(wp.dot(axis, b)) * b_size[0] + wp.abs(axis[1] * b[0] - axis[0] * b[1]) * b_size[1]
    return not (wp.abs(wp.dot(axis, delta)) <= reach_a + reach_b)


@wp.func
def boxes_overlap(delta: wp.vec2, a: wp.vec2, a_size: wp.vec2, b: wp.vec2, b_size: wp.vec2) -> bool:
    """Separating-axis test of two planar boxes; `delta` = centre of b minus centre of a, sizes are halves."""
    reach = wp.length(a_size) + wp.length(b_size)
    if not (wp.dot(delta, delta) <= reach * reach):
        return False
    if separated_on(a, delta, a, a_size, b, b_size):
        return False
    if separated_on(wp.vec2(-a[1], a[0]), delta, a, a_size, b, b_size):
        return False
    if separated_on(b, delta, a, a_size, b, b_size):
        return False
    return not separated_on(wp.vec2(-b[1], b[0]), delta, a, a_size, b, b_size)
