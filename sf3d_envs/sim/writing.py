"""Setters of the tensor state: checked as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import warp as wp

from .._warp import load_state_kernels
from ..launches import outside_captures
from .selection import Choice, Refusals, Vehicles, Worlds, check_range, check_value, choose

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator

Params = ParamSpec("Params")
Result = TypeVar("Result")

MAX_MISFIT = 1.0e-3
"""Largest difference between wanted and reachable deflections [m] and rates [m/s]."""


def writes(method: Callable[Concatenate[Any, Params], Result]) -> Callable[Concatenate[Any, Params], Result]:
    """Guard a method of an object with ``_sim``: open simulator, one thread, no foreign capture, a new generation."""

    @wraps(method)
    def guarded(self: Any, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        import torch

        sim: Simulator = self._sim
        with sim.lock:
            sim._require_open(f"{method.__name__.lstrip('_')}()")
            with torch.no_grad():
                result = outside_captures(method)(self, *args, **kwargs)
            sim.mark_changed()
        return result

    return guarded


class Writing:
    """What can be set, mixed into :class:`~sf3d_envs.sim.state.SimState`.

    Every setter takes ``worlds`` and ``vehicles`` (all by default) and values that are contiguous float32 tensors on
    the simulator's device. They broadcast to [n, m, ...] for n worlds by index and m vehicles; with ``worlds=None`` or
    a bool mask to [E, m, ...], of which only masked worlds are written. A call that raises has written nothing; on a
    GPU what only the device can check is raised by the next synchronizing call or :meth:`check`.
    """

    _sim: Simulator
    _tensors: dict[str, torch.Tensor]
    _refusals: Refusals

    def check(self) -> None:
        """Wait for the device and raise what it refused; on a CPU everything is checked at once.

        Saving, restoring and taking a snapshot look too.

        Raises:
            RuntimeError: After the simulator was closed.
            ValueError: If an earlier call was refused.
        """
        self._sim._require_open("state.check()")
        self._refusals.check()

    @writes
    def set_root_state(
        self,
        position: torch.Tensor | None = None,
        rotation: torch.Tensor | None = None,
        linear_velocity: torch.Tensor | None = None,
        angular_velocity: torch.Tensor | None = None,
        *,
        root_state: torch.Tensor | None = None,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Set pose and velocity of the chassis, world frame; a velocity that is left out becomes zero.

        Wheel speeds, steering and commands stay as they are.

        Args:
            position: Centre of mass [m], [..., 3]; None keeps it.
            rotation: Unit quaternion xyzw, body to world, [..., 4]; None keeps it.
            linear_velocity: Of the centre of mass [m/s], [..., 3]; None = 0.
            angular_velocity: [rad/s], [..., 3]; None = 0.
            root_state: All of them at once, [..., 13]; excludes the others.
            worlds: Which worlds.
            vehicles: Which vehicles.

        Raises:
            RuntimeError: After the simulator was closed.
            TypeError, ValueError: If nothing or too much is given, a value has a wrong type, device, dtype, layout or
                shape, is not finite, or a quaternion is not of unit length within 1e-3.
        """
        parts: dict[str, Any] = {
            "position": position,
            "rotation": rotation,
            "linear_velocity": linear_velocity,
            "angular_velocity": angular_velocity,
        }
        given = {name: value for name, value in parts.items() if value is not None}
        if root_state is not None and given:
            raise ValueError(f"root_state is given and so is {next(iter(given))}; give either")
        if root_state is None and not given:
            raise ValueError("give root_state, position, rotation, linear_velocity or angular_velocity")
        choice = self._choose(worlds, vehicles)
        widths = {"position": 3, "rotation": 4, "linear_velocity": 3, "angular_velocity": 3}
        if root_state is not None:
            whole = self._value("root_state", root_state, choice, (13,))
            values = dict(zip(widths, whole.split(list(widths.values()), dim=-1), strict=True))
        else:
            values = {n: self._value(n, v, choice, (widths[n],)) for n, v in given.items()}
        allowed = choice.allowed
        for name, value in values.items():
            allowed = self._both(allowed, check_range(name, value, self._refusals))
        if "rotation" in values:
            off = (values["rotation"].norm(dim=-1) - 1.0).abs()
            text = "rotation must be unit quaternions within 1e-3, got one that is off by {}"
            if off.numel():
                allowed = self._both(allowed, self._refusals.note((off > 1e-3).any(), off.max(), text))
        import torch

        zero = torch.zeros(3, dtype=torch.float32, device=self._refusals.device)
        for name in widths:
            value = values.get(name, zero if name.endswith("velocity") else None)
            if value is not None:
                choice.write(self._tensors[name], value, self._guard(allowed))
        self._launch("settle_vehicles", [self._marks(choice, allowed), self._sim.arrays])

    @writes
    def set_wheel_state(
        self,
        wheel_spin: torch.Tensor | None = None,
        steer_angle: torch.Tensor | None = None,
        steer_rate: torch.Tensor | None = None,
        *,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Set wheel speeds and the front axle's angle; what is left out stays.

        Args:
            wheel_spin: [rad/s], [..., 4].
            steer_angle: [rad], [...], within the vehicle's ±max_steer.
            steer_rate: [rad/s], [...]; only a command by gains reads it.
            worlds: Which worlds.
            vehicles: Which vehicles.

        Raises:
            RuntimeError: After the simulator was closed.
            TypeError, ValueError: As :meth:`set_root_state`, or if an angle is out of range.
        """
        values = {"wheel_spin": wheel_spin, "steer_angle": steer_angle, "steer_rate": steer_rate}
        self._set(values, {"wheel_spin": (4,)}, worlds, vehicles, limits={"steer_angle": self._max_steer})

    @writes
    def set_wrench(
        self,
        force: torch.Tensor | None = None,
        torque: torch.Tensor | None = None,
        *,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Apply a force and a torque to the chassis during the next control step; what is left out stays.

        Args:
            force: At the centre of mass [N], world frame, [..., 3].
            torque: [N·m], world frame, [..., 3].
            worlds: Which worlds.
            vehicles: Which vehicles.

        Raises:
            RuntimeError: After the simulator was closed.
            TypeError, ValueError: As :meth:`set_root_state`.
        """
        values = {"wrench_force": force, "wrench_torque": torque}
        called = {"wrench_force": "force", "wrench_torque": "torque"}
        self._set(values, dict.fromkeys(values, (3,)), worlds, vehicles, called=called)

    @writes
    def set_suspension(
        self,
        deflection: torch.Tensor | None = None,
        rate: torch.Tensor | None = None,
        *,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Set the compression of the four legs and its rate.

        Raycast legs have no state of their own: the height, roll and pitch of the chassis follow from the deflections
        (place and heading stay), its vertical speed, roll rate and pitch rate from their rates. Four numbers meet three
        freedoms, so on a plane road the sums of the diagonals must agree.

        Args:
            deflection: Compression [m], [..., 4], in (0, rest length]; None keeps the pose.
            rate: Speed of compression along the contact normals [m/s], [..., 4]; None keeps the motion.
            worlds: Which worlds.
            vehicles: Which vehicles.

        Raises:
            RuntimeError: After the simulator was closed.
            TypeError, ValueError: As :meth:`set_root_state`; or if no pose or motion has these within 1 mm or 1 mm/s.
                A leg off the road has rate 0 and no other.
        """
        import torch

        sim, refusals = self._sim, self._refusals
        if deflection is None and rate is None:
            raise ValueError("give deflection or rate")
        choice = self._choose(worlds, vehicles)
        allowed = choice.allowed
        shape = (sim.num_worlds, sim.num_vehicles)
        wanted = torch.zeros(2, *shape, 4, dtype=torch.float32, device=refusals.device)
        for k, (name, value) in enumerate((("deflection", deflection), ("rate", rate))):
            if value is None:
                continue
            checked = self._value(name, value, choice, (4,))
            low = high = None
            said = "finite"
            if name == "deflection":
                most, lengths = self._of_vehicles("suspension_rest_length", choice)
                low, high, said = 1e-6, most[:, None], f"above 0 and at most the vehicle's rest length ({lengths} m)"
            allowed = self._both(allowed, check_range(name, checked, refusals, low, high, said))
            choice.write(wanted[k], checked, None)
        marks = self._marks(choice, allowed)
        # Torch's allocator frees in the order of the stream that the launches run on.
        pose, motion = (torch.empty(*shape, n, dtype=torch.float32, device=refusals.device) for n in (7, 6))
        missing = torch.zeros(2, *shape, 4, dtype=torch.float32, device=refusals.device)
        kinds: tuple[Any, Any] = (wp.transform, wp.spatial_vector)
        taken = [wp.from_torch(numbers, dtype=kind) for numbers, kind in zip((pose, motion), kinds, strict=True)]
        legs = [wp.from_torch(numbers, dtype=wp.vec4) for numbers in (wanted, missing)]
        flags = [int(deflection is not None), int(rate is not None)]
        self._launch("solve_suspension", [marks, sim.arrays, sim.terrain, *flags, *legs, *taken])
        for k, (name, unit, what) in enumerate((("deflection", "m", "pose"), ("rate", "m/s", "motion"))):
            misfit = missing[k].abs().amax(dim=-1).reshape(-1)
            at = misfit.argmax().reshape(1)
            want, lack = (numbers[k].reshape(-1, 4).index_select(0, at)[0] for numbers in (wanted, missing))
            numbers = torch.cat([at % shape[1], at // shape[1], want, want - lack, misfit.amax().reshape(1)])
            text = (
                f"vehicle {{}} of world {{}} has no {what} with {name} [{{}}, {{}}, {{}}, {{}}] {unit}: the nearest is "
                f"[{{}}, {{}}, {{}}, {{}}] {unit}, off by {{}}, {MAX_MISFIT:g} allowed"
            )
            allowed = self._both(allowed, refusals.note(~(misfit.amax() <= MAX_MISFIT), numbers, text))
        go = torch.ones(1, dtype=torch.bool, device=refusals.device) if allowed is None else allowed.reshape(1)
        inputs = [marks, wp.from_torch(go.contiguous(), dtype=wp.bool), sim.terrain, *taken, sim.arrays]
        self._launch("take_suspension", inputs)

    @writes
    def _reset(self, worlds: Worlds) -> None:
        """See :meth:`~sf3d_envs.sim.simulator.Simulator.reset`."""
        choice = self._choose(worlds, None)
        self._launch("reset_vehicles", [self._marks(choice, choice.allowed), self._sim.arrays])

    def _set(
        self,
        values: Mapping[str, torch.Tensor | None],
        tails: Mapping[str, tuple[int, ...]],
        worlds: Worlds,
        vehicles: Vehicles,
        *,
        limits: Mapping[str, Any] | None = None,
        called: Mapping[str, str] | None = None,
    ) -> tuple[Choice, torch.Tensor | None]:
        """Check all given values, then write them into the views of their names.

        ``limits`` are (low, high, words), or a function that gives them for a choice;
        ``called`` gives the argument's name where it is not the view's.
        """
        called = called or {}
        if all(value is None for value in values.values()):
            raise ValueError(f"give {' or '.join(called.get(name, name) for name in values)}")
        choice = self._choose(worlds, vehicles)
        allowed, checked = choice.allowed, {}
        for name, value in values.items():
            if value is None:
                continue
            label = called.get(name, name)
            checked[name] = self._value(label, value, choice, tails.get(name, ()))
            low = high = None
            said = "finite"
            if limits and name in limits:
                limit = limits[name]
                low, high, said = limit(choice) if callable(limit) else limit
            allowed = self._both(allowed, check_range(label, checked[name], self._refusals, low, high, said))
        for name, value in checked.items():
            choice.write(self._tensors[name], value, self._guard(allowed))
        return choice, self._guard(allowed)

    def _max_steer(self, choice: Choice) -> tuple[Any, Any, str]:
        """Limits of the steering angle of the chosen vehicles."""
        most, angles = self._of_vehicles("max_steer", choice)
        return -most, most, f"within the vehicle's ±max_steer ({angles} rad)"

    def _of_vehicles(self, field: str, choice: Choice) -> tuple[torch.Tensor, str]:
        """A parameter of the chosen vehicles, [m], and its values as words."""
        numbers = [getattr(car, field) for car in self._sim.vehicles]
        found = self._refusals.constant(*numbers)
        words = " or ".join(f"{number:g}" for number in dict.fromkeys(numbers))
        return found if choice.vehicles is None else found.index_select(0, choice.vehicles), words

    def _value(self, name: str, value: Any, choice: Choice, tail: tuple[int, ...]) -> torch.Tensor:
        """A checked value; a copy of it if it lies in the state's own memory, which the write may change under it."""
        checked = check_value(name, value, choice, tail, self._refusals)
        begin = checked.data_ptr()
        return checked.clone() if any(first <= begin < end for first, end in self._memory) else checked

    @cached_property
    def _memory(self) -> list[tuple[int, int]]:
        """First address and end of the memory under the views."""
        storages = [tensor.untyped_storage() for tensor in self._tensors.values()]
        return sorted({(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages})

    def _choose(self, worlds: Worlds, vehicles: Vehicles) -> Choice:
        return choose(worlds, vehicles, (self._sim.num_worlds, self._sim.num_vehicles), self._refusals)

    def _both(self, first: torch.Tensor | None, second: torch.Tensor) -> torch.Tensor:
        return second if first is None else first & second

    def _guard(self, allowed: torch.Tensor | None) -> torch.Tensor | None:
        """What guards a write: nothing where all checks were made at once."""
        return allowed if self._refusals.deferred else None

    def _marks(self, choice: Choice, allowed: torch.Tensor | None) -> wp.array:
        shape = (self._sim.num_worlds, self._sim.num_vehicles)
        marks = choice.marks(shape, self._guard(allowed), self._refusals.device)
        return wp.from_torch(marks, dtype=wp.bool)

    def _launch(self, name: str, inputs: list[Any]) -> None:
        """Launch a kernel over all vehicles, in the order of torch's work."""
        from . import kernels_write

        sim = self._sim
        load_state_kernels(sim.device)
        with wp.ScopedStream(sim.shards.torch_stream()):
            kernel = getattr(kernels_write, name)
            wp.launch(kernel, dim=(sim.num_worlds, sim.num_vehicles), inputs=inputs, device=sim.device)
