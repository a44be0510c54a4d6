"""A comparison on a terminal and as text: one table where it is wide, rates and decomposition apart where it is not."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 130
"""Columns of a terminal from which on rates and decomposition stand side by side."""
_LEGEND = (
    "A, B: valid passage of all vehicles of the lane; B - A: mean over worlds of the paired difference; brackets: 95 % "
    "over worlds. kept: share that passed on both sides, lost: on A alone, gained: on B alone, neither: on none."
)
_RATES = {"rate_a": "A", "rate_b": "B", "difference": "B - A"}
_PARTS = {"kept": "kept", "lost": "lost", "gained": "gained", "persistent": "neither"}


def _number(value: float, sign: bool) -> str:
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text[:-1]  # 1.0, so that 80 columns are enough


def _range(row: Mapping[str, Any], name: str) -> str:
    sign = name == "difference"
    middle, low, high = (_number(row[f"{name}{limit}"], sign) for limit in ("", "_low", "_high"))
    return f"{middle} [{low}, {high}]"


def _title(row: Mapping[str, Any], axis: str) -> str:
    if axis == "terrain":
        return f"{row['agent_b']}: B against {row['condition_a']} (A)"
    if axis == "agent":
        return f"{row['agent_b']} (B) against {row['agent_a']} (A)"
    return f"{row['agent_b']}: solver {row['solver_b']} (B) against {row['solver_a']} (A)"


def rich_comparison(table: pl.DataFrame, axis: str, width: int = WIDE) -> list[Table]:
    """Tables of a comparison, one group per base (terrain), pair of agents or solver.

    Args:
        table: Rows of `compare.COMPARE_SCHEMA`.
        axis: Axis of the comparison.
        width: Columns there are.
    """
    from rich import box
    from rich.table import Table

    groups: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_dicts():
        groups.setdefault(_title(row, axis), []).append(row)
    tables = []
    for title, rows in groups.items():
        for shown in ({**_RATES, **_PARTS},) if width >= WIDE else (_RATES, _PARTS):
            made = Table(
                title=f"{title}, {rows[0]['worlds']} matched worlds",
                title_justify="left",
                box=box.SIMPLE_HEAD,
                pad_edge=False,
                collapse_padding=True,
            )
            for name in ("condition", "lane", *shown.values()):
                made.add_column(name, no_wrap=True)
            for row in rows:
                first = row["condition_b"] if row["lane"] == "all" else ""
                cells = [_range(row, name) if name in _RATES else _number(row[name], False) for name in shown]
                made.add_row(first, row["lane"], *cells)
            tables.append(made)
    return tables


def print_comparison(
    table: pl.DataFrame, axis: str, remarks: Sequence[str] = (), console: Console | None = None
) -> None:
    """Print tables, remarks and a legend; a pipe or file gets the wide form."""
    from rich.console import Console

    console = console or Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for made in rich_comparison(table, axis, console.width):
        console.print(made)
    for remark in remarks:
        console.print(remark, markup=False, highlight=False)
    console.print(_LEGEND, markup=False, highlight=False)


def comparison_text(table: pl.DataFrame, axis: str, remarks: Sequence[str] = ()) -> str:
    """The wide form as plain text."""
    from rich.console import Console

    buffer = io.StringIO()
    print_comparison(table, axis, remarks, Console(file=buffer, width=WIDE, color_system=None))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
