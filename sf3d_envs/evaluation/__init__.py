"""Evaluation: matched runs, outcomes, safety measures, trajectories, intervals, result files and tables."""

from __future__ import annotations

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
    "SafetyProbe",
    "TrajectoryChunk",
    "TrajectoryProbe",
    "evaluate",
    "logging_probes",
    "paired_difference",
    "rate_interval",
    "summary_table",
    "vehicle_outcomes",
    "world_outcomes",
]
