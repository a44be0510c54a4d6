"""Charts of rates: passage, change, time to collision, entry speed, additivity; tables of `stats` in, figures out."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..table import REFERENCE, ConditionFacts
from .drawing import (
    COLORS,
    MARKERS,
    Axis,
    check_columns,
    condition_axes,
    draw_curves,
    draw_forest,
    label_forest,
    new_figure,
    require,
)

_LIMITS = ("", "_low", "_high")


def agents_of(frame: pl.DataFrame) -> list[str]:
    """Agents in order of appearance."""
    check_columns(frame, ("agent", "condition"))
    return frame["agent"].unique(maintain_order=True).to_list()


def with_reference(passage: pl.DataFrame) -> pl.DataFrame:
    """Rows of the reference added to a table of sensitivities, with the rate alone."""
    columns = ["agent", "lane", *(f"reference_rate{limit}" for limit in _LIMITS)]
    check_columns(passage, columns)
    base = passage.select(columns).unique(maintain_order=True)
    base = base.rename({f"reference_rate{limit}": f"rate{limit}" for limit in _LIMITS})
    return pl.concat([base.with_columns(condition=pl.lit(REFERENCE)), passage], how="diagonal")


def _axes(frame: pl.DataFrame, facts: Sequence[ConditionFacts]) -> list[Axis]:
    """Axes of the conditions that a table holds."""
    held = set(frame["condition"])
    return condition_axes([c for c in facts if c.slug in held])


def _legend(figure: Figure, labels: Sequence[str], handles: Sequence[Line2D]) -> None:
    """Legend above the panels, where it covers nothing; names that are long get fewer columns."""
    columns = max(1, min(4, 88 // (8 + max(len(label) for label in labels))))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, fontsize=9)


def _agent_handles(names: Sequence[str]) -> list[Line2D]:
    return [
        Line2D([], [], color=COLORS[i % len(COLORS)], marker=MARKERS[i % len(MARKERS)], markersize=4.5, linewidth=1.4)
        for i in range(len(names))
    ]


def plot_passage(passage: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Valid passage against friction and against grade, a curve per agent.

    Args:
        passage: Rows of `stats.Sensitivity.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    rows = with_reference(passage).filter(pl.col("lane") == "all")
    axes, names = _axes(rows, facts), agents_of(passage)
    require(rows.height, "no row of all vehicles")
    require(len(axes), "no condition with friction or grade alone")
    figure, panels = new_figure(3.3, 1, len(axes), sharey=True)
    drawn = 0
    for ax, axis in zip(panels[0], axes, strict=True):
        drawn += draw_curves(ax, rows, axis, "rate", "agent", names)
        ax.set_ylim(-0.02, 1.02)
    require(drawn, "no passage that is a number")
    panels[0, 0].set_ylabel("share of vehicles that pass")
    if len(names) > 1:
        _legend(figure, names, _agent_handles(names))
    return figure


def plot_change(passage: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Change from the own reference, condition by condition, lanes apart.

    Args:
        passage: Rows of `stats.Sensitivity.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    check_columns(passage, ["lane", *(f"change{limit}" for limit in _LIMITS)])
    names = agents_of(passage)
    slugs = [c.slug for c in facts if c.slug != REFERENCE and (passage["condition"] == c.slug).any()]
    lanes = [lane for lane in ("closing", "open") if (passage["lane"] == lane).any()]
    require(len(slugs) * len(lanes), "no condition beside the reference")
    height = 1.0 + len(slugs) * (0.18 + 0.08 * len(names))
    figure, panels = new_figure(height, 1, len(lanes), sharey=True, sharex=True)
    drawn, step = 0, min(0.22, 0.8 / len(names))  # all of a condition within its own row
    for ax, lane in zip(panels[0], lanes, strict=True):
        for row in range(0, len(slugs) if len(names) > 1 else 0, 2):
            ax.axhspan(row - 0.5, row + 0.5, color="#f3f5f7", zorder=0)
        for i, name in enumerate(names):
            rows = passage.filter((pl.col("lane") == lane) & (pl.col("agent") == name))
            offset = step * (i - 0.5 * (len(names) - 1))
            look = {"fmt": MARKERS[i % len(MARKERS)], "color": COLORS[i % len(COLORS)], "label": name}
            drawn += draw_forest(ax, rows, "change", slugs, offset, look)
        label_forest(ax, slugs, f"{lane} lane")
    require(drawn, "no change that is a number")
    if len(names) > 1:
        _legend(figure, names, _agent_handles(names))
    return figure


def _rate(rates: pl.DataFrame, name: str, lane: str = "all") -> pl.DataFrame:
    check_columns(rates, ["lane", "rate", *(f"value{limit}" for limit in _LIMITS)])
    return rates.filter((pl.col("rate") == name) & (pl.col("lane") == lane))


def plot_ttc(rates: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Vehicles that fell below 1.5 s to collision, and time below it, against friction and grade.

    Args:
        rates: Rows of `stats.ExposureRates.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    axes, names = _axes(rates, facts), agents_of(rates)
    require(len(axes), "no condition with friction or grade alone")
    figure, panels = new_figure(5.4, 2, len(axes), sharey="row")
    shown = {"ttc_below_1_5s_vehicles": "share of vehicles", "ttc_below_1_5s": "share of driving time"}
    drawn = 0
    for row, (name, label) in zip(panels, shown.items(), strict=True):
        for ax, axis in zip(row, axes, strict=True):
            drawn += draw_curves(ax, _rate(rates, name), axis, "value", "agent", names)
        row[0].set_ylim(bottom=0.0)
        row[0].set_ylabel(label)
    require(drawn, "no rate of the time to collision")
    if len(names) > 1:
        _legend(figure, names, _agent_handles(names))
    return figure


def plot_entry_speed(rates: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Mean speed at x = 20 m (dashed, hollow) and x = 40 m, a row per lane.

    Args:
        rates: Rows of `stats.ExposureRates.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    axes, names = _axes(rates, facts), agents_of(rates)
    require(len(axes), "no condition with friction or grade alone")
    figure, panels = new_figure(5.4, 2, len(axes), sharey="row")
    drawn = 0
    for row, lane in zip(panels, ("closing", "open"), strict=True):
        for ax, axis in zip(row, axes, strict=True):
            for at in (20, 40):
                rows = _rate(rates, f"speed_at_{at}m", lane)
                drawn += draw_curves(ax, rows, axis, "value", "agent", names, dashed=at == 20)
        row[0].set_ylabel(f"{lane} lane: speed [m/s]")
    require(drawn, "no vehicle crossed x = 20 or 40 m")
    marks = [
        Line2D([], [], color="#57606a", linestyle="--", marker="o", markersize=4.5, markerfacecolor="white"),
        Line2D([], [], color="#57606a", marker="o", markersize=4.5),
    ]
    agents = list(names) if len(names) > 1 else []
    _legend(figure, [*agents, "at 20 m", "at 40 m"], [*_agent_handles(agents), *marks])
    return figure


def plot_additivity(frame: pl.DataFrame) -> Figure:
    """Measured change, sum of the single changes, and interaction of each composition; all vehicles.

    Args:
        frame: Rows of `stats.Interactions.frame` of all agents.

    Raises:
        NothingToDraw: Without a row.
    """
    parts = {"change": "measured", "sum_of_parts": "sum of single changes", "interaction": "difference of both"}
    check_columns(frame, ["lane", *(f"{name}{limit}" for name in parts for limit in _LIMITS)])
    rows = frame.filter(pl.col("lane") == "all")
    names = agents_of(frame)
    require(rows.height, "no composition of grade and friction")
    slugs = rows["condition"].unique(maintain_order=True).to_list()
    columns = min(2, len(names))
    count = -(-len(names) // columns)
    figure, panels = new_figure(0.4 + count * (0.6 + 0.55 * len(slugs)), count, columns, sharey=True, sharex=True)
    drawn = 0
    for ax, name in zip(panels.flat, names, strict=False):
        own = rows.filter(pl.col("agent") == name)
        for k, (part, label) in enumerate(parts.items()):
            look = {"fmt": MARKERS[k], "color": COLORS[(0, 4, 1)[k]], "label": label}
            drawn += draw_forest(ax, own, part, slugs, 0.24 * (k - 1), look)
        label_forest(ax, slugs, name)
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.label_outer()
    for ax in panels.flat[len(names) :]:
        ax.set_visible(False)
    if len(names) % columns:
        panels[-2, -1].tick_params(labelbottom=True)
        panels[-2, -1].set_xlabel(panels[-1, 0].get_xlabel())
    require(drawn, "no interaction that is a number")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure
