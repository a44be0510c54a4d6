"""A bank of terrain variants on a device, shared by index between worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from .friction import Disc
from .kernels import PATCH_DISC, PATCH_RECTANGLE, FrictionPatch, Terrain, TerrainGrid

if TYPE_CHECKING:
    from .variants import TerrainVariant


MOST_VERTICES = 400
"""Vertices in a body's reach up to which the bulge is computed exactly."""


class TerrainBank:
    """Heights and patches of all variants, uploaded once and fixed for life.

    Args:
        variants: Terrain variants, at least one.
        device: Warp device.
        reach: Distance from its centre within which a body can touch the road [m].

    Raises:
        ValueError: If ``variants`` is empty.
    """

    def __init__(self, variants: Sequence[TerrainVariant], device: wp.Device | str = "cpu", *, reach: float = 3.0):
        if not variants:
            raise ValueError("variants is empty; a terrain bank needs at least one TerrainVariant")
        self.variants = tuple(variants)
        self.device = device
        grids, patches, heights, bulges = [], [], [], []
        offset = 0
        for variant in self.variants:
            field = variant.heightfield
            grid = TerrainGrid()
            grid.x0, grid.y0 = field.grid.x0, field.grid.y0
            grid.dx, grid.dy = field.grid.dx, field.grid.dy
            grid.inv_dx, grid.inv_dy = 1.0 / field.grid.dx, 1.0 / field.grid.dy
            grid.nx, grid.ny = field.grid.nx, field.grid.ny
            grid.offset = offset
            grid.patch_begin = len(patches)
            patches.extend(_upload_patch(patch) for patch in variant.patches)
            grid.patch_end = len(patches)
            grid.base_friction = variant.base_friction
            grids.append(grid)
            heights.append(np.ascontiguousarray(field.heights, dtype=np.float32).ravel())
            bulges.append(_bulge(field.heights, field.grid.dx, field.grid.dy, reach).ravel())
            offset += heights[-1].size
        self._grids = wp.array(grids, dtype=TerrainGrid, device=device)
        self._heights = wp.array(np.concatenate(heights), dtype=float, device=device)
        self._bulge = wp.array(np.concatenate(bulges), dtype=float, device=device)
        # A zero-length struct array has no data pointer; one unused entry keeps the kernels free of a special case.
        self._patches = wp.array(patches or [FrictionPatch()], dtype=FrictionPatch, device=device)

    def data(self, world_variant: wp.array) -> Terrain:
        """Terrain struct for kernels; ``world_variant`` is int32 of shape [W]."""
        terrain = Terrain()
        terrain.grids = self._grids
        terrain.heights = self._heights
        terrain.bulge = self._bulge
        terrain.patches = self._patches
        terrain.world_variant = world_variant
        return terrain


def _upload_patch(patch) -> FrictionPatch:
    data = FrictionPatch()
    data.x, data.y, data.friction = patch.x, patch.y, patch.friction
    if isinstance(patch, Disc):
        data.kind, data.half_length, data.half_width = PATCH_DISC, patch.radius, patch.radius
        data.cos_yaw, data.sin_yaw = 1.0, 0.0
    else:
        data.kind = PATCH_RECTANGLE
        data.half_length, data.half_width = 0.5 * patch.length, 0.5 * patch.width
        data.cos_yaw, data.sin_yaw = float(np.cos(patch.yaw)), float(np.sin(patch.yaw))
    # Half a percent more than needed, far above float32 rounding.
    data.bound = 1.005 * math.hypot(data.half_length, data.half_width)
    return data


def _bulge(heights: np.ndarray, dx: float, dy: float, reach: float) -> np.ndarray:
    """Largest rise of the road within ``reach`` above each cell's two facet planes, [nx, ny] float32 (last row unused).

    A piecewise-linear surface rises highest at a vertex, so vertices are enough. The slack of 1 mm stands above float32
    rounding at 100 m of height.
    """
    z = heights.astype(np.float64)
    nx, ny = z.shape
    span_x, span_y = math.ceil(reach / dx), math.ceil(reach / dy)
    padded = np.pad(z, ((span_x, span_x), (span_y, span_y)), mode="edge")
    z00, z10, z01, z11 = z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]
    planes = ((z00, z10 - z00, z11 - z10), (z00, z11 - z01, z01 - z00))
    rise = np.zeros((nx - 1, ny - 1))
    if (2 * span_x + 2) * (2 * span_y + 2) > MOST_VERTICES:
        # A bound from above: the highest vertex in reach over the lowest that each plane gets there.
        highest = _window_max(_window_max(padded, 2 * span_x + 2, 0), 2 * span_y + 2, 1)
        for base, slope_x, slope_y in planes:
            lowest = base - (span_x + 1) * np.abs(slope_x) - (span_y + 1) * np.abs(slope_y)
            np.maximum(rise, highest - lowest, out=rise)
    else:
        for a in range(-span_x, span_x + 2):
            for b in range(-span_y, span_y + 2):
                vertex = padded[span_x + a : span_x + a + nx - 1, span_y + b : span_y + b + ny - 1]
                for base, slope_x, slope_y in planes:
                    np.maximum(rise, vertex - (base + a * slope_x + b * slope_y), out=rise)
    out = np.zeros((nx, ny), dtype=np.float32)
    out[:-1, :-1] = rise + 1.0e-3
    return out


def _window_max(values: np.ndarray, width: int, axis: int) -> np.ndarray:
    """Largest value of every window of ``width`` along an axis, which gets ``width - 1`` shorter."""
    size = values.shape[axis]
    done = 1
    while done < width:
        step = min(done, width - done)
        length = values.shape[axis] - step
        values = np.maximum(values.take(range(length), axis), values.take(range(step, step + length), axis))
        done += step
    assert values.shape[axis] == size - width + 1
    return values
