"""The look of the report's plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#2a6fb0", "#d1702a", "#3a8f4d", "#8b4fa3", "#b02a45", "#6b6b6b", "#c79a1e", "#2aa1a1", "#7a4a1e", "#e377c2")
REFERENCE: dict[str, Any] = {"color": "#303030", "linestyle": "--", "linewidth": 1.2}
"""Look of lines that show an expected value."""


def panels(columns: int = 1, rows: int = 1, *, width: float = 8.0, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes, size in inches, without touching pyplot's state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for item in axes:
        item.grid(alpha=0.3, linewidth=0.6)
        item.set_axisbelow(True)
        for side in ("top", "right"):
            item.spines[side].set_visible(False)
    return figure, axes


def legend_beside(axes: Axes, title: str | None = None) -> None:
    """A legend to the right of the axes, where it covers no line."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small", frameon=False, title=title)
