"""Where cells are computed: in this process, or as Ray tasks on any machine of a cluster; the results are equal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..registry import Condition
from . import identity
from .cells import CellSettings, FinishedCell, compute_cells, condition_groups

if TYPE_CHECKING:
    from ..agents import Agent

Progress = Callable[[str, int, int], None]
"""Called with (label, control steps done, control steps in all), summed over worlds."""

EXECUTORS = ("local", "ray")


class CellFailed(RuntimeError):
    """Cells that an executor could not compute; the others are finished.

    Attributes:
        cells: Names `<agent>/<condition>`.
    """

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.cells = tuple(failures)
        listed = "; ".join(f"{cell}: {reason}" for cell, reason in failures.items())
        super().__init__(f"cells that failed: {listed}; the other cells are finished, the same command goes on")


class WorkerMismatch(RuntimeError):
    """A worker would compute something else than this process: other code, packages, device or agent."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Cells to compute.

    Attributes:
        agents: Agents by name.
        given: Agents by name, as they were asked for: a name or an object.
        cells: (agent name, condition) of every cell, agents one after the other.
        seeds: Scenario seeds of every cell.
        settings: How to compute.
    """

    agents: Mapping[str, Agent]
    given: Mapping[str, str | Agent]
    cells: Sequence[tuple[str, Condition]]
    seeds: Sequence[int]
    settings: CellSettings

    @property
    def cell_steps(self) -> int:
        """World-steps of a cell."""
        return len(self.seeds) * round(self.settings.horizon_s * 60)


@runtime_checkable
class Executor(Protocol):
    """Computes cells.

    Attributes:
        name: Name in `run.json`.
    """

    name: str

    def run(self, work: Work, scratch: Path | None, progress: Progress | None) -> Iterator[FinishedCell]:
        """Yield each cell as soon as it is finished, in any order.

        Args:
            work: What to compute.
            scratch: Folder for files under way; the receiver of a cell moves its files away.
            progress: Called now and then with the work of all cells.

        Raises:
            CellFailed: After everything else is finished, if cells failed on workers.
        """
        ...


class LocalExecutor:
    """Computes in this process, several conditions of one agent in one batch."""

    name = "local"

    def run(self, work: Work, scratch: Path | None, progress: Progress | None) -> Iterator[FinishedCell]:
        """Yield the cells of a batch when it has ended."""
        total, done = work.cell_steps * len(work.cells), 0
        for name, agent in work.agents.items():
            conditions = [condition for owner, condition in work.cells if owner == name]
            for group in condition_groups(conditions, len(work.seeds), work.settings.max_batch):
                first, last = group[0].slug, group[-1].slug
                label = f"{name}: {first}" if first == last else f"{name}: {first} ... {last}"
                tick = None if progress is None else _shifted(progress, label, done, total)
                if tick is not None:
                    tick(0)
                yield from compute_cells(agent, group, work.seeds, work.settings, scratch, tick)
                done += work.cell_steps * len(group)


def _shifted(progress: Progress, label: str, base: int, total: int) -> Callable[[int], None]:
    return lambda steps: progress(label, base + steps, total)


class RayExecutor:
    """Computes each cell as a Ray task, on this machine or any machine of a cluster.

    The package must be installed on every machine in the same version; a worker whose code, packages, device or agent
    differ refuses to compute. Results come back as bytes, so the machines need no common folder.

    Args:
        address: Address of a cluster, `auto` for the one that runs here; None starts Ray on this machine alone and
            stops it afterwards. A connection that exists already is used and kept.
        num_cpus: Cores of a Ray that is started here; None takes all.

    Raises:
        ImportError: If Ray is not installed.
    """

    name = "ray"

    def __init__(self, address: str | None = None, num_cpus: int | None = None) -> None:
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise ImportError("executor 'ray' needs Ray: pip install 'sf3d-envs[ray]'") from error
        self.address, self.num_cpus = address, num_cpus

    def run(self, work: Work, scratch: Path | None, progress: Progress | None) -> Iterator[FinishedCell]:
        """Yield cells as their tasks end."""
        import ray

        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            yield from self._collect(ray, work, progress)
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address is None:
            options |= {"include_dashboard": False, "num_cpus": self.num_cpus}
        try:
            ray.init(self.address, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = "on this machine" if self.address is None else f"at {self.address!r}"
            raise ConnectionError(f"no Ray {where}: {error}") from error

    def _collect(self, ray: Any, work: Work, progress: Progress | None) -> Iterator[FinishedCell]:
        settings = replace(work.settings, threads=work.settings.threads or 1)
        on_gpu = settings.device != "cpu"
        task = ray.remote(num_cpus=settings.threads, num_gpus=1 if on_gpu else 0)(compute_remote)
        expected = worker_facts(settings.device)
        waiting = {}
        for name, condition in work.cells:
            facts = {**expected, "agent": work.agents[name].digest}
            try:
                reference = task.remote(work.given[name], condition, list(work.seeds), settings, facts)
            except TypeError as error:
                raise TypeError(
                    f"agent {name!r} cannot travel to a Ray worker ({error}); pass its name, or a new object"
                ) from error
            waiting[reference] = f"{name}/{condition.slug}"
        total, done, failures = work.cell_steps * len(waiting), 0, {}
        if progress is not None:
            progress(f"{len(waiting)} cells", 0, total)
        try:
            while waiting:
                (reference,), _ = ray.wait(list(waiting), num_returns=1)
                cell = waiting.pop(reference)
                try:
                    finished = ray.get(reference)
                except ray.exceptions.RayError as error:
                    failures[cell] = _reason(error)
                    continue
                finally:
                    done += work.cell_steps
                    if progress is not None:
                        progress(f"{len(waiting)} cells left", done, total)
                yield finished
        finally:
            for reference in waiting:
                ray.cancel(reference, force=False)
        if failures:
            raise CellFailed(failures)


def _reason(error: BaseException) -> str:
    """What went wrong on a worker, in one line without its traceback."""
    cause = getattr(error, "cause", None) or error.__cause__
    if cause is None:
        lines = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {lines[0]}"
    return f"{type(cause).__name__}: {cause}"


def worker_facts(device: str) -> dict[str, Any]:
    """What must be the same on a worker as here: code, packages, kind of device."""
    return {
        "code": identity.code_digest(),
        "packages": identity.package_versions(),
        "device": identity.device_name(device),
    }


def compute_remote(
    given: str | Agent,
    condition: Condition,
    seeds: Sequence[int],
    settings: CellSettings,
    expected: Mapping[str, Any],
) -> FinishedCell:
    """Compute one cell on a worker, to bytes.

    Args:
        given: Agent name or object.
        condition: Condition of the cell.
        seeds: Scenario seeds.
        settings: How to compute.
        expected: `worker_facts` of the driver, and the agent's digest as `agent`.

    Returns:
        The finished cell; its files are bytes.

    Raises:
        WorkerMismatch: If this worker would compute something else.
    """
    from ..agents import make_agent
    from .store import differences

    agent = make_agent(given)
    here = {**worker_facts(settings.device), "agent": agent.digest}
    if found := differences(dict(expected), here):
        listed = "; ".join(f"{name}: {there} on the driver, {mine} here" for name, (there, mine) in found.items())
        raise WorkerMismatch(f"this worker differs ({listed}); install the driver's version on it")
    with tempfile.TemporaryDirectory(prefix="sf3d-") as folder:
        (cell,) = compute_cells(agent, [condition], seeds, settings, Path(folder))
        files = {k: v.read_bytes() if isinstance(v, Path) else v for k, v in cell.files.items()}
    return replace(cell, files=files)


def make_executor(executor: str | Executor, ray_address: str | None = None) -> Executor:
    """An executor by name, `local` or `ray`; an object is returned as it is.

    Raises:
        ValueError: If the name is unknown, or an address comes with another executor than `ray`.
        ImportError: If Ray is asked for and not installed.
    """
    if executor != "ray" and ray_address is not None:
        raise ValueError(f"ray_address is {ray_address!r}; it needs executor 'ray', got {executor!r}")
    if not isinstance(executor, str):
        return executor
    if executor not in EXECUTORS:
        raise ValueError(f"executor {executor!r} is unknown; known: {', '.join(map(repr, EXECUTORS))}")
    return RayExecutor(ray_address) if executor == "ray" else LocalExecutor()
