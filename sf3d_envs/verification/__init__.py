"""Verification of the physics as a report: closed forms, float64, standards, conservation laws, bitwise promises."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .check import Check, Plot, Record
from .groups import GROUPS, Group, select

if TYPE_CHECKING:
    from .report import Verification

__all__ = ["GROUPS", "Check", "Group", "Plot", "Record", "select", "verify"]


def verify(
    out: str | Path | None = None,
    *,
    full: bool = False,
    groups: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Verification:
    """Run the checks and, with a folder, write the report.

    A group that raises counts as failed and the others still run. Files are written at the end: an interrupted run
    leaves an earlier report as it was.

    Args:
        out: Folder for `report.html`, `checks.json`, `checks.csv` and `plots/`; None writes nothing.
        full: Add the long checks.
        groups: Names from `GROUPS`; None = all.
        progress: Called with (title, groups done, groups in all).

    Returns:
        The result; iterating gives :class:`Check` objects, `.passed` says whether all hold.

    Raises:
        ValueError: If a group is unknown or the folder cannot be written.
        OSError: If writing fails.
    """
    chosen = select(groups, full)
    if out is not None:
        from ..evaluation.store import check_writable

        out = check_writable(out, "out")
    from .._warp import load_kernels
    from .report import GroupResult, Verification, write_report

    load_kernels("cpu")
    results = []
    for done, group in enumerate(chosen):
        if progress is not None:
            progress(group.title, done, len(chosen))
        begin = time.perf_counter()
        record = Record(group.name, full=full)
        try:
            group.run(record)
        except Exception as error:
            record.checks.append(_broken(group, error))
        results.append(GroupResult(group, record, time.perf_counter() - begin))
    result = Verification(tuple(results), full)
    if out is not None:
        write_report(result, Path(out))
    return result


def _broken(group: Group, error: Exception) -> Check:
    """A failed check for a group that raised."""
    return Check(
        name="the group runs to its end",
        group=group.name,
        states="All checks of the group could be measured.",
        source="this report",
        measured=float("nan"),
        expected=0.0,
        note=f"{type(error).__name__}: {error}",
    )
