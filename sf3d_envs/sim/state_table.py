"""The table of views as text, for terminals and for the page ``STATE.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .state import SimState

COLUMNS = ("view", "shape", "dtype", "unit", "frame", "write", "valid until", "what it is")


def table_rows() -> list[tuple[str, ...]]:
    """The cells of the table, a row per view."""
    from .state import views

    return [
        (
            name,
            f"[{spec.shape}]",
            spec.dtype,
            spec.unit,
            spec.frame,
            "yes" if spec.writable else "no",
            spec.until,
            spec.doc,
        )
        for name, spec in views().items()
    ]


def text_table() -> str:
    """The table for a terminal of 100 columns: what a view is stands under its other cells."""
    rows = [COLUMNS, *table_rows()]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS) - 1)]
    lines = []
    for row in rows:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip())
        lines.append(f"    {row[-1]}")
    return "\n".join(lines) + "\n"


def markdown_table() -> str:
    """The table in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for name, *cells in table_rows():
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join([f'`{name}`', *escaped])} |")
    return "\n".join(lines) + "\n"


def print_table(state: SimState) -> None:
    """Print the table with the sizes of a simulator."""
    worlds, vehicles = state.position.shape[:2]
    print(f"E = {worlds} worlds, V = {vehicles} vehicles, tensors on {state.position.device}\n")
    print(text_table(), end="")


BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def page_with_table(page: str) -> str:
    """A page with the table between its two marks.

    Raises:
        ValueError: If a mark is missing.
    """
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page lacks {BEGIN.strip()!r} or {END.strip()!r}")
    head, rest = page.split(BEGIN, 1)
    return f"{head}{BEGIN}{markdown_table()}{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    from pathlib import Path

    file = Path(__file__).with_name("STATE.md")
    file.write_text(page_with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
