"""A plane road of one friction, for experiments that need no scenery."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..numbers import finite_number
from .friction import Disc, Rectangle
from .heightfield import Heightfield, HeightfieldGrid
from .variants import TerrainVariant


def plane(
    friction: float = 1.0,
    *,
    slope_x: float = 0.0,
    slope_y: float = 0.0,
    patches: Sequence[Disc | Rectangle] = (),
    half: float = 2000.0,
) -> TerrainVariant:
    """A plane through the origin.

    Args:
        friction: Surface friction coefficient [-].
        slope_x: Rise per metre along x [-].
        slope_y: Rise per metre along y [-].
        patches: Friction patches; later ones win.
        half: How far the road reaches to each side of the origin [m].

    Raises:
        TypeError: If a number is none.
        ValueError: If a number is not finite or ``half`` is not positive.
    """
    for name, value in (("slope_x", slope_x), ("slope_y", slope_y), ("half", half)):
        finite_number(name, value)
    if half <= 0.0:
        raise ValueError(f"half must be > 0 m, got {half!r}")
    grid = HeightfieldGrid(x0=-half, y0=-half, dx=0.1 * half, dy=0.1 * half, nx=21, ny=21)
    x = grid.x0 + grid.dx * np.arange(grid.nx)
    y = grid.y0 + grid.dy * np.arange(grid.ny)
    heights = slope_x * x[:, None] + slope_y * y[None, :]
    return TerrainVariant("plane", Heightfield(grid, heights), tuple(patches), base_friction=friction)
