"""Agents that are the training seeds of one family, on the same worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from .matched import Matched, against_reference, matched


def check_families(families: Mapping[str, Sequence[str]]) -> None:
    """Refuse families without agents, and agents that are named twice.

    Raises:
        ValueError: Naming the family.
    """
    if not families:
        raise ValueError("families is empty; give at least one family -> agent names in seed order")
    seen: dict[str, str] = {}
    for family, agents in families.items():
        if isinstance(agents, str) or not len(agents):
            raise ValueError(f"families[{family!r}] is {agents!r}; it must be a list of agent names in seed order")
        for agent in agents:
            if agent in seen:
                raise ValueError(f"agent {agent!r} is named in {seen[agent]!r} and {family!r}; once is allowed")
            seen[agent] = family


def stack_counts(
    vehicles: pl.DataFrame,
    agents: Sequence[str],
    reference: str,
    *,
    column: str,
    conditions: Sequence[str] | None,
    by_lane: bool,
) -> tuple[Matched, np.ndarray]:
    """Counts of a boolean column, int64 [n, 1 + C, L, S], for n agents on the same worlds; the reference comes first.

    Returns:
        The first agent's table without columns, and the counts.

    Raises:
        ValueError: If an agent's table is not a matched one, or the agents' worlds, vehicles or lanes differ.
    """
    wanted = against_reference(reference, vehicles, agents[0], conditions)
    first: Matched | None = None
    counts = []
    for agent in agents:
        table = matched(vehicles, [column], agent=agent, conditions=wanted, by_lane=by_lane)
        flags = table.flags(column)
        first = first or table
        if not np.array_equal(table.seeds, first.seeds):
            apart = np.setxor1d(table.seeds, first.seeds)[0]
            lacking = agent if apart in first.seeds else agents[0]
            raise ValueError(
                f"worlds do not pair: agent {agent!r} has {table.worlds} worlds and {agents[0]!r} has {first.worlds}; "
                f"the first missing seed is {apart}, of {lacking!r}"
            )
        if not np.array_equal(table.members, first.members):
            raise ValueError(
                f"trials mismatch: agents {agents[0]!r} and {agent!r} have different vehicles or lanes in their worlds "
                f"({first.members.shape[-1]} and {table.members.shape[-1]} per world)"
            )
        counts.append(table.counts(flags))
    assert first is not None
    return replace(first, columns={}), np.stack(counts)
