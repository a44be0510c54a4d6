"""Matched evaluation: agents over conditions on the same scenario seeds, in condition-major batches."""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..registry import Condition, Suite, load_suite
from . import figures, identity
from .batch import BatchResult, agent_is_row_invariant, decision_count, run_batch
from .config import BENCHMARK_SEED0, EvaluationConfig
from .errors import CellErrors, error_lines
from .freeze import check_frozen
from .outcomes import RunLabels, vehicle_outcomes, world_outcomes
from .store import ResultStore, check_writable, file_digest, write_bytes, write_parquet
from .table import ConditionFacts, print_tables, summary_table, table_text

if TYPE_CHECKING:
    from ..agents import Agent

Progress = Callable[[str, int, int], None]
"""Called with (label, control steps done, control steps in all)."""


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Outcome of an evaluation.

    Attributes:
        vehicles: One row per vehicle (`outcomes.VEHICLE_SCHEMA`), sorted by agent, condition, scenario_seed, vehicle.
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
        recompute: Cells `<agent>/<condition>` to compute again although they are finished.

    Raises:
        ValueError: For an unknown agent, suite, condition or device, a value out of range, an unwritable folder, or a
            folder that holds a different evaluation (`store.ManifestConflict`).
        FrozenMismatch: If it disagrees with `config.frozen`.
        DamagedCell: If a finished cell in `out` was changed.
    """

    def __init__(self, config: EvaluationConfig, out: str | Path | None = None, recompute: Sequence[str] = ()) -> None:
        """Validate; nothing is computed or written."""
        from ..agents import make_agent

        self.config = config
        self.suite: Suite = load_suite(config.suite)
        self.conditions = _select(self.suite, config.conditions)
        self.device = identity.check_device(config.device)
        self.agents = {agent.name: agent for agent in (make_agent(a) for a in config.agents)}
        if len(self.agents) != len(config.agents):
            raise ValueError(
                f"agents is {[a.name for a in map(make_agent, config.agents)]}; each agent may appear once"
            )
        for agent in self.agents.values():
            decision_count(config.horizon_s, agent.decision_hz)
        self.seeds = [config.seed0 + i for i in range(config.worlds)]
        cells = {
            f"{name}/{condition.slug}": {"agent_digest": agent.digest, "decision_hz": agent.decision_hz}
            for name, agent in self.agents.items()
            for condition in self.conditions
        }
        self.out = None if out is None else check_writable(out)
        if self.out is not None:
            for name in self._output_names():
                if (self.out / name).is_dir():
                    raise ValueError(
                        f"--out is {str(out)!r}, but its {name!r} is a folder; move it or give another folder"
                    )
        self.store = ResultStore(self.out or Path("."), self._identity(), cells)
        self.finished = [] if out is None else self.store.check(recompute)
        if out is None and recompute:
            raise ValueError(f"recompute is {list(recompute)}; it needs a result folder")
        self.frozen = None if config.frozen is None else check_frozen(config.frozen, self)

    def _output_names(self) -> tuple[str, ...]:
        pictures = [name for agent in self.agents for name in (f"passage-{agent}.png", f"matched-{agent}.png")]
        return ("vehicles.parquet", "worlds.parquet", "table.csv", "table.txt", "manifest.json", *pictures)

    def _identity(self) -> dict[str, Any]:
        config = self.config
        return {
            "suite": self.suite.name,
            "suite_digest": self.suite.digest,
            "worlds": config.worlds,
            "seed0": config.seed0,
            "rules": "scoring",
            "horizon_s": config.horizon_s,
            "solver": config.solver,
            "device": identity.device_name(self.device),
            "packages": identity.package_versions(),
            "code": identity.code_digest(),
        }

    @property
    def missing(self) -> list[str]:
        """Cells that `run` will compute."""
        return [cell for cell in self.store.cells if cell not in self.finished]

    def run(self, progress: Progress | None = None) -> EvaluationResult:
        """Compute the missing cells, merge all cells, and write tables and pictures.

        An interrupt leaves finished cells in place; the next run with the same configuration goes on from there.

        Args:
            progress: Called after each stretch of simulation.

        Returns:
            The results of all cells, reused ones included.
        """
        computed = tuple(self.missing)
        memory: dict[str, dict[str, pl.DataFrame]] = {}
        records: dict[str, Any] = {}
        if self.out is not None and computed:
            self.store.begin_commit()
        total = sum(len(batch.seeds) * len(batch.conditions) for batch in self._batches()) * self._horizon_steps
        done = 0
        for batch in self._batches():
            base, worlds = done, len(batch.seeds) * len(batch.conditions)
            if progress is not None:
                progress(batch.label, base, total)
            tick = None if progress is None else _scaled(progress, batch.label, base, worlds, total)
            started = time.perf_counter()
            result = run_batch(
                self.agents[batch.agent],
                batch.conditions,
                batch.seeds,
                device=self.device,
                threads=self.config.threads,
                horizon_s=self.config.horizon_s,
                solver=self.config.solver,
                progress=tick,
            )
            seconds = (time.perf_counter() - started) / len(batch.conditions)
            done += worlds * self._horizon_steps
            for i, condition in enumerate(batch.conditions):
                cell = f"{batch.agent}/{condition.slug}"
                frames = self._frames(batch, result, i)
                parts = memory.get(cell)
                frames = frames if parts is None else {k: pl.concat([parts[k], frames[k]]) for k in frames}
                memory[cell] = frames
                record = _merge_records(records.get(cell), result.record(i, len(batch.seeds)), seconds)
                records[cell] = record
                if batch.last and self.frozen is not None:
                    record = self.frozen.check_record(cell, record, self.seeds)
                if batch.last and self.out is not None:
                    self.store.write_cell(cell, frames, record)
        return self._collect(memory, computed, self._errors(records))

    def _errors(self, records: Mapping[str, Any]) -> CellErrors:
        """Errors of the cells that had any, from this run or from the folder."""
        found = {}
        for cell in self.store.cells:
            record = records[cell] if cell in records else self.store.read_record(cell)
            if record.get("errors"):
                found[cell] = record["errors"]
        return found

    @property
    def _horizon_steps(self) -> int:
        return round(self.config.horizon_s * 60)

    def _batches(self) -> Iterator[_Batch]:
        """Missing cells in condition-major batches; a cell larger than a batch is split by seeds."""
        limit = self.config.max_batch or (512 if self.device == "cpu" else 8192)
        missing = set(self.missing)
        for name in self.agents:
            todo = [c for c in self.conditions if f"{name}/{c.slug}" in missing]
            per_batch = max(1, limit // len(self.seeds))
            for begin in range(0, len(todo), per_batch):
                group = todo[begin : begin + per_batch]
                for first in range(0, len(self.seeds), limit):
                    seeds = self.seeds[first : first + limit]
                    yield _Batch(name, group, seeds, last=seeds[-1] == self.seeds[-1])

    def _frames(self, batch: _Batch, result: BatchResult, index: int) -> dict[str, pl.DataFrame]:
        count = len(batch.seeds)
        mine = slice(index * count, (index + 1) * count)
        labels = RunLabels(
            agent=batch.agent,
            condition=[batch.conditions[index].slug] * count,
            scenario_seed=batch.seeds,
            closing_lane=result.closing_lane,
            horizon_steps=self._horizon_steps,
        )
        task = {name: array[mine] for name, array in result.task.items()}
        worlds = world_outcomes(task, labels, result.position[mine], result.extents)
        return {"vehicles": vehicle_outcomes(task, labels), "worlds": worlds}

    def _collect(
        self, memory: dict[str, dict[str, pl.DataFrame]], computed: tuple[str, ...], errors: CellErrors
    ) -> EvaluationResult:
        def merged(stem: str, *keys: str) -> pl.DataFrame:
            if self.out is not None:
                return self.store.read_cells(stem).sort("agent", "condition", "scenario_seed", *keys)
            frames = [memory[cell][stem] for cell in self.store.cells]
            return pl.concat(frames).sort("agent", "condition", "scenario_seed", *keys)

        vehicles, worlds = merged("vehicles", "vehicle"), merged("worlds")
        facts = [condition_facts(c) for c in self.conditions]
        table = summary_table(vehicles, facts, self.config.bootstrap)
        if self.out is None:
            manifest = {"identity": self.store.identity, "cells": self.store.cells, "record": {"errors": errors}}
            return EvaluationResult(
                vehicles=vehicles,
                worlds=worlds,
                table=table,
                manifest=manifest,
                out=None,
                computed=computed,
                errors=errors,
            )
        self.store.begin_commit()
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
        manifest = self.store.commit(files, {**self._record(), "errors": errors})
        return EvaluationResult(
            vehicles=vehicles,
            worlds=worlds,
            table=table,
            manifest=manifest,
            out=self.out,
            computed=computed,
            errors=errors,
        )

    def _record(self) -> dict[str, Any]:
        """What describes the run without deciding its results."""
        probe = (self.conditions[0], self.conditions[-1], self.seeds[-1], self.device, self.config.solver)
        invariant = {name: agent_is_row_invariant(agent, *probe) for name, agent in self.agents.items()}
        facts = [condition_facts(c).__dict__ for c in self.conditions]
        bootstrap = dataclasses.asdict(self.config.bootstrap)
        return {
            "row_invariant": invariant,
            "bootstrap": bootstrap,
            "conditions": facts,
            "machine": identity.machine(),
            **({} if self.frozen is None else {"frozen": self.frozen.digest}),
        }


@dataclass(frozen=True)
class _Batch:
    agent: str
    conditions: Sequence[Condition]
    seeds: Sequence[int]
    last: bool

    @property
    def label(self) -> str:
        first, last = self.conditions[0].slug, self.conditions[-1].slug
        return f"{self.agent}: {first}" if first == last else f"{self.agent}: {first} ... {last}"


def _scaled(progress: Progress, label: str, base: int, worlds: int, total: int) -> Callable[[int], None]:
    return lambda steps: progress(label, base + steps * worlds, total)


def _merge_records(before: dict[str, Any] | None, now: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Records of the seed slices of one cell: lists grow, single digests stay, seconds add up."""
    merged = {**now, "seconds": round(seconds, 3)}
    if before is not None:
        for key, value in now.items():
            if isinstance(value, list):
                merged[key] = before[key] + value
        merged["seconds"] = round(before["seconds"] + seconds, 3)
    return json.loads(json.dumps(merged))


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
    agents: str | Agent | Sequence[str | Agent] = "idm17",
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
        agents: One agent or several, by name or as objects.
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
    listed = [agents] if isinstance(agents, str) or not isinstance(agents, Sequence) else list(agents)
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
