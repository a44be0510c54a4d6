"""Safety measures of every vehicle, accumulated after each control step."""

import warp as wp

from ..observation.geometry import VehicleGeometry, planar_heading, route_deviation
from ..observation.kernels import SPACING
from ..terrain.kernels import Terrain
from .measures import DRAC_LIMIT, HARD_BRAKE, SAFETY_COUNTS, SAFETY_VALUES, SPEED_MARKS, TTC_LIMITS, index_of

# Inlined as a whole: a call that is left standing copies the structs of array descriptors.
wp.set_module_options(
    {
        "enable_backward": False,
        "fuse_fp": False,
        "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=100000",
    }
)

VALID_STEPS = wp.constant(index_of("valid_steps", SAFETY_COUNTS))
LEADER_STEPS = wp.constant(index_of("leader_steps", SAFETY_COUNTS))
TTC_SHORT_STEPS = wp.constant(index_of("ttc_below_1_5s_steps", SAFETY_COUNTS))
TTC_LONG_STEPS = wp.constant(index_of("ttc_below_3s_steps", SAFETY_COUNTS))
DRAC_STEPS = wp.constant(index_of("drac_above_limit_steps", SAFETY_COUNTS))
HARD_BRAKE_STEPS = wp.constant(index_of("hard_brake_steps", SAFETY_COUNTS))
HARD_BRAKE_ONSETS = wp.constant(index_of("hard_brake_onsets", SAFETY_COUNTS))
NEED_STEPS = wp.constant(index_of("need_above_capacity_steps", SAFETY_COUNTS))
PATCH_STEPS = wp.constant(index_of("patch_steps", SAFETY_COUNTS))
PATCH_FIRST = wp.constant(index_of("patch_first_step", SAFETY_COUNTS))

TTC_MIN = wp.constant(index_of("ttc_min", SAFETY_VALUES))
DRAC_MAX = wp.constant(index_of("drac_max", SAFETY_VALUES))
NEED_MAX = wp.constant(index_of("need_ratio_max", SAFETY_VALUES))
DISTANCE = wp.constant(index_of("distance", SAFETY_VALUES))
SPEED_FIRST = wp.constant(index_of("speed_at_20m", SAFETY_VALUES))
SPEED_SECOND = wp.constant(index_of("speed_at_40m", SAFETY_VALUES))
REALIZED = wp.constant(index_of("realized_accel_sum", SAFETY_VALUES))
REQUESTED = wp.constant(index_of("requested_accel_sum", SAFETY_VALUES))
ERROR_SQUARE = wp.constant(index_of("accel_error_square_sum", SAFETY_VALUES))

TTC_SHORT = wp.constant(TTC_LIMITS[0])
TTC_LONG = wp.constant(TTC_LIMITS[1])
DRAC_HIGH = wp.constant(DRAC_LIMIT)
HARD = wp.constant(HARD_BRAKE)
MARK_FIRST = wp.constant(SPEED_MARKS[0])
MARK_SECOND = wp.constant(SPEED_MARKS[1])


@wp.struct
class SafetyInputs:
    """What the measures read of W worlds with V vehicles, R routes of at most N samples."""

    body_q: wp.array(dtype=wp.transform)  # [W*V]
    body_qd: wp.array(dtype=wp.spatial_vector)  # [W*V]
    command: wp.array2d(dtype=wp.vec2)  # [W, V]
    forward_accel: wp.array2d(dtype=float)  # [W, V]
    wheel_load: wp.array2d(dtype=wp.vec4)  # [W, V]
    wheel_friction: wp.array2d(dtype=wp.vec4)  # [W, V]
    wheel_compression: wp.array2d(dtype=wp.vec4)  # [W, V]
    valid: wp.array2d(dtype=wp.int8)  # [W, V]
    fault: wp.array(dtype=wp.int8)  # [W]
    step: wp.array(dtype=wp.int32)  # [W]
    geometry: wp.array(dtype=VehicleGeometry)  # [V]
    grip: wp.array(dtype=float)  # [V] vehicle factor on the surface friction
    own_route: wp.array(dtype=int)  # [V]
    route_points: wp.array2d(dtype=wp.vec4)  # [R, N] x, y, cosine and sine of the heading
    route_index: wp.array3d(dtype=int)  # [W, V, R]
    terrain: Terrain
    num_vehicles: int
    num_routes: int
    lateral_limit: float  # of a leader [m]
    look_ahead: float  # [m]
    smallest_gap: float  # [m]
    gravity: float  # [m/s^2]
    dt: float  # of a control step [s]


@wp.struct
class SafetyMemory:
    """What the measures keep of W worlds with V vehicles."""

    counts: wp.array3d(dtype=wp.int32)  # [W, V, len(SAFETY_COUNTS)]
    values: wp.array3d(dtype=float)  # [W, V, len(SAFETY_VALUES)]
    last_step: wp.array2d(dtype=wp.int32)  # [W, V] step count at the last look
    braking: wp.array2d(dtype=wp.int8)  # [W, V] the last step braked hard
    before: wp.array2d(dtype=wp.vec3)  # [W, V] x [m] and planar velocity [m/s] at the last look
    place: wp.array3d(dtype=wp.vec2)  # [W, R, V] arc length and lateral offset on each route [m]
    conflict: wp.array2d(dtype=wp.vec2)  # [W, V] TTC [s] and braking need over capacity of the last step


@wp.func
def locate_vehicle(inputs: SafetyInputs, memory: SafetyMemory, w: int, v: int):
    """Arc length and lateral offset of a vehicle on every route, from its nearest sample (as in IDM)."""
    pose = inputs.body_q[w * inputs.num_vehicles + v]
    for route in range(inputs.num_routes):
        index = inputs.route_index[w, v, route]
        offset = route_deviation(inputs.route_points[route, index], pose[0], pose[1])
        memory.place[w, route, v] = wp.vec2(float(index) * SPACING + offset[0], offset[1])


@wp.func
def leader_of(inputs: SafetyInputs, memory: SafetyMemory, w: int, v: int) -> int:
    """IDM's leader: the nearest centre ahead on the own route, less than 2 m beside it; −1 if there is none."""
    route = inputs.own_route[v]
    arc = memory.place[w, route, v][0]
    nearest = inputs.look_ahead
    leader = int(-1)
    for other in range(inputs.num_vehicles):
        place = memory.place[w, route, other]
        ahead = place[0] - arc
        if other != v and ahead > 0.0 and wp.abs(place[1]) < inputs.lateral_limit:
            if ahead < nearest or (leader < 0 and ahead <= nearest):
                nearest = ahead
                leader = other
    return leader


@wp.func
def speed_along(inputs: SafetyInputs, w: int, v: int, route: int) -> float:
    """Velocity of a vehicle along a route [m/s]."""
    velocity = wp.spatial_top(inputs.body_qd[w * inputs.num_vehicles + v])
    sample = inputs.route_points[route, inputs.route_index[w, v, route]]
    return velocity[0] * sample[2] + velocity[1] * sample[3]


@wp.func
def braking_capacity(friction: float, gravity: float, accel_lat: float) -> float:
    """Deceleration left after lateral tyre use [m/s^2]: sqrt((mu g)^2 - a_y^2), 0 where negative."""
    limit = friction * gravity
    return wp.sqrt(wp.max(limit * limit - accel_lat * accel_lat, 0.0))


@wp.func
def weighted_friction(friction: wp.vec4, load: wp.vec4) -> float:
    """Surface friction under the wheels, weighted by load; 0 without load."""
    total = load[0] + load[1] + load[2] + load[3]
    mean = float(0.0)
    if total > 0.0:
        mean = wp.dot(friction, load) / total
    return mean


@wp.func
def note_speed(memory: SafetyMemory, w: int, v: int, column: int, mark: float, before: wp.vec3, now: wp.vec3):
    """Planar speed where x crosses a mark upward for the first time, interpolated within the step."""
    if before[0] < mark and now[0] >= mark and wp.isnan(memory.values[w, v, column]):
        part = (mark - before[0]) / (now[0] - before[0])
        start = wp.length(wp.vec2(before[1], before[2]))
        memory.values[w, v, column] = start + part * (wp.length(wp.vec2(now[1], now[2])) - start)


@wp.func
def measure_interaction(inputs: SafetyInputs, memory: SafetyMemory, w: int, v: int, accel_lat: float):
    """Time to collision, DRAC and braking need towards the leader."""
    leader = leader_of(inputs, memory, w, v)
    if leader < 0:
        return
    memory.counts[w, v, LEADER_STEPS] = memory.counts[w, v, LEADER_STEPS] + 1
    route = inputs.own_route[v]
    closing = speed_along(inputs, w, v, route) - speed_along(inputs, w, leader, route)
    if closing <= 0.0:
        return
    ahead = memory.place[w, route, leader][0] - memory.place[w, route, v][0]
    gap = wp.max(ahead - inputs.geometry[v].half_length - inputs.geometry[leader].half_length, inputs.smallest_gap)
    ttc = gap / closing
    if ttc < memory.values[w, v, TTC_MIN]:
        memory.values[w, v, TTC_MIN] = ttc
    if ttc < TTC_LONG:
        memory.counts[w, v, TTC_LONG_STEPS] = memory.counts[w, v, TTC_LONG_STEPS] + 1
        if ttc < TTC_SHORT:
            memory.counts[w, v, TTC_SHORT_STEPS] = memory.counts[w, v, TTC_SHORT_STEPS] + 1

    need = closing * closing / (2.0 * gap)
    if need > memory.values[w, v, DRAC_MAX]:
        memory.values[w, v, DRAC_MAX] = need
    if need > DRAC_HIGH:
        memory.counts[w, v, DRAC_STEPS] = memory.counts[w, v, DRAC_STEPS] + 1
    friction = inputs.grip[v] * weighted_friction(inputs.wheel_friction[w, v], inputs.wheel_load[w, v])
    capacity = braking_capacity(friction, inputs.gravity, accel_lat)
    if need > capacity:
        memory.counts[w, v, NEED_STEPS] = memory.counts[w, v, NEED_STEPS] + 1
    ratio = float(wp.inf)
    if capacity > 0.0:
        ratio = need / capacity
    if ratio > memory.values[w, v, NEED_MAX]:
        memory.values[w, v, NEED_MAX] = ratio
    memory.conflict[w, v] = wp.vec2(ttc, ratio)


@wp.func
def measure_motion(inputs: SafetyInputs, memory: SafetyMemory, w: int, v: int, speed: float):
    """Exposure, hard braking, realized against requested acceleration, and contact with a patch."""
    steps = memory.counts[w, v, VALID_STEPS] + 1
    memory.counts[w, v, VALID_STEPS] = steps
    memory.values[w, v, DISTANCE] = memory.values[w, v, DISTANCE] + inputs.dt * speed

    realized = inputs.forward_accel[w, v]
    requested = inputs.command[w, v][0]
    error = realized - requested
    memory.values[w, v, REALIZED] = memory.values[w, v, REALIZED] + realized
    memory.values[w, v, REQUESTED] = memory.values[w, v, REQUESTED] + requested
    memory.values[w, v, ERROR_SQUARE] = memory.values[w, v, ERROR_SQUARE] + error * error
    if realized < HARD:
        memory.counts[w, v, HARD_BRAKE_STEPS] = memory.counts[w, v, HARD_BRAKE_STEPS] + 1
        if memory.braking[w, v] == wp.int8(0):
            memory.counts[w, v, HARD_BRAKE_ONSETS] = memory.counts[w, v, HARD_BRAKE_ONSETS] + 1
        memory.braking[w, v] = wp.int8(1)
    else:
        memory.braking[w, v] = wp.int8(0)

    base = inputs.terrain.grids[inputs.terrain.world_variant[w]].base_friction
    friction = inputs.wheel_friction[w, v]
    compression = inputs.wheel_compression[w, v]
    touched = bool(False)
    for k in range(4):
        touched = touched or (compression[k] > 0.0 and friction[k] != base)
    if touched:
        memory.counts[w, v, PATCH_STEPS] = memory.counts[w, v, PATCH_STEPS] + 1
        if memory.counts[w, v, PATCH_FIRST] < 0:
            memory.counts[w, v, PATCH_FIRST] = inputs.step[w]


@wp.func
def measure_vehicle(inputs: SafetyInputs, memory: SafetyMemory, w: int, v: int):
    """Add one control step to the measures of a vehicle, if its world was stepped and it is still valid."""
    if inputs.step[w] == memory.last_step[w, v]:
        return
    memory.last_step[w, v] = inputs.step[w]
    memory.conflict[w, v] = wp.vec2(float(wp.inf), 0.0)
    body = w * inputs.num_vehicles + v
    velocity = wp.spatial_top(inputs.body_qd[body])
    now = wp.vec3(inputs.body_q[body][0], velocity[0], velocity[1])
    before = memory.before[w, v]
    memory.before[w, v] = now
    if inputs.valid[w, v] == wp.int8(0) or inputs.fault[w] != wp.int8(0):
        return
    heading = planar_heading(wp.transform_get_rotation(inputs.body_q[body]))
    accel_lat = (heading[0] * (now[2] - before[2]) - heading[1] * (now[1] - before[1])) / inputs.dt
    measure_motion(inputs, memory, w, v, wp.length(wp.vec2(now[1], now[2])))
    note_speed(memory, w, v, SPEED_FIRST, MARK_FIRST, before, now)
    note_speed(memory, w, v, SPEED_SECOND, MARK_SECOND, before, now)
    measure_interaction(inputs, memory, w, v, accel_lat)


@wp.kernel
def measure_worlds(inputs: SafetyInputs, memory: SafetyMemory, world_begin: int):
    """A CPU's launch shape, thread per world: all measures of its vehicles."""
    w = wp.tid() + world_begin
    if inputs.step[w] == memory.last_step[w, 0]:
        return
    for v in range(inputs.num_vehicles):
        locate_vehicle(inputs, memory, w, v)
    for v in range(inputs.num_vehicles):
        measure_vehicle(inputs, memory, w, v)


@wp.kernel
def locate_vehicles(inputs: SafetyInputs, memory: SafetyMemory, world_begin: int):
    """A GPU's launch shape, thread per vehicle, first part."""
    w, v = wp.tid()
    locate_vehicle(inputs, memory, w + world_begin, v)


@wp.kernel
def measure_vehicles(inputs: SafetyInputs, memory: SafetyMemory, world_begin: int):
    """A GPU's launch shape, thread per vehicle, second part."""
    w, v = wp.tid()
    measure_vehicle(inputs, memory, w + world_begin, v)


@wp.kernel
def clear_measures(
    mask: wp.array(dtype=wp.bool),
    inputs: SafetyInputs,
    memory: SafetyMemory,
    count_start: wp.array(dtype=wp.int32),
    value_start: wp.array(dtype=float),
    world_begin: int,
):
    """Thread per world: start the measures of masked worlds from where their vehicles were placed."""
    w = wp.tid() + world_begin
    if not mask[w]:
        return
    for v in range(inputs.num_vehicles):
        for k in range(count_start.shape[0]):
            memory.counts[w, v, k] = count_start[k]
        for k in range(value_start.shape[0]):
            memory.values[w, v, k] = value_start[k]
        body = w * inputs.num_vehicles + v
        velocity = wp.spatial_top(inputs.body_qd[body])
        memory.before[w, v] = wp.vec3(inputs.body_q[body][0], velocity[0], velocity[1])
        memory.last_step[w, v] = 0
        memory.braking[w, v] = wp.int8(0)
