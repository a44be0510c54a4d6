"""The vehicle table as arrays: one agent's conditions on the same worlds and vehicles, checked once for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

LANES = ("all", "closing", "open")
"""Groups that results are given for: all vehicles, then by starting lane."""

_KEYS = ("agent", "condition", "scenario_seed", "vehicle", "lane")
_LANE_NAMES = ("closing", "open")


@dataclass(frozen=True)
class Matched:
    """C conditions of one agent on the same S worlds of V vehicles.

    Attributes:
        agent: Name of the agent.
        conditions: Slugs, length C.
        seeds: Scenario seeds in rising order, uint64 [S].
        lanes: Group names, length L: `all`, and where asked for the starting lanes that have vehicles.
        members: Whether a vehicle belongs to a group, bool [L, S, V].
        trials: Vehicles of a group in each world, int64 [L]; the same in all worlds.
        columns: Values of the asked columns, each [C, S, V].
    """

    agent: str
    conditions: tuple[str, ...]
    seeds: np.ndarray
    lanes: tuple[str, ...]
    members: np.ndarray
    trials: np.ndarray
    columns: Mapping[str, np.ndarray]

    @property
    def worlds(self) -> int:
        """Number of worlds S."""
        return len(self.seeds)

    def flags(self, column: str) -> np.ndarray:
        """Values of a boolean column, [C, S, V].

        Raises:
            ValueError: If the column is of another type.
        """
        values = self.columns[column]
        if values.dtype != bool:
            raise ValueError(f"column is {column!r}, of type {values.dtype}; a rate needs a boolean column")
        return values

    def counts(self, flags: np.ndarray) -> np.ndarray:
        """Vehicles per world and group for which a flag [..., S, V] holds, int64 [..., L, S]."""
        return np.einsum("...sv,lsv->...ls", np.asarray(flags, dtype=np.int64), self.members.astype(np.int64))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of exactly summable values [..., S, V] per world and group, float64 [..., L, S]."""
        return np.einsum("...sv,lsv->...ls", values, self.members.astype(np.float64))

    def index(self, condition: str) -> int:
        """Position of a condition."""
        return self.conditions.index(condition)


def check_columns(vehicles: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse what is no vehicle table with these columns beside the keys.

    Raises:
        ValueError: For another type, a missing column, no rows, nulls in a key, or an unknown lane.
    """
    if not isinstance(vehicles, pl.DataFrame):
        raise ValueError(f"vehicles is a {type(vehicles).__name__}; it must be a polars.DataFrame")
    if missing := [name for name in (*_KEYS, *columns) if name not in vehicles.columns]:
        raise ValueError(f"vehicles lacks the columns {missing}; it has {vehicles.columns}")
    if vehicles.is_empty():
        raise ValueError("vehicles is empty; a statistic needs at least one row")
    for name in ("scenario_seed", "vehicle"):
        if not vehicles[name].dtype.is_integer():
            raise ValueError(f"vehicles[{name!r}] is of type {vehicles[name].dtype}; it must hold integers")
    for name in _KEYS:
        if vehicles[name].null_count():
            raise ValueError(f"vehicles[{name!r}] holds {vehicles[name].null_count()} nulls; keys must be complete")
    if wrong := sorted(set(vehicles["lane"].unique()) - set(_LANE_NAMES)):
        raise ValueError(f"vehicles['lane'] holds {wrong}; allowed are {list(_LANE_NAMES)}")


def agent_names(vehicles: pl.DataFrame) -> list[str]:
    """Agents of a vehicle table in order of appearance.

    Raises:
        ValueError: If it lacks a key column or has no row.
    """
    check_columns(vehicles, ())
    return vehicles["agent"].unique(maintain_order=True).to_list()


def _of_agent(vehicles: pl.DataFrame, agent: str | None) -> tuple[str, pl.DataFrame]:
    names = vehicles["agent"].unique(maintain_order=True).to_list()
    if agent is None:
        if len(names) > 1:
            raise ValueError(f"agent is None, but vehicles holds {names}; name one of them")
    elif agent not in names:
        raise ValueError(f"agent is {agent!r}; vehicles holds {names}")
    chosen: str = names[0] if agent is None else agent
    return chosen, vehicles.filter(pl.col("agent") == chosen)


def _check_names(wanted: Sequence[str] | None) -> None:
    if isinstance(wanted, str):
        raise ValueError(f"conditions is {wanted!r}; give a list of slugs")


def _of_conditions(part: pl.DataFrame, wanted: Sequence[str] | None) -> tuple[tuple[str, ...], pl.DataFrame]:
    _check_names(wanted)
    held = part["condition"].unique(maintain_order=True).to_list()
    conditions = tuple(held if wanted is None else wanted)
    if not conditions:
        raise ValueError("conditions is empty; name at least one")
    if len(set(conditions)) != len(conditions):
        raise ValueError(f"conditions is {list(conditions)}; each may appear once")
    if missing := [name for name in conditions if name not in held]:
        raise ValueError(f"conditions {missing} have no rows of agent {part['agent'][0]!r}; it has {held}")
    return conditions, part.filter(pl.col("condition").is_in(list(conditions)))


def _check_pairs(part: pl.DataFrame, conditions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Seeds and vehicle numbers that every condition holds; ValueError where they do not pair."""
    agent = part["agent"][0]
    twice = part.select(_KEYS[1:4]).is_duplicated()
    if twice.any():
        row = part.filter(twice).row(0, named=True)
        raise ValueError(
            f"vehicles holds {int(twice.sum())} duplicate rows; the first is agent {agent!r}, condition "
            f"{row['condition']!r}, scenario_seed {row['scenario_seed']}, vehicle {row['vehicle']}"
        )
    groups = {key[0]: group for key, group in part.group_by("condition")}
    first = groups[conditions[0]]
    seeds, numbers = (np.sort(first[name].unique().to_numpy()) for name in ("scenario_seed", "vehicle"))
    for name in conditions:
        group = groups[name]
        own = np.sort(group["scenario_seed"].unique().to_numpy())
        if not np.array_equal(own, seeds):
            apart = np.setxor1d(own, seeds)
            lacking = name if apart[0] in seeds else conditions[0]
            raise ValueError(
                f"worlds do not pair: agent {agent!r}, condition {name!r} has {len(own)} worlds and "
                f"{conditions[0]!r} has {len(seeds)}; the first missing seed is {apart[0]}, in {lacking!r}"
            )
        if group.height != len(seeds) * len(numbers) or not np.isin(group["vehicle"].to_numpy(), numbers).all():
            per_world = group.group_by("scenario_seed").len().sort("scenario_seed")
            odd = per_world.filter(pl.col("len") != len(numbers))
            where = f"world {odd['scenario_seed'][0]} has {odd['len'][0]}" if odd.height else "their numbers differ"
            raise ValueError(
                f"trials mismatch: agent {agent!r}, condition {name!r} needs the {len(numbers)} vehicles "
                f"{numbers.tolist()} in each of {len(seeds)} worlds, but {where}"
            )
    return seeds, numbers


def _values(ordered: pl.DataFrame, name: str, nullable: bool) -> np.ndarray:
    column = ordered[name]
    floating = column.dtype.is_float()
    missing = column.null_count() + (int(column.is_nan().sum()) if floating else 0)
    if missing and not nullable:
        bad = column.is_null() | column.is_nan() if floating else column.is_null()
        row = ordered.filter(bad).row(0, named=True)
        raise ValueError(
            f"vehicles[{name!r}] is missing in {missing} rows; the first is condition {row['condition']!r}, "
            f"scenario_seed {row['scenario_seed']}, vehicle {row['vehicle']}"
        )
    if column.null_count():
        column = column.fill_null(float("nan") if floating else -1)
    return column.to_numpy()


def _groups(closing: np.ndarray, by_lane: bool) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    masks = {"all": np.ones_like(closing), "closing": closing, "open": ~closing}
    names, members, trials = [], [], []
    for name in LANES if by_lane else LANES[:1]:
        sizes = masks[name].sum(axis=1)
        if (sizes != sizes[0]).any():
            odd = int(np.flatnonzero(sizes != sizes[0])[0])
            raise ValueError(
                f"trials mismatch: lane {name!r} has {sizes[0]} vehicles in the first world and {sizes[odd]} in world "
                f"number {odd}; a rate by lane needs the same number in each"
            )
        if sizes[0]:
            names.append(name)
            members.append(masks[name])
            trials.append(int(sizes[0]))
    return tuple(names), np.stack(members), np.array(trials, dtype=np.int64)


def matched(
    vehicles: pl.DataFrame,
    columns: Sequence[str],
    *,
    nullable: Sequence[str] = (),
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
) -> Matched:
    """Arrays of one agent's conditions, after checking that they hold the same worlds and vehicles.

    Args:
        vehicles: Vehicle table (`outcomes.VEHICLE_SCHEMA`, and the safety measures where they are asked for).
        columns: Columns wanted; a missing value is an error.
        nullable: Further columns, in which null becomes −1 (integers) or NaN (floats).
        agent: Name; None where the table holds one agent.
        conditions: Slugs in the order wanted; None takes all, in order of appearance.
        by_lane: Whether to give the lanes beside `all`.

    Returns:
        The arrays, worlds by rising seed, vehicles by rising number.

    Raises:
        ValueError: For a missing column, no rows, an unknown agent or condition, duplicate rows, a missing value,
            worlds or vehicles that differ between conditions, or lanes that do.
    """
    check_columns(vehicles, (*columns, *nullable))
    agent, part = _of_agent(vehicles, agent)
    conditions, part = _of_conditions(part, conditions)
    seeds, numbers = _check_pairs(part, conditions)
    rank = {name: i for i, name in enumerate(conditions)}
    place = pl.col("condition").replace_strict(rank, return_dtype=pl.Int64)
    ordered = part.with_columns(place.alias("__rank")).sort("__rank", "scenario_seed", "vehicle")
    shape = (len(conditions), len(seeds), len(numbers))
    closing = (ordered["lane"] == "closing").to_numpy().reshape(shape)
    if (closing != closing[0]).any():
        c, s, v = (int(i) for i in np.argwhere(closing != closing[0])[0])
        raise ValueError(
            f"lanes do not pair: scenario_seed {seeds[s]}, vehicle {numbers[v]} starts in different lanes in "
            f"{conditions[0]!r} and {conditions[c]!r}"
        )
    lanes, members, trials = _groups(closing[0], by_lane)
    held = {n: _values(ordered, n, n in nullable).reshape(shape) for n in (*columns, *nullable)}
    return Matched(agent, conditions, seeds, lanes, members, trials, held)


def against_reference(
    reference: str, vehicles: pl.DataFrame, agent: str | None, conditions: Sequence[str] | None
) -> list[str]:
    """Conditions to load: the reference first, then the others.

    Raises:
        ValueError: If the reference has no rows, or nothing is left to compare with it.
    """
    _check_names(conditions)
    check_columns(vehicles, ())
    agent, part = _of_agent(vehicles, agent)
    held = part["condition"].unique(maintain_order=True).to_list()
    if reference not in held:
        raise ValueError(f"reference is {reference!r}; agent {agent!r} has {held}")
    others = [name for name in (held if conditions is None else conditions) if name != reference]
    if not others:
        raise ValueError(f"conditions is {conditions}; a change needs a condition other than {reference!r}")
    return [reference, *others]
