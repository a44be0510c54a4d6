"""One world driven by one agent, with an optional film."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ..registry import Condition
from .batch import CONTROL_HZ, closing_lane, decision_count, drive, make_scoring_env
from .outcomes import RunLabels, vehicle_outcomes

if TYPE_CHECKING:
    from ..agents import Agent


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """A video of a run.

    Attributes:
        path: File to write, `.mp4`.
        view: `chase` or `top`.
        ego: Vehicle the camera follows.
        fps: Frames per second wanted; at most the agent's decision rate.
    """

    path: Path
    view: Literal["chase", "top"] = "chase"
    ego: int = 0
    fps: int = 20


def run_world(
    agent: Agent,
    condition: Condition,
    seed: int,
    *,
    seconds: float = 66.0,
    film: FilmConfig | None = None,
    device: str = "cpu",
    threads: int | None = None,
    solver: str = "vehicle",
    progress: Callable[[str, int, int], None] | None = None,
) -> pl.DataFrame:
    """Drive all vehicles of one world under the scoring rules.

    Args:
        agent: Drives all vehicles.
        condition: Road condition.
        seed: Scenario seed.
        seconds: Length of the run [s].
        film: Video to write while driving.
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None leaves the choice to the simulator.
        solver: `vehicle`, or `xpbd` for the reference path.
        progress: Called with (label, control steps done, all control steps).

    Returns:
        Vehicle outcomes (`outcomes.VEHICLE_SCHEMA`), one row per vehicle.

    Raises:
        ValueError: If `seconds` is no whole number of the agent's decisions.
    """
    decision_count(seconds, agent.decision_hz)
    total = round(seconds * CONTROL_HZ)
    env = make_scoring_env(
        [condition], [seed], agent.decision_hz, device=device, threads=threads, horizon_s=seconds, solver=solver
    )
    try:

        def stretches() -> Iterator[int]:
            for steps in drive(env, agent, seconds):
                if progress is not None:
                    progress(f"{agent.name} on {condition.slug}", steps, total)
                yield steps

        if film is None:
            for _ in stretches():
                pass
        else:
            _film(env, condition, stretches(), agent.decision_hz, film)
        labels = RunLabels(
            agent=agent.name,
            condition=[condition.slug],
            scenario_seed=[seed],
            closing_lane=closing_lane(env),
            horizon_steps=total,
        )
        return vehicle_outcomes(env.task_numpy(), labels)
    finally:
        env.close()


def _film(env: Any, condition: Condition, stretches: Iterator[int], decision_hz: int, film: FilmConfig) -> None:
    from ..render.camera import RenderConfig, Renderer
    from ..render.video import write_video
    from ..terrain.lane_closure import lane_closure_terrain

    every = max(1, round(decision_hz / film.fps))
    view = env.view
    look = RenderConfig(view=film.view, ego=film.ego)
    renderer = Renderer(lane_closure_terrain(condition), view.vehicles, look)

    def frames() -> Iterator[np.ndarray]:
        for decision, steps in enumerate(stretches):
            if decision % every == 0:
                speed = float(np.linalg.norm(view.body_qd.numpy().reshape(-1, 6)[film.ego, :3]))
                overlay = [condition.slug, f"{steps / CONTROL_HZ:.1f} s, vehicle {film.ego}: {speed:.1f} m/s"]
                yield renderer.render(
                    view.body_q.numpy().reshape(-1, 7),
                    wheel_angle=env.sim.wheel_angle.numpy()[0],
                    steer=view.steer_angle.numpy()[0],
                    overlay=overlay,
                )

    film.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_video(frames(), film.path, decision_hz / every)
    finally:
        renderer.close()
