"""Environment IDs and the conditions behind them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from .exits import InputError

if TYPE_CHECKING:
    from ..registry import Condition


def environment_ids() -> dict[str, Condition]:
    """IDs of all registered environments and their conditions, in registry order."""
    from ..registration import environment_ids as registered
    from ..registry import load_condition

    return {name: load_condition(slug or "reference") for name, slug in registered().items()}


def resolve(environment: str, condition: str | None) -> Condition:
    """Condition to run for an ID, with or without namespace, and an optional `--condition`.

    Raises:
        InputError: If the ID or the condition is unknown, or the two contradict each other.
    """
    from ..registration import NAMESPACE
    from ..registry import load_condition

    known = environment_ids()
    full = environment if "/" in environment else f"{NAMESPACE}/{environment}"
    if full not in known:
        close = get_close_matches(full, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise InputError(f"ID {environment!r} is unknown{hint} Known: {', '.join(known)}")
    own = known[full]
    if condition is None:
        return own
    try:
        chosen = load_condition(condition)
    except (ValueError, OSError) as error:
        raise InputError(f"--condition: {error}") from error
    if own.slug not in ("reference", chosen.slug):
        raise InputError(
            f"--condition is {condition!r}, but ID {environment!r} carries the condition {own.slug!r}; "
            f"use SF3D/LaneClosure-v0 with --condition"
        )
    return chosen
