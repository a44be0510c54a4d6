"""Event flags, passage and merge: the outcome rules of the paper (appendix E), evaluated after each control step."""

import warp as wp

from ..observation.geometry import VehicleGeometry, boxes_overlap, footprint_within, planar_heading
from ..terrain.kernels import Terrain, inside_extents, terrain_facet
from ..terrain.lane_closure import LaneClosureRoad
from .events import Event
from .kernels_errors import CONTACTS, STATE, ErrorLog, note_error
from .termination import TaskConfig

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NONE = wp.constant(int(Event.NONE))
FAULT = wp.constant(int(Event.FAULT))
COLLISION = wp.constant(int(Event.COLLISION))
OFF_ROAD = wp.constant(int(Event.OFF_ROAD))
INCURSION = wp.constant(int(Event.INCURSION))


@wp.struct
class TaskRules:
    """Lines of the road and limits of the events. Lengths in m."""

    paved_low: float
    paved_high: float
    lane_line: float  # the closed lane lies below it (smaller y), the open lane above
    closure_x: float
    counting_x: float
    collision_margin: float
    upright_limit: float


@wp.struct
class TaskState:
    """What happened to each vehicle and world since its reset.

    Steps count completed control steps: the first one after a reset is step 1, and -1 means "not yet".
    """

    event: wp.array2d(dtype=wp.int8)  # [W, V] code of the first event
    first_event_step: wp.array2d(dtype=wp.int32)  # [W, V]
    event_now: wp.array2d(dtype=wp.int8)  # [W, V] highest-ranked event of the last control step
    passage_step: wp.array2d(dtype=wp.int32)  # [W, V] front bumper crossed the counting line while valid
    crossed_step: wp.array2d(dtype=wp.int32)  # [W, V] front bumper crossed the counting line at all
    in_open_lane: wp.array2d(dtype=wp.int8)  # [W, V] footprint entirely in the open lane
    merge_since: wp.array2d(dtype=wp.int32)  # [W, V] step since which in_open_lane has held
    valid: wp.array2d(dtype=wp.int8)  # [W, V] no event so far
    own_fault: wp.array2d(dtype=wp.int8)  # [W, V] this vehicle's fault ended the world
    step: wp.array(dtype=wp.int32)  # [W]
    first_reset_step: wp.array(dtype=wp.int32)  # [W] step of the world's fault
    fault: wp.array(dtype=wp.int8)  # [W]


def task_state(num_worlds: int, num_vehicles: int, device: wp.Device | str) -> TaskState:
    """Allocate a task state for W worlds of V vehicles, as after a reset."""
    state = TaskState()
    shape = (num_worlds, num_vehicles)
    for name in ("event", "event_now", "in_open_lane", "own_fault"):
        setattr(state, name, wp.zeros(shape, dtype=wp.int8, device=device))
    for name in ("first_event_step", "passage_step", "crossed_step", "merge_since"):
        setattr(state, name, wp.full(shape, -1, dtype=wp.int32, device=device))
    state.valid = wp.full(shape, 1, dtype=wp.int8, device=device)
    state.step = wp.zeros(num_worlds, dtype=wp.int32, device=device)
    state.first_reset_step = wp.full(num_worlds, -1, dtype=wp.int32, device=device)
    state.fault = wp.zeros(num_worlds, dtype=wp.int8, device=device)
    return state


def task_rules(config: TaskConfig) -> TaskRules:
    """Rules of the lane-closure road with the limits of `config`."""
    road = LaneClosureRoad()
    rules = TaskRules()
    rules.paved_low = road.paved_y_min
    rules.paved_high = road.paved_y_max
    rules.lane_line = road.lane_line_y
    rules.closure_x = road.closure_x
    rules.counting_x = road.counting_x
    rules.collision_margin = config.collision_margin
    rules.upright_limit = config.upright_limit
    return rules


@wp.kernel
def reset_task(reset_mask: wp.array(dtype=wp.bool), task: TaskState, num_vehicles: int, world_begin: int):
    """Clear the record of the masked worlds; dim W."""
    w = wp.tid() + world_begin
    if not reset_mask[w]:
        return
    task.step[w] = 0
    task.first_reset_step[w] = -1
    task.fault[w] = wp.int8(0)
    for v in range(num_vehicles):
        task.event[w, v] = wp.int8(NONE)
        task.event_now[w, v] = wp.int8(NONE)
        task.first_event_step[w, v] = -1
        task.passage_step[w, v] = -1
        task.crossed_step[w, v] = -1
        task.in_open_lane[w, v] = wp.int8(0)
        task.merge_since[w, v] = -1
        task.valid[w, v] = wp.int8(1)
        task.own_fault[w, v] = wp.int8(0)


@wp.func
def has_fault(
    pose: wp.transform, velocity: wp.spatial_vector, terrain: Terrain, variant: int, upright_limit: float
) -> bool:
    """Overturned, out of the map, centre below the terrain, or non-finite."""
    p = wp.transform_get_translation(pose)
    q = wp.transform_get_rotation(pose)
    finite = wp.isfinite(p) and wp.isfinite(q)
    for i in range(6):
        finite = finite and wp.isfinite(velocity[i])
    if not finite:
        return True
    up = 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1])
    if up < upright_limit:
        return True
    grid = terrain.grids[variant]
    if not inside_extents(grid, p[0], p[1]):
        return True
    facet = terrain_facet(terrain, grid, p[0], p[1])
    return p[2] < facet[0]


@wp.func
def collides(
    body_q: wp.array(dtype=wp.transform),
    geometry: wp.array(dtype=VehicleGeometry),
    first_body: int,
    num_vehicles: int,
    v: int,
    margin: float,
) -> bool:
    """Whether the grown footprint of vehicle v intersects another one's."""
    pose = body_q[first_body + v]
    heading = planar_heading(wp.transform_get_rotation(pose))
    size = wp.vec2(geometry[v].half_length + margin, geometry[v].half_width + margin)
    for other in range(num_vehicles):
        if other != v:
            there = body_q[first_body + other]
            delta = wp.vec2(there[0] - pose[0], there[1] - pose[1])
            other_size = wp.vec2(geometry[other].half_length + margin, geometry[other].half_width + margin)
            # Half perimeters bound the half diagonals; most pairs are apart and need no more.
            if wp.abs(delta[0]) <= size[0] + size[1] + other_size[0] + other_size[1]:
                other_heading = planar_heading(wp.transform_get_rotation(there))
                if boxes_overlap(delta, heading, size, other_heading, other_size):
                    return True
    return False


@wp.func
def event_of(pose: wp.transform, fault: bool, collision: bool, rules: TaskRules) -> int:
    """Highest-ranked event: fault > collision > off-road > incursion."""
    if fault:
        return FAULT
    if collision:
        return COLLISION
    if pose[1] < rules.paved_low or pose[1] > rules.paved_high:
        return OFF_ROAD
    if pose[0] >= rules.closure_x and pose[1] < rules.lane_line:
        return INCURSION
    return NONE


@wp.func
def update_world_events(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    nonfinite: wp.array2d(dtype=wp.int8),
    geometry: wp.array(dtype=VehicleGeometry),
    rules: TaskRules,
    terrain: Terrain,
    task: TaskState,
    num_vehicles: int,
    w: int,
):
    """Apply the outcome rules to a world after one control step.

    A world that has had its fault is left alone: nothing after the first reset is scored.
    """
    if task.fault[w] != wp.int8(0):
        return
    step = task.step[w] + 1
    task.step[w] = step
    for v in range(num_vehicles):
        pose = body_q[w * num_vehicles + v]
        heading = planar_heading(wp.transform_get_rotation(pose))
        fault = nonfinite[w, v] != wp.int8(0)
        if not fault:
            fault = has_fault(
                pose, body_qd[w * num_vehicles + v], terrain, terrain.world_variant[w], rules.upright_limit
            )
        collision = collides(body_q, geometry, w * num_vehicles, num_vehicles, v, rules.collision_margin)
        event = event_of(pose, fault, collision, rules)
        task.event_now[w, v] = wp.int8(event)
        if event != NONE and task.valid[w, v] != wp.int8(0):
            task.valid[w, v] = wp.int8(0)
            task.event[w, v] = wp.int8(event)
            task.first_event_step[w, v] = step
        if fault:
            task.own_fault[w, v] = wp.int8(1)
            task.fault[w] = wp.int8(1)
            task.first_reset_step[w] = step
        bumper = pose[0] + heading[0] * geometry[v].half_length
        if task.crossed_step[w, v] < 0 and bumper >= rules.counting_x:
            task.crossed_step[w, v] = step
            if task.valid[w, v] != wp.int8(0):
                task.passage_step[w, v] = step
        inside = footprint_within(
            pose[1], heading, geometry[v].half_length, geometry[v].half_width, rules.lane_line, rules.paved_high
        )
        if inside:
            if task.in_open_lane[w, v] == wp.int8(0):
                task.merge_since[w, v] = step
            task.in_open_lane[w, v] = wp.int8(1)
        else:
            task.in_open_lane[w, v] = wp.int8(0)
            task.merge_since[w, v] = -1


@wp.func
def stop_finished_world(
    task: TaskState,
    nonfinite: wp.array2d(dtype=wp.int8),
    overflow: wp.array(dtype=wp.int8),
    errors: ErrorLog,
    stepping: wp.array(dtype=wp.int8),
    horizon: int,
    w: int,
):
    """Stop a world that has had its fault or reached the horizon, after the reward of the control step.

    Notes what the physics flagged in this step; the overflow flag is taken down, so that the next one is seen.
    """
    for v in range(nonfinite.shape[1]):
        if nonfinite[w, v] != wp.int8(0):
            note_error(errors, w, STATE, v, task.step[w])
    if overflow[w] != wp.int8(0):
        overflow[w] = wp.int8(0)
        note_error(errors, w, CONTACTS, -1, task.step[w])
    if task.fault[w] != wp.int8(0) or task.step[w] >= horizon:
        stepping[w] = wp.int8(0)
