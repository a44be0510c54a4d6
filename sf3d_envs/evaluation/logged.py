"""What a logged evaluation run measures besides outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .safety import SafetyProbe
from .trajectory import TrajectoryChunk, TrajectoryProbe


def logging_probes(
    rich_worlds: int | Sequence[int] = 0, on_chunk: Callable[[TrajectoryChunk], object] | None = None
) -> tuple[SafetyProbe, *tuple[TrajectoryProbe, ...]]:
    """Probes of a logged run, for ``TorchEnv(probes=...)``: safety measures, and trajectories if asked for.

    Args:
        rich_worlds: Worlds whose trajectories are recorded at 60 Hz: how many of the first ones, or a list of indices;
            0 or an empty list = none.
        on_chunk: Takes the trajectories chunk by chunk; None keeps them in memory.

    Returns:
        A :class:`SafetyProbe`, followed by a :class:`TrajectoryProbe` if worlds are to be recorded; new ones for each
        call.

    Raises:
        TypeError, ValueError: If ``rich_worlds`` is no int >= 0 or ``on_chunk`` is not callable.
    """
    counted = isinstance(rich_worlds, int)
    if isinstance(rich_worlds, (bool, str)) or not isinstance(rich_worlds, (int, Sequence)):
        raise TypeError(f"rich_worlds must be an int >= 0, got {rich_worlds!r}")
    if counted and rich_worlds < 0:
        raise ValueError(f"rich_worlds must be an int >= 0, got {rich_worlds}")
    safety = SafetyProbe()
    return (safety, TrajectoryProbe(rich_worlds, on_chunk=on_chunk, safety=safety)) if rich_worlds else (safety,)
