"""Rich logging: trajectories of chosen worlds at 60 Hz, through a ring on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from .._warp import load_module
from ..launches import MAX_WORLDS
from ..sim.dynamics import CONTROL_HZ
from .measures import TRAJECTORY, index_of

if TYPE_CHECKING:
    from ..launches import LaunchList
    from ..observation.view import WorldView
    from ..sim.simulator import Simulator
    from ..task.kernels import TaskState
    from .safety import SafetyProbe


@dataclass(frozen=True)
class TrajectoryChunk:
    """T successive control steps of N worlds with V vehicles.

    Attributes:
        step: Step count of each world since its reset, 1 for its first step; −1 where the world was not stepped (it is
            frozen, or waited for its reset), int32 [T, N].
        seed: Scenario seed of each world, uint64 [T, N].
        data: Rows of the table ``TRAJECTORY``, NaN where the world was not stepped, float32 [T, N, V, 22].
    """

    step: np.ndarray
    seed: np.ndarray
    data: np.ndarray

    def __getitem__(self, column: str) -> np.ndarray:
        """One column, a view of ``data``, [T, N, V].

        Raises:
            KeyError: If there is no such column; the message lists them.
        """
        try:
            return self.data[..., index_of(column, TRAJECTORY)]
        except ValueError:
            known = ", ".join(measure.name for measure in TRAJECTORY)
            raise KeyError(f"unknown column {column!r}; known: {known}") from None


def _world_indices(worlds: Sequence[int] | np.ndarray) -> np.ndarray:
    """Indices of worlds as int64; refuses what is no list of different non-negative ints."""
    listed = np.asarray(worlds)
    if listed.ndim != 1 or listed.size == 0 or listed.dtype.kind not in "iu":
        raise TypeError(f"worlds must be an int or a list of different world indices >= 0, got {worlds!r}")
    if listed.min() < 0 or len(np.unique(listed)) != listed.size:
        raise ValueError(f"worlds must be different world indices >= 0, got {worlds!r}")
    return listed.astype(np.int64)


@dataclass
class _Transfer:
    """Control steps on their way to the host; ``done`` tells when ``arrays`` hold them, None = they do."""

    arrays: list[np.ndarray]
    done: Any = None
    pinned: list[wp.array] | None = None


class TrajectoryProbe:
    """Records chosen worlds at 60 Hz; a probe of a :class:`~sf3d_envs.envs.torch_env.TorchEnv`.

    Rows lie in a ring on the device and leave it in chunks. On CUDA a chunk is copied to pinned memory behind the steps
    already launched and handed over by a later step, once it has arrived: no step waits for the device.

    Args:
        worlds: N, the first worlds of the environment; or the indices of N different worlds, which are recorded in
            that order.
        on_chunk: Called with each :class:`TrajectoryChunk`, in order, at the end of a step, or by :meth:`flush`; it
            owns the arrays. None keeps all rows for :meth:`result`: 1.06 kB per world and control step.
        chunk_steps: Control steps of a chunk, at least 60 (the longest decision).
        safety: Probe of the same environment, before this one, whose TTC and braking need are recorded; without one
            the columns ``ttc`` and ``need_ratio`` are NaN.

    Raises:
        TypeError, ValueError: If an argument is wrong; the message names it, its value and what is allowed.
    """

    def __init__(
        self,
        worlds: int | Sequence[int],
        *,
        on_chunk: Callable[[TrajectoryChunk], object] | None = None,
        chunk_steps: int = CONTROL_HZ,
        safety: SafetyProbe | None = None,
    ) -> None:
        indices: np.ndarray | None = None
        count: Any = worlds
        if isinstance(worlds, (list, tuple, range, np.ndarray)):
            indices = _world_indices(worlds)
            count = len(indices)
        for name, value, least, most in (
            ("worlds", count, 1, MAX_WORLDS),
            ("chunk_steps", chunk_steps, CONTROL_HZ, 3600),
        ):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an int in [{least}, {most}], got {value!r}")
            if not least <= value <= most:
                raise ValueError(f"{name} must be in [{least}, {most}], got {value}")
        if on_chunk is not None and not callable(on_chunk):
            raise TypeError(f"on_chunk must be callable or None, got {on_chunk!r}")
        self.indices = np.arange(int(count), dtype=np.int64) if indices is None else indices
        self.worlds, self.chunk_steps = len(self.indices), int(chunk_steps)
        self._on_chunk, self._safety = on_chunk, safety
        self._kept: list[TrajectoryChunk] = []
        self._pending: list[_Transfer] = []
        self._idle: list[list[wp.array]] = []
        self._written = self._taken = 0
        self._sim: Simulator | None = None

    def bind(self, view: WorldView, task: TaskState, sim: Simulator) -> None:
        """Allocate for the worlds of an environment.

        Raises:
            RuntimeError: If the probe serves an environment already.
            ValueError: If the environment has fewer worlds than are to be recorded.
        """
        from . import kernels_trajectory as kernels

        if self._sim is not None:
            raise RuntimeError("this TrajectoryProbe serves another environment; make one per environment")
        if self.indices.max() >= view.num_worlds:
            asked = self.worlds if self.indices.max() == self.worlds - 1 else int(self.indices.max())
            raise ValueError(
                f"worlds is {asked}; the environment has num_worlds={view.num_worlds}, record at most those"
            )
        load_module(kernels, sim.device)
        inputs = kernels.TrajectoryInputs()
        for name in ("body_q", "body_qd", "command", "forward_accel", "steer_angle", "valid", "step", "seed"):
            setattr(inputs, name, getattr(view, name))
        inputs.wheel_load, inputs.wheel_friction = sim.wheel_load, sim.wheel_friction
        inputs.event, inputs.num_vehicles = task.event, view.num_vehicles
        inputs.conflict = self._conflict(view.num_worlds, view.num_vehicles, sim.device)

        # A decision is at most a chunk long, so what was not taken yet never fills two chunks.
        slots, shape = 2 * self.chunk_steps, (self.worlds, view.num_vehicles)
        ring = kernels.TrajectoryRing()
        ring.data = wp.zeros((slots, *shape, len(TRAJECTORY)), dtype=float, device=sim.device)
        ring.step = wp.zeros((slots, self.worlds), dtype=wp.int32, device=sim.device)
        ring.seed = wp.zeros((slots, self.worlds), dtype=wp.uint64, device=sim.device)
        row = np.full(view.num_worlds, -1, dtype=np.int32)
        row[self.indices] = np.arange(self.worlds, dtype=np.int32)
        ring.row = wp.array(row, dtype=wp.int32, device=sim.device)
        ring.slot = wp.zeros(shape, dtype=wp.int32, device=sim.device)
        ring.last_step = wp.zeros(shape, dtype=wp.int32, device=sim.device)
        self._kernels, self._inputs, self._ring, self._sim = kernels, inputs, ring, sim
        self._stream_of, self._device = sim.shards.torch_stream, sim.device

    def _conflict(self, worlds: int, vehicles: int, device: wp.Device) -> wp.array:
        if self._safety is None:
            return wp.full((worlds, vehicles), wp.vec2(np.nan, np.nan), dtype=wp.vec2, device=device)
        conflict = self._safety.conflict
        if conflict.shape != (worlds, vehicles):
            raise ValueError("safety serves another environment; give the SafetyProbe that stands before this probe")
        return conflict

    def record(self, launches: LaunchList) -> None:
        """Append the rows of a control step."""
        launches.add(self._kernels.write_rows, [self._inputs, self._ring], per_world=(self._inputs.num_vehicles,))

    def record_reset(self, launches: LaunchList, mask: wp.array) -> None:
        """Append the restart of the step counts of masked worlds."""
        launches.add(self._kernels.restart_rows, [mask, self._ring])

    def advanced(self, steps: int) -> None:
        """Take full chunks off the ring and hand over those that have arrived."""
        self._written += steps
        while self._written - self._taken >= self.chunk_steps:
            self._take(self.chunk_steps)
        while self._pending and (self._pending[0].done is None or self._pending[0].done.is_complete):
            self._hand_over()

    def flush(self) -> None:
        """Hand over everything recorded so far; waits for the device."""
        if self._written > self._taken:
            self._take(self._written - self._taken)
        while self._pending:
            self._hand_over()

    def result(self) -> TrajectoryChunk:
        """Everything recorded so far, as one chunk; waits for the device.

        Raises:
            RuntimeError: If the chunks went to ``on_chunk`` or nothing was recorded.
        """
        if self._on_chunk is not None:
            raise RuntimeError("the rows of this TrajectoryProbe went to on_chunk; collect them there")
        self.flush()
        if not self._kept:
            raise RuntimeError("this TrajectoryProbe has recorded nothing; step an environment that has it as a probe")
        whole = (np.concatenate([getattr(c, name) for c in self._kept]) for name in ("step", "seed", "data"))
        self._kept = [TrajectoryChunk(*whole)]
        return self._kept[0]

    def _hand_over(self) -> None:
        transfer = self._pending.pop(0)
        arrays = transfer.arrays
        if transfer.done is not None:
            wp.synchronize_event(transfer.done)
            arrays = [array.copy() for array in arrays]
        if transfer.pinned is not None:
            self._idle.append(transfer.pinned)
        step, seed, data = arrays
        data[step < 0] = np.nan
        chunk = TrajectoryChunk(step, seed, data)
        if self._on_chunk is None:
            self._kept.append(chunk)
        else:
            self._on_chunk(chunk)

    def _take(self, count: int) -> None:
        """Start copying the oldest ``count`` control steps to the host."""
        sources = (self._ring.step, self._ring.seed, self._ring.data)
        slots = self._ring.step.shape[0]
        begin = self._taken % slots
        first = min(count, slots - begin)
        parts = [(begin, 0, first)] + ([(0, first, count - first)] if first < count else [])
        self._taken += count
        if self._device.is_cpu:
            arrays = [source.numpy() for source in sources]
            copies = [np.concatenate([array[at : at + size] for at, _, size in parts]) for array in arrays]
            self._pending.append(_Transfer(copies))
            return
        stream = self._stream_of()
        # Memory that is handed back is used again: freeing pinned memory waits for the device.
        targets = self._idle.pop() if self._idle else [self._pinned(source) for source in sources]
        for source, target in zip(sources, targets, strict=True):
            row = source.size // slots
            for at, to, size in parts:
                wp.copy(target, source, dest_offset=to * row, src_offset=at * row, count=size * row, stream=stream)
        arrays = [target.numpy()[:count] for target in targets]
        self._pending.append(_Transfer(arrays, done=stream.record_event(), pinned=targets))

    def _pinned(self, source: wp.array) -> wp.array:
        return wp.empty((self.chunk_steps, *source.shape[1:]), dtype=source.dtype, device="cpu", pinned=True)
