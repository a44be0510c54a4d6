"""One matched pair of worlds, chosen by a rule that is fixed before anybody looks (paper, app. "Matched pair")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...registry import Condition
from ..columns import RICH_SCHEMA
from ..measures import TRAJECTORY, index_of
from ..stats.matched import matched
from ..table import REFERENCE, ConditionFacts

if TYPE_CHECKING:
    from ...agents import Agent

FAILURES = ("collision", "off_road", "incursion")
"""Outcomes on the changed road that make a pair."""
PREFERRED_FRICTIONS = (0.25, 0.18, 0.35, 0.12, 0.50, 0.08, 0.70, 0.05)
"""Frictions whose pair is shown, first the paper's, then by distance from it."""
RULE = (
    "the first world by scenario seed in which neither run resets, a closing-lane vehicle validly passes on the "
    "reference road, and the same vehicle's first failure on the changed road is a collision, off-road departure or "
    "incursion"
)


@dataclass(frozen=True, kw_only=True)
class PairChoice:
    """A world and vehicle for which the rule holds.

    Attributes:
        agent: Agent.
        reference: Slug of the reference.
        condition: Slug of the changed road.
        seed: Scenario seed.
        vehicle: The lowest-numbered vehicle for which it holds in that world.
        outcome: What became of it on the changed road.
        passage_step: Control step of its passage on the reference.
        event_step: Control step of its first event on the changed road.
        candidates: Worlds for which the rule holds.
        worlds: Worlds looked at.
    """

    agent: str
    reference: str
    condition: str
    seed: int
    vehicle: int
    outcome: str
    passage_step: int
    event_step: int
    candidates: int
    worlds: int


@dataclass(frozen=True, kw_only=True)
class PairRun:
    """Trajectories of both worlds.

    Attributes:
        choice: The pair.
        step: Control steps 1 ... T, int32 [T].
        sides: Slug -> rows of `measures.TRAJECTORY`, float32 [T, V, 22]; the reference first.
    """

    choice: PairChoice
    step: np.ndarray
    sides: Mapping[str, np.ndarray] = field(repr=False)

    def column(self, side: str, name: str) -> np.ndarray:
        """One column of one side, [T, V]."""
        return self.sides[side][..., index_of(name, TRAJECTORY)]

    def first_difference(self) -> int | None:
        """First control step after which any value of any vehicle differs between the runs; None if none does."""
        one, other = (rows.view(np.uint32).reshape(len(self.step), -1) for rows in self.sides.values())
        apart = np.flatnonzero((one != other).any(axis=1))
        return int(self.step[apart[0]]) if len(apart) else None


def preferred_conditions(facts: Sequence[ConditionFacts]) -> list[str]:
    """Conditions to look for a pair in: single frictions by `PREFERRED_FRICTIONS`, then the others."""
    flat = {c.friction: c.slug for c in facts if not c.grade and c.friction < 1.0}
    first = [flat[mu] for mu in PREFERRED_FRICTIONS if mu in flat]
    return [*first, *(c.slug for c in facts if c.slug not in (*first, REFERENCE))]


def _check(frame: pl.DataFrame, name: str, columns: Sequence[str], conditions: Sequence[str]) -> None:
    if not isinstance(frame, pl.DataFrame):
        raise ValueError(f"{name} is a {type(frame).__name__}; it must be a polars.DataFrame")
    if missing := [column for column in columns if column not in frame.columns]:
        raise ValueError(f"{name} lacks the columns {missing}; it has {frame.columns}")
    if frame["agent"].n_unique() != 1:
        raise ValueError(f"{name} holds the agents {frame['agent'].unique().sort().to_list()}; give those of one")
    held = frame["condition"].unique(maintain_order=True).to_list()
    if unknown := [condition for condition in conditions if condition not in held]:
        raise ValueError(f"{name} has no rows of the conditions {unknown}; it holds {held}")


def _check_worlds(vehicles: pl.DataFrame, worlds: pl.DataFrame, sides: Sequence[str]) -> None:
    """Refuse worlds that are not those of the vehicles: without its row nobody knows whether a world was reset."""
    agents = [frame["agent"][0] for frame in (vehicles, worlds)]
    if agents[0] != agents[1]:
        raise ValueError(f"worlds is of agent {agents[1]!r} and vehicles of {agents[0]!r}; give tables of one agent")
    seeds = matched(vehicles, ("outcome",), conditions=sides, by_lane=False).seeds.tolist()
    for side in sides:
        own = worlds.filter(pl.col("condition") == side)["scenario_seed"].to_list()
        if lacking := sorted(set(seeds) - set(own)):
            raise ValueError(
                f"worlds has no row of condition {side!r} and scenario seed {lacking[0]} ({len(lacking)} lacking); "
                f"it must hold each of the {len(seeds)} worlds of vehicles"
            )


def _check_first(first_worlds: int | None) -> None:
    whole = isinstance(first_worlds, (int, np.integer)) and not isinstance(first_worlds, bool)
    if first_worlds is not None and not (whole and first_worlds >= 1):
        raise ValueError(f"first_worlds is {first_worlds!r}; it must be an int >= 1, or None for all")


def _check_slugs(choice: PairChoice, name: str, given: Mapping[str, object]) -> None:
    if lacking := [slug for slug in (choice.reference, choice.condition) if slug not in given]:
        raise ValueError(f"{name} lacks {lacking}; it has {list(given)} and must have both roads of the pair")


def choose_pair(
    vehicles: pl.DataFrame,
    worlds: pl.DataFrame,
    condition: str,
    *,
    reference: str = REFERENCE,
    first_worlds: int | None = None,
) -> PairChoice | None:
    """Apply the rule.

    Args:
        vehicles: Vehicle table of one agent (`outcomes.VEHICLE_SCHEMA`).
        worlds: World table of the same agent (`outcomes.WORLD_SCHEMA`).
        condition: Slug of the changed road.
        reference: Slug of the reference.
        first_worlds: How many worlds to look at, by seed; None looks at all.

    Returns:
        The pair; None if the rule holds nowhere.

    Raises:
        ValueError: For a missing column, several agents, a condition without rows or that is the reference itself,
            worlds or vehicles that differ between the roads or between the tables, or `first_worlds` below 1.
    """
    _check_first(first_worlds)
    sides = (reference, condition)
    if condition == reference:
        raise ValueError(f"condition is {condition!r}, the reference itself; it must be another road")
    needed = ("scenario_seed", "vehicle", "lane", "outcome", "passage_step", "first_event_step")
    _check(vehicles, "vehicles", ("agent", "condition", *needed), sides)
    _check(worlds, "worlds", ("agent", "condition", "scenario_seed", "first_reset_step"), sides)
    _check_worlds(vehicles, worlds, sides)
    seeds = vehicles.filter(pl.col("condition") == reference)["scenario_seed"].unique().sort()
    looked = seeds if first_worlds is None else seeds.head(first_worlds)
    reset = worlds.filter(pl.col("condition").is_in(sides), pl.col("first_reset_step").is_not_null())
    base, then = (
        vehicles.filter(pl.col("condition") == side, pl.col("lane") == "closing").select(needed) for side in sides
    )
    found = (
        base.filter(pl.col("outcome") == "pass")
        .join(then.filter(pl.col("outcome").is_in(FAILURES)), on=["scenario_seed", "vehicle"], suffix="_changed")
        .filter(pl.col("scenario_seed").is_in(looked.to_list()))
        .filter(~pl.col("scenario_seed").is_in(reset["scenario_seed"].to_list()))
        .sort("scenario_seed", "vehicle")
    )
    if found.is_empty():
        return None
    row = found.row(0, named=True)
    return PairChoice(
        agent=vehicles["agent"][0],
        reference=reference,
        condition=condition,
        seed=row["scenario_seed"],
        vehicle=row["vehicle"],
        outcome=row["outcome_changed"],
        passage_step=row["passage_step"],
        event_step=row["first_event_step_changed"],
        candidates=found["scenario_seed"].n_unique(),
        worlds=len(looked),
    )


def load_pair(choice: PairChoice, files: Mapping[str, Path]) -> PairRun:
    """Read the pair from recorded trajectories.

    Args:
        choice: The pair.
        files: Slug -> `rich.parquet` of the reference and of the changed road.

    Raises:
        ValueError: If a road has no file, or a file does not hold the world with all its steps and vehicles.
    """
    _check_slugs(choice, "files", files)
    sides = {}
    for slug in (choice.reference, choice.condition):
        rows = pl.scan_parquet(files[slug]).filter(pl.col("scenario_seed") == choice.seed).collect()
        if rows.is_empty():
            raise ValueError(f"{str(files[slug])!r} does not hold the world of scenario seed {choice.seed}")
        rows = rows.sort("step", "vehicle")
        steps, vehicles = rows["step"].n_unique(), rows["vehicle"].n_unique()
        whole = np.repeat(np.arange(1, steps + 1), vehicles)
        if not np.array_equal(rows["step"].to_numpy(), whole):
            raise ValueError(
                f"{str(files[slug])!r} lacks rows of scenario seed {choice.seed}; "
                f"it must hold every step from 1 on of each of {vehicles} vehicles"
            )
        values = rows.select(list(RICH_SCHEMA)[3:]).to_numpy().astype(np.float32, copy=False)
        sides[slug] = np.ascontiguousarray(values).reshape(-1, vehicles, len(TRAJECTORY))
    return _run(choice, sides)


def rerun_pair(
    choice: PairChoice,
    agent: Agent,
    conditions: Mapping[str, Condition],
    *,
    horizon_s: float,
    device: str = "cpu",
    solver: str = "vehicle",
) -> PairRun:
    """Simulate the two worlds again, with the results of before.

    Args:
        choice: The pair.
        agent: The agent that drove.
        conditions: Slug -> reference and changed road.
        horizon_s: Length of the runs [s].
        device: `cpu` or `cuda:N`.
        solver: Solver of the evaluation.

    Raises:
        ValueError: If a road has no condition, or the vehicle's passage or event falls on another step than recorded:
            other code, another agent or another kind of device.
    """
    from ..batch import run_batch
    from ..trajectory import TrajectoryChunk

    _check_slugs(choice, "conditions", conditions)
    slugs = (choice.reference, choice.condition)
    chunks: list[TrajectoryChunk] = []
    result = run_batch(
        agent,
        [conditions[slug] for slug in slugs],
        [choice.seed],
        device=device,
        horizon_s=horizon_s,
        solver=solver,
        rich_worlds=[0, 1],
        on_chunk=chunks.append,
    )
    steps = (result.task["passage_step"][0, choice.vehicle], result.task["first_event_step"][1, choice.vehicle])
    wanted = (choice.passage_step, choice.event_step)
    if tuple(int(step) for step in steps) != wanted:
        raise ValueError(
            f"agent {agent.name!r} on scenario seed {choice.seed} passes and fails at steps "
            f"{tuple(int(s) for s in steps)}, not at the recorded {wanted}: this machine does not reproduce the results"
        )
    stepped = np.concatenate([chunk.step for chunk in chunks])
    data = np.concatenate([chunk.data for chunk in chunks])
    return _run(choice, {slug: data[stepped[:, i] >= 0, i] for i, slug in enumerate(slugs)})


def _run(choice: PairChoice, sides: Mapping[str, np.ndarray]) -> PairRun:
    steps = min(len(rows) for rows in sides.values())
    cut = {slug: np.ascontiguousarray(rows[:steps]) for slug, rows in sides.items()}
    return PairRun(choice=choice, step=np.arange(1, steps + 1, dtype=np.int32), sides=cut)
