"""The matching check: a pair is compared only if it differs in the fields of the declared axis alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

AXES: dict[str, tuple[str, ...]] = {
    "terrain": ("condition", "terrain"),
    "agent": ("agent", "checkpoint", "decision_hz"),
    "solver": ("solver",),
}
"""Axis -> fields that may differ along it: these names, and those that go on with `_` or `.`, like `agent_digest`."""

PER_WORLD = ("scenario", "initial_state")
"""Digests of a manifest's record with one entry per world."""

RECORDING = ("rich",)
"""Fields that say what is recorded besides and decide no outcome; they may differ."""

_ABSENT = "absent"


class UnmatchedPair(ValueError):
    """Two runs that differ in more than the declared axis, or not along it.

    Attributes:
        axis: The declared axis.
        fields: Field -> (value of A, value of B) of everything that differs off the axis.
    """

    def __init__(self, axis: str, fields: Mapping[str, tuple[Any, Any]], message: str) -> None:
        """Keep what differs beside the message."""
        super().__init__(message)
        self.axis, self.fields = axis, dict(fields)


def check_axis(axis: str) -> str:
    """The axis.

    Raises:
        ValueError: If there is no such axis.
    """
    if axis not in AXES:
        close = get_close_matches(str(axis), AXES, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ";"
        raise ValueError(f"axis is {axis!r}{hint} it must be one of {', '.join(AXES)}")
    return axis


def on_axis(field: str, axis: str) -> bool:
    """Whether a field (dotted name) may differ along an axis."""
    return any(segment == name or segment.startswith(f"{name}_") for segment in field.split(".") for name in AXES[axis])


def manifest_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell manifest says about its run, as flat named fields.

    Args:
        manifest: Manifest of a cell, for example `finished.Cell.manifest`, which names agent and condition.

    Returns:
        Dotted name -> value: all of `identity`, the fields of `identity.cell` without that prefix, and of `record` the
        digests `terrain`, `route`, `scenario` and `initial_state` (the last two lists over worlds).
    """
    identity = {name: value for name, value in manifest["identity"].items() if name != "cell"}
    fields = {**_flat(identity), **_flat(manifest["identity"].get("cell", {}))}
    return fields | {name: manifest["record"].get(name) for name in ("terrain", "route", *PER_WORLD)}


def check_pair(
    manifest_a: Mapping[str, Any], manifest_b: Mapping[str, Any], axis: str, worlds: int | None = None
) -> dict[str, tuple[Any, Any]]:
    """Admit two cells to a comparison along an axis, or refuse them.

    Everything that identifies a run must be equal except the fields of the axis: code, packages, device, horizon,
    seeds, and, also between terrains, the scenario and the initial state of every world.

    Args:
        manifest_a: Cell manifest of one side.
        manifest_b: Cell manifest of the other side.
        axis: A key of `AXES`.
        worlds: Compare the first N worlds of both sides; None takes all and wants equally many.

    Returns:
        The fields on the axis that differ -> (value of A, value of B).

    Raises:
        UnmatchedPair: If another field differs, or none on the axis does.
        ValueError: If the axis is unknown, or a side has fewer than `worlds` worlds.
    """
    check_axis(axis)
    a, b = manifest_fields(manifest_a), manifest_fields(manifest_b)
    pair = f"A ({_label(a)}) and B ({_label(b)})"
    if worlds is not None:
        fewest = min(a["worlds"], b["worlds"])
        if not 1 <= worlds <= fewest:
            raise ValueError(
                f"worlds is {worlds}; A holds {a['worlds']} and B {b['worlds']}, so it must be 1 ... {fewest}"
            )
        a, b = ({**side, "worlds": worlds, **{n: _cut(side[n], worlds) for n in PER_WORLD}} for side in (a, b))
    differ = {
        name: (a.get(name, _ABSENT), b.get(name, _ABSENT))
        for name in dict.fromkeys([*a, *b])
        if a.get(name, _ABSENT) != b.get(name, _ABSENT)
    }
    off = {name: values for name, values in differ.items() if not on_axis(name, axis) and name not in RECORDING}
    if off:
        shown, advice = _explained(off, a, b)
        listed = "; ".join(f"{name}: {said(x)} in A, {said(y)} in B" for name, (x, y) in shown.items())
        raise UnmatchedPair(axis, off, f"{pair} differ in more than the axis {axis!r}: {listed}{advice}")
    along = {name: values for name, values in differ.items() if on_axis(name, axis)}
    if not along:
        raise UnmatchedPair(axis, {}, f"{pair} are equal along the axis {axis!r}: there is nothing to compare")
    return along


def _explained(
    off: dict[str, tuple[Any, Any]], a: Mapping[str, Any], b: Mapping[str, Any]
) -> tuple[dict[str, tuple[Any, Any]], str]:
    """Fields for a message, lists over worlds in words, and what to do about them."""
    if "seed0" in off:  # other worlds: their digests say nothing more
        return {name: values for name, values in off.items() if name not in PER_WORLD}, ". Their worlds do not pair"
    shown = {}
    for name, (one, other) in off.items():
        if name not in PER_WORLD or not isinstance(one, list) or not isinstance(other, list):
            shown[name] = (one, other)
            continue
        unequal = [i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y]
        if unequal:
            many = f"{len(unequal)} of {min(len(one), len(other))} worlds, first seed {a['seed0'] + unequal[0]}"
            shown[f"{name} ({many})"] = (one[unequal[0]], other[unequal[0]])
        elif "worlds" not in off:
            shown[name] = (len(one), len(other))
    if set(shown) != {"worlds"}:
        return shown, ""
    fewest = min(a["worlds"], b["worlds"])
    return shown, f". Their first {fewest} worlds are the same: --worlds {fewest} (worlds={fewest}) compares those"


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, item in value.items():
        fields |= _flat(item, f"{prefix}{name}.") if isinstance(item, dict) and item else {f"{prefix}{name}": item}
    return fields


def _cut(values: Any, worlds: int) -> Any:
    return values[:worlds] if isinstance(values, list) else values


def _label(fields: Mapping[str, Any]) -> str:
    return f"{fields.get('agent', '?')}/{fields.get('condition', '?')}"


def said(value: Any) -> str:
    """A value in a message: short, a digest by its first twelve digits."""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) == 64 and " " not in text:
        text = f"{text[:12]}..."
    return text if len(text) <= 60 else f"{text[:57]}..."
