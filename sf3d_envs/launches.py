"""Recorded kernel launches over worlds, replayed by shards on threads.

A Warp CPU launch runs on one thread and releases the interpreter lock, and results never depend on how worlds are
split. So a step is recorded once per shard of worlds and each thread replays its own shard.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from itertools import groupby, pairwise
from typing import Any, ParamSpec, TypeVar

import warp as wp

MIN_WORLDS_TO_SHARD = 8
MAX_THREADS = 1024
MAX_WORLDS = 1_000_000
"""More worlds than a machine holds (about 0.1 MB each): a larger number is a slip."""


_CAPTURING = threading.RLock()


def _renew_lock() -> None:
    """In a forked child no thread is left that could release the parent's lock."""
    global _CAPTURING  # noqa: PLW0603
    _CAPTURING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


Params = ParamSpec("Params")
Result = TypeVar("Result")


def refuse_foreign_capture() -> None:
    """Refuse to launch or capture while the user's own code captures Warp launches on the CPU.

    Raises:
        RuntimeError: If it does: Warp would record our launches into the user's graph, or crash.
    """
    from ._warp import get_device

    if get_device("cpu").is_capturing:
        raise RuntimeError(
            "Warp is capturing launches on the CPU (wp.ScopedCapture or wp.capture_begin) somewhere in this process: "
            "make, reset and first step an environment or simulator before or after that"
        )


def outside_captures(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Keep a function that launches, copies or fills directly apart from the capture of graphs in other threads.

    Warp's capture is a state of the process: what another thread launches meanwhile would be recorded and not run. A
    replayed graph is not concerned.
    """

    @wraps(function)
    def apart(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with _CAPTURING:
            refuse_foreign_capture()
            return function(*args, **kwargs)

    return apart


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
        graphs: Whether lists of launches are captured as graphs; False launches one by one, with the same bits.
    """

    def __init__(self, num_worlds: int, device: wp.Device, threads: int, *, graphs: bool = True):
        count = min(threads, num_worlds) if device.is_cpu and num_worlds >= MIN_WORLDS_TO_SHARD else 1
        edges = [num_worlds * k // count for k in range(count + 1)]
        self.ranges = tuple(pairwise(edges))
        self.device = device
        self.graphs = graphs
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._closed = False

    def run(self, tasks: Sequence) -> None:
        """Run one callable per shard and wait for all.

        Raises:
            RuntimeError: After :meth:`close`.
        """
        if self._closed:
            raise RuntimeError("the simulator is closed; make a new one")
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
        """Stop the threads; any later run raises."""
        self._closed = True
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None


class _Call:
    """A Python function in a list of launches."""

    def __init__(self, function: Callable[[], None]):
        self._function = function

    def launch(self, stream: wp.Stream | None) -> None:
        """Run the function, its launches on ``stream``."""
        with wp.ScopedStream(stream):
            self._function()


class _Graph:
    """Consecutive launches, captured once: a launch from Python costs more than a small kernel runs."""

    def __init__(self, commands: Sequence[wp.Launch], device: wp.Device):
        self._commands = commands
        # Torch's usual stream is CUDA's default stream, on which nothing can be captured.
        aside = None if device.is_cpu else wp.Stream(device)
        with _CAPTURING:
            refuse_foreign_capture()
            self._graph = self._capture(device, aside)

    def _capture(self, device: wp.Device, aside: wp.Stream | None) -> Any:
        with wp.ScopedCapture(device, stream=aside) as capture:
            for command in self._commands:
                command.launch(aside)
        return capture.graph

    def launch(self, stream: wp.Stream | None) -> None:
        """Replay; inside somebody else's CUDA capture the launches are issued one by one, so that it records them."""
        if stream is not None and stream.is_capturing:
            for command in self._commands:
                command.launch(stream)
        else:
            wp.capture_launch(self._graph, stream)


class LaunchList:
    """A fixed list of launches, each over all worlds, replayed in order.

    Every kernel takes the first world of its shard as last argument and a launch dimension that starts with worlds. The
    first run captures the launches of each shard as a Warp graph (a CUDA graph on a GPU), which later runs replay
    without the interpreter.
    """

    def __init__(self, shards: Shards):
        self.shards = shards
        self._commands: list[list[wp.Launch | _Call]] = [[] for _ in shards.ranges]
        self._replays: list[list[_Graph | _Call]] | None = None

    def __len__(self) -> int:
        """Number of launches per run and shard."""
        return len(self._commands[0])

    def add(self, kernel: Any, inputs: Sequence, *, per_world: Sequence[int] = ()) -> None:
        """Record a launch whose dimension is worlds, then ``per_world``."""
        self._replays = None
        for commands, (begin, end) in zip(self._commands, self.shards.ranges, strict=True):
            command: Any = wp.launch(
                kernel,
                dim=(end - begin, *per_world),
                inputs=[*inputs, begin],
                device=self.shards.device,
                record_cmd=True,
            )
            commands.append(command)

    def call(self, function: Callable[[], None]) -> None:
        """Append a Python function that covers all worlds; the list must not be split over threads.

        Raises:
            ValueError: If it is split.
        """
        if len(self._commands) != 1:
            raise ValueError(f"a function covers all worlds, but they are split over {len(self._commands)} threads")
        self._replays = None
        self._commands[0].append(_Call(function))

    def extend(self, other: LaunchList) -> None:
        """Append the launches of another list over the same shards."""
        self._replays = None
        for mine, theirs in zip(self._commands, other._commands, strict=True):
            mine.extend(theirs)

    def run(self, repeat: int = 1) -> None:
        """Replay the list ``repeat`` times; each shard runs on its own thread, on CUDA on torch's current stream."""
        stream = self.shards.torch_stream()
        replays: Sequence[Sequence[Any]] = self._commands
        if self.shards.graphs:
            if self._replays is None:
                self._replays = [self._capture(commands) for commands in self._commands]
            replays = self._replays

        def replay(items: Sequence[Any]):
            def task() -> None:
                for _ in range(repeat):
                    for item in items:
                        item.launch(stream)

            return task

        self.shards.run([replay(items) for items in replays])

    def profile(self, repeat: int = 20) -> list[tuple[str, float]]:
        """Least time of each launch on the first shard, one by one from Python: (kernel name, seconds).

        The launches run, so the worlds of that shard move on.
        """
        stream = self.shards.torch_stream()
        times = []
        for command in self._commands[0]:
            best = float("inf")
            for _ in range(repeat):
                started = time.perf_counter()
                command.launch(stream)
                wp.synchronize_device(self.shards.device)
                best = min(best, time.perf_counter() - started)
            times.append((command.kernel.key if isinstance(command, wp.Launch) else "python", best))
        return times

    def _capture(self, commands: Sequence[wp.Launch | _Call]) -> list[_Graph | _Call]:
        """Graphs of the runs of launches between Python functions."""
        replays: list[_Graph | _Call] = []
        for launches, group in groupby(commands, key=lambda command: isinstance(command, wp.Launch)):
            if launches:
                replays.append(_Graph(list(group), self.shards.device))  # pyright: ignore[reportArgumentType]
            else:
                replays.extend(group)  # pyright: ignore[reportArgumentType]
        return replays
