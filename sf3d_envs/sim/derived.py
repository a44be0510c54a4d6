"""Quantities that are computed when they are read, once per generation of the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import warp as wp

from .._warp import load_state_kernels
from ..launches import outside_captures

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator


@dataclass(frozen=True)
class Dynamics:
    """Equations of motion at the centre of mass in the world frame, linear before angular; float32 tensors.

    ``mass_matrix @ acceleration = gravity + gyroscopic + tire + drag + external`` (Newton-Euler) off any contact. The
    wheels' spin inertia is not in the mass matrix: the tyres couple it by slip, not rigidly.

    Attributes:
        mass_matrix: Mass [kg] and inertia [kg·m²] of the chassis, [E, V, 6, 6].
        gravity: Weight [N], [E, V, 6].
        gyroscopic: -ω × Iω [N·m], [E, V, 6].
        tire: Suspension and tyre forces of the four legs [N, N·m], [E, V, 6].
        drag: Aerodynamic drag [N], [E, V, 6].
        external: The wrench that is set for the next control step [N, N·m], [E, V, 6].
    """

    mass_matrix: torch.Tensor
    gravity: torch.Tensor
    gyroscopic: torch.Tensor
    tire: torch.Tensor
    drag: torch.Tensor
    external: torch.Tensor


class Derived:
    """The computed readings, mixed into :class:`~sf3d_envs.sim.state.SimState`."""

    _sim: Simulator
    _accelerations: tuple[int, torch.Tensor, wp.array] | None = None
    _dynamics: tuple[int, Dynamics, object] | None = None

    def accelerations(self, compute: bool = True) -> torch.Tensor:
        """Mean linear [m/s²] and angular [rad/s²] acceleration of the centre of mass over the last control step.

        World frame, gravity and contacts included: free fall reads -9.81 along z, standing still 0; an accelerometer
        reads this less gravity, in the body frame. 0 in worlds that were frozen, or placed or reset since.

        Args:
            compute: False gives the last result without computing.

        Returns:
            Tensor [E, V, 6], the state's own buffer: allocated at the first read, overwritten by later ones.

        Raises:
            RuntimeError: If it was not opted in, nothing was computed yet, or the simulator is closed.
        """
        sim = self._sim
        sim._require_open("state.accelerations()")
        _require("accelerations", sim.state_config.accelerations)
        if not compute:
            return _last("accelerations", self._accelerations)
        generation = sim.dynamics.generation
        if self._accelerations is None:
            shape = (sim.num_worlds, sim.num_vehicles)
            out = wp.zeros(shape, dtype=wp.spatial_vector, device=sim.device)  # pyright: ignore[reportArgumentType]
            self._accelerations = (-1, wp.to_torch(out), out)
        if self._accelerations[0] != generation:
            _, tensor, out = self._accelerations
            self._compute("mean_accelerations", [sim.arrays, out])
            self._accelerations = (generation, tensor, out)
        return self._accelerations[1]

    def dynamics(self, compute: bool = True) -> Dynamics:
        """Mass matrix and generalized forces at the present state and command.

        They are those with which the next substep begins.

        In-place writes begin no generation: after them ``sim.mark_changed()`` makes the next read compute anew.

        Args:
            compute: False gives the last result without computing.

        Returns:
            Tensors over the state's own buffers: allocated at the first read, overwritten by later ones.

        Raises:
            RuntimeError: If it was not opted in, nothing was computed yet, or the simulator is closed.
        """
        from . import kernels_derived
        from .dynamics import SUBSTEP_HZ

        sim = self._sim
        sim._require_open("state.dynamics()")
        _require("dynamics", sim.state_config.dynamics)
        if not compute:
            return _last("dynamics", self._dynamics)
        generation = sim.dynamics.generation
        if self._dynamics is None:
            arrays = kernels_derived.DynamicsArrays()
            shape = (sim.num_worlds, sim.num_vehicles)
            for name, field in kernels_derived.DynamicsArrays.vars.items():
                setattr(arrays, name, wp.zeros(shape, dtype=field.type.dtype, device=sim.device))
            tensors = {name: wp.to_torch(getattr(arrays, name)) for name in kernels_derived.DynamicsArrays.vars}
            self._dynamics = (-1, Dynamics(**tensors), arrays)
        if self._dynamics[0] != generation:
            _, result, arrays = self._dynamics
            inputs = [sim.arrays, sim.terrain, sim.dynamics.gravity, 1.0 / SUBSTEP_HZ, arrays]
            self._compute("equations_of_motion", inputs)
            self._dynamics = (generation, result, arrays)
        return self._dynamics[1]

    def _compute(self, name: str, inputs: list) -> None:
        """Launch a kernel over all vehicles, in the order of torch's work.

        The simulator's lock comes before that of captures, as in every method that holds both.
        """
        with self._sim.lock:
            self._launch_derived(name, inputs)

    @outside_captures
    def _launch_derived(self, name: str, inputs: list) -> None:
        from . import kernels_derived

        sim = self._sim
        load_state_kernels(sim.device)
        with wp.ScopedStream(sim.shards.torch_stream()):
            shape = (sim.num_worlds, sim.num_vehicles)
            wp.launch(getattr(kernels_derived, name), dim=shape, inputs=inputs, device=sim.device)


def _require(name: str, opted_in: bool) -> None:
    if not opted_in:
        raise RuntimeError(
            f"{name} were not opted in: make the simulator or environment with state=StateConfig({name}=True)"
        )


def _last(name: str, kept: tuple | None):
    if kept is None:
        raise RuntimeError(f"no {name} were computed yet; read them with compute=True first")
    return kept[1]
