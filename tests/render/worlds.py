"""Worlds to look at: the lane-closure road with twelve cars at rest on it."""

from __future__ import annotations

import numpy as np

from sf3d_envs.registry import load_condition
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain import TerrainVariant, lane_closure_terrain

CARS = [VehicleParams()] * 12


def road(condition: str = "reference") -> TerrainVariant:
    return lane_closure_terrain(load_condition(condition))


def poses(variant: TerrainVariant, shift: float = 0.0) -> np.ndarray:
    """Vehicles 0-4 in the closing lane, the others in the open lane, front to back, 15 m apart; [12, 7]."""
    body_q = np.zeros((12, 7))
    body_q[:5, 0], body_q[:5, 1] = 60.0 - 15.0 * np.arange(5) + shift, -29.75
    body_q[5:, 0], body_q[5:, 1] = 95.0 - 15.0 * np.arange(7) + shift, -26.25
    body_q[:, 2] = variant.heightfield.height_at(body_q[:, 0], body_q[:, 1]) + CARS[0].rest_height
    body_q[:, 6] = 1.0
    return body_q
