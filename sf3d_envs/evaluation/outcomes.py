"""Vehicle and world outcomes of finished lane-closure runs, as pure functions of the task arrays.

The rules are those of the source paper (sec. 4.1): an event ends validity on the step it happens, a world reset is a
fault for every vehicle of that world from that step on, and nothing after the first reset is scored. Training and
evaluation read the same event flags; this module only turns the flags into the columns of the results files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..task.events import Event

OUTCOMES = ("pass", "collision", "off_road", "incursion", "fault", "censored", "not_crossed")
"""Outcome classes. `censored`: still valid and not across when another vehicle's fault reset the world."""

VEHICLE_SCHEMA = pl.Schema(
    {
        "agent": pl.String(),
        "condition": pl.String(),
        "scenario_seed": pl.UInt64(),
        "vehicle": pl.UInt8(),
        "lane": pl.String(),
        "valid_passage": pl.Boolean(),
        "strict_success": pl.Boolean(),
        "merge_completed": pl.Boolean(),
        "outcome": pl.String(),
        "first_event_step": pl.Int32(),
        "passage_step": pl.Int32(),
    }
)

WORLD_SCHEMA = pl.Schema(
    {
        "agent": pl.String(),
        "condition": pl.String(),
        "scenario_seed": pl.UInt64(),
        "first_reset_step": pl.Int32(),
        "map_edge_reset": pl.Boolean(),
        "passages": pl.UInt8(),
        "closing_passages": pl.UInt8(),
        "open_passages": pl.UInt8(),
        "strict_successes": pl.UInt8(),
        "merges_completed": pl.UInt8(),
        "censored": pl.UInt8(),
    }
)

MAP_EDGE_MARGIN = 2.0
"""A termination this close to the edge of the terrain is attributed to the map [m] (paper, map-adjusted success)."""

_NEVER = np.iinfo(np.int64).max
_EVENT_OUTCOME = {
    Event.FAULT: "fault",
    Event.COLLISION: "collision",
    Event.OFF_ROAD: "off_road",
    Event.INCURSION: "incursion",
}


@dataclass(frozen=True, kw_only=True)
class RunLabels:
    """What the task arrays do not say about a batch of W worlds with V vehicles.

    Attributes:
        agent: Name of the agent that drove.
        condition: Condition slug of each world, length W.
        scenario_seed: Scenario seed of each world, length W.
        closing_lane: Per vehicle, whether it starts in the closing lane and so owes a merge, length V.
        horizon_steps: Control steps (1/60 s) a world is run when nothing resets it.
    """

    agent: str
    condition: Sequence[str]
    scenario_seed: Sequence[int]
    closing_lane: Sequence[bool]
    horizon_steps: int


@dataclass(frozen=True)
class _Scored:
    """Arrays [W, V] after the reset rule; `reset` is [W] and holds `_NEVER` where the world was not reset."""

    passed: np.ndarray
    strict: np.ndarray
    merged: np.ndarray
    outcome: np.ndarray
    first_event: np.ndarray
    passage_step: np.ndarray
    reset: np.ndarray


def _as_never(steps: np.ndarray, last: np.ndarray | int) -> np.ndarray:
    """Steps as int64 with `_NEVER` where there is none (negative) or where the step lies after `last`."""
    wide = steps.astype(np.int64)
    return np.where((wide < 0) | (wide > last), _NEVER, wide)


def _check(task: Mapping[str, np.ndarray], labels: RunLabels) -> tuple[int, int]:
    worlds, vehicles = task["first_event_step"].shape
    for name, count, wanted in (
        ("condition", len(labels.condition), worlds),
        ("scenario_seed", len(labels.scenario_seed), worlds),
        ("closing_lane", len(labels.closing_lane), vehicles),
    ):
        if count != wanted:
            raise ValueError(f"{name} has {count} entries; the task arrays hold {worlds} worlds of {vehicles} vehicles")
    step = np.asarray(task["step"])
    unfinished = np.flatnonzero((np.asarray(task["first_reset_step"]) < 0) & (step != labels.horizon_steps))
    if unfinished.size:
        w = int(unfinished[0])
        raise ValueError(
            f"world {w} has no reset and stands at step {int(step[w])}; it is scored at horizon_steps="
            f"{labels.horizon_steps} only"
        )
    unnamed = (np.asarray(task["first_event_step"]) >= 0) & (np.asarray(task["event"]) == Event.NONE)
    if unnamed.any():
        w, v = (int(i) for i in np.argwhere(unnamed)[0])
        raise ValueError(f"world {w}, vehicle {v} has a first event step but event code 0 (none)")
    return worlds, vehicles


def _score(task: Mapping[str, np.ndarray], labels: RunLabels) -> _Scored:
    worlds, vehicles = _check(task, labels)
    horizon = labels.horizon_steps
    owes_merge = np.broadcast_to(np.asarray(labels.closing_lane, dtype=bool), (worlds, vehicles))

    reset = _as_never(np.asarray(task["first_reset_step"]), horizon)
    own_event = _as_never(np.asarray(task["first_event_step"]), np.minimum(reset, horizon)[:, None])
    first_event = np.minimum(own_event, reset[:, None])
    crossing = _as_never(np.asarray(task["passage_step"]), horizon)
    passed = crossing < first_event
    merged = (
        owes_merge
        & np.asarray(task["in_open_lane"]).astype(bool)
        & (np.asarray(task["merge_since"]) >= 0)
        & (reset == _NEVER)[:, None]
    )
    strict = passed & (merged | ~owes_merge) & (first_event == _NEVER)

    outcome = np.full((worlds, vehicles), "not_crossed", dtype=object)
    outcome[np.broadcast_to((reset != _NEVER)[:, None], outcome.shape)] = "censored"
    for event, name in _EVENT_OUTCOME.items():
        outcome[(own_event != _NEVER) & (np.asarray(task["event"]) == event)] = name
    outcome[passed] = "pass"
    return _Scored(passed, strict, merged, outcome, first_event, np.where(passed, crossing, _NEVER), reset)


def _nullable(steps: np.ndarray) -> pl.Series:
    flat = steps.ravel()
    missing = flat == _NEVER
    return pl.Series(np.where(missing, 0, flat).astype(np.int32)).zip_with(
        pl.Series(~missing), pl.Series([None] * flat.size, dtype=pl.Int32)
    )


def vehicle_outcomes(task: Mapping[str, np.ndarray], labels: RunLabels) -> pl.DataFrame:
    """One row per vehicle, in world-major order, with the columns of `VEHICLE_SCHEMA`.

    `first_event_step` is the step on which the vehicle stopped being valid: its own first event, or the world's first
    reset where that came first. `strict_success` is a valid passage, an owed merge completed, and no event (no reset
    either) to the horizon. `merge_completed` is null for vehicles that owe no merge. A vehicle with its own event on
    the reset step keeps its own class.

    Args:
        task: Task arrays of the run. Shape [W, V]: `event`, `first_event_step`, `passage_step`, `in_open_lane`,
            `merge_since`; shape [W]: `step`, `first_reset_step`. Steps are control steps of 1/60 s, -1 where there is
            none.
        labels: Names, seeds, lanes and horizon of the run.

    Returns:
        A frame of W·V rows.

    Raises:
        ValueError: If the labels do not fit the arrays, or a world without reset was not run to the horizon.
    """
    scored = _score(task, labels)
    worlds, vehicles = scored.passed.shape
    closing = np.tile(np.asarray(labels.closing_lane, dtype=bool), worlds)
    frame = pl.DataFrame(
        {
            "agent": [labels.agent] * (worlds * vehicles),
            "condition": np.repeat(np.asarray(labels.condition, dtype=object), vehicles).tolist(),
            "scenario_seed": np.repeat(np.asarray(labels.scenario_seed, dtype=np.uint64), vehicles),
            "vehicle": np.tile(np.arange(vehicles, dtype=np.uint8), worlds),
            "lane": np.where(closing, "closing", "open").tolist(),
            "valid_passage": scored.passed.ravel(),
            "strict_success": scored.strict.ravel(),
            "merge_completed": [
                bool(m) if owed else None for m, owed in zip(scored.merged.ravel(), closing, strict=True)
            ],
            "outcome": scored.outcome.ravel().tolist(),
            "first_event_step": _nullable(scored.first_event),
            "passage_step": _nullable(scored.passage_step),
        },
        schema=VEHICLE_SCHEMA,
    )
    return frame


def world_outcomes(
    task: Mapping[str, np.ndarray],
    labels: RunLabels,
    position: np.ndarray | None = None,
    extents: tuple[float, float, float, float] | None = None,
) -> pl.DataFrame:
    """One row per world with the columns of `WORLD_SCHEMA`.

    Args:
        task: Task arrays as for `vehicle_outcomes`; with `position` also `own_fault` [W, V].
        labels: Names, seeds, lanes and horizon of the run.
        position: Body centres at the end of the run [m], shape [W, V, >=2]; a reset world stands still from its reset
            on.
        extents: Edges of the terrain (x_min, x_max, y_min, y_max) [m].

    Returns:
        A frame of W rows; `map_edge_reset` is null where the world was not reset, or without `position` and `extents`.

    Raises:
        ValueError: As `vehicle_outcomes`.
    """
    scored = _score(task, labels)
    closing = np.asarray(labels.closing_lane, dtype=bool)
    was_reset = scored.reset != _NEVER
    edge: list[bool | None] = [None] * len(was_reset)
    if position is not None and extents is not None:
        x, y = position[..., 0], position[..., 1]
        to_edge = np.minimum(np.minimum(x - extents[0], extents[1] - x), np.minimum(y - extents[2], extents[3] - y))
        near = (to_edge <= MAP_EDGE_MARGIN) & np.asarray(task["own_fault"]).astype(bool)
        edge = [bool(near[w].any()) if reset else None for w, reset in enumerate(was_reset)]
    return pl.DataFrame(
        {
            "agent": [labels.agent] * len(was_reset),
            "condition": list(labels.condition),
            "scenario_seed": np.asarray(labels.scenario_seed, dtype=np.uint64),
            "first_reset_step": _nullable(scored.reset),
            "map_edge_reset": edge,
            "passages": scored.passed.sum(axis=1).astype(np.uint8),
            "closing_passages": scored.passed[:, closing].sum(axis=1).astype(np.uint8),
            "open_passages": scored.passed[:, ~closing].sum(axis=1).astype(np.uint8),
            "strict_successes": scored.strict.sum(axis=1).astype(np.uint8),
            "merges_completed": scored.merged.sum(axis=1).astype(np.uint8),
            "censored": (scored.outcome == "censored").sum(axis=1).astype(np.uint8),
        },
        schema=WORLD_SCHEMA,
    )
