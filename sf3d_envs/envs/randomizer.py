"""The memory of domain randomization and the launches that draw, delay and add noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import warp as wp

from ..observation.spec import ObservationSpec
from ..sim.vehicle import VehicleData
from . import kernels_randomization as kernels
from .randomization import FACTOR_LIMITS, DomainRandomization

if TYPE_CHECKING:
    from ..launches import LaunchList
    from ..sim.simulator import Simulator
    from ..task.kernels import TaskState
    from .kernels import RowArrays


class Randomizer:
    """Memory and launches of domain randomization for the worlds of a simulator.

    Args:
        config: What varies.
        sim: The simulator; built with ``params_per_world`` if a vehicle parameter varies.
        spec: Channels of the observation.

    Attributes:
        requested: Latched requests, vec2 [W, V]; the simulator's commands if there is no delay.
        values: Drawn values by field name, tensors [W], overwritten at resets.
        last_values: Those of the episodes before.
    """

    def __init__(self, config: DomainRandomization, sim: Simulator, spec: ObservationSpec):
        config.check_vehicles(sim.vehicles)
        self._config, self._sim = config, sim
        worlds, device = sim.num_worlds, sim.device
        arrays = kernels.RandomizationArrays()
        arrays.factor, arrays.last_factor = (wp.ones((worlds, 4), dtype=float, device=device) for _ in range(2))
        arrays.delay, arrays.last_delay = (wp.zeros(worlds, dtype=int, device=device) for _ in range(2))
        self._arrays = arrays
        if config.varies_vehicles:
            self._params = sim.arrays.params
            self._base = wp.clone(self._params[: self._params.shape[0] // worlds])
        else:
            self._params = self._base = wp.zeros(0, dtype=VehicleData, device=device)  # pyright: ignore[reportArgumentType]
        longest = 0 if config.action_delay is None else int(config.action_delay[1])
        self._delays = longest > 0
        self._cleared = wp.zeros((0, 0), dtype=wp.vec2, device=device)
        self.requested = sim.command
        if self._delays:
            shape = (worlds, sim.num_vehicles)
            self.requested = self._cleared = wp.zeros(shape, dtype=wp.vec2, device=device)
            self._history = wp.zeros((*shape, longest + 1), dtype=wp.vec2, device=device)
        deviation = config.deviations(spec)
        self._noisy = bool(deviation.any())
        padding = -len(deviation) % 4
        self._deviation = wp.array(np.pad(deviation, (0, padding)), dtype=float, device=device)
        gate = np.pad(_gates(spec), (0, padding), constant_values=-1)
        self._gate = wp.array(gate, dtype=int, device=device)
        self.values = self._by_name(arrays.factor, arrays.delay)
        self.last_values = self._by_name(arrays.last_factor, arrays.last_delay)

    def _by_name(self, factor: wp.array, delay: wp.array) -> dict[str, torch.Tensor]:
        factors = wp.to_torch(factor)
        found = {name: factors[:, k] for k, name in enumerate(FACTOR_LIMITS)}
        found["action_delay"] = wp.to_torch(delay)
        return {name: value for name, value in found.items() if getattr(self._config, name) is not None}

    def record_draw(self, launches: LaunchList, mask: wp.array, seed: wp.array) -> None:
        """Append the draws of masked worlds; before their vehicles are placed, whose ride height follows the mass."""
        ranges = [getattr(self._config, name) or (1.0, 1.0) for name in FACTOR_LIMITS]
        low, high = (wp.vec4(*(float(item[end]) for item in ranges)) for end in (0, 1))
        delay = self._config.action_delay or (0, 0)
        launches.add(
            kernels.draw_randomization,
            [
                mask,
                seed,
                low,
                high,
                int(delay[0]),
                int(delay[1]),
                self._arrays,
                self._base,
                self._params,
                self._cleared,
            ],
        )

    def record_delay(self, launches: LaunchList, rows: RowArrays, task: TaskState, stop_at_event: int) -> None:
        """Append the delay between the latched requests and the simulator's commands, if there is one."""
        if self._delays:
            sim = self._sim
            launches.add(
                kernels.delay_commands,
                [
                    self.requested,
                    self._history,
                    self._arrays.delay,
                    rows,
                    task,
                    sim.stepping,
                    stop_at_event,
                    sim.command,
                ],
            )

    def record_noise(
        self, launches: LaunchList, rows: RowArrays, task: TaskState, seed: wp.array, obs: wp.array
    ) -> None:
        """Append the noise on the rows that were just observed, if there is any."""
        if self._noisy:
            launches.add(
                kernels.add_noise,
                [self._deviation, self._gate, rows, task, seed, obs],
                per_world=(obs.shape[1],),
            )


def _gates(spec: ObservationSpec) -> np.ndarray:
    """For each channel the flag that says whether it means anything, int32 [D]; -1 where it always does."""
    gate = np.full(spec.size, -1, dtype=np.int32)
    for channel, name in enumerate(spec.names):
        if name.startswith("traffic."):
            gate[channel] = spec[f"traffic.{name.split('.')[1]}.present"]
        elif name in ("route.distance_merge_start", "route.distance_merge_end"):
            gate[channel] = spec["route.owes_merge"]
    return gate
