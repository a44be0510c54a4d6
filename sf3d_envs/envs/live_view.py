"""The view of an environment's live arrays that agents, observation and probes read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from ..observation.view import WorldView
from ..scenario.lane_closure import DESIRED_SPEED, OWN_ROUTE

if TYPE_CHECKING:
    from ..scenario.route import RouteTable
    from ..sim.simulator import Simulator
    from ..task.kernels import TaskState
    from .episodes import Episodes


def live_view(sim: Simulator, task: TaskState, episodes: Episodes, routes: RouteTable, command: wp.array) -> WorldView:
    """View of the worlds; ``command`` [W, V] is what the drivers requested, before any delay."""
    return WorldView(
        num_worlds=sim.num_worlds,
        num_vehicles=sim.num_vehicles,
        device=sim.device,
        shards=sim.shards,
        body_q=sim.body_q,
        body_qd=sim.body_qd,
        wheel_spin=sim.wheel_spin,
        steer_angle=sim.steer_angle,
        forward_accel=sim.forward_accel,
        command=command,
        valid=task.valid,
        stepping=sim.stepping,
        step=task.step,
        seed=episodes.seed,
        own_route=wp.array(OWN_ROUTE, dtype=int, device=sim.device),
        routes=routes,
        route_index=episodes.route_index,
        scenario=episodes.scenario.arrays,
        vehicles=sim.vehicles,
        terrain=sim.terrain,
        desired_speed=DESIRED_SPEED,
        state=sim.state,
    )
