"""Charts of what became of vehicles: losses by outcome, decomposition, hazard; one agent each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..stats import PARTS
from ..table import REFERENCE, ConditionFacts
from .drawing import COLORS, check_columns, new_figure, require

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


def plot_losses(losses: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Vehicles without a passage by outcome and lane, a bar per condition; hatched: never on the patch.

    Args:
        losses: Rows of `stats.Losses.frame` of one agent.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    check_columns(losses, ["condition", "lane", "outcome", "where", "share"])
    slugs = [c.slug for c in facts if (losses["condition"] == c.slug).any()]
    lanes = [lane for lane in ("closing", "open") if (losses["lane"] == lane).any()]
    require(len(slugs) * len(lanes), "no vehicle of either lane")
    figure, panels = new_figure(1.3 + 0.24 * len(slugs), 1, len(lanes), sharey=True, sharex=True)
    held = {
        (r["condition"], r["lane"], r["outcome"], r["where"]): r["share"]
        for r in losses.select("condition", "lane", "outcome", "where", "share").to_dicts()
    }
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
        ax.set_title(f"{lane} lane", loc="left")
        ax.set_xlabel("share of vehicles without a passage")
        ax.grid(axis="x", color="#e3e7eb", linewidth=0.8)
        ax.grid(visible=False, axis="y")
    panels[0, 0].set_yticks(y, slugs)
    panels[0, 0].set_ylim(len(slugs) - 0.4, -0.6)
    handles = [Patch(facecolor=color, label=name.replace("_", " ")) for name, color in _OUTCOMES.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=6, frameon=False, columnspacing=1.0)
    return figure


def plot_decomposition(decomposition: pl.DataFrame, facts: Sequence[ConditionFacts]) -> Figure:
    """Shares kept, gained, lost and passed on neither, a bar per condition; all vehicles.

    Args:
        decomposition: Rows of `stats.Decomposition.frame` of one agent.
        facts: Conditions of the evaluation.

    Raises:
        NothingToDraw: Without a row.
    """
    check_columns(decomposition, ["condition", "lane", "part", "share"])
    rows = decomposition.filter(pl.col("lane") == "all")
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


def plot_hazard(hazard: pl.DataFrame, conditions: Sequence[str]) -> Figure:
    """Hazard of an own failure and of censoring second by second, and how many vehicles are at risk.

    Args:
        hazard: Rows of `stats.Hazard.frame` of one agent.
        conditions: Slugs to draw, in order.

    Raises:
        NothingToDraw: Without a bin of at least `FEW_AT_RISK` vehicles.
    """
    check_columns(hazard, ["condition", "lane", "failure", "second", "hazard", "at_risk"])
    rows = hazard.filter(pl.col("lane") == "all")
    slugs = [slug for slug in conditions if (rows["condition"] == slug).any()]
    figure, panels = new_figure(5.6, 3, 1, sharex=True, height_ratios=[2, 2, 1])
    drawn, last = 0, 0.0
    for i, slug in enumerate(slugs):
        style = {"color": COLORS[(6, 0, 1, 2, 3)[i % 5] if slugs[0] == REFERENCE else i % len(COLORS)], "label": slug}
        for ax, failure in zip(panels[:2, 0], ("own", "censored"), strict=True):
            own = rows.filter((pl.col("condition") == slug) & (pl.col("failure") == failure)).sort("second")
            enough = own["at_risk"].to_numpy() >= FEW_AT_RISK
            value = np.where(enough, own["hazard"].to_numpy(), np.nan)
            ax.step(own["second"].to_numpy(), value, where="post", linewidth=1.5, **style)
            drawn += int(enough.sum())
            if enough.any():
                last = max(last, float(own["second"].to_numpy()[enough].max()) + 1.0)
        panels[2, 0].step(own["second"].to_numpy(), own["at_risk"].to_numpy(), where="post", linewidth=1.5, **style)
    require(drawn, f"no second with {FEW_AT_RISK} vehicles at risk")
    for ax, label in zip(panels[:, 0], ("own failure\nper second", "censored\nper second", "at risk"), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0.0)
    panels[2, 0].set_xlabel("time [s]")
    panels[2, 0].set_xlim(0.0, last)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure
