"""The simulator: memory of all worlds, terrain, stepping and placement, with Newton's model and state on request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from .._warp import get_device
from ..launches import MAX_WORLDS, LaunchList, Shards, check_threads, outside_captures
from ..lifetime import DeviceOwner, exclusive
from ..terrain.bank import TerrainBank
from ..terrain.variants import TerrainVariant
from . import check_solver
from .checks import broadcast, check_choices, check_state_config, per_vehicle, positive_int, world_variants
from .dynamics import CONTROL_HZ, SUBSTEPS, VehicleDynamics
from .kernels_place import place_vehicles
from .saved import SavedState, restore_worlds, save_worlds
from .selection import Worlds
from .state import SimState, StateConfig
from .vehicle import VehicleParams

if TYPE_CHECKING:
    import newton

    from .commands import Commands
    from .snapshot import Snapshot
    from .solver import SolverVehicle
    from .solver_xpbd import SolverReference


class Simulator(DeviceOwner):
    """W independent worlds of V vehicles, stepped together.

    Time runs in control steps of 1/60 s, each four substeps of 1/240 s under a held command. A world's trajectory does
    not depend, bit for bit, on the number of worlds, their order or the number of threads.

    Attributes (Warp arrays on the device):
        body_q: Chassis poses, [W·V] transform: position [m], quaternion xyzw.
        body_qd: Chassis velocities, [W·V] spatial vector: linear [m/s], then angular [rad/s], world frame.
        command: Requested acceleration [m/s²] and normalized steering [-1, 1], [W, V] vec2; held until overwritten.
        wheel_spin: Wheel speeds [rad/s], [W, V] vec4 (FL, FR, RL, RR).
        wheel_angle: How far the wheels have turned [rad], in [0, 2π), [W, V] vec4; for pictures.
        steer_angle: Steering angle of the front axle [rad], [W, V].
        wheel_load: Wheel loads [N], [W, V] vec4.
        wheel_friction: Surface friction under each wheel, 0 without contact, [W, V] vec4.
        wheel_compression: Suspension compression [m], [W, V] vec4.
        forward_accel: Forward acceleration over the last control step [m/s²], [W, V].
        nonfinite: 1 where a vehicle's state turned non-finite since its placement, [W, V] int8.
        stepping: 0 freezes a world, [W] int8.

    Args:
        num_worlds: W >= 1.
        variants: Terrain variants the worlds choose from.
        world_variant: Variant index of each world, length W; None = variant 0 everywhere.
        vehicle: One parameter set for all vehicles, or one per vehicle of a world (the same in every world).
        num_vehicles: V >= 1.
        device: "cpu" or "cuda:N".
        threads: CPU threads; None = all usable cores. The solver "xpbd" runs on one.
        solver: "vehicle", or "xpbd" for the reference path (:class:`~sf3d_envs.sim.solver_xpbd.SolverReference`): the
            same forces, Newton's own rigid bodies and contacts.
        fused: Launch shape, None = by device (see :class:`~sf3d_envs.sim.dynamics.VehicleDynamics`).
        params_per_world: Whether each world has vehicle parameters of its own (see the same class).
        state: Quantities beyond the plain state, such as contact sensors (:class:`~sf3d_envs.sim.state.StateConfig`).

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range; the message names it and what is allowed.
    """

    _kept = frozenset({"num_worlds", "num_vehicles", "vehicles", "device"})
    _fixed = frozenset({"num_worlds", "num_vehicles", "vehicles", "device", "bank", "state_config"})
    _instead = "pickle its arguments and make a new one, and keep its state with save()"

    @outside_captures
    def __init__(
        self,
        num_worlds: int,
        variants: Sequence[TerrainVariant],
        world_variant: Sequence[int] | None = None,
        *,
        vehicle: VehicleParams | Sequence[VehicleParams] | None = None,
        num_vehicles: int = 12,
        device: str | wp.Device = "cpu",
        threads: int | None = None,
        solver: str = "vehicle",
        fused: bool | None = None,
        params_per_world: bool = False,
        state: StateConfig | None = None,
    ):
        self.state_config = check_state_config(state)
        self._state: SimState | None = None
        self.num_worlds = positive_int("num_worlds", num_worlds, MAX_WORLDS)
        self.num_vehicles = positive_int("num_vehicles", num_vehicles, 1000)
        check_solver(solver)
        check_choices(variants, fused, params_per_world)
        self.solver_name = solver
        if solver == "xpbd" and params_per_world:
            raise ValueError("solver 'xpbd' takes one mass per vehicle; vehicle parameters per world need 'vehicle'")
        self.vehicles = per_vehicle(vehicle, self.num_vehicles)
        self.device = get_device(device)
        threads = check_threads(threads)
        # Newton steps all worlds in one launch, which a CPU runs on one thread.
        self.shards = Shards(self.num_worlds, self.device, threads if solver == "vehicle" else 1)

        reach = max(np.hypot(np.hypot(car.length, car.width), car.height) for car in self.vehicles) / 2
        self.bank = TerrainBank(variants, self.device, reach=float(reach))
        self.world_variant = wp.array(
            world_variants(world_variant, self.num_worlds, len(self.bank.variants)), dtype=int, device=self.device
        )
        self.terrain = self.bank.data(self.world_variant)

        self.dynamics = VehicleDynamics(
            self.num_worlds,
            vehicles=self.vehicles,
            terrain=self.terrain,
            shards=self.shards,
            fused=fused,
            params_per_world=params_per_world,
            state=self.state_config,
        )
        self.arrays = self.dynamics.arrays
        self.body_q: wp.array = self.arrays.body_q
        self.body_qd: wp.array = self.arrays.body_qd
        self.command = self.arrays.command
        self.wheel_spin, self.steer_angle = self.arrays.wheel_spin, self.arrays.steer_angle
        self.wheel_angle = self.arrays.wheel_angle
        self.wheel_load, self.wheel_friction = self.arrays.wheel_load, self.arrays.wheel_friction
        self.wheel_compression = self.arrays.wheel_compression
        self.forward_accel, self.nonfinite = self.arrays.forward_accel, self.arrays.nonfinite
        self.stepping = self.dynamics.stepping
        self._reference = self._reference_solver() if solver == "xpbd" else None
        self.step_launches = self.record_step(LaunchList(self.shards))
        self._begin_launches = LaunchList(self.shards)
        self.dynamics.record_begin(self._begin_launches)
        self._start_upright()

    @cached_property
    def model(self) -> newton.Model:
        """Newton model of the chassis boxes, world-major; built (and Newton imported) at the first access."""
        from .solver import build_model

        model = build_model(self.num_worlds, self.vehicles, self.device)
        model.gravity = self.dynamics.gravity
        return model

    @property
    def state(self) -> SimState:
        """The state of all worlds as torch tensors over the simulator's memory; torch is imported at the first access.

        Raises:
            RuntimeError: After :meth:`close`.
        """
        self._require_open("state")
        if self._state is None:
            self._state = SimState(self)
        return self._state

    @property
    def commands(self) -> Commands:
        """Sets the vehicles' commands in any of the four modes.

        Raises:
            RuntimeError: After :meth:`close`.
        """
        from .commands import Commands

        self._require_open("commands")
        return Commands(self)

    @cached_property
    def newton_state(self) -> newton.State:
        """Newton state on the simulator's own ``body_q`` and ``body_qd``, for Newton's viewers and sensors."""
        state = self.model.state()
        state.body_q, state.body_qd = self.body_q, self.body_qd
        return state

    @cached_property
    def solver(self) -> SolverVehicle | SolverReference:
        """The simulator's dynamics as a Newton solver over :attr:`model`."""
        if self._reference is not None:
            return self._reference
        from .solver import SolverVehicle

        return SolverVehicle(self.model, self.dynamics)

    @exclusive
    def snapshot(self, strict: bool = True) -> Snapshot:
        """Copy every view of the state to the host; waits for the device.

        Args:
            strict: Whether the copy refuses to be read after the simulator has moved on.

        Raises:
            RuntimeError: After :meth:`close`.
        """
        from .snapshot import Snapshot

        self._require_open("snapshot()")
        return Snapshot(self, strict)

    def mark_changed(self) -> None:
        """Begin a new generation of the state: after in-place writes, or steps and resets by launches of one's own."""
        self.dynamics.generation += 1

    def body_index(self, world: int, vehicle: int) -> int:
        """Index of a vehicle's body in Newton's arrays (``body_q``, ``newton_state``, ``model``).

        Raises:
            TypeError: If an argument is no int.
            ValueError: If it is out of range.
        """
        for name, value, count in (("world", world, self.num_worlds), ("vehicle", vehicle, self.num_vehicles)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an int in [0, {count - 1}], got {value!r}")
            if not 0 <= value < count:
                raise ValueError(f"{name} must be in [0, {count - 1}], got {value}")
        return int(world) * self.num_vehicles + int(vehicle)

    def record_step(self, launches: LaunchList) -> LaunchList:
        """Append the launches of one control step to a list and return it."""
        if self._reference is not None:
            self._reference.record(launches, self.newton_state, substeps=SUBSTEPS)
        else:
            self.dynamics.record(launches, substeps=SUBSTEPS)
        return launches

    def _reference_solver(self) -> SolverReference:
        """Solver of the reference path, on a model with roads; its modules are imported for it alone."""
        from .reference_model import build_reference_model, reachable_facets
        from .solver_xpbd import SolverReference

        variants = self.bank.variants
        model, roads = build_reference_model(self.num_worlds, self.vehicles, variants, self.device)
        model.gravity = self.dynamics.gravity
        self.model = model
        facets = reachable_facets(self.vehicles, variants)
        return SolverReference(model, self.dynamics, roads=roads, facets=facets)

    @exclusive
    def control_step(self, count: int = 1) -> None:
        """Advance all stepping worlds by ``count`` control steps of 1/60 s.

        Raises:
            RuntimeError: After :meth:`close`.
            ValueError: If ``count`` is no int >= 1.
        """
        self._require_open("control_step()")
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"count must be an int >= 1, got {count!r}")
        if len(self._begin_launches):
            self._begin_launches.run()
        self.step_launches.run(count)
        self.mark_changed()

    @exclusive
    @outside_captures
    def place(
        self, mask: np.ndarray, position: np.ndarray, yaw: np.ndarray | float = 0.0, speed: np.ndarray | float = 0.0
    ):
        """Put the vehicles of masked worlds at rest on their springs, or rolling straight; a host-side helper.

        Clears everything the physics carries from step to step in those worlds and touches no other world.

        Args:
            mask: Worlds to place, bool [W].
            position: Centre-of-mass positions [m], broadcast to [W, V, 3].
            yaw: Headings [rad], broadcast to [W, V].
            speed: Forward speeds [m/s], broadcast to [W, V].

        Raises:
            RuntimeError: After :meth:`close`.
            ValueError: If a shape does not broadcast or a value is not finite.
        """
        self._require_open("place()")
        shape = (self.num_worlds, self.num_vehicles)
        mask = np.asarray(mask)
        if mask.dtype != np.bool_:
            raise TypeError(f"mask must be bool of shape {shape[:1]}, got {mask.dtype}")
        if mask.shape != shape[:1]:
            raise ValueError(f"mask must be bool of shape {shape[:1]}, got shape {mask.shape}")
        position = broadcast("position", position, np.float32, (*shape, 3))
        yaw = broadcast("yaw", yaw, np.float64, shape)
        speed = broadcast("speed", speed, np.float32, shape)
        for name, value in (("position", position), ("yaw", yaw), ("speed", speed)):
            if not np.isfinite(value).all():
                raise ValueError(f"{name} must be finite")
        zero = np.zeros_like(yaw)
        rotation = np.stack([zero, zero, np.sin(yaw / 2), np.cos(yaw / 2)], axis=-1).astype(np.float32)
        with wp.ScopedStream(self.shards.torch_stream()):
            inputs = [
                wp.array(mask, dtype=wp.bool, device=self.device),
                wp.array(np.ascontiguousarray(position), dtype=wp.vec3, device=self.device),
                wp.array(rotation, dtype=wp.quat, device=self.device),
                wp.array(np.ascontiguousarray(speed), dtype=float, device=self.device),
                self.arrays,
                0,
            ]
            wp.launch(place_vehicles, dim=shape, inputs=inputs, device=self.device)
        self.mark_changed()

    def reset(self, worlds: Worlds = None) -> None:
        """Put the vehicles of worlds back to their last placement, at rest, without synchronizing.

        Clears commands, wrenches, wheel speeds, readings, contact sums and fault flags of those worlds and touches no
        other; roads stay. :meth:`place` and the environments' resets say where the vehicles' placement is.

        Args:
            worlds: None = all, an index, indices, an index tensor or a bool mask [W].

        Raises:
            RuntimeError: After :meth:`close`.
            TypeError, ValueError: If ``worlds`` is no choice of worlds.
        """
        self._require_open("reset()")
        self.state._reset(worlds)

    @exclusive
    @outside_captures
    def save(self, worlds: Worlds = None) -> SavedState:
        """Copy everything that worlds carry from step to step, on the device.

        A world that is restored from the copy goes on, bit for bit, as if it had never stopped. What an environment
        adds (events, rewards, episodes, random streams) is not in it.

        Args:
            worlds: Worlds to save: None = all, an index, indices [N] or a bool mask [W]; saved in that order.

        Raises:
            RuntimeError: After :meth:`close`.
            TypeError: If ``worlds`` is no choice of worlds.
            ValueError: If it is empty, out of range or names a world twice.
        """
        self._require_open("save()")
        return save_worlds(self, worlds)

    @exclusive
    @outside_captures
    def restore(self, saved: SavedState, worlds: Worlds = None, source: Worlds = None) -> None:
        """Overwrite worlds by saved ones, in place; no other world is touched.

        The saved worlds may come from another simulator with any number of worlds, if it has the same vehicles, terrain
        variants and solver. ``restore(saved, worlds=range(16), source=3)`` branches one saved world into sixteen.

        Args:
            saved: From :meth:`save`.
            worlds: Worlds to overwrite: None = all, an index, indices [n] or a bool mask [W].
            source: The saved world for each of them, indices [n] into ``saved``, which may repeat; one index serves
                all; None = all saved worlds in order.

        Raises:
            RuntimeError: After :meth:`close`.
            TypeError: If an argument has the wrong type.
            ValueError: If ``saved`` is of another device, solver, bank of terrain variants or of other vehicles, an
                index is out of range, a world comes twice in ``worlds``, or ``worlds`` and ``source`` differ in number.
        """
        self._require_open("restore()")
        restore_worlds(self, saved, worlds, source)
        self.mark_changed()

    def contact_overflow(self) -> np.ndarray:
        """Worlds whose contact buffer overflowed, bool [W] (host copy); environments move the flags to their errors."""
        self._require_open("contact_overflow()")
        return self.dynamics.rigid_contacts.overflow.numpy().astype(bool)

    @exclusive
    def close(self) -> None:
        """Stop the worker threads and free the memory, once a running step has ended; further calls raise."""
        if not self._freed:
            if self._state is not None:
                self._state._close()
            self.shards.close()
            self._free()

    def _require_open(self, call: str) -> None:
        if self._freed:
            raise RuntimeError(f"{call} on a closed Simulator; make a new one")

    def _start_upright(self) -> None:
        """A row of parked vehicles 10 m apart, so that a simulator is valid before its first placement."""
        position = np.zeros((self.num_worlds, self.num_vehicles, 3), dtype=np.float32)
        grid = self.bank.variants[0].heightfield.grid
        position[..., 0] = grid.x0 + 20.0 + 10.0 * np.arange(self.num_vehicles)
        position[..., 1] = grid.y0 + 0.5 * grid.dy * (grid.ny - 1)
        index = self.world_variant.numpy()
        for k, variant in enumerate(self.bank.variants):
            height = variant.heightfield.height_at(position[0, :, 0], position[0, :, 1])
            position[index == k, :, 2] = height + np.array([car.rest_height for car in self.vehicles])
        self.place(np.ones(self.num_worlds, dtype=bool), position)


__all__ = ["CONTROL_HZ", "SUBSTEPS", "Simulator"]
