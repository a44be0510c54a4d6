"""What went wrong in an evaluation: cells whose worlds had errors, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CellErrors = Mapping[str, Sequence[Mapping[str, Any]]]
"""Cell `<agent>/<condition>` -> errors: scenario_seed, reason, vehicle, step (control step, from 1) and time_s."""


def error_lines(errors: CellErrors, worlds: int) -> list[str]:
    """A line per agent and reason, in the order of the cells.

    Args:
        errors: What went wrong.
        worlds: Worlds of a cell.
    """
    from ..envs.errors import REASONS

    groups: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for cell, found in errors.items():
        agent, _, condition = cell.partition("/")
        for error in found:
            groups.setdefault((agent, error["reason"]), []).append((condition, error))
    lines = []
    for (agent, reason), found in groups.items():
        conditions = list(dict.fromkeys(condition for condition, _ in found))
        condition, first = found[0]
        who = "" if first["vehicle"] is None else f", vehicle {first['vehicle']}"
        lines.append(
            f"agent {agent!r}: {REASONS[reason]}: {len(found)} of {worlds * len(conditions)} worlds in "
            f"{len(conditions)} conditions, first {condition}, scenario {first['scenario_seed']}{who}, "
            f"control step {first['step']} ({first['time_s']:.2f} s)"
        )
    return lines


def bad_agents(errors: CellErrors) -> list[str]:
    """Agents that returned non-finite actions, which count as (0, 0): their results are not the agent's doing."""
    found = [cell.partition("/")[0] for cell, items in errors.items() if any(e["reason"] == "action" for e in items)]
    return list(dict.fromkeys(found))
