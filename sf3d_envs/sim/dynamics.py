"""The vehicles' device memory and the launches that step them, on plain Warp arrays.

Importing Newton costs about three seconds, and stepping needs only arrays: so Newton's model, state and solver are put
around these when somebody asks for them (:class:`~sf3d_envs.sim.simulator.Simulator`), and not before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from ..launches import LaunchList, Shards
from ..terrain.kernels import Terrain
from .arrays import VehicleArrays, vehicle_arrays
from .kernels_contact import Contact, ContactArrays
from .kernels_fused import advance_worlds
from .kernels_sense import begin_contacts
from .kernels_split import advance_vehicles, finish_control_steps, resolve_contacts
from .state_config import StateConfig
from .vehicle import VehicleData, VehicleParams, vehicle_data

SUBSTEP_HZ = 240
CONTROL_HZ = 60
SUBSTEPS = SUBSTEP_HZ // CONTROL_HZ
GRAVITY = 9.81
"""Standard gravity as Newton's models take it [m/s²], along -z."""


class VehicleDynamics:
    """Raycast vehicles on per-world terrain, with chassis-road and chassis-chassis contact.

    Args:
        num_worlds: Worlds W.
        vehicles: Parameters of the V vehicles of a world, in order; the same for every world.
        terrain: Terrain of the worlds.
        shards: Split of the worlds over threads; its device holds the memory.
        fused: Launch shape: True = a thread per world over all substeps, False = a thread per vehicle for forces. None
            picks by device. Results are bitwise equal.
        params_per_world: Whether each world has parameter rows of its own: ``arrays.params`` holds the K distinct
            vehicles once per world, world-major, instead of once for all.
        state: What is opted in beyond the plain state.

    Attributes:
        arrays: State and readings of the vehicles; ``body_q`` and ``body_qd`` are [W·V], world-major.
        root: Memory of poses and velocities, [W·V, 13].
        generation: Number of steps, resets, restores and sets so far.
        rigid_contacts: Contact points of the worlds.
        gravity: Gravity [m/s²], vec3 [W + 1]: one per world and one for bodies of no world, as Newton lays it out.
        stepping: 0 freezes a world, [W] int8.
    """

    def __init__(
        self,
        num_worlds: int,
        *,
        vehicles: Sequence[VehicleParams],
        terrain: Terrain,
        shards: Shards,
        fused: bool | None = None,
        params_per_world: bool = False,
        state: StateConfig | None = None,
    ):
        state = state or StateConfig()
        device = shards.device
        self.num_worlds, self.num_vehicles = num_worlds, len(vehicles)
        self.generation = 0
        self.terrain = terrain
        self.shards = shards
        self.fused = device.is_cpu if fused is None else fused
        kinds = list(dict.fromkeys(vehicles))

        arrays, self.root = vehicle_arrays(
            num_worlds,
            len(vehicles),
            device,
            accelerations=state.accelerations,
            contacts=state.senses_contacts,
            raw_contacts=state.raw_contacts,
        )
        arrays.params = wp.array([vehicle_data(kind) for kind in kinds], dtype=VehicleData, device=device)
        index = np.array([kinds.index(item) for item in vehicles], dtype=np.int32)
        index = np.tile(index, (self.num_worlds, 1))
        if params_per_world:
            arrays.params = wp.array(np.tile(arrays.params.numpy(), self.num_worlds), dtype=VehicleData, device=device)
            index += len(kinds) * np.arange(self.num_worlds, dtype=np.int32)[:, None]
        arrays.params_index = wp.array(index, dtype=int, device=device)
        self.params_per_world = params_per_world
        self.arrays = arrays

        # Boxes of similar size can touch at most a handful of neighbours at once.
        pairs = min(self.num_vehicles * (self.num_vehicles - 1) // 2, 6 * self.num_vehicles)
        capacity = 8 * (pairs + self.num_vehicles)
        self.rigid_contacts = ContactArrays()
        self.rigid_contacts.points = wp.zeros((self.num_worlds, capacity), dtype=Contact, device=device)  # pyright: ignore[reportArgumentType]
        self.rigid_contacts.multiplier = wp.zeros((self.num_worlds, capacity), dtype=wp.vec2, device=device)
        sensed = (self.num_worlds, capacity) if state.senses_contacts else (0, 0)
        self.rigid_contacts.impulse = wp.zeros(sensed, dtype=wp.vec3, device=device)
        self.senses_contacts = state.senses_contacts
        self.rigid_contacts.count = wp.zeros(self.num_worlds, dtype=int, device=device)
        self.rigid_contacts.overflow = wp.zeros(self.num_worlds, dtype=wp.int8, device=device)

        self.gravity = wp.full(num_worlds + 1, wp.vec3(0.0, 0.0, -GRAVITY), dtype=wp.vec3, device=device)
        self.stepping = wp.ones(self.num_worlds, dtype=wp.int8, device=device)

    def record_begin(self, launches: LaunchList) -> None:
        """Append what begins a step call: contact sums start anew, where there are any."""
        if self.senses_contacts:
            launches.add(begin_contacts, [self.arrays])

    def record(
        self,
        launches: LaunchList,
        arrays: VehicleArrays | None = None,
        *,
        substeps: int = SUBSTEPS,
        dt: float = 1 / SUBSTEP_HZ,
    ) -> None:
        """Append the launches of ``substeps`` substeps of ``dt`` seconds under a held command, in place.

        Args:
            launches: The list.
            arrays: The arrays to step, by default the dynamics' own.
            substeps: Number of substeps.
            dt: Length of a substep [s].
        """
        arrays = self.arrays if arrays is None else arrays
        gravity = self.gravity
        per_vehicle = (self.num_vehicles,)
        if arrays.velocity_before.shape[0]:
            from .kernels_derived import remember_velocities

            launches.add(remember_velocities, [arrays, self.stepping, substeps * dt], per_world=per_vehicle)
        if self.fused:
            launches.add(
                advance_worlds, [arrays, self.terrain, self.rigid_contacts, gravity, self.stepping, substeps, dt]
            )
            return
        for k in range(substeps):
            launches.add(
                advance_vehicles,
                [arrays, self.terrain, gravity, self.stepping, dt, int(k == substeps - 1)],
                per_world=per_vehicle,
            )
            launches.add(resolve_contacts, [arrays, self.terrain, self.rigid_contacts, self.stepping, dt])
        launches.add(finish_control_steps, [arrays, self.stepping, substeps * dt], per_world=per_vehicle)
