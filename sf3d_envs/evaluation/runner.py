"""Matched evaluation: agents over conditions on the same scenario seeds, in condition-major batches."""

from __future__ import annotations

import dataclasses
import datetime
import io
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..registry import Condition, Suite, load_suite
from ..sim.dynamics import CONTROL_HZ, SUBSTEPS
from . import figures, identity
from .batch import agent_is_row_invariant, decision_count
from .cells import CellSettings, FinishedCell, batch_limit
from .columns import metric_schema
from .config import BENCHMARK_SEED0, EvaluationConfig
from .errors import CellErrors, error_lines
from .executors import Progress, Work, make_executor
from .freeze import check_frozen
from .store import ResultStore, check_writable, file_digest, write_bytes, write_parquet
from .table import ConditionFacts, print_tables, summary_table, table_text

if TYPE_CHECKING:
    from ..agents import Agent


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Outcome of an evaluation.

    Attributes:
        vehicles: One row per vehicle (`columns.VEHICLE_TABLE_SCHEMA`), sorted by agent, condition, scenario_seed,
            vehicle.
        worlds: One row per world (`outcomes.WORLD_SCHEMA`), sorted likewise.
        table: One row per agent and condition (`table.SUMMARY_SCHEMA`), agents by name, conditions in suite order.
        manifest: What was run, as JSON values.
        out: Result folder, or None.
        computed: Cells `<agent>/<condition>` computed now; the others were reused.
        errors: Errors of the cells that had any (`errors.CellErrors`), reused cells included; also in the manifests.
    """

    vehicles: pl.DataFrame
    worlds: pl.DataFrame
    table: pl.DataFrame
    manifest: dict[str, Any]
    out: Path | None
    computed: tuple[str, ...]
    errors: CellErrors = field(default_factory=dict)

    def print(self) -> None:
        """Print the summary tables to the terminal."""
        print_tables(self.table)


class Evaluation:
    """A validated evaluation: building it checks every input and the result folder, `run` computes.

    Args:
        config: What to evaluate.
        out: Result folder; None keeps everything in memory.
        recompute: Cells `<agent>/<condition>`, or merged files such as `table.csv`, to make again although they are
            finished.

    Raises:
        ValueError: For an unknown agent, suite, condition or device, a value out of range, an unwritable folder, or a
            folder that holds a different evaluation (`store.ManifestConflict`).
        FrozenMismatch: If it disagrees with `config.frozen`.
        DamagedCell: If a finished cell or a merged file in `out` was changed.
        ImportError: If the executor needs a package that is not installed.
    """

    def __init__(self, config: EvaluationConfig, out: str | Path | None = None, recompute: Sequence[str] = ()) -> None:
        """Validate; nothing is computed or written."""
        from ..agents import make_agent

        self.config = config
        self.suite: Suite = load_suite(config.suite)
        self.conditions = _select(self.suite, config.conditions)
        self.device = identity.check_device(config.device)
        self.executor = make_executor(config.executor, config.ray_address)
        try:
            made = [(make_agent(given), given) for given in config.agents or ()]
        except ValueError as error:
            if config.agents == self.suite.agents:
                raise ValueError(f"agents of suite {self.suite.name!r}: {error}") from error
            raise
        self.agents = {agent.name: agent for agent, _ in made}
        self._given = {agent.name: given for agent, given in made}
        if len(self.agents) != len(made):
            raise ValueError(f"agents is {[agent.name for agent, _ in made]}; each agent may appear once")
        for agent in self.agents.values():
            _check_agent(agent)
            decision_count(config.horizon_s, agent.decision_hz)
        self.seeds = [config.seed0 + i for i in range(config.worlds)]
        self._by_cell = {f"{name}/{c.slug}": (name, c) for name in self.agents for c in self.conditions}
        self.out = None if out is None else check_writable(out)
        if self.out is not None:
            for name in (*self._output_names(), "run.json"):
                if (self.out / name).is_dir():
                    raise ValueError(
                        f"--out is {str(out)!r}, but its {name!r} is a folder; move it or give another folder"
                    )
        elif recompute:
            raise ValueError(f"recompute is {list(recompute)}; it needs a result folder")
        elif config.rich:
            raise ValueError(f"rich is {config.rich}; trajectories go to files, so it needs a result folder")
        self.store = ResultStore(self.out or Path("."), self._identity(), self._cell_identities())
        self.finished = [] if out is None else self.store.check(recompute, self._output_names())
        self.frozen = None if config.frozen is None else check_frozen(config.frozen, self)

    def _output_names(self) -> tuple[str, ...]:
        pictures = [name for agent in self.agents for name in (f"passage-{agent}.png", f"matched-{agent}.png")]
        return ("vehicles.parquet", "worlds.parquet", "table.csv", "table.txt", "manifest.json", *pictures)

    def _identity(self) -> dict[str, Any]:
        """What decides the results and is the same for all cells."""
        config = self.config
        return {
            "suite": self.suite.name,
            "suite_digest": self.suite.digest,
            "worlds": config.worlds,
            "seed0": config.seed0,
            "rich": config.rich,
            "rules": "scoring",
            "horizon_s": config.horizon_s,
            "control_hz": CONTROL_HZ,
            "substeps": SUBSTEPS,
            "solver": config.solver,
            "device": identity.device_name(self.device),
            "packages": identity.package_versions(),
            "code": identity.code_digest(),
            "metrics": metric_schema(),
        }

    def _cell_identities(self) -> dict[str, dict[str, Any]]:
        """What decides the results of one cell alone; the terrain follows from condition and suite."""
        agents = {
            name: {
                "agent_digest": agent.digest,
                "checkpoint_digest": getattr(agent, "checkpoint_digest", None),
                "decision_hz": agent.decision_hz,
            }
            for name, agent in self.agents.items()
        }
        return {cell: agents[name] for cell, (name, _) in self._by_cell.items()}

    @property
    def missing(self) -> list[str]:
        """Cells that `run` will compute."""
        return [cell for cell in self.store.cells if cell not in self.finished]

    def run(self, progress: Progress | None = None) -> EvaluationResult:
        """Compute the missing cells, merge all cells, and write tables and pictures.

        An interrupt or a kill leaves finished cells in place; the next run with the same configuration goes on from
        there, and the files it ends with are those of a run that was never interrupted (`run.json` apart, which holds
        the times). A complete folder is read, and nothing in it is touched.

        Args:
            progress: Called after each stretch of simulation, with the work of all missing cells.

        Returns:
            The results of all cells, reused ones included.

        Raises:
            executors.CellFailed: If cells failed on workers; the others are finished.
            store.FolderInUse: If another process is writing to the folder.
        """
        if self.out is None:
            cells = {cell.name: cell for cell in self.executor.run(self._work(), None, progress)}
            for cell in cells.values():
                self._stamped(cell)
            return self._in_memory(cells)
        if self.store.complete:
            vehicles, worlds = (pl.read_parquet(self.out / f"{stem}.parquet") for stem in ("vehicles", "worlds"))
            return self._result(vehicles, worlds, self.store.read_manifest(), ())
        with self.store.writing() as scratch:
            return self._compute(scratch, progress)

    def _work(self) -> Work:
        config = self.config
        settings = CellSettings(
            device=self.device,
            threads=config.threads,
            horizon_s=config.horizon_s,
            solver=config.solver,
            rich=config.rich,
            max_batch=config.max_batch or batch_limit(self.device, config.threads, config.rich / config.worlds),
        )
        cells = [self._by_cell[cell] for cell in self.missing]
        return Work(agents=self.agents, given=self._given, cells=cells, seeds=self.seeds, settings=settings)

    def _compute(self, scratch: Path, progress: Progress | None) -> EvaluationResult:
        assert self.out is not None
        started = time.perf_counter()
        computed = tuple(self.missing)
        run: dict[str, Any] = {
            "started": datetime.datetime.now(datetime.UTC).isoformat(),
            "executor": self.executor.name,
            "threads": self.config.threads,
            "machine": identity.machine(),
            "reused": len(self.finished),
            "cells": {},
        }

        def note() -> None:
            self.store.write_run({**run, "seconds": round(time.perf_counter() - started, 3)})

        self.store.begin_commit()
        if computed:
            for cell in self.executor.run(self._work(), scratch, progress):
                self.store.write_cell(cell.name, cell.files, self._stamped(cell))
                run["cells"][cell.name] = round(cell.seconds, 3)
                note()
        records = {cell: self.store.read_record(cell) for cell in self.store.cells}
        vehicles = self.store.read_cells("vehicles").sort("agent", "condition", "scenario_seed", "vehicle")
        worlds = self.store.read_cells("worlds").sort("agent", "condition", "scenario_seed")
        table = self._table(vehicles)
        files = {
            "vehicles.parquet": write_parquet(self.out / "vehicles.parquet", vehicles),
            "worlds.parquet": write_parquet(self.out / "worlds.parquet", worlds),
            "table.csv": write_bytes(self.out / "table.csv", table.write_csv().encode()),
            "table.txt": write_bytes(self.out / "table.txt", table_text(table).encode()),
        }
        for agent in self.agents.values():
            pictures = figures.write_figures(
                self.out,
                table,
                agent,
                self.conditions,
                self.seeds[0],
                horizon_s=self.config.horizon_s,
                device=self.device,
                solver=self.config.solver,
            )
            files |= {path.name: file_digest(path) for path in pictures}
        record = {**self._record(), "errors": _errors(records)}
        note()
        return self._result(vehicles, worlds, self.store.commit(files, record), computed)

    def _stamped(self, cell: FinishedCell) -> Mapping[str, Any]:
        """Record of a cell; one that disagrees with the freeze manifest raises FrozenMismatch."""
        return cell.record if self.frozen is None else self.frozen.check_record(cell.name, cell.record, self.seeds)

    def _in_memory(self, cells: Mapping[str, FinishedCell]) -> EvaluationResult:
        def joined(stem: str, *keys: str) -> pl.DataFrame:
            frames = [pl.read_parquet(io.BytesIO(_content(cells[cell], stem))) for cell in self.store.cells]
            return pl.concat(frames).sort("agent", "condition", "scenario_seed", *keys)

        errors = _errors({cell: cells[cell].record for cell in self.store.cells})
        manifest = {"identity": self.store.identity, "cells": self.store.cells, "record": {"errors": errors}}
        return self._result(joined("vehicles", "vehicle"), joined("worlds"), manifest, tuple(self.store.cells))

    def _table(self, vehicles: pl.DataFrame) -> pl.DataFrame:
        return summary_table(vehicles, [condition_facts(c) for c in self.conditions], self.config.bootstrap)

    def _result(
        self, vehicles: pl.DataFrame, worlds: pl.DataFrame, manifest: dict[str, Any], computed: tuple[str, ...]
    ) -> EvaluationResult:
        return EvaluationResult(
            vehicles=vehicles,
            worlds=worlds,
            table=self._table(vehicles),
            manifest=manifest,
            out=self.out,
            computed=computed,
            errors=manifest["record"]["errors"],
        )

    def _record(self) -> dict[str, Any]:
        """What describes the evaluation without deciding its results; the same however it was computed."""
        probe = (self.conditions[0], self.conditions[-1], self.seeds[-1], self.device, self.config.solver)
        return {
            "row_invariant": {name: agent_is_row_invariant(agent, *probe) for name, agent in self.agents.items()},
            "bootstrap": dataclasses.asdict(self.config.bootstrap),
            "conditions": [condition_facts(c).__dict__ for c in self.conditions],
            "writers": identity.writer_versions(),
            **({} if self.frozen is None else {"frozen": self.frozen.digest}),
        }


def _check_agent(agent: Agent) -> None:
    """Refuse an agent whose name, digest or decision rate cannot be recorded."""
    for name in ("name", "digest"):
        value = getattr(agent, name)
        if not isinstance(value, str) or not value:
            raise ValueError(f"agent.{name} is {value!r}; it must be a text")
    rate = agent.decision_hz
    if isinstance(rate, bool) or not isinstance(rate, int) or rate < 1 or CONTROL_HZ % rate:
        raise ValueError(f"agent {agent.name!r} has decision_hz={rate!r}; it must be an int that divides {CONTROL_HZ}")


def _content(cell: FinishedCell, stem: str) -> bytes:
    content = cell.files[stem]
    return content.read_bytes() if isinstance(content, Path) else content


def _errors(records: Mapping[str, Mapping[str, Any]]) -> CellErrors:
    """Errors of the cells that had any."""
    return {cell: record["errors"] for cell, record in records.items() if record.get("errors")}


def _select(suite: Suite, slugs: Sequence[str] | None) -> list[Condition]:
    """Conditions in suite order; an unknown or repeated slug raises ValueError."""
    if slugs is None:
        return list(suite.conditions)
    if not slugs:
        raise ValueError("conditions is empty; leave it out to run the whole suite")
    chosen = {suite[slug].slug for slug in slugs}
    if len(chosen) != len(slugs):
        raise ValueError(f"conditions is {list(slugs)}; each condition may appear once")
    return [c for c in suite.conditions if c.slug in chosen]


def condition_facts(condition: Condition) -> ConditionFacts:
    """Friction (1 without a patch) and grade of a condition."""
    friction = 1.0 if condition.friction is None else float(condition.friction)
    return ConditionFacts(slug=condition.slug, friction=friction, grade=float(condition.grade or 0.0))


def evaluate(
    agents: str | Agent | Sequence[str | Agent] | None = None,
    *,
    out: str | Path | None = None,
    progress: bool = False,
    **settings: Any,
) -> EvaluationResult:
    """Evaluate agents over the conditions of a suite on the same worlds.

    Example:
        ```python
        from sf3d_envs.evaluation import evaluate

        result = evaluate("idm17", conditions=["reference", "mu018"], worlds=8)
        result.print()
        ```

    Args:
        agents: One agent or several, by name or as objects; None takes those of the suite, or `idm17`.
        out: Result folder; finished cells in it are reused. None keeps the results in memory.
        progress: Show a progress bar on stderr.
        **settings: Further fields of `EvaluationConfig`.

    Returns:
        Vehicle, world and summary tables.

    Raises:
        ValueError: As `Evaluation`.
        DamagedCell: As `Evaluation`.

    Warns:
        RuntimeWarning: If an agent returned non-finite actions, or a world had another error; one line for each kind.
    """
    one = isinstance(agents, str) or not isinstance(agents, Sequence)
    listed = None if agents is None else [agents] if one else list(agents)
    evaluation = Evaluation(EvaluationConfig(agents=listed, **settings), out)
    if progress:
        from .progress import progress_bar

        with progress_bar() as show:
            result = evaluation.run(show)
    else:
        result = evaluation.run()
    for line in error_lines(result.errors, evaluation.config.worlds):
        warnings.warn(line, RuntimeWarning, stacklevel=2)
    return result


__all__ = ["BENCHMARK_SEED0", "Evaluation", "EvaluationConfig", "EvaluationResult", "condition_facts", "evaluate"]
