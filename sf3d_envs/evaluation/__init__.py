"""Evaluation: matched runs, outcomes, safety measures, trajectories, intervals, result files and tables."""

from __future__ import annotations

from .columns import RICH_SCHEMA, SAFETY_SCHEMA, VEHICLE_TABLE_SCHEMA
from .executors import CellFailed, Executor, LocalExecutor, RayExecutor, WorkerMismatch
from .logged import logging_probes
from .outcomes import OUTCOMES, VEHICLE_SCHEMA, WORLD_SCHEMA, RunLabels, vehicle_outcomes, world_outcomes
from .runner import Evaluation, EvaluationConfig, EvaluationResult, evaluate
from .safety import SafetyProbe
from .stats import BootstrapConfig, Interval, paired_difference, rate_interval
from .store import DamagedCell, ManifestConflict, ResultStore
from .table import summary_table
from .trajectory import TrajectoryChunk, TrajectoryProbe

__all__ = [
    "OUTCOMES",
    "RICH_SCHEMA",
    "SAFETY_SCHEMA",
    "VEHICLE_SCHEMA",
    "VEHICLE_TABLE_SCHEMA",
    "WORLD_SCHEMA",
    "BootstrapConfig",
    "CellFailed",
    "DamagedCell",
    "Evaluation",
    "EvaluationConfig",
    "EvaluationResult",
    "Executor",
    "Interval",
    "LocalExecutor",
    "ManifestConflict",
    "RayExecutor",
    "ResultStore",
    "RunLabels",
    "SafetyProbe",
    "TrajectoryChunk",
    "TrajectoryProbe",
    "WorkerMismatch",
    "evaluate",
    "logging_probes",
    "paired_difference",
    "rate_interval",
    "summary_table",
    "vehicle_outcomes",
    "world_outcomes",
]
