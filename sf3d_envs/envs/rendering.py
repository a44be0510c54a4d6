"""Frames of an environment's worlds: poses from the simulator, pictures from the renderer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..render.camera import RenderConfig, Renderer
from ..sim.dynamics import CONTROL_HZ
from ..task.events import EVENT_NAMES

if TYPE_CHECKING:
    from .torch_env import TorchEnv


class EnvRenderer:
    """Renders one world at a time; a renderer per road and view is kept, a browser viewer is started once.

    Args:
        env: The environment.
    """

    def __init__(self, env: TorchEnv):
        self._env = env
        self._renderers: dict[int, Renderer] = {}
        self._viewer: Any = None

    def frame(self, world: int, overlay: tuple[str, ...] | None = None) -> np.ndarray | None:
        """Frame of a world, uint8 [height, width, 3], or None in human mode."""
        env, sim = self._env, self._env.sim
        vehicles = sim.num_vehicles
        variant = int(sim.world_variant.numpy()[world])
        poses = sim.body_q.numpy().reshape(-1, vehicles, 7)[world]
        angle, steer = sim.wheel_angle.numpy()[world], sim.steer_angle.numpy()[world]
        if env.config.render_mode == "human":
            if self._viewer is None:
                from ..render.viewer import BrowserViewer

                self._viewer = BrowserViewer(sim.bank.variants[variant], sim.vehicles, ego=env.config.ego)
                print(f"sf3d: live view at {self._viewer.url}", file=sys.stderr)
            self._viewer.update(poses, wheel_angle=angle, steer=steer)
            return None
        if variant not in self._renderers:
            width, height = env.config.render_size
            config = RenderConfig(
                width=width,
                height=height,
                view=env.config.render_view,  # type: ignore[arg-type]
                ego=env.config.ego,
            )
            self._renderers[variant] = Renderer(sim.bank.variants[variant], sim.vehicles, config)
        lines = self._overlay(world) if overlay is None else overlay
        return self._renderers[variant].render(poses, wheel_angle=angle, steer=steer, overlay=lines)

    def _overlay(self, world: int) -> tuple[str, ...]:
        env = self._env
        ego = env.config.ego
        index = world * env.sim.num_vehicles + ego
        speed = float(np.linalg.norm(env.sim.body_qd.numpy()[index, :3]))
        event = EVENT_NAMES[int(env.task.event.numpy()[world, ego])].replace("_", " ")
        passed = int(env.task.passage_step.numpy()[world, ego]) >= 0
        status = f"event: {event}" if event != "none" else ("passed" if passed else "driving")
        time = int(env.task.step.numpy()[world]) / CONTROL_HZ
        condition = env.conditions[world]
        return (
            f"{condition.label or condition.slug}  seed {int(env.view.seed.numpy()[world])}",
            f"t {time:5.1f} s   vehicle {ego}: {speed:4.1f} m/s, {status}",
        )

    def close(self) -> None:
        """Stop the viewer and drop the renderers."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
