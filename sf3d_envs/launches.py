"""Recorded kernel launches over worlds, replayed by shards on threads.

A Warp CPU launch runs on one thread and releases the interpreter lock, and results never depend on how worlds are
split. So a step is recorded once per shard of worlds and each thread replays its own shard.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import warp as wp

MIN_WORLDS_TO_SHARD = 8
MAX_THREADS = 1024
MAX_WORLDS = 1_000_000
"""More worlds than a machine holds (about 0.1 MB each): a larger number is a slip."""


def usable_threads() -> int:
    """Number of cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> int:
    """Resolve the ``threads`` option: None means all usable cores.

    Raises:
        TypeError: If ``threads`` is not an int.
        ValueError: If ``threads`` < 1.
    """
    if threads is None:
        return usable_threads()
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads must be an int >= 1 or None, got {threads!r}")
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"threads must be in [1, {MAX_THREADS}], got {threads}")
    return threads


class Shards:
    """The split of worlds over threads and the pool that runs it.

    Args:
        num_worlds: Worlds W.
        device: Warp device; only a CPU is split.
        threads: Threads to use; below 8 worlds the calling thread does all.
    """

    def __init__(self, num_worlds: int, device: wp.Device, threads: int):
        count = min(threads, num_worlds) if device.is_cpu and num_worlds >= MIN_WORLDS_TO_SHARD else 1
        edges = [num_worlds * k // count for k in range(count + 1)]
        self.ranges = tuple(pairwise(edges))
        self.device = device
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def run(self, tasks: Sequence) -> None:
        """Run one callable per shard and wait for all."""
        if len(tasks) == 1:
            tasks[0]()
            return
        if self._pool is None or self._process != os.getpid():
            # A forked child inherits the pool but not its threads.
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(len(self.ranges) - 1, thread_name_prefix="sf3d")
        pending = [self._pool.submit(task) for task in tasks[1:]]
        tasks[0]()
        for item in pending:
            item.result()

    def torch_stream(self) -> wp.Stream | None:
        """Torch's current stream on a CUDA device, so that launches and torch's work stay in order; None on a CPU."""
        if self.device.is_cpu:
            return None
        import torch

        return wp.stream_from_torch(torch.cuda.current_stream(self.device.ordinal))

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None


class _Call:
    """A Python function with the interface of a recorded launch."""

    def __init__(self, function: Callable[[], None]):
        self._function = function

    def launch(self, stream: wp.Stream | None) -> None:
        """Run the function, its launches on ``stream``."""
        if stream is None:
            self._function()
        else:
            with wp.ScopedStream(stream):
                self._function()


class LaunchList:
    """A fixed list of launches, each over all worlds, replayed in order.

    Every kernel takes the first world of its shard as last argument and a launch dimension that starts with worlds.
    """

    def __init__(self, shards: Shards):
        self._shards = shards
        self._commands: list[list[Any]] = [[] for _ in shards.ranges]

    def add(self, kernel: Any, inputs: Sequence, *, per_world: Sequence[int] = ()) -> None:
        """Record a launch whose dimension is worlds, then ``per_world``."""
        for commands, (begin, end) in zip(self._commands, self._shards.ranges, strict=True):
            commands.append(
                wp.launch(
                    kernel,
                    dim=(end - begin, *per_world),
                    inputs=[*inputs, begin],
                    device=self._shards.device,
                    record_cmd=True,
                )
            )

    def call(self, function: Callable[[], None]) -> None:
        """Append a Python function that covers all worlds; the list must not be split over threads.

        Raises:
            ValueError: If it is split.
        """
        if len(self._commands) != 1:
            raise ValueError(f"a function covers all worlds, but they are split over {len(self._commands)} threads")
        self._commands[0].append(_Call(function))

    def extend(self, other: LaunchList) -> None:
        """Append the launches of another list over the same shards."""
        for mine, theirs in zip(self._commands, other._commands, strict=True):
            mine.extend(theirs)

    def run(self, repeat: int = 1) -> None:
        """Replay the list ``repeat`` times; each shard runs on its own thread, on CUDA on torch's current stream."""
        stream = self._shards.torch_stream()

        def replay(commands: list[Any]):
            def task() -> None:
                for _ in range(repeat):
                    for command in commands:
                        command.launch(stream)

            return task

        self._shards.run([replay(commands) for commands in self._commands])
