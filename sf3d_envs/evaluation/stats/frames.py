"""Result arrays as columns of a table, one row per element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from .bootstrap import Interval, RatioInterval
from .nested import NestedInterval
from .seeds import SeedSummary


def columns_of(shape: tuple[int, ...], agent: str | None, /, **axes: tuple[int, Sequence[str]]) -> dict[str, Any]:
    """Name columns of an array [shape] in row-major order: for each axis given, its labels."""
    index = np.indices(shape)
    size = int(np.prod(shape))
    named = {name: [labels[i] for i in index[axis].ravel()] for name, (axis, labels) in axes.items()}
    return ({} if agent is None else {"agent": [agent] * size}) | named


def interval_columns(name: str, interval: Interval, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """`name`, `name_low`, `name_high`, and of a ratio `name_undefined`, broadcast to a shape."""
    columns = {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
    if isinstance(interval, RatioInterval):
        columns[f"{name}_undefined"] = interval.undefined
    return {key: np.broadcast_to(value, shape).ravel() for key, value in columns.items()}


def seed_columns(name: str, summary: SeedSummary) -> dict[str, np.ndarray]:
    """`name` (mean over seeds), `name_sd`, `name_low`, `name_high`, flat."""
    values = {name: summary.mean, f"{name}_sd": summary.sd, f"{name}_low": summary.low, f"{name}_high": summary.high}
    return {key: np.asarray(value).ravel() for key, value in values.items()}


def nested_columns(interval: NestedInterval) -> dict[str, Any]:
    """Limits of a nested interval and what such intervals cover (null where that was not measured), flat."""
    low, high = interval.low.ravel(), interval.high.ravel()
    coverage = pl.Series([interval.coverage] * low.size, dtype=pl.Float64)
    return {"nested_low": low, "nested_high": high, "nested_coverage": coverage}
