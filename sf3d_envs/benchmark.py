"""Throughput of the simulator and of the environment: vehicle-steps per second.

One vehicle-step is one vehicle for one control step of 1/60 s. A measurement is the median over stretches that all
start from the same placed vehicles, so it does not depend on how long it lasts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

    from .launches import LaunchList

BENCH_SCHEMA = "sf3d.bench/1"
MODES = ("physics", "env", "log")

_STRETCH_STEPS = 120
"""Control steps of one stretch, 2 s: cars neither stop nor leave the road."""
_WARMUP_STRETCHES = 2
_MIN_STRETCHES = 3
_DECISION_HZ = 10
_RICH_WORLDS = 64
_SEED0 = 100_000


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """One row of a benchmark.

    Attributes:
        worlds: Number of worlds, each with twelve vehicles.
        mode: `physics`: `Simulator.control_step` alone; `env`: `TorchEnv.step` with observation, events and reward at
            10 Hz; `log`: the same with safety measures of all worlds and trajectories of the first 64.
        solver: `vehicle` or `xpbd`.
        threads: CPU threads; None takes all usable cores. `xpbd` runs on one.
        device: `cpu` or `cuda:N`.
        seconds: Least time to measure [s]; at least three stretches are taken whatever it is.
    """

    worlds: int
    mode: str = "physics"
    solver: str = "vehicle"
    threads: int | None = None
    device: str = "cpu"
    seconds: float = 3.0

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        from ._warp import get_device
        from .launches import MAX_WORLDS, check_threads
        from .sim import SOLVERS

        if not 1 <= self.worlds <= MAX_WORLDS:
            raise ValueError(f"worlds is {self.worlds}; it must be in [1, {MAX_WORLDS}]")
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r} is unknown; known: {', '.join(MODES)}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver {self.solver!r} is unknown; known: {', '.join(SOLVERS)}")
        if not self.seconds > 0.0:
            raise ValueError(f"seconds is {self.seconds}; it must be positive")
        check_threads(self.threads)
        get_device(self.device)


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Figures of one row.

    Attributes:
        worlds: As in the config.
        mode: As in the config.
        solver: As in the config.
        threads: CPU threads used (few worlds run on one, `xpbd` always does); 1 on a GPU.
        device: As in the config.
        vehicle_steps_per_s: Median rate of vehicle-steps [1/s].
        env_steps_per_s: Median rate of world decisions at 10 Hz [1/s]; None for `physics`.
        peak_mem_mb: Peak resident memory of the process during the row, or peak device memory on a GPU [MB].
    """

    worlds: int
    mode: str
    solver: str
    threads: int
    device: str
    vehicle_steps_per_s: float
    env_steps_per_s: float | None
    peak_mem_mb: float


@dataclass(frozen=True, kw_only=True)
class LaunchCost:
    """Cost of one kernel in a step.

    Attributes:
        kernel: Name of the kernel.
        launches_per_s: Launches per simulated second.
        launch_us: Least time of a launch [µs].
        vehicle_step_ns: Its part of a vehicle-step [ns].
        share: Its part of all launches.
    """

    kernel: str
    launches_per_s: float
    launch_us: float
    vehicle_step_ns: float
    share: float


class _PeakMemory:
    """Peak memory since construction [MB]: resident memory of the process on a CPU, Warp's pool on a GPU."""

    def __init__(self, device: Any) -> None:
        self._device = device
        if device.is_cpu and sys.platform == "linux":
            try:
                with open("/proc/self/clear_refs", "w") as file:
                    file.write("5")
            except OSError:
                pass  # Without the right to reset it, the peak is that of the process so far.

    def read(self) -> float:
        import warp as wp

        if not self._device.is_cpu:
            return wp.get_mempool_used_mem_high(self._device) / 1e6
        if sys.platform == "linux":
            with open("/proc/self/status") as file:
                for line in file:
                    if line.startswith("VmHWM:"):
                        return float(line.split()[1]) * 1024 / 1e6
        import resource  # not on Windows

        scale = 1.0 if sys.platform == "darwin" else 1024.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


def _mild_commands(worlds: int, vehicles: int) -> np.ndarray:
    """Constant requests [W, V, 2], another for each vehicle: within ±1 m/s² and ±0.02 of full steering."""
    phase = np.linspace(0.0, 2.0 * np.pi, vehicles, endpoint=False)
    commands = np.stack([np.cos(phase), 0.02 * np.sin(phase)], axis=-1).astype(np.float32)
    return np.broadcast_to(commands, (worlds, vehicles, 2)).copy()


@dataclass(frozen=True)
class _Workload:
    """What is measured: start afresh, run one stretch, free the memory; and the launches of a stretch, with counts."""

    prepare: Callable[[], object]
    stretch: Callable[[], object]
    close: Callable[[], object]
    launches: Sequence[tuple[LaunchList, int]]


def _physics(config: BenchConfig) -> _Workload:
    """A simulator on the reference road."""
    import warp as wp

    from .registry import load_condition
    from .scenario.lane_closure import sample_lane_closure
    from .sim.simulator import Simulator
    from .terrain.lane_closure import lane_closure_terrain

    sim = Simulator(
        config.worlds,
        [lane_closure_terrain(load_condition("reference"))],
        device=config.device,
        threads=config.threads,
        solver=config.solver,
    )
    scenarios = [sample_lane_closure(_SEED0 + w) for w in range(config.worlds)]
    position = np.zeros((config.worlds, sim.num_vehicles, 3))
    position[..., 0] = [s.start_x for s in scenarios]
    position[..., 1] = [s.start_y for s in scenarios]
    position[..., 2] = sim.vehicles[0].rest_height
    speed = np.array([s.start_speed for s in scenarios])
    everywhere = np.ones(config.worlds, dtype=bool)
    commands = wp.array(_mild_commands(config.worlds, sim.num_vehicles), dtype=wp.vec2, device=config.device)

    def place() -> None:
        sim.place(everywhere, position, 0.0, speed)
        wp.copy(sim.command, commands)

    return _Workload(place, lambda: sim.control_step(_STRETCH_STEPS), sim.close, [(sim.step_launches, _STRETCH_STEPS)])


def _env(config: BenchConfig) -> _Workload:
    """An environment that controls all vehicles, with logging in the mode `log`."""
    import torch

    from .envs.torch_env import TorchEnv
    from .evaluation.logged import logging_probes

    probes = ()
    if config.mode == "log":
        probes = logging_probes(min(_RICH_WORLDS, config.worlds), on_chunk=lambda chunk: None)

    env = TorchEnv(
        num_worlds=config.worlds,
        control="all",
        decision_hz=_DECISION_HZ,
        solver=config.solver,
        device=config.device,
        threads=config.threads,
        probes=probes,
    )
    actions = torch.from_numpy(_mild_commands(config.worlds, env.view.num_vehicles)).to(env.view.observation().device)

    def stretch() -> None:
        for _ in range(_STRETCH_STEPS * _DECISION_HZ // 60):
            env.step(actions)

    decisions = _STRETCH_STEPS * _DECISION_HZ // 60
    launches = [(item, count * decisions) for item, count in env.step_launches()]
    return _Workload(lambda: env.reset(seed=_SEED0), stretch, env.close, launches)


def measure(config: BenchConfig) -> BenchResult:
    """Measure one row; building and warm-up are not counted.

    Args:
        config: What to measure.

    Returns:
        The figures.
    """
    import warp as wp

    from ._warp import get_device
    from .launches import Shards, check_threads

    device = get_device(config.device)
    memory = _PeakMemory(device)
    work = (_physics if config.mode == "physics" else _env)(config)
    taken: list[float] = []
    try:
        for i in range(sys.maxsize):
            work.prepare()
            wp.synchronize_device(device)
            started = time.perf_counter()
            work.stretch()
            wp.synchronize_device(device)
            if i >= _WARMUP_STRETCHES:
                taken.append(time.perf_counter() - started)
            if len(taken) >= _MIN_STRETCHES and sum(taken) >= config.seconds:
                break
        peak = memory.read()
    finally:
        work.close()
    threads = 1
    if config.solver == "vehicle":
        threads = len(Shards(config.worlds, device, check_threads(config.threads)).ranges)
    per_second = config.worlds * _STRETCH_STEPS / statistics.median(taken)
    return BenchResult(
        worlds=config.worlds,
        mode=config.mode,
        solver=config.solver,
        threads=threads,
        device=str(device.alias),
        vehicle_steps_per_s=round(12 * per_second, 1),
        env_steps_per_s=round(per_second * _DECISION_HZ / 60, 1) if config.mode != "physics" else None,
        peak_mem_mb=round(peak, 1),
    )


def profile(config: BenchConfig) -> list[LaunchCost]:
    """What each launch of a step costs, one by one from Python on one thread; dearest first.

    A launch alone costs some microseconds more than within a captured graph, so with few worlds the sum is more than a
    step takes.
    """
    config = replace(config, threads=1)
    work = (_physics if config.mode == "physics" else _env)(config)
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    try:
        work.prepare()
        for _ in range(_WARMUP_STRETCHES):
            work.stretch()
        for launches, repeats in work.launches:
            for name, least in launches.profile():
                seconds[name] = seconds.get(name, 0.0) + least * repeats
                counts[name] = counts.get(name, 0) + repeats
    finally:
        work.close()
    total = sum(seconds.values())
    vehicle_steps = 12 * config.worlds * _STRETCH_STEPS
    costs = [
        LaunchCost(
            kernel=name,
            launches_per_s=60 * counts[name] / _STRETCH_STEPS,
            launch_us=1e6 * spent / counts[name],
            vehicle_step_ns=1e9 * spent / vehicle_steps,
            share=spent / total,
        )
        for name, spent in seconds.items()
    ]
    return sorted(costs, key=lambda cost: -cost.share)


def profile_table(config: BenchConfig, costs: Sequence[LaunchCost]) -> Table:
    """A profile for a terminal."""
    from rich import box
    from rich.table import Table

    title = f"Launches of {config.mode}, {config.worlds} worlds, solver {config.solver}, one thread"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("kernel", "per sim. s", "µs each", "ns/vehicle-step", "share"):
        table.add_column(name, justify="left" if name == "kernel" else "right", no_wrap=True)
    for cost in costs:
        numbers = (f"{cost.launches_per_s:.0f}", f"{cost.launch_us:,.1f}", f"{cost.vehicle_step_ns:,.1f}")
        table.add_row(cost.kernel, *numbers, f"{cost.share:.1%}")
    return table


def report(
    results: Sequence[BenchResult], profiles: Mapping[str, Sequence[LaunchCost]] | None = None
) -> dict[str, Any]:
    """All rows with general facts about the machine, as JSON values; profiles by a name, if there are any."""
    from .evaluation.identity import machine

    whole: dict[str, Any] = {"schema": BENCH_SCHEMA, "machine": machine(), "results": [asdict(r) for r in results]}
    if profiles:
        whole["profiles"] = {name: [asdict(cost) for cost in costs] for name, costs in profiles.items()}
    return whole


def report_table(results: Sequence[BenchResult]) -> Table:
    """All rows for a terminal."""
    from rich import box
    from rich.table import Table

    solvers = ", ".join(dict.fromkeys(r.solver for r in results))
    table = Table(title=f"Throughput (12 vehicles per world, solver {solvers})", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("worlds", "mode", "device", "threads", "vehicle-steps/s", "env steps/s", "peak MB"):
        table.add_column(name, justify="left" if name in ("mode", "device") else "right", no_wrap=True)
    for r in results:
        env_steps = "-" if r.env_steps_per_s is None else f"{r.env_steps_per_s:,.0f}"
        rates = (f"{r.vehicle_steps_per_s:,.0f}", env_steps, f"{r.peak_mem_mb:,.0f}")
        table.add_row(str(r.worlds), r.mode, r.device, str(r.threads), *rates)
    return table
