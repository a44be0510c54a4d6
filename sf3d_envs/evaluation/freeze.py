"""Freeze manifests: what an evaluation will run, fixed before it runs, and the check that it does run that.

A freeze manifest holds every field that identifies the evaluation and the digests of all roads, scenarios and initial
states (paper, sec. 3.3: code, checkpoints, terrain and scenarios are fixed before production). Nothing is simulated to
make it: the worlds are only placed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .batch import make_scoring_env, matched
from .store import check_file, differences, write_json

if TYPE_CHECKING:
    from ..registry import Condition
    from .config import EvaluationConfig
    from .runner import Evaluation

FREEZE_SCHEMA = "sf3d.freeze/1"
_PER_WORLD = ("scenario", "initial_state")
_PLACED_AT_ONCE = 2048
"""Worlds placed together; more would need memory and save no time."""


class FrozenMismatch(RuntimeError):
    """An evaluation, or one of its cells, that is not what was frozen.

    Attributes:
        fields: Field -> (frozen value, value of the evaluation).
    """

    def __init__(self, source: str, fields: Mapping[str, tuple[Any, Any]]) -> None:
        """Describe `fields`; `source` is the frozen file."""
        self.fields = dict(fields)
        listed = "; ".join(f"{name}: {_said(old)} frozen, {_said(new)} now" for name, (old, new) in fields.items())
        super().__init__(f"the evaluation disagrees with {source} ({listed})")


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A freeze manifest that was read and found intact.

    Attributes:
        source: Where it came from, for messages.
        manifest: Its content.
    """

    source: str
    manifest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over everything else in the manifest."""
        return self.manifest["digest"]

    @property
    def seeds(self) -> range:
        """Frozen scenario seeds."""
        identity = self.manifest["identity"]
        return range(identity["seed0"], identity["seed0"] + identity["worlds"])

    def check_identity(self, identity: Mapping[str, Any], cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse an evaluation that is not the frozen one or a part of it; nothing is computed for that.

        Args:
            identity: Global fields of the evaluation.
            cells: `<agent>/<condition>` -> fields of the cell.

        Raises:
            FrozenMismatch: Naming fields, cells that are not frozen, and worlds beyond the frozen ones.
        """
        free = ("worlds", "seed0")
        there = {name: value for name, value in self.manifest["identity"].items() if name not in free}
        found = differences(there, {name: value for name, value in _json(identity).items() if name not in free})
        first, last = identity["seed0"], identity["seed0"] + identity["worlds"] - 1
        if first not in self.seeds or last not in self.seeds:
            found["seeds"] = (f"{self.seeds[0]} ... {self.seeds[-1]}", f"{first} ... {last}")
        for name, cell in _json(cells).items():
            frozen = self.manifest["cells"].get(name)
            if frozen is None:
                found[f"cells.{name}"] = ("not frozen", "asked")
            else:
                found |= differences(frozen, cell, f"cells.{name}")
        if found:
            raise FrozenMismatch(self.source, found)

    def check_record(self, cell: str, record: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
        """Compare the digests that a cell has recorded with the frozen ones.

        Args:
            cell: `<agent>/<condition>`.
            record: Digests `scenario` and `initial_state` (per world), `terrain` and `route`.
            seeds: Scenario seeds of the cell's worlds, inside the frozen ones.

        Returns:
            The record with the digest of the freeze manifest as `frozen`.

        Raises:
            FrozenMismatch: Naming the cell, the fields, and how many worlds and which first one differ.
        """
        digests, found = self.manifest["record"], {}
        expected = {"route": digests["route"], "terrain": digests["terrain"].get(cell.partition("/")[2])}
        for name, value in expected.items():
            if record.get(name) != value:
                found[f"{cell}: {name}"] = (value, record.get(name))
        for name in _PER_WORLD:
            there = [digests[name][self.seeds.index(seed)] for seed in seeds]
            now = list(record.get(name) or [None] * len(there))
            unequal = [i for i, (x, y) in enumerate(zip(there, now, strict=False)) if x != y]
            if unequal:
                many = f"{len(unequal)} of {len(there)} worlds, first seed {seeds[unequal[0]]}"
                found[f"{cell}: {name} ({many})"] = (there[unequal[0]], now[unequal[0]])
            elif len(there) != len(now):
                found[f"{cell}: worlds"] = (len(there), len(now))
        if found:
            raise FrozenMismatch(self.source, found)
        return {**record, "frozen": self.digest}


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

    evaluation = Evaluation(dataclasses.replace(config, frozen=None))
    content = {
        "schema": FREEZE_SCHEMA,
        "identity": evaluation.store.identity,
        "cells": evaluation.store.cells,
        "record": placed_digests(evaluation.conditions, evaluation.seeds, evaluation.device, config.threads),
    }
    return {**content, "digest": _digest(content)}


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
    worlds: dict[str, list[str]] = {name: [] for name in _PER_WORLD}
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
                for name in _PER_WORLD:
                    found = start.setdefault(name, digests[name][here])
                    if found != digests[name][here]:
                        raise ValueError(
                            f"condition {condition.slug!r} changes the {name} of its worlds against "
                            f"{conditions[0].slug!r}; matched worlds must start alike"
                        )
        for name in _PER_WORLD:
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


def read_frozen(path: str | Path) -> Frozen:
    """Read a freeze manifest and check that it is whole.

    Args:
        path: File from `write_frozen`.

    Raises:
        ValueError: If it cannot be read, is truncated, has another schema, or was edited.
    """
    what = f"--frozen is {str(path)!r}"
    try:
        manifest = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"{what}, which cannot be read ({error.strerror}); give a file written by freeze") from error
    except ValueError as error:
        raise ValueError(f"{what}, which is damaged or no freeze manifest: {error}") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != FREEZE_SCHEMA:
        raise ValueError(f"{what}, of schema {schema!r}; this version reads {FREEZE_SCHEMA!r}")
    digest = manifest.pop("digest", None)
    if digest != _digest(manifest):
        raise ValueError(f"{what}, whose content does not have its digest: it was changed after it was written")
    return Frozen(source=str(path), manifest={**manifest, "digest": digest})


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


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _said(value: Any) -> str:
    text = json.dumps(value)
    if isinstance(value, str):
        text = f"{value[:12]}..." if len(value) == 64 else value
    return text if len(text) <= 60 else f"{text[:57]}..."
