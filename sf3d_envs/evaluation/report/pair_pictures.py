"""The matched pair as a video, one run above the other, and as an annotated plot of the vehicle in question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...registry import Condition
from ...sim.dynamics import CONTROL_HZ
from ...terrain.lane_closure import lane_closure_terrain
from .drawing import new_figure
from .pair import PairRun

TAIL_S, LONGEST_S = 2.0, 40.0
"""The pictures end this long after the vehicle's event or passage, and never later than [s]."""
FPS = 10
_SIZE, _SPAN = (960, 152), 120.0
_COLORS = ("#0072b2", "#d55e00")


def shown_steps(run: PairRun) -> int:
    """Control steps that the pictures show."""
    last = max(run.choice.passage_step, run.choice.event_step) + round(TAIL_S * CONTROL_HZ)
    return min(last, round(LONGEST_S * CONTROL_HZ), len(run.step))


def poses(run: PairRun, side: str) -> np.ndarray:
    """Chassis poses, position [m] and quaternion xyzw, float64 [T, V, 7]."""
    from scipy.spatial.transform import Rotation

    angles = np.stack([run.column(side, name) for name in ("yaw", "pitch", "roll")], axis=-1).astype(np.float64)
    place = np.stack([run.column(side, name) for name in ("x", "y", "z")], axis=-1).astype(np.float64)
    turned = Rotation.from_euler("ZYX", angles.reshape(-1, 3)).as_quat().reshape(*place.shape[:2], 4)
    return np.concatenate([place, turned], axis=-1)


def write_pair_video(run: PairRun, conditions: Mapping[str, Condition], path: Path) -> int:
    """Write both runs from above, following the vehicle, in real time.

    Args:
        run: The pair.
        conditions: Slug -> reference and changed road.
        path: File to write (`.mp4`).

    Returns:
        Frames written.

    Raises:
        ImportError: If the video extra is not installed.
        OSError: If the file cannot be written.
    """
    from ...render.camera import RenderConfig, Renderer
    from ...render.plots import side_by_side
    from ...render.video import write_video
    from ...sim.vehicle import VehicleParams

    choice, steps = run.choice, shown_steps(run)
    vehicles = [VehicleParams()] * next(iter(run.sides.values())).shape[1]
    look = RenderConfig(
        width=_SIZE[0], height=_SIZE[1], view="top", ego=choice.vehicle, span=_SPAN, legend=False, shadows=False
    )
    moving = {slug: poses(run, slug) for slug in run.sides}
    renderers = {slug: Renderer(lane_closure_terrain(conditions[slug]), vehicles, look) for slug in run.sides}

    def frame(slug: str, i: int) -> np.ndarray:
        return renderers[slug].render(moving[slug][i], steer=run.column(slug, "steer_angle")[i].astype(np.float64))

    def title(slug: str, i: int) -> str:
        speed = float(np.hypot(*(run.column(slug, n)[i, choice.vehicle] for n in ("speed_long", "speed_lat"))))
        said = f"{slug}, {run.step[i] / CONTROL_HZ:4.1f} s, vehicle {choice.vehicle}: {speed:4.1f} m/s"
        if slug == choice.reference and run.step[i] >= choice.passage_step:
            said += ", passed"
        if slug == choice.condition and run.step[i] >= choice.event_step:
            said += f", {choice.outcome.replace('_', ' ')}"
        return said

    def frames() -> Iterator[np.ndarray]:
        one, other = run.sides
        for i in range(0, steps, CONTROL_HZ // FPS):
            yield side_by_side(frame(one, i), frame(other, i), (title(one, i), title(other, i)), stacked=True)

    try:
        return write_video(frames(), path, FPS)
    finally:
        for renderer in renderers.values():
            renderer.close()


def plot_pair(run: PairRun, conditions: Mapping[str, Condition]) -> Figure:
    """Path, speed and acceleration of the vehicle in both runs, with what happens to it marked.

    Args:
        run: The pair.
        conditions: Slug -> reference and changed road.

    Returns:
        Plan view above; speed, and requested (dashed) and realized acceleration, against time below.
    """
    from ...render.plots import draw_road, shade_patches
    from ...render.road import RoadMarkings

    choice, steps = run.choice, shown_steps(run)
    figure, panels = new_figure(6.8, 3, 1, height_ratios=[1.15, 1, 1])
    plan, speed, accel = panels[:, 0]
    markings, vehicle = RoadMarkings(), choice.vehicle
    shade_patches(plan, lane_closure_terrain(conditions[choice.condition]))
    draw_road(plan, markings)
    if plan.get_legend() is not None:
        plan.get_legend().remove()
    time = run.step[:steps] / CONTROL_HZ
    for slug, color in zip(run.sides, _COLORS, strict=True):
        x, y = (run.column(slug, name)[:steps, vehicle] for name in ("x", "y"))
        plan.plot(x, y, color=color, linewidth=2.0, label=slug, zorder=3)
        speed.plot(time, run.column(slug, "speed_long")[:steps, vehicle], color=color, label=slug)
        accel.plot(time, run.column(slug, "accel")[:steps, vehicle], color=color, linewidth=1.2)
        accel.plot(time, run.column(slug, "command_accel")[:steps, vehicle], color=color, linewidth=1.0, linestyle="--")
    for step, side, label, marker in _marks(run):
        if step <= steps:
            _mark(run, (plan, speed, accel), step, side, label, marker)
    every = np.concatenate([run.column(slug, "x")[:steps, vehicle] for slug in run.sides])
    plan.set_xlim(every.min() - 5.0, every.max() + 8.0)
    plan.set_ylim(markings.paved[0] - 1.5, markings.paved[1] + 1.5)
    plan.grid(visible=False)
    plan.set_xlabel("x [m]")
    plan.set_ylabel("y [m]")
    speed.set_ylabel("speed [m/s]")
    accel.set_ylabel("acceleration [m/s\u00b2],\nrequested dashed")
    accel.set_xlabel("time [s]")
    low, high = np.percentile(
        np.concatenate(
            [run.column(slug, n)[:steps, vehicle] for slug in run.sides for n in ("accel", "command_accel")]
        ),
        [0.5, 99.5],
    )
    accel.set_ylim(low - 1.0, high + 1.0)
    for ax in (speed, accel):
        ax.set_xlim(0.0, time[-1])
    figure.legend(*plan.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure


def _marks(run: PairRun) -> list[tuple[int, str, str, str]]:
    """(control step, side, label, marker) of what is marked, those that happen."""
    choice = run.choice
    found = [
        (choice.passage_step, choice.reference, "passes", "^"),
        (choice.event_step, choice.condition, choice.outcome.replace("_", " "), "X"),
    ]
    loads = [run.column(choice.condition, f"load_{wheel}")[:, choice.vehicle] for wheel in ("fl", "fr", "rl", "rr")]
    friction = run.column(choice.condition, "friction")[:, choice.vehicle]
    # Outside patches it is 1; a car in the air has a friction of 0 without touching anything.
    touching = np.flatnonzero((friction != 1.0) & (np.sum(loads, axis=0) > 0.0))
    if len(touching):
        found.append((int(run.step[touching[0]]), choice.condition, "first wheel on the patch", "o"))
    apart = run.first_difference()
    if apart is not None:
        found.append((apart, choice.condition, "the worlds differ from here on", "D"))
    return sorted(found)


def _mark(run: PairRun, axes: tuple[Axes, Axes, Axes], step: int, side: str, label: str, marker: str) -> None:
    plan, speed, accel = axes
    color = dict(zip(run.sides, _COLORS, strict=True))[side]
    i, vehicle = step - 1, run.choice.vehicle
    look = {"color": color, "marker": marker, "markersize": 7, "markeredgecolor": "black", "linestyle": "none"}
    plan.plot(run.column(side, "x")[i, vehicle], run.column(side, "y")[i, vehicle], label=label, zorder=5, **look)
    speed.plot(step / CONTROL_HZ, run.column(side, "speed_long")[i, vehicle], zorder=5, **look)
    for ax in (speed, accel):
        ax.axvline(step / CONTROL_HZ, color=color, linewidth=0.8, linestyle=":")
