"""Pictures of an evaluation: passage against friction and grade, and one matched pair of worlds side by side."""

from __future__ import annotations

import importlib.util
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ..registry import Condition
from .batch import drive, make_scoring_env
from .store import write_bytes
from .table import REFERENCE

if TYPE_CHECKING:
    import numpy as np

    from ..agents import Agent

PAIR_SECONDS = 14.0
"""When the pair is shown: the first vehicles are then on the patch and the merge is under way [s]."""
_PAIR_CENTER, _PAIR_SPAN = (110.0, -28.0), 150.0
"""The pair's pictures show the patch, the merge and the counting line [m]."""
_PAIR_PREFERENCE = ("mu018", "mu012", "mu008")
"""Conditions to show beside the reference, best first; otherwise the last one of the evaluation."""


def _has_renderer() -> bool:
    modules = ("sf3d_envs.render.camera", "sf3d_envs.render.plots")
    return all(importlib.util.find_spec(name) is not None for name in modules)


def _save(image: np.ndarray, path: Path) -> None:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, format="png")
    write_bytes(path, buffer.getvalue())


def _save_plot(table: pl.DataFrame, path: Path) -> None:
    from ..render.plots import plot_passage

    with tempfile.TemporaryDirectory(prefix="sf3d-") as folder:
        file = Path(folder) / path.name
        plot_passage(table, file)
        write_bytes(path, file.read_bytes())


def write_figures(
    out: Path,
    table: pl.DataFrame,
    agent: Agent,
    conditions: Sequence[Condition],
    seed: int,
    *,
    horizon_s: float,
    device: str,
    solver: str = "vehicle",
) -> list[Path]:
    """Write `passage-<agent>.png` and, with a reference and another condition, `matched-<agent>.png`.

    Args:
        out: Folder that exists.
        table: Summary table with the rows of the agent.
        agent: Agent that drove.
        conditions: Conditions of the evaluation.
        seed: Scenario seed of the matched pair.
        horizon_s: Length of the evaluated runs [s]; the pair is not shown later.
        device: `cpu` or `cuda:N`.
        solver: `vehicle`, or `xpbd` for the reference path.

    Returns:
        Paths written; empty without the renderer.
    """
    if not _has_renderer():
        return []
    written = [out / f"passage-{agent.name}.png"]
    _save_plot(table.filter(pl.col("agent") == agent.name), written[0])
    by_slug = {c.slug: c for c in conditions}
    others = [slug for slug in (*_PAIR_PREFERENCE, *reversed(by_slug)) if slug in by_slug and slug != REFERENCE]
    if REFERENCE in by_slug and others:
        written.append(out / f"matched-{agent.name}.png")
        seconds = min(PAIR_SECONDS, horizon_s)
        image = matched_picture(
            agent, by_slug[REFERENCE], by_slug[others[0]], seed, seconds=seconds, device=device, solver=solver
        )
        _save(image, written[1])
    return written


def matched_picture(
    agent: Agent,
    left: Condition,
    right: Condition,
    seed: int,
    *,
    seconds: float = PAIR_SECONDS,
    device: str = "cpu",
    solver: str = "vehicle",
) -> np.ndarray:
    """The same scenario under two conditions at the same moment, side by side.

    Args:
        agent: Drives all vehicles.
        left: One condition.
        right: The other condition.
        seed: Scenario seed of both worlds.
        seconds: When the pair is shown [s].
        device: `cpu` or `cuda:N`.
        solver: `vehicle`, or `xpbd` for the reference path.

    Returns:
        Image, uint8 [height, width, 3].
    """
    from ..render.camera import RenderConfig, Renderer
    from ..render.plots import side_by_side
    from ..terrain.lane_closure import lane_closure_terrain

    env = make_scoring_env([left, right], [seed, seed], agent.decision_hz, device=device, solver=solver)
    try:
        for _ in drive(env, agent, seconds):
            pass
        body_q = env.view.body_q.numpy().reshape(2, env.view.num_vehicles, 7)
        vehicles = env.view.vehicles
    finally:
        env.close()
    look = RenderConfig(view="top", span=_PAIR_SPAN, center=_PAIR_CENTER)
    frames = []
    for pose, condition in zip(body_q, (left, right), strict=True):
        renderer = Renderer(lane_closure_terrain(condition), vehicles, look)
        try:
            frames.append(renderer.render(pose))
        finally:
            renderer.close()
    titles = [f"{c.slug}, seed {seed}, {seconds:g} s" for c in (left, right)]
    return side_by_side(frames[0], frames[1], titles)
