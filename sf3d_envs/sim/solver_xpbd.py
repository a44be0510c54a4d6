"""``SolverReference``: the same vehicle forces, advanced by Newton's own XPBD solver and collision pipeline.

The reference that the fused path is compared with, as in the paper: every 240 Hz substep the wheel and drag forces at
its start act as an external wrench on the bodies, Newton finds contacts and solves them. It differs from
:class:`~sf3d_envs.sim.solver.SolverVehicle` in what Newton does differently:

* velocities below 1e-4 m/s and 1e-4 rad/s become zero in every substep (Newton's deadband);
* positions are plain float32 sums, without the compensated remainder;
* contacts are solved Jacobi-wise, each body's correction divided by its number of contacts
  (``rigid_contact_con_weighting``), which damps pile-ups and does not keep momentum exactly;
* chassis-road friction is that of the variant's base surface: Newton knows no friction patches. Wheels read the patches
  as ever;
* a road ends at the edge of its table; beyond it there is nothing to touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import newton
import warp as wp
from newton.solvers import SolverBase, SolverXPBD

from .._warp import announced
from ..launches import LaunchList, outside_captures
from . import kernels_xpbd
from .arrays import VehicleArrays
from .dynamics import SUBSTEP_HZ, SUBSTEPS, VehicleDynamics
from .kernels_derived import remember_velocities
from .kernels_xpbd import (
    BodyCopies,
    NewtonPoints,
    RoadShapes,
    apply_vehicle_forces,
    check_capacity,
    finish_reference_steps,
    follow_variants,
    report_newton_contacts,
    take_newton_step,
)

ITERATIONS = 8
PAIR_CONTACTS = 8
FACET_CONTACTS = 4
"""Contacts kept free for a pair of boxes and for a box with a facet of the road."""

_LOADED: set[str] = set()
"""Devices on which this process has loaded Newton's kernels."""


@dataclass
class NewtonContacts:
    """Bookkeeping of Newton's contact buffer, which all worlds share.

    Attributes:
        count: Contacts of the last substep, all worlds together, [1] int.
        capacity: Contacts that the buffer holds.
        overflow: 1 where the buffer was too small, [W] int8; Newton does not say whose contacts were lost, so all
            worlds are flagged.
    """

    count: wp.array
    capacity: int
    overflow: wp.array


class SolverReference(SolverBase):
    """Raycast vehicles whose rigid bodies and contacts are Newton's.

    Has the surface of :class:`~sf3d_envs.sim.solver.SolverVehicle`. Steps all worlds in one thread.

    Args:
        model: Model of :func:`~sf3d_envs.sim.reference_model.build_reference_model`.
        dynamics: Memory of the vehicles; wheels and preview read its terrain, never Newton's heights.
        roads: The model's road shapes.
        facets: Most facets of a road that one vehicle can reach.
        contacts_per_world: Share of a world in Newton's contact buffer; None = enough for vehicles that all lie on
            their roofs in a heap.

    Raises:
        ValueError: If the model's body count does not fit.
    """

    def __init__(
        self,
        model: newton.Model,
        dynamics: VehicleDynamics,
        *,
        roads: RoadShapes,
        facets: int,
        contacts_per_world: int | None = None,
    ):
        super().__init__(model)
        self.num_worlds, self.num_vehicles = dynamics.num_worlds, dynamics.num_vehicles
        if self.num_worlds * self.num_vehicles != model.body_count:
            raise ValueError(
                f"model has {model.body_count} bodies, not {self.num_worlds} worlds of {self.num_vehicles} vehicles"
            )
        self.dynamics, self.terrain = dynamics, dynamics.terrain
        self.arrays, self.stepping = dynamics.arrays, dynamics.stepping
        self._roads = roads
        self._xpbd = SolverXPBD(
            model,
            iterations=ITERATIONS,
            rigid_contact_con_weighting=True,
            angular_damping=0.0,
            enable_restitution=False,
        )
        pairs = min(self.num_vehicles * (self.num_vehicles - 1) // 2, 6 * self.num_vehicles)
        per_world = contacts_per_world or PAIR_CONTACTS * pairs + FACET_CONTACTS * facets * self.num_vehicles
        self._pipeline = newton.CollisionPipeline(
            model,
            broad_phase="explicit",
            rigid_contact_max=self.num_worlds * per_world,
            max_triangle_pairs=self.num_worlds * self.num_vehicles * facets,
            reduce_contacts=False,
            deterministic=model.device.is_cuda,  # a CPU launch runs its threads in order
            verify_buffers=False,
        )
        self._contacts = self._pipeline.contacts()
        self._observables = None
        if dynamics.senses_contacts:
            self._observables = self._xpbd.observables(["contact_f"], contacts=self._contacts)
        self._control = model.control(clone_variables=False)
        # Newton overwrites its input state while it iterates, so both ends of its step are copies.
        self._before, self._after = model.state(), model.state()
        self._bodies = BodyCopies()
        self._bodies.q, self._bodies.qd = self._before.body_q, self._before.body_qd
        self._bodies.wrench = self._before.body_f
        self._bodies.moves = wp.zeros(model.body_count, dtype=wp.int8, device=model.device)
        self.rigid_contacts = NewtonContacts(
            count=self._contacts.rigid_contact_count,  # pyright: ignore[reportArgumentType]
            capacity=self._contacts.rigid_contact_max,
            overflow=dynamics.rigid_contacts.overflow,
        )
        self._begin = LaunchList(dynamics.shards)
        dynamics.record_begin(self._begin)
        self._graphs: dict[tuple[int, int, float], tuple[newton.State, wp.Graph]] = {}
        first = str(model.device) not in _LOADED
        with announced(f"Newton's XPBD kernels for {model.device}; the first time takes some minutes", first):
            wp.load_module(kernels_xpbd, device=model.device)
            self._newton_step(1.0 / SUBSTEP_HZ)  # Newton's kernels load when they are first launched
        _LOADED.add(str(model.device))
        self.rigid_contacts.overflow.zero_()  # that step saw all bodies in one place

    def record(
        self, launches: LaunchList, state: newton.State, *, substeps: int = SUBSTEPS, dt: float = 1 / SUBSTEP_HZ
    ):
        """Append ``substeps`` substeps under a held command, in place on ``state``; they raise as :meth:`advance`."""
        self._graph(state, substeps, dt)
        launches.call(lambda: self.advance(state, substeps=substeps, dt=dt))

    def advance(self, state: newton.State, *, substeps: int = SUBSTEPS, dt: float = 1 / SUBSTEP_HZ) -> None:
        """Advance ``state`` in place under a held command.

        Raises:
            RuntimeError: If there were more contacts than the buffer holds; the state is then not to be used.
        """
        wp.capture_launch(self._graph(state, substeps, dt))
        if self.rigid_contacts.overflow.numpy().any():
            raise RuntimeError(
                f"solver 'xpbd': more contacts than the buffer of {self.rigid_contacts.capacity} for "
                f"{self.num_worlds} worlds holds; use fewer vehicles per world or solver='vehicle'"
            )

    @outside_captures
    def _graph(self, state: newton.State, substeps: int, dt: float) -> wp.Graph:
        """The launches of ``substeps`` substeps, captured once: a launch from Python costs more than it runs."""
        key = (id(state), substeps, dt)
        if key not in self._graphs:
            with wp.ScopedCapture(self.model.device) as capture:
                self._launch(self._arrays_of(state), substeps, dt)
            assert capture.graph is not None
            self._graphs[key] = (state, capture.graph)  # holding the state keeps its id taken
        return self._graphs[key][1]

    def _arrays_of(self, state: newton.State) -> VehicleArrays:
        """The vehicles' arrays around a state's bodies; a launch refers to the struct that it was recorded with."""
        arrays = VehicleArrays()
        for name in VehicleArrays.vars:
            setattr(arrays, name, getattr(self.arrays, name))
        arrays.body_q, arrays.body_qd = state.body_q, state.body_qd
        return arrays

    def _launch(self, arrays: VehicleArrays, substeps: int, dt: float) -> None:
        device = self.model.device
        shape = (self.num_worlds, self.num_vehicles)
        if arrays.velocity_before.shape[0]:
            inputs = [arrays, self.stepping, substeps * dt, 0]
            wp.launch(remember_velocities, dim=shape, inputs=inputs, device=device)
        wp.launch(follow_variants, dim=self.num_worlds, inputs=[self.terrain.world_variant, self._roads], device=device)
        for k in range(substeps):
            last = int(k == substeps - 1)
            wp.launch(
                apply_vehicle_forces,
                dim=shape,
                inputs=[arrays, self.terrain, self.model.gravity, self.stepping, dt, last, self._bodies],
                device=device,
            )
            self._newton_step(dt)
            if self._observables is not None:
                self._report_contacts(arrays, dt)
            wp.launch(
                take_newton_step,
                dim=shape,
                inputs=[arrays, self._after.body_q, self._after.body_qd, self._bodies.moves],
                device=device,
            )
        wp.launch(finish_reference_steps, dim=shape, inputs=[arrays, self.stepping, substeps * dt], device=device)

    def _report_contacts(self, arrays: VehicleArrays, dt: float) -> None:
        """Sum up the impulses of the Newton step just launched."""
        contacts, points = self._contacts, NewtonPoints()
        points.count = contacts.rigid_contact_count
        for name in ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1"):
            setattr(points, name, getattr(contacts, f"rigid_contact_{name}"))
        points.force = self._observables.contact_f
        wp.launch(report_newton_contacts, dim=1, inputs=[arrays, self.stepping, points, dt], device=self.model.device)

    def _newton_step(self, dt: float) -> None:
        """Contacts at the start of the substep, then Newton's step from ``_before`` to ``_after``."""
        self._pipeline.collide(self._before, self._contacts)
        for count, capacity in (
            (self._contacts.rigid_contact_count, self._contacts.rigid_contact_max),
            (self._pipeline.narrow_phase.triangle_pairs_count, self._pipeline.narrow_phase.max_triangle_pairs),
        ):
            wp.launch(
                check_capacity,
                dim=self.num_worlds,
                inputs=[count, capacity, self.rigid_contacts.overflow],
                device=self.model.device,
            )
        self._xpbd.step(self._before, self._after, self._control, self._contacts, dt, observables=self._observables)

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
            RuntimeError: As :meth:`advance`.
            ValueError: If ``observables`` is given.
        """
        if observables is not None:
            raise ValueError("SolverReference fills no observables; pass observables=None")
        if state_out is not state_in:
            state_out.assign(state_in)
        self._begin.run()
        self.advance(state_out, substeps=1, dt=dt)
        self.dynamics.generation += 1
