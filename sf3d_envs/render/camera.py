"""Headless camera: one world's poses to an RGB picture, on a CPU or CUDA, through Newton's SensorCamera."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from . import overlay as draw
from .road import RoadMarkings
from .scene import Scene
from .tracer import Tracer

if TYPE_CHECKING:
    from ..sim.vehicle import VehicleParams
    from ..terrain.variants import TerrainVariant

_LABEL_DISTANCE = 120.0


@dataclass(frozen=True, kw_only=True)
class RenderConfig:
    """How a world is looked at. Lengths in metres, angles in radians.

    Attributes:
        width: Picture width [px].
        height: Picture height [px].
        view: ``chase`` (behind the ego, perspective) or ``top`` (from above, orthographic, x to the right).
        ego: Vehicle that the camera follows and that is highlighted.
        merging: Vehicles drawn in warm colours; the others get cool ones.
        markings: Paint on the road, or None for a terrain without a marked road.
        fov: Vertical field of view of the chase view [rad].
        distance: Distance of the chase camera behind the ego's centre [m].
        elevation: Height of the chase camera above the ego's centre [m].
        span: Length of road across the picture in the top view [m].
        center: Centre (x, y) of the top view [m]; None follows the ego along x, at the middle of the pavement.
        shadows: Whether cars cast shadows.
        labels: Whether vehicle numbers are drawn.
        legend: Whether the legend is drawn.
        device: Warp device.
        threads: Threads that share a picture on a CPU.
    """

    width: int = 640
    height: int = 360
    view: Literal["chase", "top"] = "chase"
    ego: int = 0
    merging: tuple[int, ...] = (0, 1, 2, 3, 4)
    markings: RoadMarkings | None = field(default_factory=RoadMarkings)
    fov: float = 0.80
    distance: float = 11.0
    elevation: float = 4.2
    span: float = 110.0
    center: tuple[float, float] | None = None
    shadows: bool = True
    labels: bool = True
    legend: bool = True
    device: str = "cpu"
    threads: int = field(default_factory=lambda: min(4, os.cpu_count() or 1))

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: If a value is out of range; the message names it.
        """
        if self.view not in ("chase", "top"):
            raise ValueError(f"view must be 'chase' or 'top', got {self.view!r}")
        for name in ("width", "height"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 16 <= value <= 8192:
                raise ValueError(f"{name} must be an integer in [16, 8192] px, got {value!r}")
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {self.threads!r}")
        if not 0.05 < self.fov < 3.0:
            raise ValueError(f"fov must be in (0.05, 3.0) rad, got {self.fov!r}")
        for name in ("distance", "span"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f"{name} must be positive and finite, got {value!r}")


class Renderer:
    """Renders one world. It only takes poses and owns its scene, so it never touches a simulator.

    The first picture compiles Newton's camera kernels (4 to 9 s on a machine that has not done so before; a word on
    stderr says so). A 640 x 360 picture takes 60 to 70 ms of one CPU core, shared by
    the threads.
    """

    def __init__(
        self, variant: TerrainVariant, vehicles: Sequence[VehicleParams], config: RenderConfig | None = None
    ) -> None:
        """Build the scene and the camera.

        Args:
            variant: Terrain variant of the world.
            vehicles: Parameters of each of its V vehicles.
            config: How to look at it; the defaults if None.

        Raises:
            ValueError: If ``config.ego`` is not a vehicle of the world.
        """
        self.config = config = config or RenderConfig()
        self.scene = Scene(
            variant,
            vehicles,
            ego=config.ego,
            merging=config.merging,
            markings=config.markings,
            device=config.device,
        )
        self.legend = draw.legend_entries(
            variant, len(self.scene.vehicles), config.merging, config.ego, config.markings is not None
        )
        top = config.view == "top"
        self._tracer = Tracer(
            self.scene,
            config.width,
            config.height,
            fov=None if top else config.fov,
            span=config.span if top else None,
            shadows=config.shadows,
            threads=config.threads,
        )
        self._last_ego = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def render(
        self,
        body_q: np.ndarray,
        wheel_angle: np.ndarray | None = None,
        steer: np.ndarray | None = None,
        overlay: Sequence[str] = (),
    ) -> np.ndarray:
        """Render one picture.

        Args:
            body_q: Chassis poses (position [m], quaternion xyzw), shape [V, 7].
            wheel_angle: How far each wheel has turned [rad], shape [V, 4]; None draws them unturned.
            steer: Bicycle front angle of each vehicle [rad], positive to the left, shape [V].
            overlay: Lines of text for the upper left corner.

        Returns:
            uint8, shape [height, width, 3]; a new array each call.

        Raises:
            ValueError: If an array has another shape.
        """
        config = self.config
        poses = np.asarray(body_q, dtype=np.float64)
        self.scene.place(poses, steer, wheel_angle)
        position, axes = self._camera_pose(poses[config.ego])
        image = self._tracer.picture(position, axes)
        if config.labels:
            pixels = self._label_places(poses[:, :3], position, axes)
            draw.draw_labels(image, pixels, [str(vehicle) for vehicle in range(len(poses))], self.scene.colors)
        if config.legend:
            draw.draw_legend(image, self.legend)
        if overlay:
            draw.draw_text(image, overlay)
        return image

    def close(self) -> None:
        """End the renderer's threads."""
        self._tracer.close()

    def _label_places(self, points: np.ndarray, position: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Pixels of the vehicle numbers: over the roofs, or beside the cars on the nearer side of the road."""
        config = self.config
        if config.view == "chase":
            return self._project(points + np.array([0.0, 0.0, 1.2]), position, axes)
        pixels = self._project(points, position, axes)
        middle = -math.inf if config.markings is None else config.markings.lane_line_y
        clear = 0.9 * config.width / config.span + 0.5 * draw.label_height(config.height) + 2.0
        pixels[:, 1] += np.where(points[:, 1] >= middle, -clear, clear)
        return pixels

    def _camera_pose(self, ego: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Camera position [m] and its axes (right, up, back) as columns of a matrix [3, 3]."""
        config = self.config
        ego = np.where(np.isfinite(ego).all(), ego, self._last_ego)
        self._last_ego = ego
        if config.view == "top":
            middle = float(ego[1]) if config.markings is None else 0.5 * sum(config.markings.paved)
            x, y = config.center or (float(ego[0]), middle)
            return np.array([x, y, float(ego[2]) + 200.0]), np.eye(3)
        qx, qy, qz, qw = ego[3:7]
        yaw = math.atan2(2.0 * (qw * qz + qx * qy), 1.0 - 2.0 * (qy * qy + qz * qz))
        forward = np.array([math.cos(yaw), math.sin(yaw), 0.0])
        position = ego[:3] - config.distance * forward + np.array([0.0, 0.0, config.elevation])
        ground = float(np.asarray(self.scene.variant.heightfield.height_at(position[0], position[1])))
        position[2] = max(position[2], ground + 1.0)
        back = position - (ego[:3] + 8.0 * forward)
        back /= np.linalg.norm(back)
        right = np.array([math.sin(yaw), -math.cos(yaw), 0.0])
        return position, np.stack([right, np.cross(back, right), back], axis=1)

    def _project(self, points: np.ndarray, position: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Pixel columns and rows of world points, shape [N, 2]; NaN for points behind the camera or too far off."""
        config = self.config
        local = (points - position) @ axes
        if config.view == "top":
            scale = config.width / config.span
            flat = local[:, :2] * scale
        else:
            depth = np.where((-local[:, 2] > 1.0) & (-local[:, 2] < _LABEL_DISTANCE), -local[:, 2], np.nan)
            flat = local[:, :2] / depth[:, None] * (0.5 * config.height / math.tan(0.5 * config.fov))
        return np.stack([0.5 * config.width + flat[:, 0], 0.5 * config.height - flat[:, 1]], axis=1)
