"""From a scene and a camera to pixels: Newton's SensorCamera finds what each ray hits, our kernel colours it."""

from __future__ import annotations

import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from newton.sensors import SensorCamera

from . import palette, shading

if TYPE_CHECKING:
    from .scene import Scene

_FAR = 2500.0
_TO_SUN = (-0.42, -0.48, 0.80)
_HAZE_FROM = 60.0
_HAZE_LENGTH = 500.0


class Tracer:
    """Camera of fixed size and lens over one scene.

    Camera frame: looks along its -z axis, x to the right, y up. On a CPU, threads share a picture's rows in turn.
    """

    def __init__(
        self,
        scene: Scene,
        width: int,
        height: int,
        *,
        fov: float | None = None,
        span: float | None = None,
        shadows: bool = True,
        threads: int = 1,
    ) -> None:
        """Allocate images and rays.

        Args:
            scene: What is looked at.
            width: Picture width [px].
            height: Picture height [px].
            fov: Vertical field of view of a perspective camera [rad]; give this or ``span``.
            span: Length across the picture of an orthographic camera [m].
            shadows: Whether cars cast shadows on the ground.
            threads: Threads on a CPU; the picture does not depend on it.

        Raises:
            ValueError: If not exactly one of ``fov`` and ``span`` is given.
        """
        if (fov is None) == (span is None):
            raise ValueError(f"give either fov or span, got fov={fov!r} and span={span!r}")
        self._size = (height, width)
        self._scene = scene
        device = scene.model.device
        rays = _perspective_rays(width, height, fov) if fov is not None else _parallel_rays(width, height, span or 1.0)
        light = shading.Light()
        light.to_sun = wp.vec3(*(np.array(_TO_SUN) / np.linalg.norm(_TO_SUN)))
        light.horizon, light.zenith = wp.vec3(*palette.SKY_HORIZON), wp.vec3(*palette.SKY_ZENITH)
        light.haze_from, light.haze_length = _HAZE_FROM, _HAZE_LENGTH
        light.pixel = 2.0 * math.tan(0.5 * fov) / height if fov is not None else (span or 1.0) / width
        light.orthographic, light.shadows = int(fov is None), int(shadows)
        halves = [(0.5 * p.length, 0.5 * p.width, 0.45 * p.height) for p in scene.vehicles]
        shared = (_ground(scene, device), light, wp.array(np.array(halves, np.float32), dtype=wp.vec3f, device=device))
        count = max(1, min(threads, height)) if device.is_cpu else 1
        self._bands = [_Band(scene, rays[band::count], *shared) for band in range(count)]
        self._camera = wp.zeros(1, dtype=wp.transformf, device=device)
        self._pool: ThreadPoolExecutor | None = None

    def picture(self, position: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Take a picture of the scene as it is placed now.

        Args:
            position: Camera position [m], shape [3].
            axes: Camera axes (right, up, back) as columns, shape [3, 3].

        Returns:
            uint8, shape [height, width, 3]; a new array.
        """
        self._camera.assign(np.concatenate([position, _quaternion(axes)])[None].astype(np.float32))
        bounds = wp.vec4(*self._scene.bounds(margin=4.0))
        if self._pool is None:
            # The first picture loads the kernels, which must not happen in several threads at once. Whether Warp's
            # cache holds them shows only in the time it takes.
            word = threading.Timer(1.0, _announce)
            word.start()
            try:
                for band in self._bands:
                    band.trace(self._camera, bounds)
            finally:
                word.cancel()
            self._pool = ThreadPoolExecutor(max(1, len(self._bands) - 1), thread_name_prefix="sf3d-render")
        else:
            others = [self._pool.submit(band.trace, self._camera, bounds) for band in self._bands[1:]]
            self._bands[0].trace(self._camera, bounds)
            for other in others:
                other.result()
        image = np.empty((*self._size, 3), dtype=np.uint8)
        for first, band in enumerate(self._bands):
            image[first :: len(self._bands)] = band.color.numpy()
        return image

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class _Band:
    """Some rows of a picture: rays, images, and the two launches that fill them."""

    def __init__(self, scene: Scene, rays: np.ndarray, ground: Any, light: Any, halves: wp.array) -> None:
        height, width = rays.shape[:2]
        self._scene = scene
        self._sensor = SensorCamera(
            scene.model,
            load_textures=False,
            default_render_config=SensorCamera.RenderConfig(enable_particles=False, max_distance=_FAR),
        )
        device = self._sensor.device
        self._rays: Any = wp.array(rays, dtype=wp.vec3f, device=device)
        self._depth = self._sensor.allocate_image_depth(1, width, height)
        self._normal = self._sensor.allocate_image_normal(1, width, height)
        self._shape = self._sensor.allocate_image_shape_index(1, width, height)
        self._ground, self._light, self._halves = ground, light, halves
        self.color = wp.zeros((height, width), dtype=wp.vec3ub, device=device)

    def trace(self, camera: wp.array, bounds: wp.vec4) -> None:
        """Fill ``color``, uint8 triples, shape [rows, columns]."""
        self._sensor.update(
            self._scene.state,
            camera,
            self._rays,
            depth_image=self._depth,
            normal_image=self._normal,
            shape_index_image=self._shape,
        )
        wp.launch(
            shading.shade,
            dim=self.color.shape,
            inputs=[
                self._depth,
                self._normal,
                self._shape,
                self._rays,
                camera,
                self._scene.model.shape_color,
                self._ground,
                self._light,
                self._scene.state.body_q,
                self._halves,
                bounds,
            ],
            outputs=[self.color],
            device=self._sensor.device,
        )


def _announce() -> None:
    text = "sf3d: loading the camera kernels (compiled the first time on a machine, 4-9 s) ..."
    print(text, file=sys.stderr, flush=True)


def _quaternion(axes: np.ndarray) -> np.ndarray:
    """Rotation matrix [3, 3] as a quaternion xyzw: the eigenvector of the largest eigenvalue of its symmetric form."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = axes
    form = np.array(
        [
            [xx - yy - zz, yx + xy, zx + xz, zy - yz],
            [yx + xy, yy - xx - zz, zy + yz, xz - zx],
            [zx + xz, zy + yz, zz - xx - yy, yx - xy],
            [zy - yz, xz - zx, yx - xy, xx + yy + zz],
        ]
    )
    return np.linalg.eigh(form)[1][:, -1]


def _perspective_rays(width: int, height: int, fov: float) -> np.ndarray:
    """Ray origins and directions in the camera frame, float32, shape [height, width, 1, 2, 3]."""
    x, y = _pixel_plane(width, height)
    slope = 2.0 * math.tan(0.5 * fov)
    direction = np.stack([x * slope * width / height, y * slope, np.full_like(x, -1.0)], axis=-1)
    rays = np.zeros((height, width, 1, 2, 3), dtype=np.float32)
    rays[..., 0, 1, :] = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    return rays


def _parallel_rays(width: int, height: int, span: float) -> np.ndarray:
    """As :func:`_perspective_rays`, for an orthographic camera ``span`` [m] wide."""
    x, y = _pixel_plane(width, height)
    rays = np.zeros((height, width, 1, 2, 3), dtype=np.float32)
    rays[..., 0, 0, 0], rays[..., 0, 0, 1] = x * span, y * span * height / width
    rays[..., 0, 1, 2] = -1.0
    return rays


def _pixel_plane(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixel centres as fractions of the picture from its middle, x to the right, y up."""
    column = (np.arange(width) + 0.5) / width - 0.5
    row = 0.5 - (np.arange(height) + 0.5) / height
    x, y = np.meshgrid(column, row)
    return x, y


def _ground(scene: Scene, device: wp.Device) -> Any:
    grid, (rows, columns, _) = scene.variant.heightfield.grid, scene.texture.shape
    ground = shading.Ground()
    ground.texels = wp.array(scene.texture, dtype=wp.vec3ub, device=device)
    ground.x0, ground.y1 = grid.x0, grid.y1
    ground.inv_texel_x, ground.inv_texel_y = columns / (grid.x1 - grid.x0), rows / (grid.y1 - grid.y0)
    ground.shape = scene.ground_shape
    ground.outside = wp.vec3(*palette.GRASS)
    return ground
