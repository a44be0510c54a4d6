"""Statistics of matched evaluations, on Polars tables and NumPy arrays (paper, app. "Statistics").

The world is the resampling unit; every function takes a `BootstrapConfig` whose seed is fixed and kept in the result.
Tables are checked before anything is computed: missing columns, duplicate rows, worlds or vehicles that do not pair.
Results are frozen dataclasses of arrays with a `frame()` each.

- `sensitivity`, `paired_difference`, `rate_interval`: paired world bootstrap.
- `seed_summary`, `family_summary`, `nested_rate`, `nested_difference`: training seeds.
- `family_contrast`: families paired by parent seed; `interactions`: additivity of grade and friction.
- `exposure_rates`, `ratio_interval`: ratios of sums.
- `hazard`, `hazard_ratio`: discrete-time hazard; `losses_by_patch`, `decomposition`: where passage is lost.
- `spearman`, `rank_by_condition`: across checkpoints.

Intervals are pointwise, and none is adjusted for how many are looked at.
"""

from __future__ import annotations

from .bootstrap import (
    BOOTSTRAP_SEED,
    BootstrapConfig,
    Interval,
    RatioInterval,
    paired_difference,
    rate_interval,
    ratio_interval,
    world_weights,
)
from .contrasts import FamilyContrast, family_contrast
from .decomposition import LOST_TO, PARTS, Decomposition, decomposition
from .exposure import EXPOSURE_RATES, ExposureRate, ExposureRates, available_rates, exposure_rates
from .families import FamilySummary, family_summary
from .hazard import HAZARD_CLASSES, Hazard, hazard
from .hazard_ratio import HazardRatio, hazard_ratio, indicator_seconds
from .interaction import Interactions, find_compositions, interactions
from .losses import LOSS_CLASSES, WHERE, Losses, losses_by_patch
from .matched import LANES, Matched, agent_names, matched
from .nested import NESTED_COVERAGE, NestedInterval, nested_difference, nested_rate
from .rank import RankCorrelation, rank_by_condition, spearman
from .seeds import SeedSummary, seed_summary
from .sensitivity import Sensitivity, sensitivity

__all__ = [
    "BOOTSTRAP_SEED",
    "EXPOSURE_RATES",
    "HAZARD_CLASSES",
    "LANES",
    "LOSS_CLASSES",
    "LOST_TO",
    "NESTED_COVERAGE",
    "PARTS",
    "WHERE",
    "BootstrapConfig",
    "Decomposition",
    "ExposureRate",
    "ExposureRates",
    "FamilyContrast",
    "FamilySummary",
    "Hazard",
    "HazardRatio",
    "Interactions",
    "Interval",
    "Losses",
    "Matched",
    "NestedInterval",
    "RankCorrelation",
    "RatioInterval",
    "SeedSummary",
    "Sensitivity",
    "agent_names",
    "available_rates",
    "decomposition",
    "exposure_rates",
    "family_contrast",
    "family_summary",
    "find_compositions",
    "hazard",
    "hazard_ratio",
    "indicator_seconds",
    "interactions",
    "losses_by_patch",
    "matched",
    "nested_difference",
    "nested_rate",
    "paired_difference",
    "rank_by_condition",
    "rate_interval",
    "ratio_interval",
    "seed_summary",
    "sensitivity",
    "spearman",
    "world_weights",
]
