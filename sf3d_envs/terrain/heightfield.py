"""Regular heightfields, two triangles per cell: the host side of the one road-surface query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..numbers import finite_number

MIN_SPACING = 0.001
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class HeightfieldGrid:
    """Sample positions of a heightfield: node (i, j) lies at (x0 + i dx, y0 + j dy).

    Attributes:
        x0: x of the first station [m].
        y0: y of the first column [m].
        dx: Station spacing along x [m].
        dy: Column spacing along y [m].
        nx: Number of stations, at least 2.
        ny: Number of columns, at least 2.

    Raises:
        TypeError: A number is none, or a count is no int.
        ValueError: A spacing is below 1 mm, a count is below 2, or a number is not finite; the text names it.
    """

    x0: float
    y0: float
    dx: float
    dy: float
    nx: int
    ny: int

    def __post_init__(self) -> None:
        """Refuse grids without a cell."""
        for name in ("x0", "y0", "dx", "dy"):
            finite_number(f"heightfield {name}", getattr(self, name))
        for name in ("dx", "dy"):
            if getattr(self, name) <= 0.0:
                raise ValueError(f"heightfield spacing {name} must be above 0 m, got {getattr(self, name)}")
            if getattr(self, name) < MIN_SPACING:
                raise ValueError(
                    f"heightfield spacing {name} must be at least {MIN_SPACING} m, got {getattr(self, name)}"
                )
        for name in ("nx", "ny"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
                raise TypeError(f"heightfield {name} must be an int of at least 2, got {count!r}")
            if count < 2:
                raise ValueError(f"heightfield {name} must be at least 2 (one cell), got {getattr(self, name)}")

    @property
    def x1(self) -> float:
        """Last station's x [m]."""
        return self.x0 + (self.nx - 1) * self.dx

    @property
    def y1(self) -> float:
        """Last column's y [m]."""
        return self.y0 + (self.ny - 1) * self.dy

    def contains(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether points lie inside the extents, edges included; x and y [m] broadcast."""
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return (x >= self.x0) & (x <= self.x1) & (y >= self.y0) & (y <= self.y1)


class Heightfield:
    """Absolute heights on a grid. Each cell is split along the diagonal from node (i, j) to node (i + 1, j + 1).

    Outside the extents the plane of the nearest edge cell's facet continues.

    Attributes:
        grid: The node positions.
        heights: Heights [m], float32, shape [nx, ny], read-only.
    """

    def __init__(self, grid: HeightfieldGrid, heights: npt.ArrayLike) -> None:
        """Copies and checks the heights.

        Args:
            grid: The node positions.
            heights: Heights [m], shape [nx, ny].

        Raises:
            ValueError: The shape differs from the grid, or a height is not finite in float32; the text names the node.
        """
        with np.errstate(over="ignore"):
            table = np.array(heights, dtype=np.float32, order="C")
        if table.shape != (grid.nx, grid.ny):
            raise ValueError(f"heights must have shape [nx, ny] = [{grid.nx}, {grid.ny}], got {list(table.shape)}")
        bad = np.argwhere(~np.isfinite(table))
        if len(bad):
            i, j = (int(k) for k in bad[0])
            raise ValueError(f"heights must be finite, got {table[i, j]} at node [{i}, {j}] ({len(bad)} bad in all)")
        table.flags.writeable = False
        self.grid = grid
        self.heights = table

    def facet(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Height and slopes of the facet under each point.

        With (fx, fy) the position inside the cell, fx >= fy belongs to nodes p00, p10, p11, the rest to p00, p11, p01.

        Args:
            x: Positions [m], any shape.
            y: Positions [m], broadcast against x.

        Returns:
            Height [m], dh/dx and dh/dy [-], float64, each of the broadcast shape.
        """
        grid, table = self.grid, self.heights.astype(np.float64)
        u, v = np.broadcast_arrays(
            (np.asarray(x, dtype=np.float64) - grid.x0) / grid.dx, (np.asarray(y, dtype=np.float64) - grid.y0) / grid.dy
        )
        i = np.clip(np.floor(u), 0, grid.nx - 2).astype(np.int64)
        j = np.clip(np.floor(v), 0, grid.ny - 2).astype(np.int64)
        fx, fy = u - i, v - j
        h00, h10, h01, h11 = table[i, j], table[i + 1, j], table[i, j + 1], table[i + 1, j + 1]
        lower = fx >= fy
        rise_x = np.where(lower, h10 - h00, h11 - h01)
        rise_y = np.where(lower, h11 - h10, h01 - h00)
        return h00 + fx * rise_x + fy * rise_y, rise_x / grid.dx, rise_y / grid.dy

    def height_at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Surface height [m] under points x, y [m]; float64 of the broadcast shape."""
        return self.facet(x, y)[0]

    def normal_at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Unit upward facet normal under points x, y [m]; float64, shape [..., 3]."""
        _, slope_x, slope_y = self.facet(x, y)
        length = np.sqrt(1.0 + slope_x**2 + slope_y**2)
        return np.stack((-slope_x / length, -slope_y / length, 1.0 / length), axis=-1)
