"""Charts of rates: passage, change, time to collision, entry speed, additivity; tables of `stats` in, figures out."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.figure import Figure

from ..table import REFERENCE, ConditionFacts
from .drawing import (
    COLORS,
    MARKERS,
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


def plot_passage(passage: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Valid passage against friction and against grade, a curve per agent.

    Args:
        passage: Rows of `stats.Sensitivity.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    rows = with_reference(passage).filter(pl.col("lane") == "all")
    axes, names = condition_axes(facts), agents_of(passage)
    require(len(axes) * rows.height, "no condition with friction or grade alone")
    figure, panels = new_figure(3.3, 1, len(axes), sharey=True)
    for ax, axis in zip(panels[0], axes, strict=True):
        draw_curves(ax, rows, axis, "rate", "agent", names)
        ax.set_ylim(-0.02, 1.02)
    panels[0, 0].set_ylabel("share of vehicles that pass")
    if len(names) > 1:
        panels[0, 0].legend(frameon=False)
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
    height = 1.0 + len(slugs) * (0.16 + 0.1 * len(names))
    figure, panels = new_figure(height, 1, len(lanes), sharey=True, sharex=True)
    for ax, lane in zip(panels[0], lanes, strict=True):
        for i, name in enumerate(names):
            rows = passage.filter((pl.col("lane") == lane) & (pl.col("agent") == name))
            offset = 0.22 * (i - 0.5 * (len(names) - 1))
            look = {"fmt": MARKERS[i % len(MARKERS)], "color": COLORS[i % len(COLORS)], "label": name}
            draw_forest(ax, rows, "change", slugs, offset, look)
        label_forest(ax, slugs, f"{lane} lane")
    if len(names) > 1:
        panels[0, 0].legend(frameon=False)
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
    axes, names = condition_axes(facts), agents_of(rates)
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
        panels[0, 0].legend(frameon=False)
    return figure


def plot_entry_speed(rates: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Mean speed at x = 20 m (dashed) and x = 40 m, a row per lane.

    Args:
        rates: Rows of `stats.ExposureRates.frame` of all agents.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    axes, names = condition_axes(facts), agents_of(rates)
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
    handles, labels = panels[0, 0].get_legend_handles_labels()
    pairs = list(zip(handles, labels, strict=True))
    count = len(pairs) // 2
    titles = [f"{label}, 20 m" for _, label in pairs[:count]] + [f"{label}, 40 m" for _, label in pairs[count:]]
    if len(names) == 1:
        titles = ["at 20 m", "at 40 m"]
    if len(titles) == len(handles):
        figure.legend(handles, titles, loc="outside upper center", frameon=False, ncols=min(4, len(titles)))
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
    figure, panels = new_figure(1.0 + 0.55 * len(slugs), 1, len(names), sharey=True, sharex=True)
    for ax, name in zip(panels[0], names, strict=True):
        own = rows.filter(pl.col("agent") == name)
        for k, (part, label) in enumerate(parts.items()):
            look = {"fmt": MARKERS[k], "color": COLORS[(0, 4, 1)[k]], "label": label}
            draw_forest(ax, own, part, slugs, 0.24 * (k - 1), look)
        label_forest(ax, slugs, name)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure
