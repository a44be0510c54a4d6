"""Spearman's rank correlation across checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's ρ of n checkpoints.

    No p-value: checkpoints share worlds and, within a family, parents, so they are not independent draws. State n.

    Attributes:
        rho: Rank correlation, ties by mean rank; NaN where `reason` says so.
        n: Number of checkpoints.
        reason: Why there is no value; empty otherwise.
    """

    rho: float
    n: int
    reason: str = ""


def spearman(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> RankCorrelation:
    """Spearman's ρ between two numbers per checkpoint, for example reference passage and sensitivity.

    ρ is Pearson's correlation of the ranks (paper, sec. 6: slower checkpoints lost less). To leave a seed out, leave it
    out of both arguments, and say so.

    Args:
        x: One number per checkpoint, shape [n].
        y: The other number, shape [n].

    Returns:
        ρ with n; NaN with a reason where one side is constant.

    Raises:
        ValueError: For different lengths, fewer than three checkpoints, or a value that is not finite.
    """
    one, two = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape:
        raise ValueError(f"x has shape {one.shape} and y {two.shape}; both must hold one number per checkpoint")
    if len(one) < 3:
        raise ValueError(f"x holds {len(one)} checkpoints; a rank correlation needs at least 3")
    for name, values in (("x", one), ("y", two)):
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"{name}[{at}] is {values[at]}; the values must be finite")
        if (values == values[0]).all():
            return RankCorrelation(float("nan"), len(one), f"all {len(one)} values of {name} are equal")
    from scipy import stats  # takes a second to import

    ranks = np.stack([stats.rankdata(one), stats.rankdata(two)])
    return RankCorrelation(float(np.corrcoef(ranks)[0, 1]), len(one))


def rank_by_condition(
    table: pl.DataFrame, x: str = "reference_rate", y: str = "change", lane: str = "all"
) -> pl.DataFrame:
    """Spearman's ρ across agents, condition by condition, from the rows of sensitivity tables.

    Args:
        table: `Sensitivity.frame()` of several agents, one below the other.
        x: First column.
        y: Second column.
        lane: Group of vehicles.

    Returns:
        Columns condition, lane, x, y (names), rho, n, reason; conditions in order of appearance.

    Raises:
        ValueError: For a missing column, no rows of the lane, an agent twice in a condition, or as `spearman`.
    """
    if missing := [name for name in ("agent", "condition", "lane", x, y) if name not in table.columns]:
        raise ValueError(f"table lacks the columns {missing}; it has {table.columns}")
    part = table.filter(pl.col("lane") == lane)
    if part.is_empty():
        raise ValueError(f"lane is {lane!r}; table holds {table['lane'].unique().sort().to_list()}")
    if (twice := part.select("agent", "condition").is_duplicated()).any():
        row = part.filter(twice).row(0, named=True)
        raise ValueError(f"table holds agent {row['agent']!r} twice in condition {row['condition']!r}")
    rows = []
    for (condition,), group in part.group_by("condition", maintain_order=True):
        for name in (x, y):
            if group[name].null_count():
                raise ValueError(f"table[{name!r}] is null in condition {condition!r}; the values must be finite")
        found = spearman(group[x].to_numpy(), group[y].to_numpy())
        rows.append((condition, lane, x, y, found.rho, found.n, found.reason))
    names = {"condition": pl.String, "lane": pl.String, "x": pl.String, "y": pl.String}
    return pl.DataFrame(rows, schema={**names, "rho": pl.Float64, "n": pl.Int64, "reason": pl.String}, orient="row")
