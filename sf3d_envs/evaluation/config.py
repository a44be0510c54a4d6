"""Arguments of an evaluation, checked in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..launches import MAX_WORLDS, check_threads
from ..registry import load_suite
from ..sim import check_solver
from .stats import BootstrapConfig

if TYPE_CHECKING:
    from ..agents import Agent
    from .executors import Executor

BENCHMARK_SEED0 = 100_000
"""First scenario seed of the benchmark's tiers (paper, sec. 5)."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What to evaluate and how to run it.

    Attributes:
        agents: Agent names, or agent objects; None takes those of the suite, or `idm17` if it names none.
        suite: Name of a suite in the registry, or path of a TOML file.
        conditions: Slugs to run; None runs the whole suite.
        tier: Tier of the suite: it sets `worlds` and `seed0`, which are left out then.
        worlds: Scenario seeds per condition.
        seed0: First scenario seed; the seeds are `seed0 ... seed0 + worlds - 1`.
        rich: Worlds of every cell whose trajectories are recorded at 60 Hz, the first ones; they need a result folder.
        device: `cpu` or `cuda:N`.
        threads: CPU threads of the simulator; None leaves the choice to it, and takes 1 per task with `ray`.
        horizon_s: Length of a run [s].
        solver: `vehicle`, or `xpbd` for the reference path on Newton's own solver, which is slower and runs on one
            thread. It is part of a result folder's identity.
        max_batch: Worlds simulated at once; None takes 128 on a CPU (64 per thread if that is more; a larger batch is
            not faster there) and 8192 on a GPU, or what half of the free memory holds. Results don't depend on it.
        executor: `local`, `ray` for the machines of a cluster, or an object (`executors.Executor`).
        ray_address: Address of a Ray cluster, or `auto`; None starts Ray on this machine.
        bootstrap: Interval settings.
        frozen: Freeze manifest that the evaluation must agree with; None checks nothing.
    """

    agents: Sequence[str | Agent] | None = None
    suite: str | Path = "ucx-conditions-1"
    conditions: Sequence[str] | None = None
    tier: str | None = None
    worlds: int = 32
    seed0: int = BENCHMARK_SEED0
    rich: int = 0
    device: str = "cpu"
    threads: int | None = None
    horizon_s: float = 66.0
    solver: str = "vehicle"
    max_batch: int | None = None
    executor: str | Executor = "local"
    ray_address: str | None = None
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    frozen: str | Path | None = None

    def __post_init__(self) -> None:
        """Take tier and agents from the suite; refuse values that cannot run."""
        suite = load_suite(self.suite)
        if self.tier is not None:
            tier = suite.tier(self.tier)
            for name, value, default in (("worlds", self.worlds, 32), ("seed0", self.seed0, BENCHMARK_SEED0)):
                if value not in (default, getattr(tier, name)):
                    raise ValueError(
                        f"{name} is {value}, but tier {tier.name!r} is {tier.worlds} worlds from seed {tier.seed0}; "
                        f"leave out one of them"
                    )
                object.__setattr__(self, name, getattr(tier, name))
        if self.agents is None:
            object.__setattr__(self, "agents", suite.agents or ("idm17",))
        for name, value, least in (
            ("worlds", self.worlds, 1),
            ("threads", self.threads, 1),
            ("max_batch", self.max_batch, 1),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; it must be >= {least}")
        if self.worlds > MAX_WORLDS:
            raise ValueError(f"worlds is {self.worlds}; it must be in 1 ... {MAX_WORLDS}")
        if not 0 <= self.rich <= self.worlds:
            raise ValueError(f"rich is {self.rich}; it must be in 0 ... worlds ({self.worlds})")
        check_threads(self.threads)
        check_solver(self.solver)
        if not 0 <= self.seed0 <= 2**64 - self.worlds:
            raise ValueError(f"seed0 is {self.seed0}; a scenario seed must be in 0 ... 2**64 - 1")
        if not self.agents:
            raise ValueError("agents is empty; give at least one agent")
