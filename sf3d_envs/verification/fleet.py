"""One car per world: the simulator with the float64 reference's interface, and the roads of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import warp as wp

from ..launches import LaunchList
from ..sim.simulator import Simulator
from ..sim.vehicle import VehicleParams
from ..terrain.friction import Rectangle
from ..terrain.variants import TerrainVariant
from .reference.roads import Road64, ScalarField, constant, grid_road
from .reference.vehicle64 import Vehicle64, rotation

CONTROL = 1.0 / 60.0
"""Control step [s]."""

Array = npt.NDArray[np.float64]


def rectangle(x0: float, x1: float, y0: float, y1: float, friction: float) -> Rectangle:
    """An unrotated patch by its edges [m]."""
    return Rectangle(x=0.5 * (x0 + x1), y=0.5 * (y0 + y1), length=x1 - x0, width=y1 - y0, friction=friction)


def reference_fleet(variants: Sequence[TerrainVariant], **start) -> Vehicle64:
    """One float64 vehicle on each variant; ``start`` is passed on to `Vehicle64.start`."""
    return Vehicle64.start(reference_road(variants), count=len(variants), **start)


def reference_road(variants: Sequence[TerrainVariant]) -> Road64:
    """The roads of N vehicles for the reference, from the variants' tables.

    Raises:
        ValueError: If grids differ or a patch is no unrotated rectangle.
    """
    grid = variants[0].heightfield.grid
    if any(variant.heightfield.grid != grid for variant in variants):
        raise ValueError("variants must share one heightfield grid")
    heights = np.stack([variant.heightfield.heights for variant in variants])
    return grid_road(grid.x0, grid.y0, grid.dx, grid.dy, heights, _friction(variants))


def _friction(variants: Sequence[TerrainVariant]) -> ScalarField:
    """Friction of N roads, worked out anew rather than asked from the variants; later patches win."""
    base = constant(np.array([variant.base_friction for variant in variants]))
    depth = max(len(variant.patches) for variant in variants)
    layers = np.full((depth, 5, len(variants), 1), np.nan)  # (x, y, half length, half width, mu); NaN is no patch
    for n, variant in enumerate(variants):
        for k, patch in enumerate(variant.patches):
            if not isinstance(patch, Rectangle) or patch.yaw != 0.0:
                raise ValueError(f"the reference knows unrotated rectangles only, got {patch!r}")
            layers[k, :, n, 0] = patch.x, patch.y, 0.5 * patch.length, 0.5 * patch.width, patch.friction

    def friction(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = base(x, y)
        for cx, cy, length, width, mu in layers:
            out = np.where((np.abs(x - cx) <= length) & (np.abs(y - cy) <= width), mu, out)
        return out

    return friction


class Fleet:
    """N simulated cars, car n alone in world n on variant n; reads give float64 copies.

    Args:
        variants: Road of each car.
        x: Start x [m], broadcast to [N].
        y: Start y [m], broadcast to [N].
        speed: Start speed along the heading [m/s], broadcast to [N].
        yaw: Start heading [rad], broadcast to [N].
        height: Height of the centre of mass above the road [m]; None = at rest on the springs.
        car: Vehicle.
        rate: Substep rate [Hz], a multiple of 60; other rates than 240 need the solver "vehicle".
        solver: Solver of the simulator.
    """

    def __init__(
        self,
        variants: Sequence[TerrainVariant],
        *,
        x: npt.ArrayLike = 0.0,
        y: npt.ArrayLike = 0.0,
        speed: npt.ArrayLike = 0.0,
        yaw: npt.ArrayLike = 0.0,
        height: npt.ArrayLike | None = None,
        car: VehicleParams | None = None,
        rate: int = 240,
        solver: str = "vehicle",
    ):
        self.count = len(variants)
        self.car = car or VehicleParams()
        unique = list(dict.fromkeys(variants))
        index = [unique.index(variant) for variant in variants]
        self.sim = Simulator(self.count, unique, index, vehicle=self.car, num_vehicles=1, solver=solver)
        self._launches = None
        if rate != 240:
            self._launches = LaunchList(self.sim.shards)
            self.sim.dynamics.record(self._launches, substeps=rate // 60, dt=1.0 / rate)
        x, y, speed, yaw = (np.broadcast_to(np.asarray(a, dtype=np.float64), self.count) for a in (x, y, speed, yaw))
        ground = np.array([float(v.heightfield.height_at(x[n], y[n])) for n, v in enumerate(variants)])
        above = np.asarray(self.car.rest_height if height is None else height)
        position = np.stack([x, y, ground + above], axis=-1)
        self.sim.place(np.ones(self.count, dtype=bool), position[:, None, :], yaw[:, None], speed[:, None])

    def set_quat(self, quat: npt.ArrayLike) -> None:
        """Overwrite orientations, xyzw [4] or [N, 4]."""
        pose = self.sim.body_q.numpy().copy()
        pose[:, 3:] = quat
        self.sim.body_q.assign(pose)

    def set_velocity(self, linear: npt.ArrayLike) -> None:
        """Overwrite linear velocities [m/s], [3] or [N, 3]."""
        twist = self.sim.body_qd.numpy().copy()
        twist[:, :3] = linear
        self.sim.body_qd.assign(twist)

    def set_spin(self, spin: npt.ArrayLike) -> None:
        """Overwrite wheel speeds [rad/s], broadcast to [N, 4]."""
        value = np.broadcast_to(np.asarray(spin, dtype=np.float32), (self.count, 4))
        self.sim.wheel_spin.assign(np.ascontiguousarray(value[:, None, :]))

    def command(self, accel: npt.ArrayLike, steering: npt.ArrayLike) -> None:
        """Latch requested accelerations [m/s²] and normalized steering for all cars."""
        value = np.empty((self.count, 1, 2), dtype=np.float32)
        value[:, 0, 0], value[:, 0, 1] = accel, steering
        self.sim.command.assign(value)

    def control_step(self, accel: npt.ArrayLike, steering: npt.ArrayLike) -> None:
        """One 60 Hz control step under a command."""
        self.command(accel, steering)
        if self._launches is None:
            self.sim.control_step()
        else:
            self._launches.run()

    def substep(self, accel: npt.ArrayLike, steering: npt.ArrayLike) -> None:
        """One 240 Hz substep through Newton's solver interface."""
        self.command(accel, steering)
        self.sim.solver.step(self.sim.newton_state, self.sim.newton_state, None, None, 1.0 / 240.0)

    def close(self) -> None:
        """Stop the simulator's threads."""
        self.sim.close()

    def _wheels(self, array: wp.array) -> Array:
        return array.numpy()[:, 0].astype(np.float64)

    @property
    def position(self) -> Array:
        """Centre of mass [m], [N, 3]."""
        return self.sim.body_q.numpy()[:, :3].astype(np.float64)

    @property
    def quat(self) -> Array:
        """Orientation xyzw, [N, 4]."""
        return self.sim.body_q.numpy()[:, 3:].astype(np.float64)

    @property
    def velocity(self) -> Array:
        """World velocity [m/s], [N, 3]."""
        return self.sim.body_qd.numpy()[:, :3].astype(np.float64)

    @property
    def omega(self) -> Array:
        """World angular velocity [rad/s], [N, 3]."""
        return self.sim.body_qd.numpy()[:, 3:].astype(np.float64)

    @property
    def spin(self) -> Array:
        """Wheel speeds [rad/s], [N, 4]."""
        return self._wheels(self.sim.wheel_spin)

    @property
    def steer(self) -> Array:
        """Steering angle [rad], [N]."""
        return self._wheels(self.sim.steer_angle)

    @property
    def load(self) -> Array:
        """Wheel loads [N], [N, 4]."""
        return self._wheels(self.sim.wheel_load)

    @property
    def compression(self) -> Array:
        """Suspension compressions [m], [N, 4]."""
        return self._wheels(self.sim.wheel_compression)

    @property
    def wheel_friction(self) -> Array:
        """Surface friction under each wheel, [N, 4]."""
        return self._wheels(self.sim.wheel_friction)

    @property
    def turn(self) -> Array:
        """Body-to-world matrices, [N, 3, 3]."""
        return rotation(self.quat)

    @property
    def forward_speed(self) -> Array:
        """Speed along the body's x axis [m/s], [N]."""
        return np.sum(self.velocity * self.turn[:, :, 0], axis=-1)

    @property
    def speed(self) -> Array:
        """Horizontal speed [m/s], [N]."""
        return np.linalg.norm(self.velocity[:, :2], axis=-1)

    @property
    def yaw(self) -> Array:
        """Heading [rad], [N]."""
        turn = self.turn
        return np.arctan2(turn[:, 1, 0], turn[:, 0, 0])
