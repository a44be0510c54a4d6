"""Meshes of a drawn car: flat-shaded prisms and wheels, sized by the vehicle parameters.

Meshes rather than Newton's box shapes: the camera's ray test for boxes leaves red speckle on their faces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import palette

if TYPE_CHECKING:
    import newton

    from ..sim.vehicle import VehicleParams


def car_parts(params: VehicleParams, color: palette.Color, ego: bool) -> list[tuple[newton.Mesh, palette.Color]]:
    """Meshes of a car body in its body frame (x forward, z up, origin at the box centre), each with its colour.

    The body fills the collision box but for the ground clearance. The ego has head lamps and a dark roof stripe too:
    every part of every car costs render time, and the ego is looked at.
    """
    half_length, half_width, half_height = 0.5 * params.length, 0.5 * params.width, 0.5 * params.height
    bottom, belt, roof = -0.58 * half_height, 0.12 * half_height, half_height
    lower = [
        (-half_length, bottom),
        (half_length, bottom),
        (half_length, -0.10 * half_height),
        (0.38 * half_length, belt),
        (-half_length, belt),
    ]
    cabin = [
        (-0.86 * half_length, belt - 0.05),
        (0.40 * half_length, belt - 0.05),
        (0.04 * half_length, roof - 0.04),
        (-0.66 * half_length, roof - 0.04),
    ]
    inset = 0.90 * half_width
    parts = [
        (_extrude(lower, half_width, half_width), color),
        (_extrude(cabin, inset, 0.80 * half_width), palette.GLASS),
        (_box((-0.68 * half_length, 0.06 * half_length), 0.80 * half_width, (roof - 0.05, roof)), color),
        (_pair(-half_length - 0.03, half_width, -0.14 * half_height), palette.TAILLIGHT),
    ]
    if ego:
        parts.append((_pair(half_length - 0.02, half_width, -0.34 * half_height), palette.HEADLIGHT))
        span = (-0.66 * half_length, 0.04 * half_length)
        parts.append((_box(span, 0.22 * half_width, (roof, roof + 0.015)), palette.TIRE))
    return parts


def wheel_parts(params: VehicleParams, ego: bool) -> list[tuple[newton.Mesh, palette.Color]]:
    """Meshes of a wheel about its centre, axle along y, each with its colour; spokes show the ego's rotation."""
    radius, half_width = params.wheel_radius, 0.10
    angle = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    tire = [(radius * np.cos(a), radius * np.sin(a)) for a in angle]
    parts = [(_extrude(tire, half_width, half_width), palette.TIRE)]
    if not ego:
        return parts
    spoke = 0.62 * radius
    bars = [_box((-spoke, spoke), half_width + 0.012, (-0.16 * radius, 0.16 * radius))]
    bars.append(_box((-0.16 * radius, 0.16 * radius), half_width + 0.012, (-spoke, spoke)))
    return [*parts, (_merge(bars), palette.HUB)]


def _extrude(profile: list[tuple[float, float]], half_width: float, top_half_width: float) -> newton.Mesh:
    """Convex profile in the x-z plane, counter-clockwise seen from -y, extruded along y.

    Half width is interpolated from ``half_width`` at the lowest profile point to ``top_half_width`` at the highest.
    """
    points = np.array(profile, dtype=np.float64)
    low, high = points[:, 1].min(), points[:, 1].max()
    widths = half_width + (top_half_width - half_width) * (points[:, 1] - low) / (high - low)
    count = len(points)
    right = np.stack([points[:, 0], -widths, points[:, 1]], axis=1)
    left = np.stack([points[:, 0], widths, points[:, 1]], axis=1)
    triangles: list[tuple[int, int, int]] = []
    for item in range(1, count - 1):
        triangles.append((0, item, item + 1))
        triangles.append((count, count + item + 1, count + item))
    for item in range(count):
        after = (item + 1) % count
        triangles.append((item, count + after, after))
        triangles.append((item, count + item, count + after))
    return _mesh(np.concatenate([right, left]), np.array(triangles))


def _box(x: tuple[float, float], half_width: float, z: tuple[float, float]) -> newton.Mesh:
    return _extrude([(x[0], z[0]), (x[1], z[0]), (x[1], z[1]), (x[0], z[1])], half_width, half_width)


def _pair(x: float, half_width: float, z: float) -> newton.Mesh:
    """Two lamps at one end of the car."""
    lamps = []
    for side in (-1.0, 1.0):
        lamp = _box((x, x + 0.05), 0.17 * half_width, (z - 0.06, z + 0.06))
        lamp.vertices = np.asarray(lamp.vertices) + np.array([0.0, side * 0.76 * half_width, 0.0], dtype=np.float32)
        lamps.append(lamp)
    return _merge(lamps)


def _merge(meshes: list[newton.Mesh]) -> newton.Mesh:
    points, triangles, first = [], [], 0
    for mesh in meshes:
        points.append(np.asarray(mesh.vertices))
        triangles.append(np.asarray(mesh.indices).reshape(-1, 3) + first)
        first += len(points[-1])
    return _mesh(np.concatenate(points), np.concatenate(triangles))


def _mesh(points: np.ndarray, triangles: np.ndarray) -> newton.Mesh:
    import newton

    return newton.Mesh(
        points.astype(np.float32), triangles.reshape(-1).astype(np.int32), compute_inertia=False, is_solid=False
    )
