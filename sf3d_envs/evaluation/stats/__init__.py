"""Statistics of matched evaluations on NumPy arrays and the tables of a result folder.

The world is the resampling unit: every interval is a percentile bootstrap over worlds (paper, sec. 5), in which all
conditions of one agent share one set of resampled worlds. Counts stay integers until the last division. A bootstrap
seed is fixed and recorded, so equal tables give equal intervals.
"""

from .bootstrap import (
    BOOTSTRAP_SEED,
    BootstrapConfig,
    Interval,
    paired_difference,
    rate_interval,
    ratio_interval,
    world_weights,
)
from .contrasts import family_contrast, interaction_contrast
from .decomposition import Decomposition, decompose
from .hazard import Hazard, failure_hazard
from .nested import NESTED_COVERAGE_4_SEEDS, nested_difference, nested_rate
from .rank import RankCorrelation, spearman
from .seeds import SeedSummary, summarize_seeds
from .tables import WorldTable, world_table

__all__ = [
    "BOOTSTRAP_SEED",
    "NESTED_COVERAGE_4_SEEDS",
    "BootstrapConfig",
    "Decomposition",
    "Hazard",
    "Interval",
    "RankCorrelation",
    "SeedSummary",
    "WorldTable",
    "decompose",
    "failure_hazard",
    "family_contrast",
    "interaction_contrast",
    "nested_difference",
    "nested_rate",
    "paired_difference",
    "rate_interval",
    "ratio_interval",
    "spearman",
    "summarize_seeds",
    "world_table",
    "world_weights",
]
