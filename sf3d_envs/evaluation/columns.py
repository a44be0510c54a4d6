"""Columns of the recorded files, and a digest of what they mean.

Missing values: `first_event_step`, `passage_step`, `merge_completed` and the speeds at a mark that a vehicle never
crossed are null; no file of an evaluation holds NaN. `patch_first_step` is -1 for a vehicle that never touched a patch,
as in the table of measures. An infinite `ttc_min` (the gap to a leader never shrank) or `need_ratio_max` (no capacity
was left) stays infinite: it is a value, not a gap.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping

import numpy as np
import polars as pl

from . import measures
from .measures import SAFETY_COUNTS, SAFETY_VALUES, TRAJECTORY
from .outcomes import VEHICLE_SCHEMA, WORLD_SCHEMA

SAFETY_SCHEMA = pl.Schema(
    {**{m.name: pl.Int32() for m in SAFETY_COUNTS}, **{m.name: pl.Float32() for m in SAFETY_VALUES}}
)
"""Safety measures of a vehicle, as `measures.SAFETY_COUNTS` and `measures.SAFETY_VALUES` define them."""

VEHICLE_TABLE_SCHEMA = pl.Schema({**VEHICLE_SCHEMA, **SAFETY_SCHEMA})
"""Columns of `vehicles.parquet`: outcomes, then safety measures."""

RICH_SCHEMA = pl.Schema(
    {
        "step": pl.Int32(),
        "scenario_seed": pl.UInt64(),
        "vehicle": pl.UInt8(),
        **{m.name: pl.Float32() for m in TRAJECTORY},
    }
)
"""Columns of `rich.parquet`: control step from 1, world, vehicle, then `measures.TRAJECTORY` after that step."""


def safety_columns(measured: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """Safety measures of W worlds with V vehicles as columns, in world-major order; NaN becomes null.

    Args:
        measured: Arrays [W, V] of `SafetyProbe.result`.

    Returns:
        A frame of W·V rows with the columns of `SAFETY_SCHEMA`.
    """
    columns = {name: np.ascontiguousarray(measured[name]).reshape(-1) for name in SAFETY_SCHEMA}
    return pl.DataFrame(columns, schema=SAFETY_SCHEMA).with_columns(pl.col(pl.Float32).fill_nan(None))


def metric_schema() -> str:
    """SHA-256 over names, types, units, meanings and limits of all columns; tables with equal ones compare."""
    schemas = (VEHICLE_SCHEMA, WORLD_SCHEMA, SAFETY_SCHEMA, RICH_SCHEMA)
    content = {
        "columns": [{name: str(dtype) for name, dtype in schema.items()} for schema in schemas],
        "measures": [repr(dataclasses.astuple(m)) for m in (*SAFETY_COUNTS, *SAFETY_VALUES, *TRAJECTORY)],
        "limits": [measures.TTC_LIMITS, measures.DRAC_LIMIT, measures.HARD_BRAKE, measures.SPEED_MARKS],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
