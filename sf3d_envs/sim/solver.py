"""``SolverVehicle``: the vehicle force model and XPBD contact as a Newton solver."""

from __future__ import annotations

from collections.abc import Sequence

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverBase

from ..launches import LaunchList, Shards
from ..terrain.kernels import Terrain
from .kernels_contact import Contact, ContactArrays
from .kernels_step import advance_vehicles, advance_worlds, finish_control_steps, resolve_contacts
from .kernels_vehicle import VehicleArrays
from .vehicle import VehicleData, VehicleParams, vehicle_data

SUBSTEP_HZ = 240
CONTROL_HZ = 60
SUBSTEPS = SUBSTEP_HZ // CONTROL_HZ


def allocate_arrays(num_worlds: int, vehicles: Sequence[VehicleParams], device: wp.Device) -> VehicleArrays:
    """What a solver holds of all vehicles, zeroed; ``body_q`` and ``body_qd`` come from a Newton state."""
    shape = (num_worlds, len(vehicles))
    arrays = VehicleArrays()
    arrays.position_residual = wp.zeros(shape, dtype=wp.vec3, device=device)
    arrays.wheel_spin = wp.zeros(shape, dtype=wp.vec4, device=device)
    arrays.wheel_angle = wp.zeros(shape, dtype=wp.vec4, device=device)
    arrays.steer_angle = wp.zeros(shape, dtype=float, device=device)
    arrays.command = wp.zeros(shape, dtype=wp.vec2, device=device)
    arrays.wheel_load = wp.zeros(shape, dtype=wp.vec4, device=device)
    arrays.wheel_friction = wp.zeros(shape, dtype=wp.vec4, device=device)
    arrays.wheel_compression = wp.zeros(shape, dtype=wp.vec4, device=device)
    arrays.forward_speed = wp.zeros(shape, dtype=float, device=device)
    arrays.forward_accel = wp.zeros(shape, dtype=float, device=device)
    arrays.nonfinite = wp.zeros(shape, dtype=wp.int8, device=device)
    arrays.home_q = wp.zeros(shape, dtype=wp.transform, device=device)
    arrays.previous_q = wp.zeros(shape, dtype=wp.transform, device=device)
    kinds = list(dict.fromkeys(vehicles))
    arrays.params = wp.array([vehicle_data(kind) for kind in kinds], dtype=VehicleData, device=device)
    index = np.array([kinds.index(item) for item in vehicles], dtype=np.int32)
    arrays.params_index = wp.array(np.tile(index, (num_worlds, 1)), dtype=int, device=device)
    return arrays


class SolverVehicle(SolverBase):
    """Raycast vehicles on per-world terrain, with chassis-road and chassis-chassis contact.

    Works on the arrays of Newton's :class:`newton.State`, so any Newton viewer or sensor sees the same bodies; wheel
    speed, steering and the command are the solver's own arrays. Steps in place when ``state_in is state_out``.

    Args:
        model: Model with ``num_worlds`` x ``len(vehicles)`` bodies, world-major.
        vehicles: Parameters of the vehicles of a world, in order; the same for every world.
        terrain: Terrain of the worlds.
        shards: Split of the worlds over threads.
        fused: Launch shape: True = a thread per world over all substeps, False = a thread per vehicle for forces. None
            picks by device. Results are bitwise equal.

    Raises:
        ValueError: If the model's body count does not fit.
    """

    def __init__(
        self,
        model: newton.Model,
        *,
        vehicles: Sequence[VehicleParams],
        terrain: Terrain,
        shards: Shards,
        fused: bool | None = None,
    ):
        super().__init__(model)
        self.num_vehicles = len(vehicles)
        self.num_worlds = model.body_count // self.num_vehicles
        if self.num_worlds * self.num_vehicles != model.body_count or self.num_worlds < 1:
            raise ValueError(
                f"model has {model.body_count} bodies, which is no multiple of {self.num_vehicles} vehicles"
            )
        self.terrain = terrain
        self.fused = model.device.is_cpu if fused is None else fused
        self._shards = shards
        self._launches: dict[tuple[int, float], tuple[newton.State, LaunchList]] = {}
        device = model.device
        self.arrays = allocate_arrays(self.num_worlds, vehicles, device)

        # Boxes of similar size can touch at most a handful of neighbours at once.
        pairs = min(self.num_vehicles * (self.num_vehicles - 1) // 2, 6 * self.num_vehicles)
        capacity = 8 * (pairs + self.num_vehicles)
        self.rigid_contacts = ContactArrays()
        self.rigid_contacts.points = wp.zeros((self.num_worlds, capacity), dtype=Contact, device=device)  # pyright: ignore[reportArgumentType]
        self.rigid_contacts.multiplier = wp.zeros((self.num_worlds, capacity), dtype=wp.vec2, device=device)
        self.rigid_contacts.count = wp.zeros(self.num_worlds, dtype=int, device=device)
        self.rigid_contacts.overflow = wp.zeros(self.num_worlds, dtype=wp.int8, device=device)

        self.stepping = wp.ones(self.num_worlds, dtype=wp.int8, device=device)

    def bind(self, state: newton.State) -> VehicleArrays:
        """The solver's arrays together with a state's body arrays."""
        self.arrays.body_q = state.body_q
        self.arrays.body_qd = state.body_qd
        return self.arrays

    def record(
        self, launches: LaunchList, state: newton.State, *, substeps: int = SUBSTEPS, dt: float = 1 / SUBSTEP_HZ
    ):
        """Append the launches of ``substeps`` substeps under a held command, in place on ``state``."""
        arrays = self.bind(state)
        gravity = self.model.gravity
        if self.fused:
            launches.add(
                advance_worlds, [arrays, self.terrain, self.rigid_contacts, gravity, self.stepping, substeps, dt]
            )
            return
        per_vehicle = (self.num_vehicles,)
        for _ in range(substeps):
            launches.add(advance_vehicles, [arrays, self.terrain, gravity, self.stepping, dt], per_world=per_vehicle)
            launches.add(resolve_contacts, [arrays, self.terrain, self.rigid_contacts, self.stepping, dt])
        launches.add(finish_control_steps, [arrays, self.stepping, substeps * dt], per_world=per_vehicle)

    def step(
        self,
        state_in: newton.State,
        state_out: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        *,
        observables: SolverBase.Observables | None = None,
    ) -> None:
        """Advance by one substep of ``dt`` seconds.

        Args:
            state_in: State before the step.
            state_out: State after it; may be ``state_in``.
            control: Unused; commands are in ``arrays.command``.
            contacts: Unused; the solver finds its own contacts.
            dt: Substep [s].
            observables: Must be None; the solver fills no Newton observables.

        Raises:
            ValueError: If ``observables`` is given.
        """
        if observables is not None:
            raise ValueError("SolverVehicle fills no observables; pass observables=None")
        if state_out is not state_in:
            state_out.assign(state_in)
        key = (id(state_out), dt)
        if key not in self._launches:
            launches = LaunchList(self._shards)
            self.record(launches, state_out, substeps=1, dt=dt)
            self._launches[key] = (state_out, launches)  # holding the state keeps its id taken
        self._launches[key][1].run()
