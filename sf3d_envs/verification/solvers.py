"""The fused solver against Newton's XPBD path, where this build has one; long, so it runs with `--full` alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..sim import SOLVERS
from . import contact
from .check import Check, Record

OTHER = "xpbd"
WORLDS = 16
CONDITIONS = ("reference", "mu018", "gradeN045", "gradeP030-mu018")


def run(record: Record) -> None:
    """Repeat the contact checks with the other solver, then compare outcomes of whole worlds."""
    if OTHER not in SOLVERS:
        record.remarks.append("This version has one solver, so there is nothing to compare.")
        return
    from .outcomes_between_solvers import compare_solvers

    contact.run(record, solver=OTHER)
    record.checks += as_checks(compare_solvers(worlds=WORLDS, conditions=CONDITIONS), record.group)


def as_checks(result: Iterable[Check], group: str) -> list[Check]:
    """Checks of a comparison, filed under a group: the one place that knows what `compare_solvers` returns.

    Raises:
        TypeError: If an item is no :class:`Check`.
    """
    checks = []
    for item in result:
        if not isinstance(item, Check):
            raise TypeError(f"compare_solvers must return Check objects, got {type(item).__name__}")
        checks.append(replace(item, group=group))
    return checks
