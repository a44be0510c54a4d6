"""What an agent may look at: the world's state arrays, its routes and the observation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from ..launches import LaunchList, Shards
from ..scenario.route import ROUTE_SPACING
from ..terrain.lane_closure import LaneClosureRoad
from .geometry import vehicle_geometry
from .kernels import ObservationInputs, observe
from .spec import ObservationSpec

if TYPE_CHECKING:
    import torch

    from ..scenario.kernels import ScenarioArrays
    from ..scenario.route import RouteTable
    from ..sim.state import SimState
    from ..sim.vehicle import VehicleParams
    from ..terrain.kernels import Terrain

ROAD = LaneClosureRoad()


def route_marks(routes: RouteTable, owes_merge: Sequence[bool], device: wp.Device | str) -> wp.array:
    """Arc lengths of the places that the route block measures distances to.

    Args:
        routes: The packed routes.
        owes_merge: For each of the R routes, whether its vehicles owe a merge.
        device: Warp device.

    Returns:
        vec4 array [R]: arc length [m] of merge start, merge end and counting line; 1 if a merge is owed, else 0.
    """
    points = routes.points.numpy().astype(np.float64)
    rows = []
    for points_of_route, count, owes in zip(points, routes.count.numpy(), owes_merge, strict=True):
        s = ROUTE_SPACING * np.arange(count)
        x = points_of_route[:count, 0]
        rows.append(
            [*(np.interp(mark, x, s) for mark in (ROAD.merge_start_x, ROAD.merge_end_x, ROAD.counting_x)), float(owes)]
        )
    return wp.array(np.array(rows, dtype=np.float32), dtype=wp.vec4, device=device)


@dataclass(kw_only=True)
class WorldView:
    """Live arrays of W worlds with V vehicles; nothing is copied, an agent must not write to them.

    Attributes:
        num_worlds: W.
        num_vehicles: V.
        device: Warp device.
        body_q: Poses (position m, quaternion xyzw), transform [W*V].
        body_qd: Velocities (linear m/s, angular rad/s; world frame), spatial_vector [W*V].
        wheel_spin: Wheel spin [rad/s], vec4 [W, V].
        steer_angle: Actual steering angle [rad], float [W, V].
        forward_accel: Realized forward acceleration [m/s^2], float [W, V].
        command: Last latched request (acceleration m/s^2, steering), vec2 [W, V].
        valid: 1 until the first event, int8 [W, V].
        stepping: 0 for a frozen world, int8 [W].
        step: Control steps since the reset, int32 [W].
        seed: Scenario seed, uint64 [W].
        own_route: Route of each vehicle, int32 [V].
        routes: Packed routes.
        route_index: Nearest sample of each vehicle on each route, int32 [W, V, R].
        scenario: `ScenarioArrays`: start state and driver presets, each [W, V].
        vehicles: Parameters of the V vehicles.
        terrain: `Terrain` bank; only the preview channels read it.
        owes_merge: For each route, whether its vehicles owe a merge.
        desired_speed: Desired speed of the scenario [m/s].
        shards: Split of the worlds over threads; None = none.
        open_lane: Lower and upper y of the open lane [m].
        state: The simulator's tensor state: what the arrays above hold, and wheels, tyres and contacts, as torch
            tensors; None where there is no simulator behind the view.
    """

    num_worlds: int
    num_vehicles: int
    device: wp.Device | str
    body_q: wp.array
    body_qd: wp.array
    wheel_spin: wp.array
    steer_angle: wp.array
    forward_accel: wp.array
    command: wp.array
    valid: wp.array
    stepping: wp.array
    step: wp.array
    seed: wp.array
    own_route: wp.array
    routes: RouteTable
    route_index: wp.array
    scenario: ScenarioArrays
    vehicles: tuple[VehicleParams, ...]
    terrain: Terrain
    owes_merge: tuple[bool, ...] = (False, True)
    desired_speed: float = 17.0
    shards: Shards | None = None
    open_lane: tuple[float, float] = (ROAD.lane_line_y, ROAD.paved_y_max)
    state: SimState | None = None
    _observers: dict[bool, Observer] = field(default_factory=dict, init=False, repr=False)

    def launches(self) -> LaunchList:
        """An empty list of launches over the view's worlds, split as the simulation is."""
        return LaunchList(self.shards or Shards(self.num_worlds, wp.get_device(self.device), 1))

    @property
    def vehicle(self) -> VehicleParams:
        """Parameters of vehicle 0."""
        return self.vehicles[0]

    @cached_property
    def geometry(self) -> wp.array:
        """Sizes of the vehicles, `VehicleGeometry` [V]."""
        return vehicle_geometry(self.vehicles, self.device)

    def observation(self, preview: bool = False) -> torch.Tensor:
        """Write and return the observation of every vehicle.

        Args:
            preview: Whether to append the 12 preview channels.

        Returns:
            Tensor [W, V, 112 or 124]; the view's own buffer, overwritten by the next call.
        """
        if preview not in self._observers:
            self._observers[preview] = Observer(self, range(self.num_vehicles), preview=preview)
        observer = self._observers[preview]
        observer.write()
        return observer.tensor


class Observer:
    """Writes the observation of chosen vehicles of every world into one buffer.

    Args:
        view: The worlds.
        row_vehicle: Vehicle of each of the R rows.
        preview: Whether the rows carry the preview channels.
        row_active: int8 [W, R]; 1 writes a row, 0 zeroes it, 2 leaves it as it is. Default: all rows are active.

    Attributes:
        spec: Table of the channels.
        obs: float32 [W, R, D].
        row_active: int8 [W, R]; the owner may change it between writes.
        tensor: Torch view of `obs`.
    """

    def __init__(
        self, view: WorldView, row_vehicle: Sequence[int], *, preview: bool = False, row_active: wp.array | None = None
    ) -> None:
        rows = len(row_vehicle)
        self.spec = ObservationSpec(preview)
        self.obs = wp.zeros((view.num_worlds, rows, self.spec.size), dtype=wp.float32, device=view.device)
        self.tensor = wp.to_torch(self.obs)
        if row_active is None:
            row_active = wp.full((view.num_worlds, rows), 1, dtype=wp.int8, device=view.device)
        self.row_active = row_active
        self._view = view
        self._row_vehicle = wp.array(list(row_vehicle), dtype=wp.int32, device=view.device)
        self._inputs = _inputs(view, self.spec)
        self._arguments = [
            self._inputs,
            self._row_vehicle,
            self.row_active,
            int(self.spec.preview),
            view.num_vehicles,
            self.obs,
        ]
        self._launches = view.launches()
        self.record(self._launches)

    def record(self, launches: LaunchList) -> None:
        """Append the launch to a list over shards of the worlds."""
        launches.add(observe, self._arguments, per_world=(self.obs.shape[1],))

    def write(self) -> None:
        """Write the rows of all worlds."""
        self._launches.run()


def _inputs(view: WorldView, spec: ObservationSpec) -> ObservationInputs:
    inputs = ObservationInputs()
    for name in (
        "body_q",
        "body_qd",
        "wheel_spin",
        "steer_angle",
        "forward_accel",
        "command",
        "valid",
        "geometry",
        "own_route",
        "route_index",
        "terrain",
    ):
        setattr(inputs, name, getattr(view, name))
    inputs.route_points = view.routes.points
    inputs.route_curvature = view.routes.curvature
    inputs.route_count = view.routes.count
    inputs.route_marks = route_marks(view.routes, view.owes_merge, view.device)
    inputs.scale = wp.array(spec.scales, dtype=wp.float32, device=view.device)
    inputs.desired_speed = view.desired_speed
    inputs.open_lane_low, inputs.open_lane_high = view.open_lane
    return inputs
