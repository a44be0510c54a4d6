"""Evaluation: matched runs, outcomes, intervals, result files and tables."""

from __future__ import annotations

from .outcomes import OUTCOMES, VEHICLE_SCHEMA, WORLD_SCHEMA, RunLabels, vehicle_outcomes, world_outcomes
from .runner import Evaluation, EvaluationConfig, EvaluationResult, evaluate
from .stats import BootstrapConfig, Interval, paired_difference, rate_interval
from .store import DamagedCell, ManifestConflict, ResultStore
from .table import summary_table

__all__ = [
    "OUTCOMES",
    "VEHICLE_SCHEMA",
    "WORLD_SCHEMA",
    "BootstrapConfig",
    "DamagedCell",
    "Evaluation",
    "EvaluationConfig",
    "EvaluationResult",
    "Interval",
    "ManifestConflict",
    "ResultStore",
    "RunLabels",
    "evaluate",
    "paired_difference",
    "rate_interval",
    "summary_table",
    "vehicle_outcomes",
    "world_outcomes",
]
