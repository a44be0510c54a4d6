"""The fused solver against Newton's XPBD path; long, so it runs with `--full` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import contact
from .check import Record

if TYPE_CHECKING:
    from .outcomes_between_solvers import ConditionComparison

OTHER = "xpbd"
WORLDS = 16
CONDITIONS = ("reference", "mu018", "gradeN045", "gradeP030-mu018")


def run(record: Record) -> None:
    """Repeat the contact checks with the other solver, then compare outcomes of whole worlds."""
    from .outcomes_between_solvers import compare_solvers

    contact.run(record, solver=OTHER)
    for comparison in compare_solvers(WORLDS, CONDITIONS):
        add_comparison(record, comparison)


def add_comparison(record: Record, comparison: ConditionComparison) -> None:
    """Checks of one condition: who changes class, what that does to passage, and whether a touch came first."""
    slug = comparison.condition
    source = "the two paths share every force but contact (verification/outcomes_between_solvers.py)"
    record.at_most(
        f"{slug}: vehicles that change class",
        comparison.changed.mean(),
        0.03,
        states=f"Few of {comparison.changed.size} vehicles end in another outcome class on the other path.",
        source=source,
    )
    record.add(
        f"{slug}: valid passage, other path less default",
        comparison.passage[1] - comparison.passage[0],
        0.0,
        0.03,
        states="The share of valid passages is that of the default path.",
        source=source,
    )
    record.at_most(
        f"{slug}: worlds that part before a touch",
        int(comparison.split_before_touch.sum()),
        1,
        states="Courses part only after vehicles have touched, but for a decision on a knife's edge.",
        source=source,
    )
    record.remarks.append(comparison.describe())
