"""Arguments of an evaluation, checked in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..launches import MAX_WORLDS, check_threads
from ..sim import check_solver
from .stats import BootstrapConfig

if TYPE_CHECKING:
    from ..agents import Agent

BENCHMARK_SEED0 = 100_000
"""First scenario seed of the benchmark's tiers (paper, sec. 5)."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What to evaluate and how to run it.

    Attributes:
        agents: Agent names, or agent objects.
        suite: Name of a suite in the registry, or path of a TOML file.
        conditions: Slugs to run; None runs the whole suite.
        worlds: Scenario seeds per condition.
        seed0: First scenario seed; the seeds are `seed0 ... seed0 + worlds - 1`.
        device: `cpu` or `cuda:N`.
        threads: CPU threads of the simulator; None leaves the choice to it.
        horizon_s: Length of a run [s].
        solver: `vehicle`, or `xpbd` for the reference path on Newton's own solver, which is slower and runs on one
            thread. It is part of a result folder's identity.
        max_batch: Worlds simulated at once; None takes 512 on a CPU (a larger batch is not faster there) and 8192 on a
            GPU.
        bootstrap: Interval settings.
        frozen: Freeze manifest that the evaluation must agree with; None checks nothing.
    """

    agents: Sequence[str | Agent] = ("idm17",)
    suite: str | Path = "ucx-conditions-1"
    conditions: Sequence[str] | None = None
    worlds: int = 32
    seed0: int = BENCHMARK_SEED0
    device: str = "cpu"
    threads: int | None = None
    horizon_s: float = 66.0
    solver: str = "vehicle"
    max_batch: int | None = None
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    frozen: str | Path | None = None

    def __post_init__(self) -> None:
        """Refuse values that cannot run."""
        for name, value, least in (
            ("worlds", self.worlds, 1),
            ("threads", self.threads, 1),
            ("max_batch", self.max_batch, 1),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; it must be >= {least}")
        if self.worlds > MAX_WORLDS:
            raise ValueError(f"worlds is {self.worlds}; it must be in 1 ... {MAX_WORLDS}")
        check_threads(self.threads)
        check_solver(self.solver)
        if not 0 <= self.seed0 <= 2**64 - self.worlds:
            raise ValueError(f"seed0 is {self.seed0}; a scenario seed must be in 0 ... 2**64 - 1")
        if not self.agents:
            raise ValueError("agents is empty; give at least one agent")
