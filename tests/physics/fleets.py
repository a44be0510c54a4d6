"""The same cars on the same roads in two models: the Warp simulator and the float64 reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from reference.roads import Road64, ScalarField, constant, grid_road
from reference.vehicle64 import Vehicle64

from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.friction import Rectangle
from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

SUBSTEP = 1.0 / 240.0
CONTROL = 1.0 / 60.0


def flat_variant(
    friction: float = 1.0, *, slope_x: float = 0.0, slope_y: float = 0.0, patches: Sequence[Rectangle] = ()
) -> TerrainVariant:
    """A plane through the origin, 2 km long and wide."""
    grid = HeightfieldGrid(x0=-1000.0, y0=-1000.0, dx=20.0, dy=20.0, nx=101, ny=101)
    x = grid.x0 + grid.dx * np.arange(grid.nx)
    y = grid.y0 + grid.dy * np.arange(grid.ny)
    heights = slope_x * x[:, None] + slope_y * y[None, :]
    return TerrainVariant("flat", Heightfield(grid, heights), tuple(patches), base_friction=friction)


def reference_road(variants: Sequence[TerrainVariant]) -> Road64:
    """The roads of N vehicles for the reference, from the variants' tables; grids must agree, patches be unrotated."""
    grid = variants[0].heightfield.grid
    assert all(variant.heightfield.grid == grid for variant in variants)
    heights = np.stack([variant.heightfield.heights for variant in variants])
    return grid_road(grid.x0, grid.y0, grid.dx, grid.dy, heights, _reference_friction(variants))


def _reference_friction(variants: Sequence[TerrainVariant]) -> ScalarField:
    """Friction of N roads, written anew rather than asked from the variants; later patches win."""
    base = constant(np.array([variant.base_friction for variant in variants]))
    depth = max(len(variant.patches) for variant in variants)
    layers = np.full((depth, 5, len(variants), 1), np.nan)  # (x, y, half length, half width, mu); NaN is no patch
    for n, variant in enumerate(variants):
        for k, patch in enumerate(variant.patches):
            assert isinstance(patch, Rectangle) and patch.yaw == 0.0
            layers[k, :, n, 0] = patch.x, patch.y, 0.5 * patch.length, 0.5 * patch.width, patch.friction

    def friction(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = base(x, y)
        for cx, cy, length, width, mu in layers:
            out = np.where((np.abs(x - cx) <= length) & (np.abs(y - cy) <= width), mu, out)
        return out

    return friction


def reference_cars(variants: Sequence[TerrainVariant], **start) -> Vehicle64:
    """One reference vehicle on each variant."""
    return Vehicle64.start(reference_road(variants), count=len(variants), **start)


class WarpCars:
    """One simulated vehicle per world, world n on variant n, with the reference's interface (float64 copies)."""

    def __init__(
        self,
        variants: Sequence[TerrainVariant],
        *,
        x: float | np.ndarray = 0.0,
        y: float | np.ndarray = 0.0,
        speed: float | np.ndarray = 0.0,
        yaw: float = 0.0,
        height: float | np.ndarray | None = None,
        car: VehicleParams | None = None,
        fused: bool | None = None,
        solver: str = "vehicle",
    ):
        self.count = len(variants)
        self.car = car or VehicleParams()
        unique = list(dict.fromkeys(variants))
        index = [unique.index(variant) for variant in variants]
        self.sim = Simulator(
            self.count,
            unique,
            index,
            vehicle=self.car,
            num_vehicles=1,
            device="cpu",
            threads=1,
            fused=fused,
            solver=solver,
        )
        x, y, speed = (np.broadcast_to(np.asarray(a, dtype=np.float64), (self.count,)) for a in (x, y, speed))
        above = self.car.rest_height if height is None else height
        ground = [float(v.heightfield.height_at(x[n], y[n])) for n, v in enumerate(variants)]
        position = np.stack([x, y, np.array(ground) + above], axis=-1)
        self.sim.place(np.ones(self.count, dtype=bool), position[:, None, :], yaw, speed[:, None])

    def set_pose(self, position: np.ndarray | None = None, quat: Sequence[float] | np.ndarray | None = None) -> None:
        """Overwrite positions [N, 3] or orientations xyzw [4] or [N, 4]."""
        pose = self.sim.body_q.numpy().copy()
        if position is not None:
            pose[:, :3] = position
        if quat is not None:
            pose[:, 3:] = quat
        self.sim.body_q.assign(pose)

    def command(self, accel: float | np.ndarray, steering: float | np.ndarray) -> None:
        """Latch a command for all cars."""
        value = np.empty((self.count, 1, 2), dtype=np.float32)
        value[..., 0] = np.broadcast_to(accel, (self.count,))[:, None]
        value[..., 1] = np.broadcast_to(steering, (self.count,))[:, None]
        self.sim.command.assign(value)

    def control_step(self, accel: float | np.ndarray, steering: float | np.ndarray) -> None:
        """One 60 Hz control step with a held command."""
        self.command(accel, steering)
        self.sim.control_step()

    def substep(self, accel: float | np.ndarray, steering: float | np.ndarray) -> None:
        """One 240 Hz substep through Newton's solver interface."""
        self.command(accel, steering)
        self.sim.solver.step(self.sim.newton_state, self.sim.newton_state, None, None, SUBSTEP)

    def _column(self, array: wp.array, first: int, last: int) -> np.ndarray:
        return array.numpy()[:, first:last].astype(np.float64)

    @property
    def position(self) -> np.ndarray:
        return self._column(self.sim.body_q, 0, 3)

    @property
    def quat(self) -> np.ndarray:
        return self._column(self.sim.body_q, 3, 7)

    @property
    def velocity(self) -> np.ndarray:
        return self._column(self.sim.body_qd, 0, 3)

    @property
    def omega(self) -> np.ndarray:
        return self._column(self.sim.body_qd, 3, 6)

    @property
    def spin(self) -> np.ndarray:
        return self.sim.wheel_spin.numpy()[:, 0].astype(np.float64)

    @property
    def steer(self) -> np.ndarray:
        return self.sim.steer_angle.numpy()[:, 0].astype(np.float64)

    @property
    def load(self) -> np.ndarray:
        return self.sim.wheel_load.numpy()[:, 0].astype(np.float64)

    @property
    def compression(self) -> np.ndarray:
        return self.sim.wheel_compression.numpy()[:, 0].astype(np.float64)

    @property
    def wheel_friction(self) -> np.ndarray:
        return self.sim.wheel_friction.numpy()[:, 0].astype(np.float64)

    @property
    def heading(self) -> np.ndarray:
        """Body x axis in the world, [N, 3]."""
        x, y, z, w = self.quat.T
        return np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=-1)

    @property
    def forward_speed(self) -> np.ndarray:
        return np.sum(self.velocity * self.heading, axis=-1)

    @property
    def yaw(self) -> np.ndarray:
        return np.arctan2(self.heading[:, 1], self.heading[:, 0])


def rows_equal(a: wp.array, b: wp.array) -> bool:
    """Whether two Warp arrays hold the same bits."""
    return a.numpy().tobytes() == b.numpy().tobytes()
