"""Benchmark data (conditions, suites, vehicles) and the code that loads and checks it.

Everything here is data: user files are named by a TOML path where a slug or a name is accepted.
"""

from .conditions import (
    DEFAULT_SUITE,
    Condition,
    Suite,
    Tier,
    list_conditions,
    list_suites,
    load_condition,
    load_suite,
)
from .vehicles import list_vehicles, load_vehicle

__all__ = [
    "DEFAULT_SUITE",
    "Condition",
    "Suite",
    "Tier",
    "list_conditions",
    "list_suites",
    "list_vehicles",
    "load_condition",
    "load_suite",
    "load_vehicle",
]
