"""Commands of the vehicles: what a driver, a pedal robot or a controller of your own asks for."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from .selection import Vehicles, Worlds, check_range, check_value
from .writing import writes

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator


CLEARED = ("command_mode", "command", "pedals", "drive_torque", "brake_torque", "steer_target", "steer_gains")


class CommandMode(IntEnum):
    """What a vehicle takes its commands for, as ``state.command_mode`` holds it."""

    DRIVER = 0
    PEDALS = 1
    WHEEL_TORQUE = 2
    STEER_PD = 3


class Commands:
    """Sets commands, as ``sim.commands``; each call also sets the mode of the vehicles it names.

    A command holds until the next one, or a reset, and is evaluated in every physics substep. Values are tensors as for
    the setters of :class:`~sf3d_envs.sim.writing.Writing`, with ``worlds`` and ``vehicles`` alike; a call for all
    vehicles with values of full shape is one copy per value. Reading ``sim.state.command`` and its neighbours gives
    back what was set; writing in place there works too, unchecked.

    All methods raise RuntimeError after the simulator was closed, and TypeError or ValueError for values that are no
    contiguous float32 tensors on the device, do not broadcast, are not finite, or are out of range.
    """

    def __init__(self, sim: Simulator):
        self._sim = sim

    @writes
    def driver(self, command: torch.Tensor, *, worlds: Worlds = None, vehicles: Vehicles = None) -> None:
        """Ask for an acceleration and steering, as the environments' actions do.

        Args:
            command: Acceleration [m/s²], which throttle and brake follow open loop, and steering in [-1, 1], positive
                to the left, scaled by speed; [..., 2].
            worlds: Which worlds.
            vehicles: Which vehicles.
        """
        limit = (self._pair(-float("inf"), -1.0), self._pair(float("inf"), 1.0), "finite, with steering in [-1, 1]")
        self._command(CommandMode.DRIVER, {"command": command}, worlds, vehicles, {"command": limit})

    @writes
    def pedals(self, pedals: torch.Tensor, *, worlds: Worlds = None, vehicles: Vehicles = None) -> None:
        """Set throttle, brake and steering.

        Args:
            pedals: Throttle in [0, 1], brake in [0, 1], steering in [-1, 1] as for :meth:`driver`; [..., 3].
            worlds: Which worlds.
            vehicles: Which vehicles.
        """
        said = "throttle and brake in [0, 1] and steering in [-1, 1]"
        limit = (self._pair(0.0, 0.0, -1.0), self._pair(1.0, 1.0, 1.0), said)
        self._command(CommandMode.PEDALS, {"pedals": pedals}, worlds, vehicles, {"pedals": limit})

    @writes
    def wheel_torque(
        self,
        torque: torch.Tensor,
        steer_angle: torch.Tensor,
        brake_torque: torch.Tensor | None = None,
        *,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Set the torque of each wheel and the steering angle.

        Args:
            torque: Motor torque [N·m], signed, [..., 4]; neither the vehicle's drive torque nor its power limits it.
            steer_angle: Wanted angle of the front axle [rad], [...]; approached at the vehicle's steering rate, within
                its largest angle.
            brake_torque: Torque >= 0 that only holds back [N·m], [..., 4]; None = 0.
            worlds: Which worlds.
            vehicles: Which vehicles.
        """
        import torch

        if brake_torque is None:
            brake_torque = torch.zeros(4, dtype=torch.float32, device=self._sim.state._refusals.device)
        values = {"drive_torque": torque, "steer_target": steer_angle, "brake_torque": brake_torque}
        limits = {"brake_torque": (0.0, None, "finite and >= 0 N·m")}
        self._command(CommandMode.WHEEL_TORQUE, values, worlds, vehicles, limits)

    @writes
    def steer_pd(
        self,
        acceleration: torch.Tensor,
        steer_angle: torch.Tensor,
        kp: torch.Tensor,
        kd: torch.Tensor,
        *,
        worlds: Worlds = None,
        vehicles: Vehicles = None,
    ) -> None:
        """Ask for an acceleration, and steer by gains: δ'' = kp (δ* - δ) - kd δ', within steering rate and angle.

        Integrated by backward Euler, so no gain is too large.

        Args:
            acceleration: As for :meth:`driver` [m/s²], [...].
            steer_angle: Wanted angle of the front axle δ* [rad], [...].
            kp: Gain per vehicle [1/s²], >= 0: a tensor whose last dimension is the chosen vehicles.
            kd: Gain per vehicle [1/s], likewise.
            worlds: Which worlds.
            vehicles: Which vehicles.

        Raises:
            TypeError: Also if a gain is a scalar.
        """
        import torch

        state = self._sim.state
        choice = state._choose(worlds, vehicles)
        for name, gain in (("kp", kp), ("kd", kd)):
            if not isinstance(gain, torch.Tensor) or gain.dim() == 0 or gain.shape[-1] != choice.columns:
                given = f"shape {tuple(gain.shape)}" if isinstance(gain, torch.Tensor) else repr(gain)
                raise TypeError(
                    f"{name} must be a tensor with a gain per vehicle, [..., {choice.columns}], got {given}"
                )
        checked = []
        for name, value in (("acceleration", acceleration), ("kp", kp), ("kd", kd)):
            whole = check_value(name, value, choice, (), state._refusals).expand(choice.rows, choice.columns)
            least, said = (None, "finite") if name == "acceleration" else (0.0, "finite and >= 0")
            if not state._refusals.deferred:  # a GPU checks what these are put together to
                check_range(name, whole, state._refusals, least, None, said)
            checked.append(whole)
        values = {
            "command": torch.stack([checked[0], torch.zeros_like(checked[0])], dim=-1),
            "steer_target": steer_angle,
            "steer_gains": torch.stack(checked[1:], dim=-1),
        }
        limits = {"steer_gains": (0.0, None, "finite and >= 0")}
        self._command(CommandMode.STEER_PD, values, worlds, vehicles, limits)

    @writes
    def clear(self, worlds: Worlds = None, vehicles: Vehicles = None) -> None:
        """No command: coast with straight wheels, in the driver's mode."""
        state = self._sim.state
        choice = state._choose(worlds, vehicles)
        allowed = state._guard(choice.allowed)
        for name in CLEARED:
            target = state._tensors[name]
            choice.write(target, target.new_zeros(()), allowed)

    def _pair(self, *numbers: float) -> torch.Tensor:
        return self._sim.state._refusals.constant(*numbers)

    def _command(
        self, mode: CommandMode, values: dict[str, Any], worlds: Worlds, vehicles: Vehicles, limits: dict[str, Any]
    ) -> None:
        state = self._sim.state
        tails = {"command": (2,), "pedals": (3,), "drive_torque": (4,), "brake_torque": (4,), "steer_gains": (2,)}
        called = {"drive_torque": "torque", "steer_target": "steer_angle"}
        for name, value in values.items():
            if value is None:
                raise TypeError(f"{called.get(name, name)} must be a float32 tensor, got None")
        choice, allowed = state._set(values, tails, worlds, vehicles, limits=limits, called=called)
        target = state._tensors["command_mode"]
        choice.write(target, target.new_full((), int(mode)), allowed)
