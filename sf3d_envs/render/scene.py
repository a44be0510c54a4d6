"""A Newton model to look at: the road of one terrain variant and the cars on it, placed by poses from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import newton
import numpy as np

from .._warp import get_device
from . import palette, road, shapes

if TYPE_CHECKING:
    from ..sim.vehicle import VehicleParams
    from ..terrain.variants import TerrainVariant

_HIDDEN = np.array([0.0, 0.0, -1.0e4, 0.0, 0.0, 0.0, 1.0], dtype=np.float32)


class Scene:
    """Visual model of one world: body ``v`` is the chassis of vehicle v, body ``V + 4 v + i`` its wheel i.

    Wheels: 0 front left, 1 front right, 2 rear left, 3 rear right. The model holds no joints and no contacts; it is
    never stepped.

    Attributes:
        variant: Terrain variant of the world.
        vehicles: Parameters of the V vehicles.
        colors: Body colour of each vehicle (sRGB bytes).
        texture: Picture of the surface, uint8 [rows, columns, 3]; row 0 at the largest y.
        ground_shape: Shape index of the ground in the model.
        model: Newton model.
        state: Newton state that :meth:`place` writes.
    """

    def __init__(
        self,
        variant: TerrainVariant,
        vehicles: Sequence[VehicleParams],
        *,
        ego: int | None = 0,
        merging: Sequence[int] = (0, 1, 2, 3, 4),
        markings: road.RoadMarkings | None = None,
        texel: tuple[float, float] = (0.2, 0.0625),
        device: str = "cpu",
    ) -> None:
        """Build the model.

        Args:
            variant: Terrain variant to draw.
            vehicles: Parameters of each vehicle.
            ego: Vehicle to highlight, or None.
            merging: Vehicles drawn in warm colours; the others get cool ones.
            markings: Painted lines, or None for a terrain without a marked road.
            texel: Texel size of the road picture along x and y [m].
            device: Warp device of the model.

        Raises:
            ValueError: If ``vehicles`` is empty, ``ego`` is not one of them, or there is no such device.
        """
        if not vehicles:
            raise ValueError("vehicles must name at least one vehicle, got none")
        if ego is not None and not 0 <= ego < len(vehicles):
            raise ValueError(f"ego must be a vehicle index in [0, {len(vehicles) - 1}] or None, got {ego}")
        self.variant = variant
        self.vehicles = list(vehicles)
        self.markings = markings
        self.colors = palette.vehicle_colors(len(vehicles), merging, ego)
        builder = newton.ModelBuilder()
        config = newton.ModelBuilder.ShapeConfig(density=0.0, has_shape_collision=False, has_particle_collision=False)
        ground = road.ground_mesh(variant)
        self.texture = road.road_texture(variant, markings, texel)
        mesh = newton.Mesh(
            ground.points,
            ground.indices,
            uvs=ground.uvs,
            texture=self.texture,
            compute_inertia=False,
            is_solid=False,
        )
        self.ground_shape = builder.add_shape_mesh(-1, mesh=mesh, cfg=config, color=(1.0, 1.0, 1.0), label="ground")
        self._add_cars(builder, config, ego)
        self.model = builder.finalize(device=get_device(device))
        self.state = self.model.state()
        self._pose = np.tile(_HIDDEN, (5 * len(vehicles), 1))
        self._anchors = np.array([_wheel_anchors(params) for params in vehicles])

    def _add_cars(self, builder: newton.ModelBuilder, config: newton.ModelBuilder.ShapeConfig, ego: int | None) -> None:
        wheels: dict[tuple[VehicleParams, bool], list[tuple[newton.Mesh, palette.Color]]] = {}
        for vehicle in range(len(self.vehicles)):
            builder.add_link(label=f"vehicle_{vehicle}", is_kinematic=True)
        for vehicle, params in enumerate(self.vehicles):
            for mesh, color in shapes.car_parts(params, self.colors[vehicle], vehicle == ego):
                builder.add_shape_mesh(vehicle, mesh=mesh, cfg=config, color=palette.unit(color))
            key = (params, vehicle == ego)
            if key not in wheels:
                wheels[key] = shapes.wheel_parts(*key)
            for wheel in range(4):
                body = builder.add_link(label=f"vehicle_{vehicle}_wheel_{wheel}", is_kinematic=True)
                for mesh, color in wheels[key]:
                    builder.add_shape_mesh(body, mesh=mesh, cfg=config, color=palette.unit(color))

    def place(self, body_q: np.ndarray, steer: np.ndarray | None = None, wheel_angle: np.ndarray | None = None) -> None:
        """Move the cars. Wheels hang so that they touch the road, within the travel of their legs.

        A vehicle whose pose is not finite is not shown.

        Args:
            body_q: Chassis poses (position [m], quaternion xyzw), shape [V, 7].
            steer: Bicycle front angle [rad], positive to the left, shape [V]; straight if None.
            wheel_angle: Rotation of each wheel about its axle [rad], shape [V, 4]; zero if None.

        Raises:
            ValueError: If an array has another shape.
        """
        count = len(self.vehicles)
        body_q = _shaped("body_q", body_q, (count, 7))
        steer = np.zeros(count) if steer is None else _shaped("steer", steer, (count,))
        spin = np.zeros((count, 4)) if wheel_angle is None else _shaped("wheel_angle", wheel_angle, (count, 4))
        finite = np.isfinite(body_q).all(axis=1, keepdims=True)
        pose = np.where(finite, body_q, _HIDDEN)
        rotation = pose[:, 3:7]
        anchors = pose[:, None, :3] + _rotate(rotation[:, None, :], self._anchors)
        down = -_rotate(rotation, np.array([0.0, 0.0, 1.0]))[:, None, :]
        drop = self._leg_length(anchors, down)
        angle = np.nan_to_num(self._wheel_steer(np.nan_to_num(steer)))
        turn = _multiply(_about(angle, axis=2), _about(np.nan_to_num(spin), axis=1))
        self._pose[:count] = pose
        wheels = self._pose[count:].reshape(count, 4, 7)
        wheels[..., :3] = anchors + down * drop[..., None]
        wheels[..., 3:7] = _multiply(np.broadcast_to(rotation[:, None, :], (count, 4, 4)), turn)
        self.state.body_q.assign(self._pose)
        # Rebuilt, not refitted: a tree made for other positions costs more in every ray than building costs (0.5 ms).
        self.model.bvh_build_shapes(self.state)

    def bounds(self, margin: float) -> tuple[float, float, float, float]:
        """Smallest x, y and largest x, y of the shown vehicles' centres, widened by ``margin`` [m]."""
        places = self._pose[: len(self.vehicles)]
        places = places[places[:, 2] > _HIDDEN[2]]
        if not len(places):
            return 0.0, 0.0, 0.0, 0.0
        low, high = places[:, :2].min(axis=0) - margin, places[:, :2].max(axis=0) + margin
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def _leg_length(self, anchors: np.ndarray, down: np.ndarray) -> np.ndarray:
        """Distance from each anchor to its wheel centre [m], shape [V, 4]."""
        ground = self.variant.heightfield.height_at(anchors[..., 0].reshape(-1), anchors[..., 1].reshape(-1))
        height = anchors[..., 2] - np.asarray(ground).reshape(anchors.shape[:2])
        radius = np.array([[params.wheel_radius] for params in self.vehicles])
        rest = np.array([[params.suspension_rest_length] for params in self.vehicles])
        return np.clip(height / np.maximum(-down[..., 2], 0.2) - radius, 0.0, rest)

    def _wheel_steer(self, steer: np.ndarray) -> np.ndarray:
        """Steering angle of each wheel [rad] by Ackermann, shape [V, 4]."""
        result = np.zeros((len(self.vehicles), 4))
        wheelbase = np.array([params.wheelbase for params in self.vehicles])
        half_track = np.array([0.5 * params.track for params in self.vehicles])
        tangent = np.tan(steer)
        result[:, 0] = np.arctan2(wheelbase * tangent, wheelbase - half_track * tangent)
        result[:, 1] = np.arctan2(wheelbase * tangent, wheelbase + half_track * tangent)
        return result


def _wheel_anchors(params: VehicleParams) -> np.ndarray:
    x, y, z = 0.5 * params.wheelbase, 0.5 * params.track, params.anchor_height
    return np.array([(x, y, z), (x, -y, z), (-x, y, z), (-x, -y, z)])


def _shaped(name: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {list(shape)}, got {list(array.shape)}")
    return array


def _rotate(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors by quaternions xyzw, broadcasting."""
    axis, w = rotation[..., :3], rotation[..., 3:4]
    first = 2.0 * np.cross(axis, vector)
    return vector + w * first + np.cross(axis, first)


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternion product a b, xyzw."""
    vector = a[..., 3:4] * b[..., :3] + b[..., 3:4] * a[..., :3] + np.cross(a[..., :3], b[..., :3])
    w = a[..., 3] * b[..., 3] - np.sum(a[..., :3] * b[..., :3], axis=-1)
    return np.concatenate([vector, w[..., None]], axis=-1)


def _about(angle: np.ndarray, axis: int) -> np.ndarray:
    """Quaternions xyzw of rotations [rad] about a coordinate axis."""
    result = np.zeros((*angle.shape, 4))
    result[..., axis] = np.sin(0.5 * angle)
    result[..., 3] = np.cos(0.5 * angle)
    return result
