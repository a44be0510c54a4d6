"""IDM-17: the intelligent driver model behind the route leader, a Stanley law on the route, 17 m/s, 60 Hz.

The paper (appendix D) names the two laws (Treiber et al., 2000; Thrun et al., 2006), the desired speed and the leader
rule; gains and clips are ours. There is no lane-change model: a merging vehicle follows whoever is on its route.
"""

import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import warp as wp

from sf3d_envs.observation.geometry import (
    VehicleGeometry,
    angle_between,
    planar_heading,
    route_deviation,
)
from sf3d_envs.observation.kernels import SPACING
from sf3d_envs.scenario.kernels import PROJECTION_WINDOW, project_local

from .base import agent_digest, require_bound

if TYPE_CHECKING:
    import torch

    from sf3d_envs.launches import LaunchList
    from sf3d_envs.observation.view import WorldView

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

WINDOW = wp.constant(PROJECTION_WINDOW)


@wp.struct
class IDMParams:
    """Device copy of `IDMConfig`."""

    desired_speed: float
    min_acceleration: float
    smallest_gap: float
    lateral_limit: float
    look_ahead: float
    offset_gain: float
    soft_speed: float
    yaw_damping: float


@dataclass(frozen=True, kw_only=True)
class IDMConfig:
    """Constants of the controller; headway, minimum gap and acceleration limits come from the driver presets.

    Attributes:
        desired_speed: Desired speed [m/s] (paper: 17).
        min_acceleration: Strongest braking request [m/s^2], negative.
        smallest_gap: Lower bound of the bumper gap in the IDM quotient [m].
        lateral_limit: A leader's centre is strictly nearer to the own route than this [m] (paper: 2).
        look_ahead: Farthest leader, centre to centre along the route [m].
        offset_gain: Stanley gain on the front axle's offset [1/s].
        soft_speed: Stanley softening speed [m/s].
        yaw_damping: Steering per excess yaw rate [s].

    Raises:
        ValueError: If a value is not finite or has the wrong sign.
    """

    desired_speed: float = 17.0
    min_acceleration: float = -6.0
    smallest_gap: float = 0.1
    lateral_limit: float = 2.0
    look_ahead: float = 100.0
    offset_gain: float = 2.0
    soft_speed: float = 1.0
    yaw_damping: float = 0.1

    def __post_init__(self) -> None:
        """Validate."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value):
                raise ValueError(f"{field.name} must be finite, got {value!r}")
            if field.name == "min_acceleration":
                if value >= 0.0:
                    raise ValueError(f"min_acceleration must be negative, got {value!r} m/s^2")
            elif field.name != "yaw_damping" and value <= 0.0:
                raise ValueError(f"{field.name} must be positive, got {value!r}")

    def params(self) -> IDMParams:
        """Return the kernel's copy."""
        params = IDMParams()
        for field in fields(self):
            setattr(params, field.name, float(getattr(self, field.name)))
        return params


@wp.func
def idm_acceleration(
    speed: float, closing: float, gap: float, headway: float, min_gap: float, accel: float, decel: float, desired: float
) -> float:
    """IDM request [m/s^2]: a [1 - (v/v0)^4 - (s*/g)^2], s* = s0 + max(0, v T + v dv / (2 sqrt(a b))).

    Without a leader (gap <= 0) the interaction term is 0.
    """
    ratio = speed / desired
    squared = ratio * ratio
    interaction = float(0.0)
    if gap > 0.0:
        wanted = min_gap + wp.max(0.0, speed * headway + speed * closing / (2.0 * wp.sqrt(accel * decel)))
        interaction = (wanted / gap) * (wanted / gap)
    return accel * (1.0 - squared * squared - interaction)


@wp.func
def stanley_angle(
    heading_error: float, offset: float, speed: float, yaw_rate: float, curvature: float, p: IDMParams
) -> float:
    """Front-axle Stanley law [rad]: -psi_e - atan2(k e, v_soft + v) - c (r - v kappa)."""
    return (
        -heading_error
        - wp.atan2(p.offset_gain * offset, p.soft_speed + speed)
        - p.yaw_damping * (yaw_rate - speed * curvature)
    )


@wp.kernel
def drive_idm(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    stepping: wp.array(dtype=wp.int8),
    geometry: wp.array(dtype=VehicleGeometry),
    own_route: wp.array(dtype=int),
    route_points: wp.array2d(dtype=wp.vec4),
    route_curvature: wp.array2d(dtype=float),
    route_count: wp.array(dtype=int),
    route_reach: wp.array(dtype=float),
    route_index: wp.array3d(dtype=int),
    headway: wp.array2d(dtype=float),
    min_gap: wp.array2d(dtype=float),
    accel_max: wp.array2d(dtype=float),
    comfort_decel: wp.array2d(dtype=float),
    params: IDMParams,
    num_vehicles: int,
    action: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Write (requested acceleration, normalized steering) of each vehicle; dim (W, V). A frozen world is left alone.

    Arc length is that of the nearest route sample plus the offset along its tangent, so that a gap is not rounded to
    the sample spacing. The leader's speed is its velocity along the own route.
    """
    w, v = wp.tid()
    w = w + world_begin
    if stepping[w] == wp.int8(0):
        return
    body = w * num_vehicles + v
    pose = body_q[body]
    q = wp.transform_get_rotation(pose)
    heading = planar_heading(q)
    world_velocity = wp.spatial_top(body_qd[body])
    speed = wp.max(wp.quat_rotate_inv(q, world_velocity)[0], 0.0)
    yaw_rate = wp.quat_rotate_inv(q, wp.spatial_bottom(body_qd[body]))[2]

    route = own_route[v]
    index = route_index[w, v, route]
    arc = float(index) * SPACING + route_deviation(route_points[route, index], pose[0], pose[1])[0]
    nearest = params.look_ahead
    leader = int(-1)
    for other in range(num_vehicles):
        if other != v:
            there = body_q[w * num_vehicles + other]
            other_index = route_index[w, other, route]
            offset = route_deviation(route_points[route, other_index], there[0], there[1])
            ahead = float(other_index) * SPACING + offset[0] - arc
            if ahead > 0.0 and wp.abs(offset[1]) < params.lateral_limit:
                if ahead < nearest or (leader < 0 and ahead <= nearest):
                    nearest = ahead
                    leader = other

    gap = float(-1.0)
    closing = float(0.0)
    if leader >= 0:
        gap = wp.max(nearest - geometry[v].half_length - geometry[leader].half_length, params.smallest_gap)
        tangent = route_points[route, route_index[w, leader, route]]
        leader_velocity = wp.spatial_top(body_qd[w * num_vehicles + leader])
        closing = speed - (leader_velocity[0] * tangent[2] + leader_velocity[1] * tangent[3])
    accel = accel_max[w, v]
    request = idm_acceleration(
        speed, closing, gap, headway[w, v], min_gap[w, v], accel, comfort_decel[w, v], params.desired_speed
    )

    axle_x = pose[0] + heading[0] * geometry[v].front_axle
    axle_y = pose[1] + heading[1] * geometry[v].front_axle
    axle_index = project_local(
        route_points, route, route_count[route], route_reach[route], index, WINDOW, axle_x, axle_y
    )
    sample = route_points[route, axle_index]
    error = angle_between(wp.vec2(sample[2], sample[3]), heading)
    offset = route_deviation(sample, axle_x, axle_y)
    angle = stanley_angle(error, offset[1], speed, yaw_rate, route_curvature[route, axle_index], params)
    ratio = wp.length(world_velocity) / geometry[v].steer_speed_scale
    steering = angle * (1.0 + ratio * ratio) / geometry[v].max_steer
    action[w, v] = wp.vec2(wp.clamp(request, params.min_acceleration, accel), wp.clamp(steering, -1.0, 1.0))


class IDMAgent:
    """IDM-17; arguments are the fields of `IDMConfig`. A row depends on its own world only."""

    name = "idm17"
    decision_hz = 60

    def __init__(self, **parameters: float) -> None:
        self.config = IDMConfig(**parameters)
        self._view: WorldView | None = None

    @cached_property
    def digest(self) -> str:
        """sha256 hex of name, parameters and this file."""
        return agent_digest(self, self.name, asdict(self.config))

    def bind(self, view: "WorldView") -> None:
        """Allocate the output and record the launch for the worlds of `view`."""
        self._view = view
        shape = (view.num_worlds, view.num_vehicles)
        self.action = wp.zeros(shape, dtype=wp.vec2, device=view.device)
        self._tensor = wp.to_torch(self.action)
        self._arguments = [
            view.body_q,
            view.body_qd,
            view.stepping,
            view.geometry,
            view.own_route,
            view.routes.points,
            view.routes.curvature,
            view.routes.count,
            view.routes.reach,
            view.route_index,
            view.scenario.headway,
            view.scenario.min_gap,
            view.scenario.accel_max,
            view.scenario.comfort_decel,
            self.config.params(),
            view.num_vehicles,
            self.action,
        ]
        self._decision = view.launches()
        self.record(self._decision)

    def record(self, launches: "LaunchList") -> None:
        """Append the launch of one decision to a list over shards of the worlds; `bind` must have been called."""
        launches.add(drive_idm, self._arguments, per_world=(self.action.shape[1],))

    def check_bound(self, view: "WorldView") -> None:
        """Raise RuntimeError unless the agent is bound to `view`."""
        require_bound(self.name, self._view, view)

    def reset(self, mask: "torch.Tensor | None" = None) -> None:
        """Do nothing: the agent has no memory."""

    def act(self, view: "WorldView") -> "torch.Tensor":
        """Drive every vehicle; [W, V, 2], the agent's own buffer.

        Raises:
            RuntimeError: If the agent is not bound to `view`.
        """
        self.check_bound(view)
        self._decision.run()
        return self._tensor
