"""The road of a scene: its mesh, and its surface picture painted from the same friction query the wheels use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..terrain.friction import Disc
from ..terrain.lane_closure import ROAD
from . import palette

if TYPE_CHECKING:
    from ..terrain.variants import TerrainVariant

_MAX_TEXELS = 8_000_000
_APRON = 1500.0


@dataclass(frozen=True, kw_only=True)
class RoadMarkings:
    """What is painted on the pavement; the defaults are the lane-closure road. Lengths in metres.

    Attributes:
        paved: Right and left edge of the pavement, y [m].
        lane_line_y: Lane line, y [m]; dashed, solid beside the closed lane.
        closed_from: x from which the right lane is closed [m].
        counting_x: Counting line, x [m].
        line_width: Width of the painted lines [m].
    """

    paved: tuple[float, float] = (ROAD.paved_y_min, ROAD.paved_y_max)
    lane_line_y: float = ROAD.lane_line_y
    closed_from: float = ROAD.closure_x
    counting_x: float = ROAD.counting_x
    line_width: float = 0.2


@dataclass(frozen=True)
class SurfaceMesh:
    """Triangle mesh with texture coordinates.

    Attributes:
        points: Vertices [m], float32, shape [N, 3].
        indices: Triangles, counter-clockwise seen from above, int32, shape [M * 3].
        uvs: Texture coordinates, float32, shape [N, 2]; u along x, v along y.
    """

    points: np.ndarray
    indices: np.ndarray
    uvs: np.ndarray


def ground_mesh(variant: TerrainVariant) -> SurfaceMesh:
    """Mesh of a variant's heightfield and of the ground around it, which continues its edge heights to the horizon.

    A grid line is dropped where every height on it lies within 0.1 mm of the straight line between its kept
    neighbours: the cost of a picture grows with the number of triangles. The ground around the terrain is outside the
    map (a vehicle there is a fault); it exists so that pictures have a horizon. Its texture coordinates are those of
    the nearest edge.
    """
    grid, heights = variant.heightfield.grid, np.asarray(variant.heightfield.heights, dtype=np.float64)
    rows, columns = _kept_lines(heights), _kept_lines(heights.T)
    x, y = grid.x0 + grid.dx * rows, grid.y0 + grid.dy * columns
    inner = _grid_mesh(x, y, heights[np.ix_(rows, columns)], rows / (grid.nx - 1), columns / (grid.ny - 1))

    columns = np.array([0, grid.ny - 1])
    x = np.concatenate([[grid.x0 - _APRON], grid.x0 + grid.dx * rows, [grid.x1 + _APRON]])
    y = np.array([grid.y0 - _APRON, grid.y0, grid.y1, grid.y1 + _APRON])
    table = heights[np.ix_(np.pad(rows, 1, mode="edge"), np.pad(columns, 1, mode="edge"))]
    length, width = grid.x1 - grid.x0, grid.y1 - grid.y0
    u, v = np.clip((x - grid.x0) / length, 0.001, 0.999), np.clip((y - grid.y0) / width, 0.01, 0.99)
    outer = _grid_mesh(x, y, table, u, v)
    triangles = outer.indices.reshape(-1, 3)
    middle = outer.points[triangles].astype(np.float64).mean(axis=1)
    inside = (middle[:, 0] > grid.x0) & (middle[:, 0] < grid.x1)
    inside &= (middle[:, 1] > grid.y0) & (middle[:, 1] < grid.y1)
    return SurfaceMesh(
        np.concatenate([inner.points, outer.points]),
        np.concatenate([inner.indices, (triangles[~inside] + len(inner.points)).reshape(-1)]).astype(np.int32),
        np.concatenate([inner.uvs, outer.uvs]),
    )


def road_texture(variant: TerrainVariant, markings: RoadMarkings | None, texel: tuple[float, float]) -> np.ndarray:
    """Picture of a variant's surface: pavement, shoulders, friction patches and paint.

    Args:
        variant: Terrain with ``heightfield``, ``base_friction`` and ``friction_at``.
        markings: Painted lines, or None for a terrain without a marked road.
        texel: Wanted texel size along x and y [m]; enlarged where the picture would exceed 8 million texels.

    Returns:
        uint8, shape [rows, columns, 3]; the first row is the largest y, the first column the smallest x.
    """
    grid = variant.heightfield.grid
    length, width = grid.x1 - grid.x0, grid.y1 - grid.y0
    grow = max(1.0, math.sqrt(length / texel[0] * (width / texel[1]) / _MAX_TEXELS))
    columns, rows = math.ceil(length / (texel[0] * grow)), math.ceil(width / (texel[1] * grow))
    x = grid.x0 + (np.arange(columns) + 0.5) * (length / columns)
    y = grid.y0 + (np.arange(rows)[::-1] + 0.5) * (width / rows)
    image = np.empty((rows, columns, 3), dtype=np.uint8)
    block = 1024
    for first in range(0, columns, block):
        stations = x[first : first + block]
        part = image[:, first : first + block]
        _paint_surface(part, stations, y, variant, markings)
        if markings is not None:
            _paint_markings(part, stations, y, markings)
    return image


def _paint_surface(
    image: np.ndarray, x: np.ndarray, y: np.ndarray, variant: TerrainVariant, markings: RoadMarkings | None
) -> None:
    image[...] = palette.SHOULDER
    paved = slice(None) if markings is None else _rows(y, *markings.paved)
    image[paved] = palette.friction_color(variant.base_friction)
    for patch in variant.patches:
        reach = patch.radius if isinstance(patch, Disc) else 0.5 * math.hypot(patch.length, patch.width)
        rows, columns = _rows(y, patch.y - reach, patch.y + reach), _columns(x, patch.x - reach, patch.x + reach)
        part = image[rows, columns]
        # Asked of the variant rather than of the patch, so that overlaps show what the wheels read.
        part[variant.friction_at(x[None, columns], y[rows, None]) == patch.friction] = palette.friction_color(
            patch.friction
        )


def _paint_markings(image: np.ndarray, x: np.ndarray, y: np.ndarray, markings: RoadMarkings) -> None:
    right, left = markings.paved
    half = 0.5 * markings.line_width
    closing_lane, closed = _rows(y, right, markings.lane_line_y), _columns(x, markings.closed_from, np.inf)
    area = image[closing_lane, closed]
    area[...] = (0.45 * area + 0.55 * np.array(palette.CLOSED_LANE)).astype(np.uint8)
    area[np.mod(x[None, closed] + y[closing_lane, None], 4.0) < 1.0] = palette.CLOSED_HATCH

    for edge in (right + 2.0 * half, left - 2.0 * half):
        image[_rows(y, edge - half, edge + half)] = palette.PAINT
    lane_line = image[_rows(y, markings.lane_line_y - half, markings.lane_line_y + half)]
    lane_line[:, (x >= markings.closed_from) | (np.mod(x, 12.0) < 4.0)] = palette.PAINT
    image[closing_lane, _columns(x, markings.closed_from - 0.3, markings.closed_from + 0.3)] = palette.PAINT
    rows, columns = _rows(y, right, left), _columns(x, markings.counting_x - 0.7, markings.counting_x + 0.7)
    squares = np.floor(y[rows, None]) + np.floor((x[None, columns] - markings.counting_x) / 0.7)
    image[rows, columns] = np.where(np.mod(squares, 2.0)[..., None] == 0.0, palette.PAINT, palette.TIRE)


def _rows(y: np.ndarray, low: float, high: float) -> slice:
    """Rows whose y lies in [low, high]; y falls with the row."""
    return slice(int(np.searchsorted(-y, -high, side="left")), int(np.searchsorted(-y, -low, side="right")))


def _columns(x: np.ndarray, low: float, high: float) -> slice:
    """Columns whose x lies in [low, high]."""
    return slice(int(np.searchsorted(x, low, side="left")), int(np.searchsorted(x, high, side="right")))


def _kept_lines(heights: np.ndarray) -> np.ndarray:
    """Indices of the lines along axis 0 that a piecewise linear surface needs, ends included."""
    kept = [0]
    last = len(heights) - 1
    while kept[-1] < last:
        begin = kept[-1]
        end = begin + 1
        while end < last:
            slope = (heights[end + 1] - heights[begin]) / (end + 1 - begin)
            line = heights[begin] + slope * np.arange(1, end + 1 - begin)[:, None]
            if np.max(np.abs(line - heights[begin + 1 : end + 1])) > 1e-4:
                break
            end += 1
        kept.append(end)
    return np.array(kept)


def _grid_mesh(x: np.ndarray, y: np.ndarray, z: np.ndarray, u: np.ndarray, v: np.ndarray) -> SurfaceMesh:
    """Grid as triangles, each cell split along its low-low to high-high diagonal as the terrain query does."""
    nx, ny = z.shape
    points = np.stack([np.repeat(x, ny), np.tile(y, nx), z.reshape(-1)], axis=1).astype(np.float32)
    uvs = np.stack([np.repeat(u, ny), np.tile(v, nx)], axis=1).astype(np.float32)
    p00 = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)[None, :]).reshape(-1)
    p10, p01, p11 = p00 + ny, p00 + 1, p00 + ny + 1
    indices = np.stack([p00, p10, p11, p00, p11, p01], axis=1).reshape(-1).astype(np.int32)
    return SurfaceMesh(points, indices, uvs)
