"""Safety measures of every vehicle, over its valid driving, accumulated on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from .._warp import load_module
from ..sim.dynamics import CONTROL_HZ, GRAVITY
from .measures import SAFETY_COUNTS, SAFETY_VALUES

if TYPE_CHECKING:
    from ..launches import LaunchList
    from ..observation.view import WorldView
    from ..sim.simulator import Simulator
    from ..task.kernels import TaskState

LATERAL_LIMIT, LOOK_AHEAD, SMALLEST_GAP = 2.0, 100.0, 0.1
"""IDM's leader rule: nearest centre ahead on the own route, strictly nearer to it than 2 m, at most 100 m ahead; and
IDM's least bumper gap, which keeps TTC above 0 and DRAC finite beside a leader [m]."""


class SafetyProbe:
    """Safety measures of all vehicles of all worlds; a probe of a :class:`~sf3d_envs.envs.torch_env.TorchEnv`.

    A step counts while the vehicle is valid after it and its world has had no fault, to the end of the run: passing the
    counting line ends nothing, since vehicles keep driving and interacting (paper, sec. 4.1 and app. "Safety windows";
    the step of an event no longer counts). One value per control step of 1/60 s, read at its end:

    - leader: IDM's rule; gap = arc length between the centres minus both half lengths, at least 0.1 m; dv = own minus
      leader's velocity along the own route, each at its own place on it.
    - TTC = gap / dv for dv > 0; DRAC = dv² / (2 gap).
    - capacity: sqrt((μ g)² − a_y²), 0 where negative; μ = surface friction weighted by wheel load times the vehicle's
      grip; a_y = change of the planar velocity over the step, across the heading.
    - speed at x = 20 and 40 m: interpolated between the step's ends; NaN for a vehicle that started beyond.

    The columns are those of ``SAFETY_COUNTS``, ``SAFETY_VALUES`` and ``SAFETY_DERIVED`` in
    :mod:`~sf3d_envs.evaluation.measures`. A reset clears its worlds: read the measures before it.

    Args:
        fused: Launch shape: True = a thread per world, False = a thread per vehicle; None picks by device. Results are
            bitwise equal on a CPU.
    """

    def __init__(self, *, fused: bool | None = None) -> None:
        self._fused = fused
        self._shape: tuple[int, int] | None = None

    def bind(self, view: WorldView, task: TaskState, sim: Simulator) -> None:
        """Allocate for the worlds of an environment.

        Raises:
            RuntimeError: If the probe serves an environment already.
        """
        from . import kernels_safety as kernels

        if self._shape is not None:
            raise RuntimeError("this SafetyProbe serves another environment; make one per environment")
        load_module(kernels, sim.device)
        device = sim.device
        if self._fused is None:
            self._fused = device.is_cpu
        inputs = kernels.SafetyInputs()
        for name in ("body_q", "body_qd", "command", "forward_accel", "geometry", "own_route", "route_index"):
            setattr(inputs, name, getattr(view, name))
        for name in ("wheel_load", "wheel_friction", "wheel_compression", "terrain"):
            setattr(inputs, name, getattr(sim, name))
        for name in ("valid", "fault", "step"):
            setattr(inputs, name, getattr(task, name))
        inputs.grip = wp.array([car.grip for car in view.vehicles], dtype=float, device=device)
        inputs.route_points = view.routes.points
        inputs.num_vehicles, inputs.num_routes = view.num_vehicles, len(view.routes)
        inputs.lateral_limit, inputs.look_ahead, inputs.smallest_gap = LATERAL_LIMIT, LOOK_AHEAD, SMALLEST_GAP
        inputs.gravity, inputs.dt = GRAVITY, 1.0 / CONTROL_HZ

        shape = (view.num_worlds, view.num_vehicles)
        memory = kernels.SafetyMemory()
        memory.counts = wp.zeros((*shape, len(SAFETY_COUNTS)), dtype=wp.int32, device=device)
        memory.values = wp.zeros((*shape, len(SAFETY_VALUES)), dtype=float, device=device)
        memory.last_step = wp.zeros(shape, dtype=wp.int32, device=device)
        memory.braking = wp.zeros(shape, dtype=wp.int8, device=device)
        memory.before = wp.zeros(shape, dtype=wp.vec3, device=device)
        memory.place = wp.zeros((shape[0], inputs.num_routes, shape[1]), dtype=wp.vec2, device=device)
        memory.conflict = wp.zeros(shape, dtype=wp.vec2, device=device)
        self._kernels, self._inputs, self._memory, self._shape = kernels, inputs, memory, shape
        self._starts = [
            wp.array([int(measure.start) for measure in SAFETY_COUNTS], dtype=wp.int32, device=device),
            wp.array([measure.start for measure in SAFETY_VALUES], dtype=float, device=device),
        ]

    @property
    def conflict(self) -> wp.array:
        """TTC [s] and braking need over capacity of every vehicle in the last step, vec2 [W, V].

        Raises:
            RuntimeError: If no environment has been made with the probe.
        """
        self._bound()
        return self._memory.conflict

    def _bound(self) -> None:
        if self._shape is None:
            raise RuntimeError("this SafetyProbe has measured nothing; make an environment with TorchEnv(probes=[...])")

    def record(self, launches: LaunchList) -> None:
        """Append the measurement of a control step."""
        arguments: list[Any] = [self._inputs, self._memory]
        if self._fused:
            launches.add(self._kernels.measure_worlds, arguments)
        else:
            per_vehicle = (self._inputs.num_vehicles,)
            launches.add(self._kernels.locate_vehicles, arguments, per_world=per_vehicle)
            launches.add(self._kernels.measure_vehicles, arguments, per_world=per_vehicle)

    def record_reset(self, launches: LaunchList, mask: wp.array) -> None:
        """Append the clearing of masked worlds."""
        launches.add(self._kernels.clear_measures, [mask, self._inputs, self._memory, *self._starts])

    def advanced(self, steps: int) -> None:
        """Do nothing: the measures stay on the device."""

    def result(self) -> dict[str, np.ndarray]:
        """Measures of the running episodes by name, each [W, V]; waits for the device.

        Returns:
            int32 for ``SAFETY_COUNTS``, float32 for ``SAFETY_VALUES`` and float64 for ``SAFETY_DERIVED``.

        Raises:
            RuntimeError: If no environment has been made with the probe.
        """
        self._bound()
        counts, values = self._memory.counts.numpy(), self._memory.values.numpy()
        result = {measure.name: counts[..., k].copy() for k, measure in enumerate(SAFETY_COUNTS)}
        result |= {measure.name: values[..., k].copy() for k, measure in enumerate(SAFETY_VALUES)}
        steps = result["valid_steps"].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            for name in ("realized_accel", "requested_accel"):
                result[f"{name}_mean"] = result[f"{name}_sum"] / steps
            result["accel_error_rms"] = np.sqrt(result["accel_error_square_sum"] / steps)
        return result
