"""From the vehicle table of a result folder to arrays over worlds, with the worlds of all cells paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

KEYS = ("agent", "condition", "scenario_seed", "vehicle")


@dataclass(frozen=True)
class WorldTable:
    """Cells over the same worlds.

    Attributes:
        agents: Agents, in order of the rows.
        conditions: Conditions, in order.
        seeds: Scenario seeds of the S worlds, ascending.
        vehicles: Vehicles of a world that are counted.
        values: The column, [agents, conditions, S, vehicles].
    """

    agents: tuple[str, ...]
    conditions: tuple[str, ...]
    seeds: tuple[int, ...]
    vehicles: tuple[int, ...]
    values: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Sum over the vehicles of a world, [agents, conditions, S]."""
        return self.values.sum(axis=-1)

    def cell(self, agent: str, condition: str) -> np.ndarray:
        """Values of one cell, [S, vehicles].

        Raises:
            ValueError: If there is no such cell.
        """
        for name, value, known in (("agent", agent, self.agents), ("condition", condition, self.conditions)):
            if value not in known:
                raise ValueError(f"{name} {value!r} is not in the table; it holds {', '.join(known)}")
        return self.values[self.agents.index(agent), self.conditions.index(condition)]


def world_table(
    vehicles: pl.DataFrame,
    column: str = "valid_passage",
    *,
    agents: Sequence[str] | None = None,
    conditions: Sequence[str] | None = None,
    lane: str | None = None,
) -> WorldTable:
    """Arrange a column of the vehicle table by agent, condition, world and vehicle.

    Args:
        vehicles: Vehicle table (`outcomes.VEHICLE_SCHEMA`, and safety columns if any).
        column: Column to take.
        agents: Agents to take; None = all, in order of appearance.
        conditions: Conditions to take; None = all, in order of appearance.
        lane: Count only the vehicles that start in "closing" or "open"; None = all.

    Raises:
        ValueError: If the table is empty, lacks a column, agent or condition, holds a row twice, or its cells were not
            run on the same worlds and vehicles; the message names the cell and the first world.
    """
    missing = [name for name in (*KEYS, column, *(["lane"] if lane else [])) if name not in vehicles.columns]
    if missing:
        raise ValueError(f"vehicles lacks the columns {missing}; it has {vehicles.columns}")
    if lane not in (None, "closing", "open"):
        raise ValueError(f"lane is {lane!r}; it must be 'closing', 'open' or None")
    rows = vehicles if lane is None else vehicles.filter(pl.col("lane") == lane)
    chosen = {}
    for name, asked in (("agent", agents), ("condition", conditions)):
        known = rows[name].unique(maintain_order=True).to_list()
        if unknown := [value for value in asked or () if value not in known]:
            raise ValueError(f"{name} {unknown[0]!r} has no rows in vehicles; it holds {', '.join(map(str, known))}")
        chosen[name] = tuple(asked or known)
        rows = rows.filter(pl.col(name).is_in(list(chosen[name])))
    if rows.is_empty():
        raise ValueError("vehicles is empty: there is no cell to count")
    double = rows.group_by(KEYS).len().filter(pl.col("len") > 1).sort(KEYS)
    if double.height:
        row = double.row(0, named=True)
        raise ValueError(
            f"vehicles holds {row['agent']}/{row['condition']}, world {row['scenario_seed']}, vehicle {row['vehicle']} "
            f"{row['len']} times"
        )
    if rows[column].null_count():
        raise ValueError(f"column {column!r} holds nulls; fill or filter them first")

    rows = rows.sort("scenario_seed", "vehicle")
    cells = rows.partition_by("agent", "condition", as_dict=True)
    first: tuple[pl.DataFrame, str] | None = None
    table = []
    for agent in chosen["agent"]:
        for condition in chosen["condition"]:
            cell = cells.get((agent, condition))
            if cell is None:
                raise ValueError(f"cell {agent}/{condition} has no rows in vehicles")
            keys = cell.select("scenario_seed", "vehicle")
            if first is None:
                first = (keys, f"{agent}/{condition}")
            elif not keys.equals(first[0]):
                raise ValueError(_unpaired(first, (keys, f"{agent}/{condition}")))
            table.append(cell[column].to_numpy())
    assert first is not None
    seeds = first[0]["scenario_seed"].unique().sort().to_list()
    numbers = first[0]["vehicle"].unique().sort().to_list()
    if first[0].height != len(seeds) * len(numbers):
        raise ValueError(f"{first[1]} has {first[0].height} rows for {len(seeds)} worlds of {len(numbers)} vehicles")
    shape = (len(chosen["agent"]), len(chosen["condition"]), len(seeds), len(numbers))
    values = np.stack(table).reshape(shape)
    return WorldTable(chosen["agent"], chosen["condition"], tuple(map(int, seeds)), tuple(map(int, numbers)), values)


def _unpaired(first: tuple[pl.DataFrame, str], other: tuple[pl.DataFrame, str]) -> str:
    """What differs between the worlds of two cells."""
    here, there = (set(keys["scenario_seed"].to_list()) for keys, _ in (first, other))
    if here == there:
        return f"cells {first[1]} and {other[1]} hold different vehicles of the same worlds; pairs need the same"
    lone = min(here ^ there)
    holder = first[1] if lone in here else other[1]
    return (
        f"cells {first[1]} and {other[1]} were run on different worlds ({len(here)} and {len(there)}, "
        f"{len(here & there)} common); world {lone} is in {holder} alone; pairs need the same worlds"
    )
