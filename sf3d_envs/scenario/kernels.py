"""Scenario memory, and the projection of vehicles onto canonical routes: the index of the nearest 0.5 m sample."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PROJECTION_WINDOW = 20
"""Samples searched on each side of the current index: 10 m, more than any vehicle moves in a control step."""

COARSE_STRIDE = 32
"""Samples per block of the global search."""

_WINDOW = wp.constant(PROJECTION_WINDOW)
_STRIDE = wp.constant(COARSE_STRIDE)
_HALF_BLOCK = wp.constant(0.25 * COARSE_STRIDE)  # arc [m] from a block's centre sample to its ends
_INFINITY = wp.constant(float("inf"))


@wp.struct
class ScenarioArrays:
    """Scenarios of W worlds with V vehicles; all values are integers times 2**-10.

    start_x, start_y [m], start_speed [m/s], headway [s], min_gap [m], accel_max, comfort_decel [m/s^2]: shape [W, V].
    stream_speed [m/s] and has_leader (1 = a vehicle leads the closing lane close to the merge): shape [W].
    """

    start_x: wp.array2d(dtype=float)
    start_y: wp.array2d(dtype=float)
    start_speed: wp.array2d(dtype=float)
    headway: wp.array2d(dtype=float)
    min_gap: wp.array2d(dtype=float)
    accel_max: wp.array2d(dtype=float)
    comfort_decel: wp.array2d(dtype=float)
    stream_speed: wp.array(dtype=float)
    has_leader: wp.array(dtype=wp.int8)


@wp.func
def sample_distance2(points: wp.array2d(dtype=wp.vec4), route: int, index: int, x: float, y: float) -> float:
    """Squared planar distance [m^2] from (x, y) to a route sample."""
    sample = points[route, index]
    dx = x - sample[0]
    dy = y - sample[1]
    return dx * dx + dy * dy


@wp.func
def project_local(
    points: wp.array2d(dtype=wp.vec4),
    route: int,
    count: int,
    reach: float,
    guess: int,
    window: int,
    x: float,
    y: float,
) -> int:
    """Nearest sample within guess +- window samples, the lowest index on ties; the guess if (x, y) is not finite.

    Within ``reach`` of the route the distance has one valley along the window, and walking downhill finds it; farther
    away the window is searched.
    """
    start = wp.clamp(guess, 0, count - 1)
    index = start
    best = sample_distance2(points, route, start, x, y)
    first = wp.max(start - window, 0)
    last = wp.min(start + window, count - 1)
    if best <= reach * reach:
        while index > first:
            distance2 = sample_distance2(points, route, index - 1, x, y)
            if distance2 > best:
                break
            best = distance2
            index -= 1
        if index == start:
            while index < last:
                distance2 = sample_distance2(points, route, index + 1, x, y)
                if distance2 >= best:
                    break
                best = distance2
                index += 1
        return index
    best = float(_INFINITY)
    for i in range(first, last + 1):
        distance2 = sample_distance2(points, route, i, x, y)
        if distance2 < best:
            best = distance2
            index = i
    return index


@wp.func
def project_global(points: wp.array2d(dtype=wp.vec4), route: int, count: int, x: float, y: float) -> int:
    """Nearest sample of the whole route, the lowest index on ties; 0 if (x, y) is not finite.

    Exact for a route of any shape with 0.5 m spacing: a block is skipped only if its centre sample is farther than the
    best centre by more than the arc length to the block's ends.
    """
    bound = float(_INFINITY)
    for centre in range(_STRIDE // 2, count + _STRIDE // 2, _STRIDE):
        bound = wp.min(bound, sample_distance2(points, route, wp.min(centre, count - 1), x, y))
    reach = wp.sqrt(bound) * (1.0 + 1.0e-5) + _HALF_BLOCK + 0.1
    index = int(0)
    best = float(_INFINITY)
    for first in range(0, count, _STRIDE):
        centre = wp.min(first + _STRIDE // 2, count - 1)
        if sample_distance2(points, route, centre, x, y) <= reach * reach:
            for i in range(first, wp.min(first + _STRIDE, count)):
                distance2 = sample_distance2(points, route, i, x, y)
                if distance2 < best:
                    best = distance2
                    index = i
    return index


@wp.func
def project_world(
    body_q: wp.array(dtype=wp.transform),
    num_vehicles: int,
    num_routes: int,
    points: wp.array2d(dtype=wp.vec4),
    count: wp.array(dtype=int),
    reach: wp.array(dtype=float),
    route_index: wp.array3d(dtype=int),
    world: int,
):
    """Move the sample index of a world's vehicles on every route to the nearest sample of the local window.

    Shapes: body_q [W*V]; points [R, N] = (x, y, cos, sin of the heading); count [R]; reach [R] (see `project_local`);
    route_index [W, V, R], read and written.
    """
    for vehicle in range(num_vehicles):
        position = wp.transform_get_translation(body_q[world * num_vehicles + vehicle])
        for route in range(num_routes):
            guess = route_index[world, vehicle, route]
            route_index[world, vehicle, route] = project_local(
                points, route, count[route], reach[route], guess, _WINDOW, position[0], position[1]
            )


@wp.kernel
def project_to_routes_global(
    body_q: wp.array(dtype=wp.transform),
    num_vehicles: int,
    num_routes: int,
    points: wp.array2d(dtype=wp.vec4),
    count: wp.array(dtype=int),
    reset_mask: wp.array(dtype=wp.bool),
    route_index: wp.array3d(dtype=int),
    world_begin: int,
):
    """Set every vehicle's sample index on every route to the nearest sample of the whole route, in reset worlds only.

    Dim W. Shapes as for `project_world`; reset_mask [W].
    """
    world = wp.tid() + world_begin
    if not reset_mask[world]:
        return
    for vehicle in range(num_vehicles):
        position = wp.transform_get_translation(body_q[world * num_vehicles + vehicle])
        for route in range(num_routes):
            route_index[world, vehicle, route] = project_global(points, route, count[route], position[0], position[1])
