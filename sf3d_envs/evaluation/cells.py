"""Computing cells: one agent on conditions and worlds, to the bytes of the result files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..launches import usable_threads
from ..registry import Condition
from .batch import CONTROL_HZ, BatchResult, run_batch
from .columns import safety_columns
from .outcomes import RunLabels, vehicle_outcomes, world_outcomes
from .rich import RichWriter, merge_parts
from .store import parquet_bytes

if TYPE_CHECKING:
    from ..agents import Agent
    from .trajectory import TrajectoryChunk

CPU_BATCH, CPU_BATCH_PER_THREAD, GPU_BATCH = 128, 64, 8192
"""Worlds simulated at once: on a CPU at least the first and as many as keep its threads busy. Cells are finished batch
by batch, so a small one loses less to a kill; processor time per world was the same from 64 to 512 worlds."""
WORLD_BYTES, RICH_WORLD_BYTES = 100_000, 350_000
"""Memory of a world, and what a recorded one adds (ring and chunks) [bytes]; measured, rounded up."""


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """How cells are computed.

    Attributes:
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None leaves the choice to the simulator.
        horizon_s: Length of a run [s].
        solver: `vehicle`, or `xpbd` for the reference path.
        rich: Worlds of each cell whose trajectories are recorded, the first ones.
        max_batch: Worlds simulated at once.
    """

    device: str
    threads: int | None
    horizon_s: float
    solver: str
    rich: int
    max_batch: int


@dataclass(frozen=True, kw_only=True)
class FinishedCell:
    """Results of one cell.

    Attributes:
        name: `<agent>/<condition>`.
        files: File stem -> content, or path of a complete file that may be moved.
        record: Digests and errors, as JSON values.
        seconds: Wall time of its batches, shared evenly among the cells of a batch [s].
    """

    name: str
    files: Mapping[str, bytes | Path]
    record: Mapping[str, Any]
    seconds: float


def batch_limit(device: str, threads: int | None = None, rich_share: float = 0.0) -> int:
    """Worlds to simulate at once, fewer than planned where half of the free memory holds no more.

    Args:
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None means all usable ones.
        rich_share: Share of worlds whose trajectories are recorded.
    """
    from .._warp import get_device

    if device == "cpu":
        free, most = _free_memory(), max(CPU_BATCH, CPU_BATCH_PER_THREAD * (threads or usable_threads()))
    else:
        free, most = get_device(device).free_memory, GPU_BATCH
    each = WORLD_BYTES + rich_share * RICH_WORLD_BYTES
    return most if free is None else max(1, min(most, int(0.5 * free / each)))


def _free_memory() -> int | None:
    """Memory that new allocations can take [bytes]; None where the system does not tell."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def condition_groups(conditions: Sequence[Condition], worlds: int, limit: int) -> Iterator[Sequence[Condition]]:
    """Conditions that share a batch: as many as `limit` worlds hold, at least one, in groups of nearly equal size."""
    most = max(1, limit // worlds)
    count = -(-len(conditions) // most)
    begin = 0
    for i in range(count):
        end = begin + len(conditions) // count + (i < len(conditions) % count)
        yield conditions[begin:end]
        begin = end


def compute_cells(
    agent: Agent,
    conditions: Sequence[Condition],
    seeds: Sequence[int],
    settings: CellSettings,
    scratch: Path | None,
    progress: Callable[[int], None] | None = None,
) -> list[FinishedCell]:
    """Compute the cells of one agent on some conditions, in one batch, or in slices of the worlds if they are many.

    Args:
        agent: Drives all vehicles.
        conditions: C conditions, one cell each.
        seeds: S scenario seeds of every cell.
        settings: How to compute.
        scratch: Folder for files under way; needed if trajectories are recorded.
        progress: Called with world-steps done, of C·S times the control steps of a run.

    Returns:
        One finished cell per condition; what they hold does not depend on `max_batch` or the other conditions.
    """
    steps = round(settings.horizon_s * CONTROL_HZ)
    size = max(1, settings.max_batch // len(conditions))
    frames: list[dict[str, list[pl.DataFrame]]] = [{"vehicles": [], "worlds": []} for _ in conditions]
    parts: list[list[Path]] = [[] for _ in conditions]
    records: list[dict[str, Any]] = [{} for _ in conditions]
    started = time.perf_counter()
    for first in range(0, len(seeds), size):
        slice_seeds = seeds[first : first + size]
        base, worlds = first * len(conditions) * steps, len(slice_seeds) * len(conditions)
        rich = min(max(settings.rich - first, 0), len(slice_seeds))
        with ExitStack() as files:
            writers = []
            for i, condition in enumerate(conditions if rich else ()):
                assert scratch is not None
                path = scratch / f"{agent.name}-{condition.slug}-{first}.parquet"
                writers.append(RichWriter(path))
                files.callback(writers[i].close)
                parts[i].append(path)
            result = run_batch(
                agent,
                conditions,
                slice_seeds,
                device=settings.device,
                threads=settings.threads,
                horizon_s=settings.horizon_s,
                solver=settings.solver,
                progress=None if progress is None else _scaled(progress, base, worlds),
                rich_worlds=[i * len(slice_seeds) + j for i in range(len(conditions)) for j in range(rich)],
                on_chunk=_distribute(writers, rich) if rich else None,
            )
        for i, condition in enumerate(conditions):
            for stem, frame in _frames(agent, condition, slice_seeds, steps, result, i).items():
                frames[i][stem].append(frame)
            records[i] = _joined(records[i], result.record(i, len(slice_seeds)))
        if progress is not None:
            progress(base + worlds * steps)
    found = []
    for i, condition in enumerate(conditions):
        files_of: dict[str, bytes | Path] = {
            stem: parquet_bytes(pl.concat(pieces)) for stem, pieces in frames[i].items()
        }
        if parts[i]:
            merge_parts(parts[i], whole := parts[i][0].with_name(f"{agent.name}-{condition.slug}.parquet"))
            files_of["rich"] = whole
        seconds = (time.perf_counter() - started) / len(conditions)
        name = f"{agent.name}/{condition.slug}"
        found.append(FinishedCell(name=name, files=files_of, record=records[i], seconds=seconds))
    return found


def _scaled(progress: Callable[[int], None], base: int, worlds: int) -> Callable[[int], None]:
    return lambda steps: progress(base + steps * worlds)


def _distribute(writers: Sequence[RichWriter], rich: int) -> Callable[[TrajectoryChunk], None]:
    """Give every cell's writer its own worlds of a chunk."""

    def take(chunk: TrajectoryChunk) -> None:
        for i, writer in enumerate(writers):
            mine = slice(i * rich, (i + 1) * rich)
            writer.write(chunk.step[:, mine], chunk.seed[:, mine], chunk.data[:, mine])

    return take


def _frames(
    agent: Agent, condition: Condition, seeds: Sequence[int], steps: int, result: BatchResult, index: int
) -> dict[str, pl.DataFrame]:
    mine = slice(index * len(seeds), (index + 1) * len(seeds))
    labels = RunLabels(
        agent=agent.name,
        condition=[condition.slug] * len(seeds),
        scenario_seed=seeds,
        closing_lane=result.closing_lane,
        horizon_steps=steps,
    )
    task = {name: array[mine] for name, array in result.task.items()}
    safety = safety_columns({name: array[mine] for name, array in result.safety.items()})
    vehicles = pl.concat([vehicle_outcomes(task, labels), safety], how="horizontal")
    return {"vehicles": vehicles, "worlds": world_outcomes(task, labels, result.position[mine], result.extents)}


def _joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Records of the slices of one cell: lists grow, single digests stay."""
    return {k: [*before.get(k, []), *v] if isinstance(v, list) else v for k, v in now.items()}
