"""The report as one HTML page without references to anything outside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from .text import PrintedTable, html_table


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A drawing with its caption.

    Attributes:
        svg: SVG element.
        caption: What is to be seen.
    """

    svg: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of the page.

    Attributes:
        name: Anchor.
        title: Heading.
        paragraphs: Text before everything else.
        groups: (heading, bullet points).
        points: Bullet points.
        open_tables: Tables that are shown at once.
        figures: Drawings.
        video: MP4 file, or None.
        video_caption: What it shows.
        tables: Tables behind a fold.
        facts: (name, value) pairs.
    """

    name: str
    title: str
    paragraphs: Sequence[str] = ()
    groups: Sequence[tuple[str, Sequence[str]]] = ()
    points: Sequence[str] = ()
    open_tables: Sequence[PrintedTable] = ()
    figures: Sequence[Figure] = ()
    video: bytes | None = field(default=None, repr=False)
    video_caption: str = ""
    tables: Sequence[PrintedTable] = ()
    facts: Sequence[tuple[str, str]] = ()


def _table(table: PrintedTable) -> dict[str, str]:
    return {"title": table.title, "note": table.note, "html": html_table(table)}


def _section(section: Section) -> dict[str, Any]:
    return {
        **{
            name: getattr(section, name)
            for name in ("name", "title", "paragraphs", "groups", "points", "figures", "facts")
        },
        "open_tables": [_table(table) for table in section.open_tables],
        "tables": [_table(table) for table in section.tables],
        "video": None if section.video is None else base64.b64encode(section.video).decode(),
        "video_caption": section.video_caption,
    }


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole page.

    Args:
        title: Its title.
        lead: Paragraph below the title.
        sections: Sections in order.

    Returns:
        HTML; equal arguments give equal text.
    """
    from jinja2 import Environment, StrictUndefined

    source = files("sf3d_envs.evaluation.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(source)
    return template.render(title=title, lead=lead, sections=[_section(section) for section in sections])
