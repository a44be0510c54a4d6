"""Plots of results: valid passage against road conditions, matched pictures, and a matched pair seen from above."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from . import overlay, palette
from .road import RoadMarkings

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..terrain.variants import TerrainVariant

_LINE = "#1f5fa8"
_COMPOSED = ("#c8452d", "#e08a1e", "#7a4fb5", "#2c8c6a")
_COLUMNS = ("condition", "friction", "grade", "passage", "low", "high")


def plot_passage(table: pl.DataFrame, path: str | os.PathLike[str] | None = None) -> Figure:
    """Valid passage against friction (left) and against grade (right) with its 95 % interval.

    The reference condition (friction 1, grade 0) belongs to both curves and is drawn as a dashed line too. Conditions
    with friction and grade are drawn in the grade panel as markers of their own, one series per friction.

    Args:
        table: One row per condition with ``condition``, ``friction`` (null means 1), ``grade`` (fraction, positive
            uphill), ``passage``, ``low`` and ``high`` (shares in [0, 1]; bounds may be null). An ``agent`` column, if
            there is one, must hold one agent.
        path: File to write (``.png``, ``.pdf``, ``.svg``); none if None. Missing folders are not made.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If the table is empty, lacks a column, or holds several agents.
    """
    import polars as pl
    from matplotlib.figure import Figure

    missing = [name for name in _COLUMNS if name not in table.columns]
    if missing:
        raise ValueError(f"table lacks the columns {missing}; it has {table.columns}")
    if table.is_empty():
        raise ValueError("table is empty: there is no condition to plot")
    title = "Valid passage, bars: 95 % over worlds"
    if "agent" in table.columns:
        agents = table["agent"].unique(maintain_order=True).to_list()
        if len(agents) > 1:
            raise ValueError(f"table must hold one agent, got {agents}; plot them one by one")
        title += f", {agents[0]}"
    rows = table.with_columns(pl.col("friction").fill_null(1.0), pl.col("grade").fill_null(0.0))
    flat, full = pl.col("grade") == 0.0, pl.col("friction") == 1.0
    reference = rows.filter(flat & full)
    friction = rows.filter(flat).sort("friction", descending=True)
    grade = rows.filter(full).sort("grade")
    composed = rows.filter(~flat & ~full).sort("grade")

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    figure.suptitle(title)
    # Even spacing in the order of severity: the coefficients span a factor of twenty and are read one by one.
    places = np.arange(friction.height)
    _series(left, places, friction, _LINE, "friction", joined=True)
    left.set_xticks(places, [f"{value:.2f}" for value in friction["friction"]])
    left.set_xlabel("surface friction \u03bc of the closing lane's patch")
    left.set_ylabel("share of vehicles that pass")
    _series(right, 100.0 * grade["grade"].to_numpy(), grade, _LINE, "\u03bc 1.00", joined=True)
    for item, value in enumerate(composed["friction"].unique().sort(descending=True)):
        part = composed.filter(pl.col("friction") == value)
        # Moved aside, so that the bars of one grade don't cover each other.
        x = 100.0 * part["grade"].to_numpy() + 0.12 * (item + 1)
        _series(right, x, part, _COMPOSED[item % len(_COMPOSED)], f"\u03bc {value:.2f}", joined=False)
    right.set_xlabel("grade [%], positive uphill")
    for axes in (left, right):
        if reference.height:
            axes.axhline(reference["passage"][0], color="#808080", linestyle="--", linewidth=1.0, label="reference")
        axes.set_ylim(-0.02, 1.02)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower left", fontsize="small")
    _save(figure, path)
    return figure


def _series(axes: Axes, x: np.ndarray, rows: pl.DataFrame, color: str, label: str, *, joined: bool) -> None:
    """One series with interval bars; bounds that are null or inside out draw no bar."""
    if rows.is_empty():
        return
    passage = rows["passage"].to_numpy().astype(np.float64)
    low, high = (rows[name].cast(float).fill_null(rows["passage"]).to_numpy() for name in ("low", "high"))
    bars = np.maximum(np.stack([passage - low, high - passage]), 0.0)
    axes.errorbar(
        x,
        passage,
        yerr=bars,
        color=color,
        label=label,
        marker="o" if joined else "D",
        markersize=5,
        capsize=3,
        linestyle="-" if joined else "none",
    )


def side_by_side(
    frame_a: np.ndarray, frame_b: np.ndarray, titles: Sequence[str] = ("", ""), *, stacked: bool = False
) -> np.ndarray:
    """Two pictures next to each other, each under its title.

    Args:
        frame_a: Left picture, uint8, shape [H, W, 3].
        frame_b: Right picture, uint8, of the same height.
        titles: Title of each.
        stacked: One above the other instead; the widths must be equal then, and not the heights.

    Returns:
        uint8, shape [H + title bar, W_a + W_b + gap, 3], or stacked [H_a + H_b + 2 title bars, W, 3].

    Raises:
        ValueError: If a frame is not uint8 [H, W, 3], the heights (stacked: the widths) differ, or there are not two
            titles.
    """
    for name, frame in (("frame_a", frame_a), ("frame_b", frame_b)):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise ValueError(f"{name} must be uint8 of shape [H, W, 3], got {frame.dtype} {list(frame.shape)}")
    along = 1 if stacked else 0
    if frame_a.shape[along] != frame_b.shape[along]:
        word = ("height", "width")[along]
        raise ValueError(f"frames must have one {word}, got {frame_a.shape[along]} and {frame_b.shape[along]}")
    if len(titles) != 2:
        raise ValueError(f"titles must be two, got {len(titles)}")
    gap, bar = 4, 28
    rows, columns, _ = frame_a.shape
    second = (rows + bar, 0) if stacked else (0, columns + gap)
    size = (second[0] + bar + frame_b.shape[0], second[1] + frame_b.shape[1], 3)
    picture = np.full(size, 255, dtype=np.uint8)
    for (top, left), frame in zip(((0, 0), second), (frame_a, frame_b), strict=True):
        picture[top + bar : top + bar + frame.shape[0], left : left + frame.shape[1]] = frame
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    for (top, left), title in zip(((0, 0), second), titles, strict=True):
        place = (left + 6, top + bar // 2)
        draw.text(place, overlay.printable(title), font=overlay.font(15), fill=(20, 20, 20), anchor="lm")
    return np.asarray(image).copy()


def plot_trajectories(
    worlds: Mapping[str, np.ndarray],
    path: str | os.PathLike[str] | None = None,
    *,
    variants: Mapping[str, TerrainVariant] | None = None,
    merging: Sequence[int] = (0, 1, 2, 3, 4),
    ego: int | None = 0,
    markings: RoadMarkings | None = RoadMarkings(),  # noqa: B008 (frozen)
) -> Figure:
    """Paths of every vehicle of matched worlds in plan view, one panel per world, patches shaded.

    Args:
        worlds: Title to positions x, y [m] over time, shape [T, V, 2] or wider in the last axis (poses do); samples
            that are not finite leave a gap.
        path: File to write; none if None.
        variants: Title to the world's terrain, whose patches are shaded; worlds left out get no shading.
        merging: Vehicles drawn in warm colours; the others get cool ones.
        ego: Vehicle to highlight, or None.
        markings: Lines of the road, or None for a terrain without a marked road.

    Returns:
        The matplotlib figure.

    Raises:
        ValueError: If there is no world or positions have another shape.
    """
    from matplotlib.figure import Figure

    if not worlds:
        raise ValueError("worlds is empty: there is no trajectory to plot")
    figure = Figure(figsize=(10.0, 1.0 + 2.0 * len(worlds)), layout="constrained")
    panels = figure.subplots(len(worlds), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (title, positions) in zip(panels, worlds.items(), strict=True):
        paths = np.asarray(positions, dtype=np.float64)
        if paths.ndim != 3 or paths.shape[2] < 2:
            raise ValueError(f"positions of {title!r} must have shape [T, V, 2], got {list(paths.shape)}")
        if variants is not None and title in variants:
            shade_patches(axes, variants[title])
        if markings is not None:
            draw_road(axes, markings)
        for vehicle, color in enumerate(palette.vehicle_colors(paths.shape[1], merging, ego)):
            style = {"color": palette.unit(color), "linewidth": 2.4 if vehicle == ego else 1.2}
            axes.plot(paths[:, vehicle, 0], paths[:, vehicle, 1], zorder=3.5 if vehicle == ego else 3.0, **style)
            last = np.flatnonzero(np.isfinite(paths[:, vehicle, :2]).all(axis=1))
            if len(last):
                x, y = paths[last[-1], vehicle, :2]
                axes.plot(x, y, marker="o", markersize=4, markeredgecolor="black", zorder=4, color=style["color"])
                place = (0, -11) if vehicle in merging else (0, 5)
                axes.annotate(
                    str(vehicle), (x, y), xytext=place, textcoords="offset points", fontsize=7, ha="center", zorder=5
                )
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_ylabel("y [m]")
    panels[-1].set_xlabel("x [m]")
    shown = np.concatenate([np.asarray(item, dtype=np.float64)[..., 0].reshape(-1) for item in worlds.values()])
    shown = shown[np.isfinite(shown)]
    if len(shown):
        panels[0].set_xlim(shown.min() - 5.0, shown.max() + 5.0)
    if markings is not None:
        panels[0].set_ylim(markings.paved[0] - 2.5, markings.paved[1] + 2.5)
    _save(figure, path)
    return figure


def shade_patches(axes: Axes, variant: TerrainVariant) -> None:
    """Draw the friction patches of a terrain in plan view, coloured by friction, with a legend."""
    from matplotlib.patches import Circle, Rectangle

    from ..terrain.friction import Disc

    for patch in variant.patches:
        look = {"facecolor": palette.unit(palette.friction_color(patch.friction)), "alpha": 0.55, "zorder": 1}
        label = f"\u03bc {patch.friction:.2f}"
        if isinstance(patch, Disc):
            axes.add_patch(Circle((patch.x, patch.y), patch.radius, label=label, **look))
        else:
            corner = (patch.x - 0.5 * patch.length, patch.y - 0.5 * patch.width)
            angle = float(np.degrees(patch.yaw))
            axes.add_patch(
                Rectangle(corner, patch.length, patch.width, angle=angle, rotation_point="center", label=label, **look)
            )
    if variant.patches:
        axes.legend(loc="upper left", fontsize="small")


def draw_road(axes: Axes, markings: RoadMarkings) -> None:
    """Draw edges, lane line, counting line and closed lane in plan view."""
    right, left = markings.paved
    for edge in (right, left):
        axes.axhline(edge, color="black", linewidth=1.0, zorder=2)
    axes.axhline(markings.lane_line_y, color="grey", linewidth=0.8, linestyle=(0, (6, 6)), zorder=2)
    axes.axvline(markings.counting_x, color="black", linewidth=1.0, linestyle=":", zorder=2)
    closed = np.array([markings.closed_from, 1.0e4])
    axes.fill_between(
        closed, right, markings.lane_line_y, facecolor="none", edgecolor="#b05030", hatch="///", linewidth=0.0, zorder=1
    )


def _save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a figure under a temporary name beside ``path``, then rename."""
    if path is None:
        return
    target = Path(path)
    temporary = target.absolute().with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        figure.savefig(temporary, dpi=150)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
