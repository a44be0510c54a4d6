"""The tensor state: torch views over the simulator's own memory, each with shape, unit, frame and validity.

The class body of :class:`SimState` is the one table: reading a name gives the tensor, ``describe()`` prints the table,
and the page ``sf3d_envs/sim/STATE.md`` holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import warp as wp

from .contact_sensors import Contacts
from .derived import Derived
from .selection import Refusals
from .state_config import StateConfig
from .writing import Writing

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator

ALWAYS = "close()"
"""A view whose memory stays in place for the simulator's life; its values change with every step, reset and write."""
STEP = "next control step"


class View:
    """One row of the table: what a tensor of :class:`SimState` is. Reading it from a state gives the live tensor.

    Attributes:
        name: Name of the view.
        shape: Shape, of E worlds, V vehicles and numbers.
        dtype: Name of the torch dtype.
        unit: SI unit.
        frame: Frame of its components, "-" if it has none.
        writable: Whether writing into it in place is allowed and takes effect.
        until: Until when what was read, or written, holds.
        doc: What it is.
        source: Name in the simulator's arrays.
        part: Columns of the source's last dimension.
    """

    def __init__(
        self,
        source: str,
        shape: str,
        unit: str,
        doc: str,
        *,
        frame: str = "-",
        dtype: str = "float32",
        writable: bool = False,
        until: str = ALWAYS,
        part: slice | int | None = None,
    ):
        self.source, self.shape, self.unit, self.doc = source, shape, unit, doc
        self.frame, self.dtype, self.writable, self.until, self.part = frame, dtype, writable, until, part
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the name."""
        self.name = name

    @overload
    def __get__(self, state: None, owner: type) -> View: ...
    @overload
    def __get__(self, state: SimState, owner: type) -> torch.Tensor: ...
    def __get__(self, state: SimState | None, owner: type) -> torch.Tensor | View:
        """The live tensor; from the class, the row itself.

        Raises:
            RuntimeError: After the simulator was closed.
        """
        if state is None:
            return self
        try:
            return state._tensors[self.name]
        except KeyError:
            raise RuntimeError(f"state.{self.name} of a closed Simulator; make a new one") from None

    def __set__(self, state: SimState, value: object) -> None:
        """Refuse: rebinding a name would change nothing in the simulator.

        Raises:
            AttributeError: Always.
        """
        way = "write in place (state.{0}[...] = value)" if self.writable else "it is for reading"
        raise AttributeError(f"state.{self.name} can't be replaced: {way.format(self.name)}")


@dataclass(frozen=True)
class TensorView:
    """A tensor with its row of the table and the generation it was taken in.

    Attributes:
        tensor: The live tensor.
        spec: What it is.
        generation: The state's generation when this was taken.
    """

    tensor: torch.Tensor
    spec: View
    generation: int
    _state: SimState

    @property
    def is_current(self) -> bool:
        """Whether nothing has stepped, reset or set the simulator since; False after it was closed."""
        return not self._state.closed and self.generation == self._state.generation


class SimState(Writing, Derived, Contacts):
    """The state of all worlds as torch tensors, [E worlds, V vehicles, ...], on the simulator's device.

    Nothing is copied: a tensor has the memory that the kernels work on, keeps it for the simulator's life, and shows
    the present values. Writing in place into a tensor that is marked writable takes effect at the next step; the
    setters check what they are given. Wheels are in the order FL, FR, RL, RR; the world frame is z up, the body frame x
    forward, y left, z up; velocities are those of the centre of mass.
    """

    root_state = View("root", "E, V, 13", "m, -, m/s, rad/s", "position, quaternion xyzw, linear and angular velocity",
                      frame="world", writable=True)  # fmt: skip
    position = View("root", "E, V, 3", "m", "centre of mass", frame="world", writable=True, part=slice(0, 3))
    rotation = View("root", "E, V, 4", "-", "quaternion xyzw, body to world", frame="world", writable=True,
                    part=slice(3, 7))  # fmt: skip
    linear_velocity = View("root", "E, V, 3", "m/s", "of the centre of mass", frame="world", writable=True,
                           part=slice(7, 10))  # fmt: skip
    angular_velocity = View("root", "E, V, 3", "rad/s", "of the chassis", frame="world", writable=True,
                            part=slice(10, 13))  # fmt: skip
    forward_accel = View("forward_accel", "E, V", "m/s²", "change of forward speed over the last control step",
                         frame="body x")  # fmt: skip

    wheel_spin = View("wheel_spin", "E, V, 4", "rad/s", "wheel speed", writable=True)
    wheel_angle = View("wheel_angle", "E, V, 4", "rad", "how far a wheel has turned, in [0, 2π); for pictures")
    steer_angle = View("steer_angle", "E, V", "rad", "angle of the front axle, positive to the left", writable=True)
    steer_rate = View("steer_rate", "E, V", "rad/s", "its rate", writable=True)
    suspension_deflection = View("wheel_compression", "E, V, 4", "m", "compression of a leg, 0 off the road")
    suspension_rate = View("compression_rate", "E, V, 4", "m/s", "speed of compression, along the contact normal")
    wheel_load = View("wheel_load", "E, V, 4", "N", "normal force of the road on a wheel")
    wheel_friction = View("wheel_friction", "E, V, 4", "-", "μ of the surface under a wheel, 0 off the road")
    tire_force = View("tire_force", "E, V, 4, 2", "N", "along the wheel's heading, and to its left", frame="contact")
    slip_ratio = View("tire_slip", "E, V, 4", "-", "(Rω − v_x) / max(|v_x|, 1 m/s)", frame="contact", part=0)
    slip_angle = View("tire_slip", "E, V, 4", "rad", "atan2(v_y, max(|v_x|, 2 m/s))", frame="contact", part=1)
    contact_point = View("contact_point", "E, V, 4, 3", "m", "where a wheel's ray meets the road, 0 off it",
                         frame="world")  # fmt: skip
    contact_normal = View("contact_normal", "E, V, 4, 3", "-", "unit normal of the road there, 0 off it",
                          frame="world")  # fmt: skip

    command_mode = View("command_mode", "E, V", "-", "0 DRIVER, 1 PEDALS, 2 WHEEL_TORQUE, 3 STEER_PD", dtype="int8",
                        writable=True)  # fmt: skip
    command = View("command", "E, V, 2", "m/s², -", "requested acceleration, and steering in [−1, 1]; DRIVER, and "
                   "STEER_PD its acceleration", writable=True)  # fmt: skip
    pedals = View("pedals", "E, V, 3", "-", "throttle and brake in [0, 1], steering in [−1, 1]; PEDALS", writable=True)
    drive_torque = View("drive_torque", "E, V, 4", "N·m", "signed motor torque on a wheel; WHEEL_TORQUE", writable=True)
    brake_torque = View("brake_torque", "E, V, 4", "N·m", "torque that holds a wheel back, ≥ 0; WHEEL_TORQUE",
                        writable=True)  # fmt: skip
    steer_target = View("steer_target", "E, V", "rad", "wanted steering angle; WHEEL_TORQUE, STEER_PD", writable=True)
    steer_gains = View("steer_gains", "E, V, 2", "1/s², 1/s", "k_p and k_d of STEER_PD", writable=True)
    wrench_force = View("wrench_force", "E, V, 3", "N", "external force at the centre of mass", frame="world",
                        writable=True, until=STEP)  # fmt: skip
    wrench_torque = View("wrench_torque", "E, V, 3", "N·m", "external torque", frame="world", writable=True,
                         until=STEP)  # fmt: skip

    stepping = View("stepping", "E", "-", "1 steps, 0 freezes a world", dtype="int8", writable=True)
    nonfinite = View("nonfinite", "E, V", "-", "1 after a state turned non-finite, until reset", dtype="int8")
    world_variant = View(
        "world_variant",
        "E",
        "-",
        "terrain variant of a world; an index that does not exist ends the process",
        dtype="int32",
    )
    gravity = View("gravity", "E, 3", "m/s²", "gravity", frame="world", writable=True)

    def __init__(self, sim: Simulator):
        self._sim = sim
        self._tensors = _tensors(sim)
        self._refusals = Refusals(self._tensors["root_state"].device)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse names that are none: a slip in a name would otherwise be silent.

        Raises:
            AttributeError: If there is no view of that name; a view itself cannot be replaced either.
        """
        if not name.startswith("_") and name not in views():
            raise AttributeError(f"the state has no {name!r}; known: {', '.join(views())}")
        super().__setattr__(name, value)

    @property
    def closed(self) -> bool:
        """Whether the simulator is closed: every read raises."""
        return not self._tensors

    @property
    def generation(self) -> int:
        """Number of steps, resets, restores and sets so far: equal generations mean equal states.

        Writing in place into a tensor does not count.

        Raises:
            RuntimeError: After the simulator was closed.
        """
        if self.closed:
            raise RuntimeError("state.generation of a closed Simulator; make a new one")
        return self._sim.dynamics.generation

    def view(self, name: str) -> TensorView:
        """A view with what describes it and the present generation.

        Raises:
            KeyError: If there is no view of that name; the message lists them.
            RuntimeError: After the simulator was closed.
        """
        specs = views()
        if name not in specs:
            raise KeyError(f"{name!r} is no view; known: {', '.join(specs)}")
        return TensorView(getattr(self, name), specs[name], self.generation, self)

    def describe(self) -> None:
        """Print the table of views."""
        from .state_table import print_table

        print_table(self)

    def _close(self) -> None:
        self._tensors = {}


def views() -> dict[str, View]:
    """The rows of the table by name, in order."""
    return {name: item for name, item in vars(SimState).items() if isinstance(item, View)}


def _tensors(sim: Simulator) -> dict[str, torch.Tensor]:
    """The live tensors of all views; ordinary ones, also when first asked for in torch's inference mode."""
    import torch

    with torch.inference_mode(False):
        return _views_of(sim)


def _views_of(sim: Simulator) -> dict[str, torch.Tensor]:
    shape = (sim.num_worlds, sim.num_vehicles)
    others: dict[str, Any] = {
        "root": sim.dynamics.root,
        "stepping": sim.stepping,
        "world_variant": sim.world_variant,
        "gravity": sim.dynamics.gravity[: sim.num_worlds],
    }
    found: dict[str, torch.Tensor] = {}
    sources: dict[str, torch.Tensor] = {}
    for name, spec in views().items():
        if spec.source not in sources:
            array = others[spec.source] if spec.source in others else getattr(sim.arrays, spec.source)
            tensor = wp.to_torch(array)
            sources[spec.source] = tensor.view(*shape, 13) if spec.source == "root" else tensor
        tensor = sources[spec.source]
        found[name] = tensor if spec.part is None else tensor[..., spec.part]
    return found


__all__ = ["SimState", "StateConfig", "TensorView", "View", "views"]
