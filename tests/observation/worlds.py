"""Hand-made and random worlds for the tests of observation, task and agents; nothing here uses the code under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import warp as wp

from sf3d_envs.observation.view import WorldView
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.bank import TerrainBank
from sf3d_envs.terrain.friction import Disc
from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

CAR = VehicleParams()


def rotation(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> np.ndarray:
    """Rotation matrix Rz(yaw) Ry(pitch) Rx(roll)."""
    cy, sy, cp, sp, cr, sr = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    return rz @ ry @ rx


def quaternion(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> np.ndarray:
    """Quaternion xyzw of Rz(yaw) Ry(pitch) Rx(roll)."""

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
        return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])

    def about(axis: int, angle: float) -> np.ndarray:
        q = np.array([0.0, 0.0, 0.0, np.cos(angle / 2)])
        q[axis] = np.sin(angle / 2)
        return q

    return product(product(about(2, yaw), about(1, pitch)), about(0, roll))


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion xyzw, float64."""
    x, y, z, w = q.astype(np.float64) / np.linalg.norm(q.astype(np.float64))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def straight_route(y: float, x0: float = -300.0, length: float = 800.0) -> np.ndarray:
    """Samples (x, y, heading, curvature) every 0.5 m along x."""
    x = x0 + 0.5 * np.arange(round(length / 0.5) + 1)
    return np.stack((x, np.full_like(x, y), np.zeros_like(x), np.zeros_like(x)), axis=-1)


def arc_route(radius: float, length: float) -> np.ndarray:
    """Samples every 0.5 m along a left-hand circle that starts at the origin along x."""
    angle = 0.5 * np.arange(round(length / 0.5) + 1) / radius
    curvature = np.full_like(angle, 1.0 / radius)
    return np.stack((radius * np.sin(angle), radius * (1.0 - np.cos(angle)), angle, curvature), axis=-1)


def merge_route(x0: float = -300.0, length: float = 800.0) -> np.ndarray:
    """Samples every 0.5 m along a quintic from y = -29.75 to -26.25 between x = 50 and 110."""
    x = np.linspace(x0, x0 + length + 10.0, 400_001)
    t = np.clip((x - 50.0) / 60.0, 0.0, 1.0)
    y = -29.75 + 3.5 * (10 * t**3 - 15 * t**4 + 6 * t**5)
    slope = 3.5 / 60.0 * (30 * t**2 - 60 * t**3 + 30 * t**4)
    bend = 3.5 / 3600.0 * (60 * t - 180 * t**2 + 120 * t**3)
    s = np.concatenate(([0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))))
    at = 0.5 * np.arange(round(length / 0.5) + 1)
    columns = (x, y, np.arctan(slope), bend / (1 + slope**2) ** 1.5)
    return np.stack([np.interp(at, s, column) for column in columns], axis=-1)


def nearest_sample(route: np.ndarray, x: float, y: float) -> int:
    """Index of the nearest sample of a whole route."""
    return int(np.argmin((route[:, 0] - x) ** 2 + (route[:, 1] - y) ** 2))


def plane_terrain(slope_x: float = 0.0, slope_y: float = 0.0, patches: tuple[Disc, ...] = ()) -> TerrainVariant:
    """A plane through the origin over x in [-300, 600], y in [-60, 60]."""
    grid = HeightfieldGrid(x0=-300.0, y0=-60.0, dx=5.0, dy=5.0, nx=181, ny=25)
    x, y = np.meshgrid(-300.0 + 5.0 * np.arange(181), -60.0 + 5.0 * np.arange(25), indexing="ij")
    heights = (slope_x * x + slope_y * y).astype(np.float32)
    return TerrainVariant("plane", Heightfield(grid, heights), patches)


@dataclass
class Scene:
    """NumPy state of W worlds with V vehicles; `view` uploads it. Index order is [world, vehicle]."""

    num_worlds: int
    num_vehicles: int
    routes: list[np.ndarray] = field(default_factory=lambda: [straight_route(-26.25), merge_route()])
    terrain: list[TerrainVariant] = field(default_factory=lambda: [plane_terrain()])

    def __post_init__(self) -> None:
        shape = (self.num_worlds, self.num_vehicles)
        self.body_q = np.zeros((*shape, 7), np.float32)
        self.body_q[..., 6] = 1.0
        self.body_q[..., 0] = 400.0 * np.arange(self.num_vehicles) / self.num_vehicles - 200.0
        self.body_q[..., 1] = -26.25
        self.body_q[..., 2] = 0.65
        self.body_qd = np.zeros((*shape, 6), np.float32)
        self.wheel_spin = np.zeros((*shape, 4), np.float32)
        self.steer_angle = np.zeros(shape, np.float32)
        self.forward_accel = np.zeros(shape, np.float32)
        self.command = np.zeros((*shape, 2), np.float32)
        self.valid = np.ones(shape, np.int8)
        self.stepping = np.ones(self.num_worlds, np.int8)
        self.step = np.zeros(self.num_worlds, np.int32)
        self.seed = np.arange(self.num_worlds, dtype=np.uint64) + 7
        self.world_variant = np.zeros(self.num_worlds, np.int32)
        self.own_route = np.zeros(self.num_vehicles, np.int32)
        self.headway = np.full(shape, 1.3, np.float32)
        self.min_gap = np.full(shape, 2.0, np.float32)
        self.accel_max = np.full(shape, 1.5, np.float32)
        self.comfort_decel = np.full(shape, 2.0, np.float32)

    def put(self, w: int, v: int, x: float, y: float, yaw: float = 0.0, speed: float = 0.0) -> None:
        """Place a vehicle level on the plane z = 0.65, moving along its heading."""
        self.body_q[w, v] = (x, y, 0.65, *quaternion(yaw))
        self.body_qd[w, v] = (speed * np.cos(yaw), speed * np.sin(yaw), 0, 0, 0, 0)

    def route_index(self) -> np.ndarray:
        """Nearest sample of every vehicle on every route, int32 [W, V, R]."""
        index = np.zeros((self.num_worlds, self.num_vehicles, len(self.routes)), np.int32)
        for w, v, r in np.ndindex(index.shape):
            index[w, v, r] = nearest_sample(self.routes[r], *self.body_q[w, v, :2])
        return index

    def worlds(self, order: list[int]) -> Scene:
        """The same worlds in another order, or some of them."""
        other = Scene(len(order), self.num_vehicles, self.routes, self.terrain)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name != "own_route":
                setattr(other, name, value[order].copy())
        other.own_route = self.own_route
        return other

    def view(self, device: str = "cpu") -> WorldView:
        """Upload the scene."""

        def array(value: np.ndarray, dtype: type) -> wp.array:
            return wp.array(value, dtype=dtype, device=device)

        most = max(len(route) for route in self.routes)
        packed = np.stack([np.pad(route, ((0, most - len(route)), (0, 0)), mode="edge") for route in self.routes])
        points = np.stack((packed[..., 0], packed[..., 1], np.cos(packed[..., 2]), np.sin(packed[..., 2])), axis=-1)
        routes = SimpleNamespace(
            points=array(points.astype(np.float32), wp.vec4),
            curvature=array(np.ascontiguousarray(packed[..., 3]).astype(np.float32), wp.float32),
            count=array(np.array([len(route) for route in self.routes], np.int32), wp.int32),
            reach=array(np.zeros(len(self.routes), np.float32), wp.float32),
        )
        presets = ("headway", "min_gap", "accel_max", "comfort_decel")
        return WorldView(
            num_worlds=self.num_worlds,
            num_vehicles=self.num_vehicles,
            device=device,
            body_q=array(self.body_q.reshape(-1, 7), wp.transform),
            body_qd=array(self.body_qd.reshape(-1, 6), wp.spatial_vector),
            wheel_spin=array(self.wheel_spin, wp.vec4),
            steer_angle=array(self.steer_angle, wp.float32),
            forward_accel=array(self.forward_accel, wp.float32),
            command=array(self.command, wp.vec2),
            valid=array(self.valid, wp.int8),
            stepping=array(self.stepping, wp.int8),
            step=array(self.step, wp.int32),
            seed=array(self.seed, wp.uint64),
            own_route=array(self.own_route, wp.int32),
            routes=routes,
            route_index=array(self.route_index(), wp.int32),
            scenario=SimpleNamespace(**{name: array(getattr(self, name), wp.float32) for name in presets}),
            vehicles=(CAR,) * self.num_vehicles,
            terrain=TerrainBank(self.terrain, device).data(array(self.world_variant, wp.int32)),
            owes_merge=(False, True)[: len(self.routes)],
        )


def random_scene(rng: np.random.Generator, num_worlds: int, num_vehicles: int = 12) -> Scene:
    """Vehicles scattered around the merge in random attitude and motion; the first five on the merge route."""
    discs = tuple(Disc(x=20.0 * i, y=-28.0, radius=9.0, friction=0.1 + 0.05 * i) for i in range(10))
    scene = Scene(num_worlds, num_vehicles, terrain=[plane_terrain(), plane_terrain(0.04, -0.02, discs)])
    scene.own_route[:5] = 1
    scene.world_variant[:] = np.arange(num_worlds) % 2
    for w, v in np.ndindex(num_worlds, num_vehicles):
        attitude = rng.normal(0.0, (0.2, 0.05, 0.05))
        place = rng.uniform((0.0, -31.0, 0.3), (160.0, -25.0, 1.0))
        scene.body_q[w, v] = (*place, *quaternion(*attitude))
        scene.body_qd[w, v] = (*(rotation(*attitude) @ rng.normal((8, 0, 0), (4, 1, 0.3))), *rng.normal(0.0, 0.3, 3))
    shape = (num_worlds, num_vehicles)
    scene.wheel_spin[:] = rng.uniform(0.0, 60.0, (*shape, 4))
    scene.steer_angle[:] = rng.uniform(-0.6, 0.6, shape)
    scene.forward_accel[:] = rng.normal(0.0, 3.0, shape)
    scene.command[:] = rng.uniform((-4.0, -1.0), (4.0, 1.0), (*shape, 2))
    scene.valid[:] = rng.integers(0, 2, shape)
    for name, low, high in (("headway", 1, 1.6), ("min_gap", 1.5, 2.5), ("accel_max", 1, 2), ("comfort_decel", 1.5, 3)):
        getattr(scene, name)[:] = rng.uniform(low, high, shape)
    return scene
