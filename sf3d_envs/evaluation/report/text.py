"""Numbers and tables as HTML and LaTeX, from one description of the columns."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

MINUS, DASH = "\u2212", "\u2013"
Row = Mapping[str, Any]

_TEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    MINUS: "$-$",
    DASH: "--",
    "\u221e": r"$\infty$",
    "\u03bc": r"$\mu$",
    "\u0394": r"$\Delta$",
    "\u2264": r"$\le$",
    "\u00b2": r"$^2$",
    "\u00d7": r"$\times$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a printed table.

    Attributes:
        title: Heading.
        source: Column of the frame.
        kind: `text`; `number`; `interval`: value [low, high] from `source`, `source_low`, `source_high`; `count`.
        digits: Digits after the point.
        sign: Whether positive numbers carry a plus.
        bold: Whether an interval that excludes zero is bold.
    """

    title: str
    source: str
    kind: Literal["text", "number", "interval", "count"] = "text"
    digits: int = 2
    sign: bool = False
    bold: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it is set flush right."""
        return self.kind != "text"


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """A table to read.

    Attributes:
        name: File stem.
        title: Caption.
        note: What a reader has to know, a sentence or two.
        columns: Columns.
        rows: Rows of a frame.
    """

    name: str
    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Row] = field(repr=False)


def number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    """A number without a leading zero, with a true minus; `0` is exactly zero; an en dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "\u221e" if value > 0 else f"{MINUS}\u221e"
    if value == 0:
        return "0"
    text = f"{abs(value):.{digits}f}"
    return (MINUS if value < 0 else "+" if sign else "") + (text[1:] if text.startswith("0.") else text)


def interval(row: Row, name: str, digits: int = 2, sign: bool = False) -> str:
    """`value [low, high]`; an en dash without a value, the value alone without limits."""
    value, low, high = (row.get(f"{name}{limit}") for limit in ("", "_low", "_high"))
    middle = number(value, digits, sign)
    if middle == DASH or low is None or high is None or math.isnan(low) or math.isnan(high):
        return middle
    return f"{middle} [{number(low, digits, sign)}, {number(high, digits, sign)}]"


def cell_text(row: Row, column: Column) -> str:
    """What stands in a cell."""
    value = row.get(column.source)
    if column.kind == "interval":
        return interval(row, column.source, column.digits, column.sign)
    if column.kind == "number":
        return number(value, column.digits, column.sign)
    if column.kind == "count":
        return DASH if value is None else f"{int(value):,}"
    return DASH if value is None else str(value)


def is_bold(row: Row, column: Column) -> bool:
    """Whether a marked interval lies on one side of zero."""
    if not column.bold or column.kind != "interval":
        return False
    low, high = row.get(f"{column.source}_low"), row.get(f"{column.source}_high")
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def html_table(table: PrintedTable) -> str:
    """The table as an HTML element with a caption; it scrolls by itself where it is too wide."""
    kinds = ["num" if column.numeric else "txt" for column in table.columns]
    head = "".join(f'<th class="{k}">{html.escape(c.title)}</th>' for k, c in zip(kinds, table.columns, strict=True))
    body = []
    for row in table.rows:
        cells = []
        for kind, column in zip(kinds, table.columns, strict=True):
            text = html.escape(cell_text(row, column))
            text = f"<b>{text}</b>" if is_bold(row, column) else text
            tag = 'th scope="row"' if column is table.columns[0] else "td"
            cells.append(f'<{tag} class="{kind}">{text}</{tag.split(maxsplit=1)[0]}>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = f"<caption>{html.escape(table.title)}</caption>"
    inner = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{inner}</div>'


def tex(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(_TEX.get(character, character) for character in text)


def latex_table(table: PrintedTable) -> str:
    """The table as a LaTeX `table` environment; it needs the package booktabs."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        rf"\caption{{{tex(table.title)}. {tex(table.note)}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(tex(column.title) for column in table.columns) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = []
        for column in table.columns:
            text = tex(cell_text(row, column))
            cells.append(rf"\textbf{{{text}}}" if is_bold(row, column) else text)
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def wide(frame: pl.DataFrame, keys: Sequence[str], names: str, values: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a long frame brought side by side.

    Args:
        frame: Rows.
        keys: Columns that make a row, in order of appearance.
        names: Column whose entries become prefixes.
        values: Columns with their limits, taken as `<entry>_<value>`, `<entry>_<value>_low`, `<entry>_<value>_high`.

    Returns:
        One row per key.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in frame.to_dicts():
        key = tuple(row[name] for name in keys)
        out = found.setdefault(key, dict(zip(keys, key, strict=True)))
        for value in values:
            for limit in ("", "_low", "_high"):
                if f"{value}{limit}" in row:
                    out[f"{row[names]}_{value}{limit}"] = row[f"{value}{limit}"]
    return list(found.values())
