"""A world in the browser: the scene of the pictures in Newton's viser viewer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .road import RoadMarkings
from .scene import Scene

if TYPE_CHECKING:
    from ..sim.vehicle import VehicleParams
    from ..terrain.variants import TerrainVariant

_EXTRA = 'pip install "sf3d-envs[viewer]"'
# Browsers commonly take textures up to 8192 texels wide.
_TEXEL = (0.4, 0.1)


class BrowserViewer:
    """Shows one world in the browser while it is stepped elsewhere. It only takes poses.

    Attributes:
        scene: What is shown.
    """

    def __init__(
        self,
        variant: TerrainVariant,
        vehicles: Sequence[VehicleParams],
        *,
        ego: int | None = 0,
        merging: Sequence[int] = (0, 1, 2, 3, 4),
        markings: RoadMarkings | None = RoadMarkings(),  # noqa: B008 (frozen)
        host: str = "127.0.0.1",
        port: int = 8080,
        frame_time: float = 0.1,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        """Start the server; open :attr:`url` in a browser.

        Args:
            variant: Terrain variant of the world.
            vehicles: Parameters of each of its V vehicles.
            ego: Vehicle to highlight and to look at first, or None.
            merging: Vehicles drawn in warm colours; the others get cool ones.
            markings: Paint on the road, or None for a terrain without a marked road.
            host: Address to serve on; the default serves this machine only.
            port: Port to serve on; if it is taken, the next free one, see :attr:`url`.
            frame_time: Time between two updates [s], for recordings.
            record: File (``.viser``) that :meth:`close` writes the session to.

        Raises:
            ImportError: If the viewer extra is not installed.
            ValueError: If ``port`` or ``ego`` is out of range or ``frame_time`` is not positive.
            OSError: If the folder of ``record`` does not exist.
        """
        _require_extra()
        if not 0 < port < 65536:
            raise ValueError(f"port must be in [1, 65535], got {port!r}")
        if not frame_time > 0.0:
            raise ValueError(f"frame_time must be positive, got {frame_time!r}")
        if record is not None and not Path(record).absolute().parent.is_dir():
            raise NotADirectoryError(f"can't record to {str(record)!r}: its folder does not exist")
        from newton.viewer import ViewerViser

        self.scene = Scene(variant, vehicles, ego=ego, merging=merging, markings=markings, texel=_TEXEL)
        self._frame_time = frame_time
        self._time = 0.0
        self._follow = 0 if ego is None else ego
        self._viewer: Any = ViewerViser(
            host=host,
            port=port,
            label="SF3D Envs",
            verbose=False,
            record_to_viser=None if record is None else str(record),
        )
        self._viewer.picking_enabled = False
        self._viewer.set_model(self.scene.model)
        self._placed = False
        self._recording = record is not None

    @property
    def url(self) -> str:
        """Address to open in a browser."""
        return self._viewer.url

    def update(
        self, body_q: np.ndarray, wheel_angle: np.ndarray | None = None, steer: np.ndarray | None = None
    ) -> None:
        """Show new poses. The camera is set once, behind the ego; then it is the user's.

        Args:
            body_q: Chassis poses (position [m], quaternion xyzw), shape [V, 7].
            wheel_angle: How far each wheel has turned [rad], shape [V, 4].
            steer: Bicycle front angle of each vehicle [rad], positive to the left, shape [V].

        Raises:
            ValueError: If an array has another shape.
            RuntimeError: If the viewer is closed.
        """
        if self._viewer is None:
            raise RuntimeError("update() after close(): the viewer is closed")
        self.scene.place(body_q, steer, wheel_angle)
        if not self._placed:
            self._look_at(np.asarray(body_q, dtype=np.float64)[self._follow, :3])
            self._placed = True
        self._viewer.begin_frame(self._time)
        self._viewer.log_state(self.scene.state)
        self._viewer.end_frame()
        self._time += self._frame_time

    def _look_at(self, place: np.ndarray) -> None:
        import warp as wp

        if np.isfinite(place).all():
            x, y, z = (float(value) for value in place)
            self._viewer.set_camera(wp.vec3(x - 14.0, y - 4.0, z + 7.0), pitch=-20.0, yaw=8.0)

    def close(self) -> None:
        """Stop the server, and write the recording if one was asked for."""
        if self._viewer is not None:
            # Newton's close() saves only after it stopped the server, and swallows what goes wrong then.
            if self._recording:
                self._viewer.save_recording()
            self._viewer.close()
            self._viewer = None


def _require_extra() -> None:
    try:
        import viser  # noqa: F401
    except ImportError as error:
        raise ImportError(f"the browser viewer needs viser, which is not installed: {_EXTRA}") from error
