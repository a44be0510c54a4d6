"""Analytic roads for the float64 reference: height, gradient and surface friction as functions of (x, y)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ScalarField = Callable[[np.ndarray, np.ndarray], np.ndarray]
GradientField = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Road64:
    """A road surface given by three functions of world (x, y) [m], each broadcasting over arrays.

    Attributes:
        height: Surface height [m].
        gradient: (dh/dx, dh/dy) [-].
        friction: Surface friction coefficient [-].
    """

    height: ScalarField
    gradient: GradientField
    friction: ScalarField


def constant(value: float | np.ndarray) -> ScalarField:
    """A field of one value; an array [N] gives vehicle n its own value."""
    column = np.asarray(value, dtype=np.float64)
    column = column[:, None] if column.ndim == 1 else column
    return lambda x, y: np.broadcast_to(column, np.shape(x)).astype(np.float64)


def plane_road(friction: float | np.ndarray | ScalarField = 1.0, slope_x: float = 0.0, slope_y: float = 0.0) -> Road64:
    """An infinite plane through the origin with gradients `slope_x`, `slope_y` [-]."""
    return Road64(
        height=lambda x, y: slope_x * x + slope_y * y,
        gradient=lambda x, y: (np.full(np.shape(x), slope_x), np.full(np.shape(x), slope_y)),
        friction=friction if callable(friction) else constant(friction),
    )


def rectangle_patch(x0: float, x1: float, y0: float, y1: float, friction: float, base: float = 1.0) -> ScalarField:
    """Friction `friction` inside the closed axis-aligned rectangle, `base` outside."""

    def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        inside = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        return np.where(inside, friction, base)

    return field


def grid_road(
    x0: float, y0: float, dx: float, dy: float, heights: np.ndarray, friction: float | np.ndarray | ScalarField = 1.0
) -> Road64:
    """Heightfields [N, nx, ny], one per vehicle (or [1, nx, ny] for all), two triangles per cell.

    Cells are split along the diagonal from node (i, j) to node (i + 1, j + 1). Outside the grid the edge cell's facet
    extends.
    """
    table = np.asarray(heights, dtype=np.float64)
    nx, ny = table.shape[1:]
    row = np.arange(len(table))[:, None]

    def facet(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u, v = (x - x0) / dx, (y - y0) / dy
        i = np.clip(np.floor(u).astype(int), 0, nx - 2)
        j = np.clip(np.floor(v).astype(int), 0, ny - 2)
        p00, p10 = table[row, i, j], table[row, i + 1, j]
        p01, p11 = table[row, i, j + 1], table[row, i + 1, j + 1]
        lower = u - i >= v - j
        du = np.where(lower, p10 - p00, p11 - p01)
        dv = np.where(lower, p11 - p10, p01 - p00)
        return p00 + du * (u - i) + dv * (v - j), du / dx, dv / dy

    return Road64(
        height=lambda x, y: facet(x, y)[0],
        gradient=lambda x, y: facet(x, y)[1:],
        friction=friction if callable(friction) else constant(friction),
    )
