"""Reward: five terms per vehicle, summed over the control steps of a decision.

The default weights are ours; every term is kept apart so that the infos can show it.
"""

import math
from dataclasses import dataclass, fields

import warp as wp

from ..observation.geometry import route_deviation
from .events import Event
from .kernels import TaskState

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

REWARD_TERMS = ("progress", "passage", "event", "route", "comfort")
"""Order of the last axis of ``reward_terms`` [W, V, 5]."""

PROGRESS = wp.constant(REWARD_TERMS.index("progress"))
PASSAGE = wp.constant(REWARD_TERMS.index("passage"))
EVENT = wp.constant(REWARD_TERMS.index("event"))
ROUTE = wp.constant(REWARD_TERMS.index("route"))
COMFORT = wp.constant(REWARD_TERMS.index("comfort"))
NUM_TERMS = wp.constant(len(REWARD_TERMS))
FAULT = wp.constant(int(Event.FAULT))


@wp.struct
class RewardWeights:
    """Device copy of `RewardConfig`."""

    progress: float
    passage: float
    event: float
    fault: float
    route: float
    comfort: float


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Weights of the reward terms.

    Attributes:
        progress: Per metre along the own route [1/m].
        passage: Once, for a valid passage.
        event: Once, at the first event, unless it is a fault.
        fault: Once, if the first event is a fault.
        route: Per metre of lateral offset and second [1/(m s)].
        comfort: Per change of the requested acceleration between decisions [s^2/m].

    Raises:
        ValueError: If a weight is not finite.
    """

    progress: float = 0.1
    passage: float = 10.0
    event: float = -10.0
    fault: float = -20.0
    route: float = -0.05
    comfort: float = -0.01

    def __post_init__(self) -> None:
        """Validate."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value):
                raise ValueError(f"reward weight {field.name} must be finite, got {value!r}")

    def weights(self) -> RewardWeights:
        """Return the kernel's copy."""
        weights = RewardWeights()
        for field in fields(self):
            setattr(weights, field.name, float(getattr(self, field.name)))
        return weights


@wp.kernel
def begin_decision(
    action: wp.array2d(dtype=wp.vec2),
    command: wp.array2d(dtype=wp.vec2),
    active: wp.array2d(dtype=wp.int8),
    weights: RewardWeights,
    reward_terms: wp.array3d(dtype=float),
    num_vehicles: int,
    world_begin: int,
):
    """Zero the terms and charge the change of the requested acceleration; dim W.

    Launch it before `action` (already clipped) is latched into `command`, which still holds the previous request.
    """
    w = wp.tid() + world_begin
    for v in range(num_vehicles):
        for term in range(NUM_TERMS):
            reward_terms[w, v, term] = 0.0
        if active[w, v] != wp.int8(0):
            change = action[w, v][0] - command[w, v][0]
            reward_terms[w, v, COMFORT] = weights.comfort * wp.abs(change)


@wp.func
def add_world_reward(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    active: wp.array2d(dtype=wp.int8),
    own_route: wp.array(dtype=int),
    route_points: wp.array2d(dtype=wp.vec4),
    route_index: wp.array3d(dtype=int),
    task: TaskState,
    weights: RewardWeights,
    stop_at_event: int,
    dt: float,
    reward_terms: wp.array3d(dtype=float),
    num_vehicles: int,
    w: int,
):
    """Add one control step of `dt` seconds to the terms of a world's active vehicles, after `update_world_events`.

    Progress is dt (v . tangent) on the own route. With `stop_at_event` a vehicle collects nothing after the step of
    its first event, which is how a row ends under the training rules.
    """
    step = task.step[w]
    if task.fault[w] != wp.int8(0) and task.first_reset_step[w] != step:
        return
    for v in range(num_vehicles):
        live = active[w, v] != wp.int8(0)
        first = task.first_event_step[w, v]
        if stop_at_event != 0 and first >= 0 and first < step:
            live = False
        if live:
            body = w * num_vehicles + v
            route = own_route[v]
            sample = route_points[route, route_index[w, v, route]]
            velocity = wp.spatial_top(body_qd[body])
            along = velocity[0] * sample[2] + velocity[1] * sample[3]
            offset = route_deviation(sample, body_q[body][0], body_q[body][1])
            progress = weights.progress * dt * along
            deviation = weights.route * dt * wp.abs(offset[1])
            if wp.isfinite(progress) and wp.isfinite(deviation):
                reward_terms[w, v, PROGRESS] += progress
                reward_terms[w, v, ROUTE] += deviation
            if task.passage_step[w, v] == step:
                reward_terms[w, v, PASSAGE] += weights.passage
            if first == step:
                penalty = weights.event
                if int(task.event[w, v]) == FAULT:
                    penalty = weights.fault
                reward_terms[w, v, EVENT] += penalty
