"""Colours of a ray-cast picture: one kernel over the camera's depth, normal and shape images.

Newton's own shading converts colours per ray and samples one texel per pixel; this costs a third of it and averages
the road over a pixel's footprint, so lane lines do not flicker in the distance.
"""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Ground:
    """Surface picture of the road. Texels [rows, columns], sRGB bytes; row 0 is at the largest y."""

    texels: wp.array2d(dtype=wp.vec3ub)
    x0: float
    y1: float
    inv_texel_x: float
    inv_texel_y: float
    shape: wp.uint32
    outside: wp.vec3


@wp.struct
class Light:
    """Directions and colours [sRGB bytes] of the picture's light.

    ``pixel`` is the size of a pixel: the angle [rad] in a perspective view, the length [m] in an orthographic one.
    """

    to_sun: wp.vec3
    horizon: wp.vec3
    zenith: wp.vec3
    haze_from: float
    haze_length: float
    pixel: float
    orthographic: int
    shadows: int


@wp.func
def texel_at(ground: Ground, row: int, column: int) -> wp.vec3:
    """One texel as floats; rows and columns outside take the edge texel."""
    r = wp.clamp(row, 0, ground.texels.shape[0] - 1)
    c = wp.clamp(column, 0, ground.texels.shape[1] - 1)
    t = ground.texels[r, c]
    return wp.vec3(float(t[0]), float(t[1]), float(t[2]))


@wp.func
def ground_color(ground: Ground, x: float, y: float) -> wp.vec3:
    """Colour of the ground at (x, y), bilinear between texels; the surroundings' colour outside the terrain."""
    u = (x - ground.x0) * ground.inv_texel_x
    v = (ground.y1 - y) * ground.inv_texel_y
    if u < 0.0 or v < 0.0 or u > float(ground.texels.shape[1]) or v > float(ground.texels.shape[0]):
        return ground.outside
    u -= 0.5
    v -= 0.5
    column, row = int(wp.floor(u)), int(wp.floor(v))
    fu, fv = u - float(column), v - float(row)
    upper = texel_at(ground, row, column) * (1.0 - fu) + texel_at(ground, row, column + 1) * fu
    lower = texel_at(ground, row + 1, column) * (1.0 - fu) + texel_at(ground, row + 1, column + 1) * fu
    return upper * (1.0 - fv) + lower * fv


@wp.func
def nearest_color(ground: Ground, x: float, y: float) -> wp.vec3:
    """As :func:`ground_color`, without interpolation."""
    column = int(wp.floor((x - ground.x0) * ground.inv_texel_x))
    row = int(wp.floor((ground.y1 - y) * ground.inv_texel_y))
    if column < 0 or row < 0 or column >= ground.texels.shape[1] or row >= ground.texels.shape[0]:
        return ground.outside
    return texel_at(ground, row, column)


@wp.func
def footprint_color(ground: Ground, point: wp.vec3, along: wp.vec3, length: float, taps: int) -> wp.vec3:
    """Mean ground colour over a pixel's footprint: a line of ``length`` [m] through ``point`` along ``along``."""
    if taps == 1:
        return ground_color(ground, point[0], point[1])
    total = wp.vec3(0.0)
    for tap in range(taps):
        offset = length * ((float(tap) + 0.5) / float(taps) - 0.5)
        total += nearest_color(ground, point[0] + along[0] * offset, point[1] + along[1] * offset)
    return total / float(taps)


@wp.func
def box_blocks(pose: wp.transform, half: wp.vec3, point: wp.vec3, direction: wp.vec3) -> bool:
    """Whether the ray from ``point`` enters the box with half extents ``half`` at ``pose`` (slab test)."""
    origin = wp.transform_point(wp.transform_inverse(pose), point)
    ray = wp.quat_rotate_inv(wp.transform_get_rotation(pose), direction)
    near = float(0.0)
    far = float(1.0e6)
    for axis in range(3):
        step = ray[axis]
        if wp.abs(step) < 1.0e-6:
            step = 1.0e-6
        a = (-half[axis] - origin[axis]) / step
        b = (half[axis] - origin[axis]) / step
        near = wp.max(near, wp.min(a, b))
        far = wp.min(far, wp.max(a, b))
    return near < far


@wp.func
def in_shadow(
    poses: wp.array(dtype=wp.transform), halves: wp.array(dtype=wp.vec3), bounds: wp.vec4, point: wp.vec3, sun: wp.vec3
) -> bool:
    """Whether a vehicle's box stands between ``point`` and the sun; ``bounds`` (x, y, x, y) encloses all shadows."""
    if point[0] < bounds[0] or point[1] < bounds[1] or point[0] > bounds[2] or point[1] > bounds[3]:
        return False
    for vehicle in range(halves.shape[0]):
        half = halves[vehicle]
        away = wp.transform_get_translation(poses[vehicle]) - point
        reach = half[0] + half[1] + 1.0
        if away[0] * away[0] + away[1] * away[1] < reach * reach:
            if box_blocks(poses[vehicle], half, point, sun):
                return True
    return False


@wp.kernel
def shade(
    depth: wp.array3d(dtype=float),
    normal: wp.array3d(dtype=wp.vec3),
    shape: wp.array3d(dtype=wp.uint32),
    rays: wp.array4d(dtype=wp.vec3),
    camera: wp.array(dtype=wp.transform),
    shape_color: wp.array(dtype=wp.vec3),
    ground: Ground,
    light: Light,
    poses: wp.array(dtype=wp.transform),
    halves: wp.array(dtype=wp.vec3),
    bounds: wp.vec4,
    color: wp.array2d(dtype=wp.vec3ub),
):
    """Colour = albedo (0.50 + 0.12 n_z + 0.38 n.s / s_z), so level sunlit ground keeps its exact colour; then haze."""
    row, column = wp.tid()
    direction = wp.transform_vector(camera[0], rays[row, column, 0, 1])
    distance = depth[0, row, column]
    result = light.horizon
    if distance <= 0.0:
        result = wp.lerp(light.horizon, light.zenith, wp.clamp(direction[2] / 0.45, 0.0, 1.0))
    else:
        n = normal[0, row, column]
        hit = shape[0, row, column]
        point = wp.transform_point(camera[0], rays[row, column, 0, 0]) + direction * distance
        albedo = wp.vec3(0.0)
        sun = wp.max(wp.dot(n, light.to_sun), 0.0) / light.to_sun[2]
        if hit == ground.shape:
            if light.orthographic != 0:
                taps = wp.clamp(int(light.pixel * ground.inv_texel_y), 1, 8)
                albedo = footprint_color(ground, point, wp.vec3(0.0, 1.0, 0.0), light.pixel, taps)
            else:
                size = light.pixel * distance / wp.max(wp.abs(wp.dot(n, direction)), 0.002)
                along = wp.normalize(wp.vec3(direction[0], direction[1], 0.0))
                albedo = footprint_color(ground, point, along, size, wp.clamp(int(size * 3.0), 1, 16))
            if light.shadows != 0 and sun > 0.0:
                if in_shadow(poses, halves, bounds, point, light.to_sun):
                    sun = 0.0
        else:
            albedo = shape_color[int(hit)] * 255.0
        result = albedo * (0.50 + 0.12 * n[2] + 0.38 * sun)
        if light.orthographic == 0:
            haze = 1.0 - wp.exp(wp.min(light.haze_from - distance, 0.0) / light.haze_length)
            result = wp.lerp(result, light.horizon, haze)
    color[row, column] = wp.vec3ub(
        wp.uint8(wp.clamp(result[0] + 0.5, 0.0, 255.0)),
        wp.uint8(wp.clamp(result[1] + 0.5, 0.0, 255.0)),
        wp.uint8(wp.clamp(result[2] + 0.5, 0.0, 255.0)),
    )
