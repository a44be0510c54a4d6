"""Runs of colliding boxes for the contact checks: histories of momentum, energy and penetration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..sim.simulator import Simulator
from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.variants import TerrainVariant
from .fleet import CONTROL, Array
from .reference.vehicle64 import rotation

SIGNS = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)
"""The eight corners of a box, in half extents."""


def half_extent(car: VehicleParams) -> Array:
    """Half sizes of the collision box [m]."""
    return 0.5 * np.array([car.length, car.width, car.height])


def penetration(position: Array, turn: Array, half: Array) -> Array:
    """Smallest overlap of N pairs of equal boxes over the fifteen separating axes [m], 0 where they are apart.

    Args:
        position: Centres, [N, 2, 3].
        turn: Rotation matrices, [N, 2, 3, 3].
        half: Half sizes, [3].
    """
    a, b = turn[:, 0], turn[:, 1]
    crossed = np.cross(a.transpose(0, 2, 1)[:, :, None], b.transpose(0, 2, 1)[:, None]).reshape(-1, 9, 3)
    axes = np.concatenate([a.transpose(0, 2, 1), b.transpose(0, 2, 1), crossed], axis=1)
    length = np.linalg.norm(axes, axis=-1, keepdims=True)
    parallel = length[..., 0] < 1e-6
    axes = axes / np.maximum(length, 1e-6)
    reach = (np.abs(axes @ a) + np.abs(axes @ b)) @ half
    gap = np.abs(np.einsum("nki,ni->nk", axes, position[:, 1] - position[:, 0]))
    return np.maximum(np.where(parallel, np.inf, reach - gap).min(axis=1), 0.0)


def deepest_pair(position: Array, turn: Array, half: Array) -> Array:
    """Largest penetration among the pairs of each world [m]: positions [W, V, 3], turns [W, V, 3, 3] -> [W]."""
    worlds, count = position.shape[:2]
    first, second = np.triu_indices(count, 1)
    gap = np.linalg.norm(position[:, first] - position[:, second], axis=-1)
    w, pair = np.nonzero(gap < 2.0 * np.linalg.norm(half))
    depth = np.zeros(worlds)
    if len(w):
        both = np.stack([first[pair], second[pair]], axis=-1)
        np.maximum.at(depth, w, penetration(position[w[:, None], both], turn[w[:, None], both], half))
    return depth


@dataclass
class History:
    """What W worlds of V vehicles did, one row per control step; the first row is the start.

    Attributes:
        time: [T] s.
        position: [T, W, V, 3] m.
        velocity: [T, W, V, 3] m/s.
        omega: World angular velocity [T, W, V, 3] rad/s.
        turn: Rotation matrices [T, W, V, 3, 3].
        depth: Deepest penetration of two vehicles [T, W] m.
        finite: Whether no state turned non-finite, [W].
        car: The vehicle.
    """

    time: Array
    position: Array
    velocity: Array
    omega: Array
    turn: Array
    depth: Array
    finite: np.ndarray
    car: VehicleParams

    @property
    def momentum(self) -> Array:
        """Total momentum [N s], [T, W, 3]."""
        return self.car.mass * self.velocity.sum(axis=2)

    @property
    def spin(self) -> Array:
        """Angular momentum of each box about its centre [N m s], [T, W, V, 3]."""
        body = np.einsum("twvji,twvj->twvi", self.turn, self.omega) * np.array(self.car.inertia)
        return np.einsum("twvij,twvj->twvi", self.turn, body)

    @property
    def angular_momentum(self) -> Array:
        """About the common centre of mass [N m s], [T, W, 3]."""
        arm = self.position - self.position.mean(axis=2, keepdims=True)
        relative = self.velocity - self.velocity.mean(axis=2, keepdims=True)
        return (self.spin + self.car.mass * np.cross(arm, relative)).sum(axis=2)

    @property
    def energy(self) -> Array:
        """Kinetic energy without the common fall [J], [T, W]."""
        fall = self.velocity.mean(axis=2, keepdims=True) * np.array([0.0, 0.0, 1.0])
        linear = 0.5 * self.car.mass * ((self.velocity - fall) ** 2).sum(axis=(2, 3))
        return linear + 0.5 * (self.spin * self.omega).sum(axis=(2, 3))

    @property
    def mechanical_energy(self) -> Array:
        """Kinetic and potential energy [J], [T, W]."""
        kinetic = 0.5 * self.car.mass * (self.velocity**2).sum(axis=(2, 3)) + 0.5 * (self.spin * self.omega).sum((2, 3))
        return kinetic + self.car.mass * GRAVITY * self.position[..., 2].sum(axis=2)

    @property
    def corners(self) -> Array:
        """Corners of the boxes [m], [T, W, V, 8, 3]."""
        local = SIGNS * half_extent(self.car)
        return self.position[..., None, :] + np.einsum("twvij,cj->twvci", self.turn, local)


def simulate(
    variants: Sequence[TerrainVariant],
    position: Array,
    yaw: Array,
    speed: Array,
    *,
    seconds: float,
    car: VehicleParams,
    accel: Array | float = 0.0,
    brake_after: float = np.inf,
    quat: Array | None = None,
    solver: str = "vehicle",
) -> History:
    """Run W worlds of V vehicles under a constant request, and full brake after a time.

    Args:
        variants: Road of each world.
        position: [W, V, 3] m.
        yaw: [W, V] rad.
        speed: [W, V] m/s.
        seconds: Length [s].
        car: Vehicle.
        accel: Request [m/s²], broadcast to [W, V].
        brake_after: When all vehicles go to full brake [s].
        quat: Orientations that replace the headings, [W, V, 4].
        solver: Solver of the simulator.
    """
    worlds, count = position.shape[:2]
    unique = list(dict.fromkeys(variants))
    index = [unique.index(variant) for variant in variants]
    sim = Simulator(worlds, unique, index, vehicle=car, num_vehicles=count, solver=solver)
    sim.place(np.ones(worlds, dtype=bool), position, yaw, speed)
    if quat is not None:
        pose = sim.body_q.numpy().copy()
        pose[:, 3:] = quat.reshape(-1, 4)
        sim.body_q.assign(pose)
    command = np.zeros((worlds, count, 2), dtype=np.float32)
    command[..., 0] = accel
    sim.command.assign(command)
    half = half_extent(car)
    rows = []
    for step in range(round(seconds / CONTROL) + 1):
        if step:
            if (step - 1) * CONTROL < brake_after <= step * CONTROL:
                command[..., 0] = -8.0
                sim.command.assign(command)
            sim.control_step()
        pose = sim.body_q.numpy().astype(np.float64)
        twist = sim.body_qd.numpy().astype(np.float64).reshape(worlds, count, 6)
        turn = rotation(pose[:, 3:]).reshape(worlds, count, 3, 3)
        place = pose[:, :3].reshape(worlds, count, 3)
        rows.append((step * CONTROL, place, twist[..., :3], twist[..., 3:], turn, deepest_pair(place, turn, half)))
    finite = sim.nonfinite.numpy().sum(axis=1) == 0
    sim.close()
    return History(*(np.array(column) for column in zip(*rows, strict=True)), finite=finite, car=car)
