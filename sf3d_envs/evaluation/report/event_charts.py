"""Charts of what became of vehicles: losses by outcome, decomposition, hazard; one agent each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..stats import PARTS
from ..table import REFERENCE, ConditionFacts
from .drawing import COLORS, check_columns, check_one_agent, new_figure, require

_OUTCOMES = {
    "collision": "#d55e00",
    "off_road": "#e69f00",
    "incursion": "#cc79a7",
    "fault": "#4d4d4d",
    "censored": "#56b4e9",
    "not_crossed": "#b8bfc6",
}
_PART_LOOK = {
    "kept": ("kept", "#0072b2"),
    "gained": ("gained", "#56b4e9"),
    "lost": ("lost", "#d55e00"),
    "persistent": ("passed on neither", "#c8ced4"),
}
FEW_AT_RISK = 20
"""Bins with fewer vehicles at risk are not drawn: one event there is a hazard of 5 % or more."""
HAZARD_SHOWN = (REFERENCE, "mu035", "mu018", "mu008")
"""Conditions of a chart of hazards, unless others are named."""
_DASHES = ("-", (0, (6, 1.5)), (0, (2.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


def plot_losses(losses: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Vehicles without a passage by outcome and lane, a bar per condition; hatched: never on the patch.

    Args:
        losses: Rows of `stats.Losses.frame` of one agent.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
        ValueError: For rows of several agents.
    """
    check_columns(losses, ["condition", "lane", "outcome", "where", "share"])
    check_one_agent(losses)
    losses = losses.filter(pl.col("share").is_finite())
    slugs = [c.slug for c in facts if (losses["condition"] == c.slug).any()]
    lanes = [lane for lane in ("closing", "open") if (losses["lane"] == lane).any()]
    require(len(slugs) * len(lanes), "no vehicle of either lane")
    figure, panels = new_figure(1.3 + 0.24 * len(slugs), 1, len(lanes), sharey=True, sharex=True)
    held = {
        (r["condition"], r["lane"], r["outcome"], r["where"]): r["share"]
        for r in losses.select("condition", "lane", "outcome", "where", "share").to_dicts()
    }
    longest = 0.0
    y, patched = np.arange(len(slugs)), {c.slug for c in facts if c.friction < 1.0}
    on_patch = np.array([slug in patched for slug in slugs])
    for ax, lane in zip(panels[0], lanes, strict=True):
        left = np.zeros(len(slugs))
        for outcome, color in _OUTCOMES.items():
            for where in ("after", "before"):
                share = np.array([held.get((slug, lane, outcome, where), 0.0) for slug in slugs])
                bars = ax.barh(y, share, 0.72, left=left, color=color, edgecolor="white", linewidth=0.4)
                for bar, marked in zip(bars, on_patch, strict=True):
                    bar.set_hatch("////" if marked and where == "before" else None)
                left += share
        longest = max(longest, float(left.max()))
        ax.set_title(f"{lane} lane", loc="left")
        ax.set_xlabel("share of vehicles without a passage")
        ax.grid(axis="x", color="#e3e7eb", linewidth=0.8)
        ax.grid(visible=False, axis="y")
    panels[0, 0].set_yticks(y, slugs)
    panels[0, 0].set_ylim(len(slugs) - 0.4, -0.6)
    # Bars of no length keep the automatic limit from leaving room behind the longest.
    panels[0, 0].set_xlim(0.0, min(1.0, 1.05 * longest) if longest else 1.0)
    handles = [Patch(facecolor=color, label=name.replace("_", " ")) for name, color in _OUTCOMES.items()]
    if on_patch.any():
        handles.append(Patch(facecolor="white", edgecolor="#57606a", hatch="////", label="never on the patch"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, columnspacing=1.4)
    return figure


def plot_decomposition(decomposition: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Shares kept, gained, lost and passed on neither, a bar per condition; all vehicles.

    Args:
        decomposition: Rows of `stats.Decomposition.frame` of one agent.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
        ValueError: For rows of several agents.
    """
    check_columns(decomposition, ["condition", "lane", "part", "share"])
    check_one_agent(decomposition)
    rows = decomposition.filter((pl.col("lane") == "all") & pl.col("share").is_finite())
    slugs = [c.slug for c in facts if (rows["condition"] == c.slug).any()]
    require(len(slugs), "no condition beside the reference")
    assert set(_PART_LOOK) == set(PARTS)
    held = {(r["condition"], r["part"]): r["share"] for r in rows.select("condition", "part", "share").to_dicts()}
    figure, panels = new_figure(1.2 + 0.22 * len(slugs))
    ax, left, y = panels[0, 0], np.zeros(len(slugs)), np.arange(len(slugs))
    for part, (label, color) in _PART_LOOK.items():
        share = np.array([held.get((slug, part), 0.0) for slug in slugs])
        ax.barh(y, share, 0.72, left=left, color=color, edgecolor="white", linewidth=0.4, label=label)
        left += share
    ax.set_yticks(y, slugs)
    ax.set_ylim(len(slugs) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("share of vehicles")
    ax.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def plot_hazard(hazard: pl.DataFrame, conditions: Sequence[str] | None = None) -> Figure:
    """Hazard of an own failure and of censoring bin by bin, and vehicles at risk; dotted: the fewest drawn.

    Args:
        hazard: Rows of `stats.Hazard.frame` of one agent.
        conditions: Slugs to draw, in order; None takes those of `HAZARD_SHOWN` that the table holds, or its first four.

    Raises:
        NothingToDraw: Without a bin of at least `FEW_AT_RISK` vehicles.
        ValueError: For rows of several agents, or a condition that the table does not hold.
    """
    check_columns(hazard, ["condition", "lane", "failure", "second", "hazard", "at_risk"])
    check_one_agent(hazard)
    rows = hazard.filter(pl.col("lane") == "all")
    held = rows["condition"].unique(maintain_order=True).to_list()
    slugs = conditions
    if slugs is None:
        slugs = [slug for slug in HAZARD_SHOWN if slug in held] or held[:4]
    if isinstance(slugs, str) or any(slug not in held for slug in slugs):
        raise ValueError(f"conditions is {slugs!r}; give a list of slugs of the table, which holds {held}")
    figure, panels = new_figure(5.6, 3, 1, sharex=True, height_ratios=[2, 2, 1])
    drawn, last, width = 0, 0.0, 1.0
    handles, others = [], [slug for slug in slugs if slug != REFERENCE]
    for slug in slugs:
        i = others.index(slug) if slug != REFERENCE else 0
        style = {"color": COLORS[i % 6], "linestyle": _DASHES[i % len(_DASHES)], "linewidth": 1.5, "label": slug}
        if slug == REFERENCE:
            style |= {"color": "#4d4d4d", "linestyle": "-", "linewidth": 2.2}
        for ax, failure in zip(panels[:2, 0], ("own", "censored"), strict=True):
            own = rows.filter((pl.col("condition") == slug) & (pl.col("failure") == failure)).sort("second")
            enough = own["at_risk"].to_numpy() >= FEW_AT_RISK
            value = np.where(enough, own["hazard"].cast(pl.Float64).fill_null(np.nan).to_numpy(), np.nan)
            starts = own["second"].to_numpy()
            width = float(starts[1] - starts[0]) if len(starts) > 1 else 1.0
            edges = np.append(starts, starts[-1] + width)
            ax.stairs(value, edges, baseline=None, **style)
            drawn += int(np.isfinite(value).sum())
            if enough.any():
                last = max(last, float(edges[1:][enough].max()))
        panels[2, 0].stairs(own["at_risk"].to_numpy(), edges, baseline=None, **style)
        handles.append(Line2D([], [], **style))
    require(drawn, f"no second with {FEW_AT_RISK} vehicles at risk")
    per = "per second" if width == 1.0 else f"per {width:g} s"
    for ax, label in zip(panels[:, 0], (f"own failure\n{per}", f"censored\n{per}", "at risk"), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0.0)
    panels[2, 0].axhline(FEW_AT_RISK, color="#57606a", linewidth=0.8, linestyle=":")
    panels[2, 0].set_xlabel("time [s]")
    panels[2, 0].set_xlim(0.0, last)
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    return figure
