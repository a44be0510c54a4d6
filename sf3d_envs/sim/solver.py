"""``SolverVehicle``: the vehicle force model and XPBD contact as a Newton solver."""

from __future__ import annotations

from collections.abc import Sequence

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverBase

from ..launches import LaunchList
from .arrays import VehicleArrays
from .dynamics import VehicleDynamics
from .vehicle import VehicleParams


class SolverVehicle(SolverBase):
    """Raycast vehicles on per-world terrain, with chassis-road and chassis-chassis contact.

    Works on the arrays of Newton's :class:`newton.State`, so any Newton viewer or sensor sees the same bodies; wheel
    speed, steering and the command are arrays of the dynamics. Steps in place when ``state_in is state_out``.

    Args:
        model: Model with ``num_worlds`` x ``num_vehicles`` bodies, world-major.
        dynamics: Memory and launches of the vehicles; its gravity counts, which :attr:`Simulator.model` shares.

    Raises:
        ValueError: If the model's body count does not fit.
    """

    def __init__(self, model: newton.Model, dynamics: VehicleDynamics):
        super().__init__(model)
        worlds, vehicles = dynamics.num_worlds, dynamics.num_vehicles
        if worlds * vehicles != model.body_count:
            raise ValueError(f"model has {model.body_count} bodies, not {worlds} worlds of {vehicles} vehicles")
        self.dynamics = dynamics
        self.arrays, self.rigid_contacts = dynamics.arrays, dynamics.rigid_contacts
        self.stepping = dynamics.stepping
        self._launches: dict[tuple[int, float], tuple[newton.State, LaunchList]] = {}

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
            # holding the state keeps its id taken
            self._launches[key] = (state_out, self._record(state_out, dt))
        self._launches[key][1].run()
        self.dynamics.generation += 1

    def _record(self, state: newton.State, dt: float) -> LaunchList:
        """One substep in place on a state's body arrays; a launch refers to the struct that it was recorded with."""
        arrays = VehicleArrays()
        for name in VehicleArrays.vars:
            setattr(arrays, name, getattr(self.arrays, name))
        arrays.body_q, arrays.body_qd = state.body_q, state.body_qd
        launches = LaunchList(self.dynamics.shards)
        self.dynamics.record_begin(launches)
        self.dynamics.record(launches, arrays, substeps=1, dt=dt)
        return launches


def build_model(worlds: int, vehicles: Sequence[VehicleParams], device: wp.Device) -> newton.Model:
    """Newton model that holds the chassis boxes alone, world-major."""
    world = newton.ModelBuilder()
    config = newton.ModelBuilder.ShapeConfig(density=0.0)
    for index, car in enumerate(vehicles):
        body = world.add_body(
            mass=car.mass, inertia=wp.mat33(np.diag(car.inertia)), lock_inertia=True, label=f"vehicle_{index}"
        )
        world.add_shape_box(body, hx=0.5 * car.length, hy=0.5 * car.width, hz=0.5 * car.height, cfg=config)
    builder = newton.ModelBuilder()
    builder.replicate(world, worlds)
    return builder.finalize(device=device)
