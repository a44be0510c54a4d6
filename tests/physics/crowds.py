"""Scenes of several cars that both solvers drive: who touches whom, and where they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.variants import TerrainVariant

CAR = VehicleParams()
TOUCH = 0.05
"""Growth of a footprint on each side within which two cars count as having touched [m], as in the outcome rules."""


@dataclass
class Scene:
    """What became of V cars.

    Attributes:
        touched: Cars whose grown footprint overlapped another's at some control step, [V] bool.
        position: At the end [m], [V, 3].
        speed: At the end [m/s], [V].
        upright: Cosine between the body's z axis and the vertical at the end, [V].
        lowest: Least height of a car's centre over the road below it [m].
        energy: Kinetic and potential energy at each control step [J], [T + 1].
    """

    touched: np.ndarray
    position: np.ndarray
    speed: np.ndarray
    upright: np.ndarray
    lowest: float
    energy: np.ndarray


def drive_scene(
    variant: TerrainVariant,
    x: Sequence[float],
    y: Sequence[float],
    speed: Sequence[float],
    yaw: Sequence[float],
    *,
    command: tuple[float, float] = (0.0, 0.0),
    steps: int = 240,
    car: VehicleParams = CAR,
    solver: str = "vehicle",
) -> Scene:
    """Let cars placed on a road drive under one constant command."""
    count = len(x)
    sim = Simulator(1, [variant], vehicle=car, num_vehicles=count, threads=1, solver=solver)
    z = variant.heightfield.height_at(np.array(x), np.array(y)) + car.rest_height
    sim.place(np.ones(1, dtype=bool), np.stack([x, y, z], axis=-1)[None], np.array([yaw]), np.array([speed]))
    sim.command.assign(np.broadcast_to(np.array(command, dtype=np.float32), (1, count, 2)).copy())
    touched, lowest, energy = np.zeros(count, dtype=bool), np.inf, []
    for step in range(steps + 1):
        if step:
            sim.control_step()
        pose = sim.body_q.numpy().astype(np.float64)
        linear, omega = np.split(sim.body_qd.numpy().astype(np.float64), 2, axis=1)
        touched |= overlaps(pose, car).any(axis=1)
        ground = variant.heightfield.height_at(pose[:, 0], pose[:, 1])
        lowest = min(lowest, float((pose[:, 2] - ground).min()))
        turning = np.sum(np.array(car.inertia) * to_body(pose[:, 3:], omega) ** 2)
        energy.append(0.5 * car.mass * (linear**2).sum() + 0.5 * turning + car.mass * 9.81 * pose[:, 2].sum())
    sim.close()
    qx, qy = pose[:, 3], pose[:, 4]
    return Scene(
        touched, pose[:, :3], np.linalg.norm(linear, axis=1), 1 - 2 * (qx**2 + qy**2), lowest, np.array(energy)
    )


def to_body(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """World vectors [V, 3] in the body frames of quaternions xyzw [V, 4]."""
    axis, w = -quat[:, :3], quat[:, 3:]
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def overlaps(pose: np.ndarray, car: VehicleParams) -> np.ndarray:
    """Which grown footprints overlap, [V, V] bool, by the separating axes of two rectangles in the plane."""
    x, y, z, w = pose[:, 3:].T
    yaw = np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z))
    axes = np.stack([np.stack([np.cos(yaw), np.sin(yaw)], -1), np.stack([-np.sin(yaw), np.cos(yaw)], -1)], axis=1)
    half = np.array([0.5 * car.length + TOUCH, 0.5 * car.width + TOUCH])
    apart = np.zeros((len(pose), len(pose)), dtype=bool)
    offset = pose[None, :, :2] - pose[:, None, :2]
    for k in range(2):
        axis = axes[:, k]
        own = half[k]
        other = np.einsum("ic,jkc->ijk", axis, axes)
        reach = own + np.abs(other) @ half
        apart |= np.abs(np.einsum("ijc,ic->ij", offset, axis)) > reach
    result = ~(apart | apart.T)
    np.fill_diagonal(result, False)
    return result
