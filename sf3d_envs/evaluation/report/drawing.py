"""What all charts of a report share: look, axes of friction and grade, curves with intervals, SVG."""

from __future__ import annotations

import hashlib
import io
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..table import REFERENCE, ConditionFacts

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#8c6d1f")
"""Colours that stay apart for colour-blind readers (Okabe and Ito), two darker ones added."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTH = 7.5
_FONT: Any = {"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9, "xtick.labelsize": 9, "ytick.labelsize": 9}


class NothingToDraw(ValueError):
    """A table without a row that the chart shows."""


@dataclass(frozen=True)
class Axis:
    """Conditions along an axis.

    Attributes:
        places: Slug -> place.
        ticks: (place, label) of each tick.
        label: What is along it.
    """

    places: Mapping[str, float]
    ticks: Sequence[tuple[float, str]]
    label: str


def condition_axes(facts: Sequence[ConditionFacts]) -> list[Axis]:
    """Friction, by rank of severity, and grade [%]; the reference is on both, and an axis of one value is left out."""
    flat = sorted((c for c in facts if not c.grade), key=lambda c: -c.friction)
    sloped = sorted((c for c in facts if c.friction >= 1.0), key=lambda c: c.grade)
    axes = []
    if len({c.friction for c in flat}) > 1:
        # Even spacing: the coefficients span a factor of twenty and are read one by one.
        ticks = [
            (float(i), f"{c.friction:.2f}" if round(c.friction, 2) == c.friction else f"{c.friction:g}")
            for i, c in enumerate(flat)
        ]
        places = {c.slug: float(i) for i, c in enumerate(flat)}
        axes.append(Axis(places, ticks, "friction \u03bc of the patch"))
    if len({c.grade for c in sloped}) > 1:
        low, high = 100.0 * sloped[0].grade, 100.0 * sloped[-1].grade
        marks = [round(float(x), 9) for x in MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(low, high)]
        ticks = [(x, f"{x:+g}".replace("-", "\u2212") if x else "0") for x in marks]
        axes.append(Axis({c.slug: 100.0 * c.grade for c in sloped}, ticks, "grade [%]"))
    return axes


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: object) -> tuple[Figure, np.ndarray]:
    """A figure of the report's width and its axes, [rows, columns]."""
    with matplotlib.rc_context(_FONT):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)  # type: ignore[arg-type]
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#e3e7eb", linewidth=0.8)
        ax.set_axisbelow(True)
    return figure, axes


def draw_curves(
    ax: Axes, frame: pl.DataFrame, axis: Axis, value: str, series: str, names: Sequence[str], *, dashed: bool = False
) -> int:
    """One curve with intervals per entry of a column; a value that is null or not finite leaves a gap.

    Args:
        ax: Where to draw.
        frame: Rows with condition, `series`, `value`, `value_low`, `value_high`.
        axis: Places of the conditions.
        value: Column drawn.
        series: Column that tells curves apart.
        names: Its entries, which decide colour and marker.
        dashed: Whether the curves are dashed, their markers hollow and their places a little to the left, so that a
            second value of the same entry stays apart from the first.

    Returns:
        Points drawn.
    """
    drawn = 0
    # Side by side, and all closer to their own condition than to the next.
    gaps = np.diff(sorted(set(axis.places.values())))
    nearest = float(gaps.min()) if len(gaps) else 1.0
    step = nearest * min(0.09, 0.5 / max(1, len(names)))
    for i, name in enumerate(names):
        rows = [r for r in frame.filter(pl.col(series) == name).to_dicts() if r["condition"] in axis.places]
        rows = sorted(rows, key=lambda r: axis.places[r["condition"]])
        if not rows:
            continue
        x = np.array([axis.places[r["condition"]] for r in rows])
        x += step * (i - 0.5 * (len(names) - 1) - (0.4 if dashed else 0.0))
        y, low, high = _values(rows, value)
        ax.errorbar(
            x,
            y,
            yerr=np.clip([y - low, high - y], 0.0, None),
            label=name,
            color=COLORS[i % len(COLORS)],
            marker=MARKERS[i % len(MARKERS)],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=1.0,
            linestyle="--" if dashed else "-",
            markerfacecolor="white" if dashed else COLORS[i % len(COLORS)],
        )
        drawn += int(np.isfinite(y).sum())
    label_axis(ax, axis)
    return drawn


def draw_forest(
    ax: Axes, frame: pl.DataFrame, value: str, slugs: Sequence[str], offset: float, look: Mapping[str, Any]
) -> int:
    """Values with intervals along x, a row per condition; a value that is null or not finite leaves a gap.

    Args:
        ax: Where to draw.
        frame: Rows with condition, `value`, `value_low`, `value_high`.
        value: Column drawn.
        slugs: Conditions from top to bottom; others are left out.
        offset: How far below the middle of its row a value is drawn.
        look: Marker (`fmt`), `color` and `label`.

    Returns:
        Points drawn.
    """
    rows = [row for row in frame.to_dicts() if row["condition"] in slugs]
    x, low, high = _values(rows, value)
    y = np.array([slugs.index(row["condition"]) for row in rows]) + offset
    ax.errorbar(x, y, xerr=np.clip([x - low, high - x], 0.0, None), markersize=4.5, elinewidth=1.2, **look)
    return int(np.isfinite(x).sum())


def label_forest(ax: Axes, slugs: Sequence[str], title: str) -> None:
    """Names of the rows, zero line, title and grid of a forest of changes."""
    ax.axvline(0.0, color="#57606a", linewidth=1.0, zorder=1)
    ax.set_title(title, loc="left")
    ax.set_xlabel("change of valid passage")
    ax.grid(axis="x", color="#e3e7eb", linewidth=0.8)
    ax.set_yticks(range(len(slugs)), slugs)
    ax.set_ylim(len(slugs) - 0.4, -0.6)


def label_axis(ax: Axes, axis: Axis) -> None:
    """Ticks and label of a condition axis."""
    ax.set_xticks([place for place, _ in axis.ticks], [label for _, label in axis.ticks])
    ax.set_xlabel(axis.label)


def _values(rows: Sequence[Mapping[str, Any]], value: str) -> np.ndarray:
    """A column and its limits, [3, rows]; NaN where the value is null or not finite."""
    held = np.array([[row[f"{value}{limit}"] for row in rows] for limit in ("", "_low", "_high")], dtype=float)
    return np.where(np.isfinite(held) & np.isfinite(held[0]), held, np.nan)


def require(count: int, what: str) -> None:
    """Refuse a chart without a point.

    Raises:
        NothingToDraw: Naming what is missing.
    """
    if not count:
        raise NothingToDraw(f"there is nothing to draw: {what}")


def check_columns(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a frame without the columns a chart reads.

    Raises:
        ValueError: Naming them.
    """
    if missing := [name for name in columns if name not in frame.columns]:
        raise ValueError(f"frame lacks the columns {missing}; it has {frame.columns}")


def check_one_agent(frame: pl.DataFrame) -> None:
    """Refuse a frame of several agents where a chart shows one.

    Raises:
        ValueError: Naming them.
    """
    if "agent" in frame.columns and len(names := frame["agent"].unique(maintain_order=True).to_list()) > 1:
        raise ValueError(f"frame holds the agents {names}; give the rows of one, a chart each")


def svg(figure: Figure, name: str, title: str = "") -> str:
    """A figure as an SVG element that can stand in a page with others.

    Args:
        figure: Figure.
        name: Unique in the page; ids of the element derive from it.
        title: Text for those who cannot see it; without it, `name` is their text.

    Returns:
        The element; equal figures give equal bytes.

    Raises:
        ValueError: If `name` is empty.
    """
    if not name:
        raise ValueError("name is empty; give one that is unique in the page")
    buffer = io.StringIO()
    # Each drawing moves a constrained layout by a rounding error, which would change ids: the figure stays as it is.
    figure = pickle.loads(pickle.dumps(figure))
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.family": "DejaVu Sans"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    prefix = re.sub(r"[^A-Za-z0-9-]", "-", name)
    if prefix != name:
        # Two names that differ in signs alone still get ids of their own.
        prefix += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title or name, quote=True)}"', 1)


__all__ = [
    "COLORS",
    "MARKERS",
    "REFERENCE",
    "WIDTH",
    "Axis",
    "NothingToDraw",
    "check_columns",
    "check_one_agent",
    "condition_axes",
    "draw_curves",
    "draw_forest",
    "label_axis",
    "label_forest",
    "new_figure",
    "require",
    "svg",
]
