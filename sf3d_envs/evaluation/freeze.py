"""Making freeze manifests: what an evaluation will run, fixed before it runs, and the check that it does run that.

A freeze manifest holds every field that identifies the evaluation and the digests of all roads, scenarios and initial
states (paper, sec. 3.3: code, checkpoints, terrain and scenarios are fixed before production). Nothing is simulated to
make it: the worlds are only placed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .batch import make_scoring_env, matched
from .frozen import FREEZE_SCHEMA, Frozen, manifest_digest, read_frozen
from .matching import PER_WORLD
from .store import check_file, write_json

if TYPE_CHECKING:
    from ..registry import Condition
    from .config import EvaluationConfig
    from .runner import Evaluation

_PLACED_AT_ONCE = 2048
"""Worlds placed together; more would need memory and save no time."""


def freeze(config: EvaluationConfig) -> dict[str, Any]:
    """Fix what an evaluation will run.

    Args:
        config: The evaluation.

    Returns:
        The freeze manifest, JSON values: `schema`, `identity` and `cells` as in a result folder, `record` (`terrain` by
        condition, `route`, `scenario` and `initial_state` by world), and `digest` over all of it.

    Raises:
        ValueError: As `Evaluation`; or if the worlds of a condition do not start as those of the others.
    """
    from .runner import Evaluation

    evaluation = Evaluation(dataclasses.replace(config, frozen=None, rich=0))
    content = {
        "schema": FREEZE_SCHEMA,
        "identity": evaluation.store.identity,
        "cells": evaluation.store.cells,
        "record": placed_digests(evaluation.conditions, evaluation.seeds, evaluation.device, config.threads),
    }
    return {**content, "digest": manifest_digest(content)}


def placed_digests(
    conditions: Sequence[Condition], seeds: Sequence[int], device: str = "cpu", threads: int | None = None
) -> dict[str, Any]:
    """Digests of roads, routes, scenarios and initial states, from worlds that are placed and not simulated.

    The initial state is the same for every solver and every decision rate.

    Args:
        conditions: Conditions.
        seeds: Scenario seeds.
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None leaves the choice to the simulator.

    Returns:
        `terrain` by condition slug, `route`, and `scenario` and `initial_state` by world.

    Raises:
        ValueError: If scenarios or initial states depend on the condition, so that worlds could not be matched.
    """
    per_slice = max(1, min(len(seeds), _PLACED_AT_ONCE))
    per_batch = max(1, _PLACED_AT_ONCE // per_slice)
    terrain: dict[str, str] = {}
    worlds: dict[str, list[str]] = {name: [] for name in PER_WORLD}
    route = ""
    for first in range(0, len(seeds), per_slice):
        mine = seeds[first : first + per_slice]
        start: dict[str, list[str]] = {}
        for begin in range(0, len(conditions), per_batch):
            group = conditions[begin : begin + per_batch]
            env = make_scoring_env(*matched(group, mine), 60, device=device, threads=threads)
            try:
                digests = env.digests()
            finally:
                env.close()
            route = digests["route"]
            for i, condition in enumerate(group):
                here = slice(i * len(mine), (i + 1) * len(mine))
                terrain[condition.slug] = digests["terrain"][here.start]
                for name in PER_WORLD:
                    found = start.setdefault(name, digests[name][here])
                    if found != digests[name][here]:
                        raise ValueError(
                            f"condition {condition.slug!r} changes the {name} of its worlds against "
                            f"{conditions[0].slug!r}; matched worlds must start alike"
                        )
        for name in PER_WORLD:
            worlds[name] += start[name]
    return {"terrain": terrain, "route": route, **worlds}


def write_frozen(path: str | Path, manifest: Mapping[str, Any]) -> Path:
    """Write a freeze manifest; an existing file is never replaced.

    Args:
        path: File to make.
        manifest: From `freeze`.

    Returns:
        The path.

    Raises:
        ValueError: If the file exists or its folder cannot be written.
        OSError: If writing fails.
    """
    file = check_new_file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, manifest)
    return file


def check_new_file(path: str | Path) -> Path:
    """Make sure that a freeze manifest can be written, before anything is computed.

    Raises:
        ValueError: If the file exists or its folder cannot be written.
    """
    if Path(path).is_file():
        raise ValueError(
            f"--out is {str(path)!r}, which exists; a freeze manifest is not replaced: give another name or remove it"
        )
    return check_file(path, "--out")


def check_frozen(path: str | Path, evaluation: Evaluation) -> Frozen:
    """Refuse an evaluation that disagrees with a freeze manifest, before anything is simulated.

    An evaluation of fewer agents, conditions or worlds than were frozen agrees. Its roads and starts are placed anew
    and compared; so are the records of its finished cells.

    Args:
        path: Freeze manifest.
        evaluation: A validated evaluation.

    Returns:
        The freeze manifest, whose `check_record` stamps finished cells.

    Raises:
        FrozenMismatch: If the evaluation disagrees.
        ValueError: As `read_frozen`.
    """
    frozen = read_frozen(path)
    store = evaluation.store
    frozen.check_identity(store.identity, store.cells)
    if evaluation.missing:
        placed = placed_digests(evaluation.conditions, evaluation.seeds, evaluation.device, evaluation.config.threads)
        for condition in evaluation.conditions:
            here = {**placed, "terrain": placed["terrain"][condition.slug]}
            for agent in evaluation.agents:
                frozen.check_record(f"{agent}/{condition.slug}", here, evaluation.seeds)
    for cell in evaluation.finished:
        frozen.check_record(cell, store.read_record(cell), evaluation.seeds)
    return frozen
