"""Which cells of two results belong together along an axis, and which are left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .finished import Cell
from .matching import UnmatchedPair, check_pair, manifest_fields, on_axis
from .table import REFERENCE

Pairs = Sequence[tuple[Cell, Cell]]


def pair_cells(left: Sequence[Cell], right: Sequence[Cell], axis: str, *, same: bool) -> list[tuple[Cell, Cell]]:
    """Cells that belong together by name; whether they may be compared is another question.

    Args:
        left: Cells of A; for `terrain` a single one is the base, of several those of the reference condition.
        right: Cells of B.
        axis: A key of `matching.AXES`.
        same: Whether both sides are the same folder, in which a pair of agents is taken once.

    Returns:
        Pairs (cell of A, cell of B).

    Raises:
        ValueError: If nothing pairs.
    """
    if len(left) == len(right) == 1 and left[0].folder != right[0].folder:
        return [(left[0], right[0])]  # two cells that were named make a pair, or an error that says why not
    if axis == "terrain":
        bases = list(left) if len(left) == 1 else [cell for cell in left if cell.condition == REFERENCE]
        if not bases:
            raise ValueError(
                f"A holds no cell of the condition {REFERENCE!r} to compare with; give one of its cells: "
                f"{', '.join(c.name for c in left)}"
            )
        pairs = [(x, y) for x in bases for y in right if x.agent == y.agent and x.condition != y.condition]
    elif axis == "agent":
        pairs = [(x, y) for x in left for y in right if x.condition == y.condition and x.folder != y.folder]
        if same:
            pairs = [(x, y) for x, y in pairs if x.agent < y.agent]
        pairs = [pair for pair in pairs if not _same_agent(*pair)] or pairs
    else:
        pairs = [(x, y) for x in left for y in right if x.name == y.name and x.folder != y.folder]
    if not pairs:
        wanted = {
            "terrain": "other conditions of the same agent",
            "agent": "another agent on the same condition",
            "solver": "another folder's cell of the same agent and condition",
        }[axis]
        raise ValueError(
            f"nothing to compare along the axis {axis!r}, which pairs a cell with {wanted}: A holds {_listed(left)}; "
            f"B holds {_listed(right)}"
        )
    return pairs


def _same_agent(one: Cell, other: Cell) -> bool:
    """Whether two cells were driven by the same agent; such pairs are left out where there are others."""
    fields = [{n: v for n, v in manifest_fields(c.manifest).items() if on_axis(n, "agent")} for c in (one, other)]
    return fields[0] == fields[1]


def admit_pairs(pairs: Pairs, axis: str, worlds: int | None) -> list[dict[str, tuple[Any, Any]]]:
    """Fields that differ along the axis, per pair.

    Args:
        pairs: From `pair_cells`.
        axis: A key of `matching.AXES`.
        worlds: As for `matching.check_pair`.

    Raises:
        UnmatchedPair: For the first pair that is refused, with the number of those that are.
        ValueError: As `matching.check_pair`.
    """
    admitted, refused = [], []
    for one, other in pairs:
        try:
            admitted.append(check_pair(one.manifest, other.manifest, axis, worlds))
        except UnmatchedPair as error:
            refused.append(error)
    if refused:
        if len(pairs) > 1:
            refused[0].args = (f"{refused[0]} (refused: {len(refused)} of {len(pairs)} pairs)",)
        raise refused[0]
    return admitted


def unpaired_cells(left: Sequence[Cell], right: Sequence[Cell], pairs: Pairs, axis: str) -> list[str]:
    """Cells that might have been expected in the tables and are not."""
    used = {cell.folder for pair in pairs for cell in pair}
    bases = {one.name for one, _ in pairs}
    lone = []
    for side, cells in (("A", [] if axis == "terrain" else left), ("B", right)):
        rest = [c for c in cells if c.folder not in used and not (axis == "terrain" and c.name in bases)]
        if rest:
            lone.append(f"without a counterpart in {'B' if side == 'A' else 'A'}: {_listed(rest)} of {side}")
    return lone


def cell_errors(pairs: Pairs, worlds: int | None) -> list[str]:
    """Remarks on cells whose worlds had errors, which their manifests record; arguments as above."""
    found = {}
    for pair in pairs:
        for side, cell in zip("AB", pair, strict=True):
            chosen = cell.seeds[: worlds or len(cell.seeds)]
            errors = [e for e in cell.manifest["record"].get("errors") or [] if e.get("scenario_seed") in chosen]
            if errors:
                reasons = ", ".join(sorted({str(e.get("reason")) for e in errors}))
                found[side, cell.folder] = f"{cell.name} of {side} had errors in {len(errors)} worlds ({reasons})"
    return list(found.values())


def _listed(cells: Sequence[Cell], limit: int = 6) -> str:
    names = [cell.name for cell in cells]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
