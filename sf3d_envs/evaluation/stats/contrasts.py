"""Contrasts of contrasts: between families of agents, and between single and composed conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, Interval, rate_interval
from .tables import world_table


def family_contrast(
    vehicles: pl.DataFrame,
    family: Sequence[str],
    parents: Sequence[str],
    condition: str,
    reference: str | None = None,
    config: BootstrapConfig | None = None,
) -> Interval:
    """Difference between two families of agents, paired by parent seed and by world (paper, sec. 5, Table 15).

    Args:
        vehicles: Vehicle table with both families.
        family: Agents of the family, one per training seed, in seed order.
        parents: Their parents, in the same order.
        condition: Condition.
        reference: With a reference condition the difference of the changes against it, else of the levels.
        config: Bootstrap settings.

    Returns:
        Estimates and limits of each pair, then of their mean: shape [K + 1].

    Raises:
        ValueError: If the families differ in number, are empty, or the worlds do not pair.
    """
    if len(family) != len(parents) or not family:
        raise ValueError(f"family has {len(family)} agents and parents {len(parents)}; they pair one to one")
    conditions = [condition] if reference is None else [condition, reference]
    table = world_table(vehicles, agents=list(dict.fromkeys([*family, *parents])), conditions=conditions)
    counts = table.counts.astype(np.int64)
    level = counts[:, 0] if reference is None else counts[:, 0] - counts[:, 1]
    rows = [level[table.agents.index(a)] - level[table.agents.index(b)] for a, b in zip(family, parents, strict=True)]
    trials = len(table.vehicles)
    pairs = rate_interval(np.stack(rows), trials, config)
    mean = rate_interval(np.sum(rows, axis=0), trials * len(rows), config)
    return Interval(*(np.append(getattr(pairs, n), getattr(mean, n)) for n in ("estimate", "low", "high")))


def interaction_contrast(
    vehicles: pl.DataFrame,
    agent: str,
    composition: str,
    friction: str,
    grade: str,
    reference: str = "reference",
    config: BootstrapConfig | None = None,
) -> Interval:
    """VP(g, μ) - VP(μ) - VP(g) + VP(ref), paired by world (paper, Table 16).

    Negative: the composition loses more than its two parts together; 0: the losses add.

    Args:
        vehicles: Vehicle table.
        agent: Agent.
        composition: Condition with friction and grade.
        friction: Condition with the same friction alone.
        grade: Condition with the same grade alone.
        reference: Reference condition.
        config: Bootstrap settings.

    Returns:
        Estimate and limits, no dimensions.

    Raises:
        ValueError: If a condition is missing or named twice, or the worlds do not pair.
    """
    names = [composition, friction, grade, reference]
    if len(set(names)) != 4:
        raise ValueError(f"composition, friction, grade and reference are {names}; they must be four conditions")
    table = world_table(vehicles, agents=[agent], conditions=names)
    both, mu, slope, base = table.counts[0].astype(np.int64)
    return rate_interval(both - mu - slope + base, len(table.vehicles), config)
