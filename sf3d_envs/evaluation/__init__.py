"""Evaluation: matched runs, outcomes, safety measures, trajectories, intervals, result files and tables."""

from __future__ import annotations

from .columns import RICH_SCHEMA, SAFETY_SCHEMA, VEHICLE_TABLE_SCHEMA
from .compare import Comparison, compare, compare_vehicles
from .executors import CellFailed, Executor, LocalExecutor, RayExecutor, WorkerMismatch
from .freeze import freeze, write_frozen
from .frozen import Frozen, FrozenMismatch, read_frozen
from .logged import logging_probes
from .matching import AXES, UnmatchedPair, check_pair, manifest_fields
from .outcomes import OUTCOMES, VEHICLE_SCHEMA, WORLD_SCHEMA, RunLabels, vehicle_outcomes, world_outcomes
from .runner import Evaluation, EvaluationConfig, EvaluationResult, evaluate
from .safety import SafetyProbe
from .stats import BootstrapConfig, Interval, paired_difference, rate_interval
from .store import DamagedCell, ManifestConflict, ResultStore
from .table import summary_table
from .trajectory import TrajectoryChunk, TrajectoryProbe

__all__ = [
    "AXES",
    "OUTCOMES",
    "RICH_SCHEMA",
    "SAFETY_SCHEMA",
    "VEHICLE_SCHEMA",
    "VEHICLE_TABLE_SCHEMA",
    "WORLD_SCHEMA",
    "BootstrapConfig",
    "CellFailed",
    "Comparison",
    "DamagedCell",
    "Evaluation",
    "EvaluationConfig",
    "EvaluationResult",
    "Executor",
    "Frozen",
    "FrozenMismatch",
    "Interval",
    "LocalExecutor",
    "ManifestConflict",
    "RayExecutor",
    "ResultStore",
    "RunLabels",
    "SafetyProbe",
    "TrajectoryChunk",
    "TrajectoryProbe",
    "UnmatchedPair",
    "WorkerMismatch",
    "check_pair",
    "compare",
    "compare_vehicles",
    "evaluate",
    "freeze",
    "logging_probes",
    "manifest_fields",
    "paired_difference",
    "rate_interval",
    "read_frozen",
    "summary_table",
    "vehicle_outcomes",
    "world_outcomes",
    "write_frozen",
]
