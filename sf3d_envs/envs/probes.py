"""Probes: objects that measure an environment from inside its step, on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import warp as wp

    from ..launches import LaunchList
    from ..observation.view import WorldView
    from ..sim.simulator import Simulator
    from ..task.kernels import TaskState


@runtime_checkable
class Probe(Protocol):
    """Adds launches to the end of every control step of one :class:`~sf3d_envs.envs.torch_env.TorchEnv`.

    A probe reads what it is bound to and writes only memory of its own, so it changes no trajectory. Its launches run
    after physics, routes, events and reward of the control step, in stepping and frozen worlds alike; a world was
    stepped if its step count changed.
    """

    def bind(self, view: WorldView, task: TaskState, sim: Simulator) -> None:
        """Allocate for the worlds of an environment; called once, before the step is recorded."""
        ...

    def record(self, launches: LaunchList) -> None:
        """Append what runs at the end of a control step; called for each list that steps the worlds."""
        ...

    def record_reset(self, launches: LaunchList, mask: wp.array) -> None:
        """Append what runs when the masked worlds (bool [W]) have been placed and their task state cleared."""
        ...

    def advanced(self, steps: int) -> None:
        """Take note, on the host, that ``steps`` further control steps were launched; must not wait for the device."""
        ...


def check_probes(probes: Any) -> tuple[Probe, ...]:
    """The ``probes`` argument as a tuple.

    Raises:
        TypeError: If it is no sequence of probe objects.
        ValueError: If it holds a probe twice.
    """
    if isinstance(probes, (str, bytes)) or not isinstance(probes, Sequence):
        raise TypeError(f"probes must be a sequence of Probe objects, got {probes!r}")
    for index, probe in enumerate(probes):
        if isinstance(probe, type) or not isinstance(probe, Probe):
            raise TypeError(
                f"probes[{index}] must be a Probe, an object with bind, record, record_reset and advanced, "
                f"got {probe!r}"
            )
        if any(probe is other for other in probes[:index]):
            raise ValueError(f"probes[{index}] is in the list twice: {probe!r}")
    return tuple(probes)
