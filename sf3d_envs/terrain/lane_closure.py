"""The lane-closure road: where its lanes, patch and grade are, and the terrain variant of a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .friction import Rectangle
from .heightfield import Heightfield, HeightfieldGrid
from .variants import Patch, TerrainVariant

if TYPE_CHECKING:
    from sf3d_envs.registry import Condition


@dataclass(frozen=True, kw_only=True)
class LaneClosureRoad:
    """Fixed geometry of the road (paper, sec. 4.1 and app. E; the terrain's shoulders are ours). All in metres.

    The right lane (the closing lane) ends at ``closure_x``; y grows to the left.

    Attributes:
        x_min: First terrain station.
        x_max: Last terrain station.
        station_spacing: Terrain spacing along x.
        y_min: First terrain column; beyond the pavement there are shoulders, so leaving it is not yet a fall.
        y_max: Last terrain column.
        column_spacing: Terrain spacing along y.
        paved_y_min: Right pavement edge.
        paved_y_max: Left pavement edge.
        lane_line_y: Line between the lanes.
        open_lane_y: Centre of the open (left) lane.
        closing_lane_y: Centre of the closing (right) lane.
        merge_start_x: Where the merge route leaves the closing lane's centre.
        merge_end_x: Where the merge route reaches the open lane's centre.
        closure_x: The closing lane is closed from here on.
        counting_x: Counting line: a vehicle has passed when its front bumper crosses it.
        change_x: Road conditions differ from the flat reference road only from here on.
        patch_end_x: End of the friction patch.
        grade_full_x: From here to ``grade_ease_x`` the grade is constant.
        grade_ease_x: The grade eases out from here.
        grade_end_x: The road is level from here on.
    """

    x_min: float = -300.0
    x_max: float = 2260.0
    station_spacing: float = 5.0
    y_min: float = -45.0
    y_max: float = -11.0
    column_spacing: float = 2.0
    paved_y_min: float = -31.5
    paved_y_max: float = -24.5
    lane_line_y: float = -28.0
    open_lane_y: float = -26.25
    closing_lane_y: float = -29.75
    merge_start_x: float = 50.0
    merge_end_x: float = 110.0
    closure_x: float = 150.0
    counting_x: float = 170.0
    change_x: float = 40.0
    patch_end_x: float = 180.0
    grade_full_x: float = 60.0
    grade_ease_x: float = 180.0
    grade_end_x: float = 200.0

    @property
    def grid(self) -> HeightfieldGrid:
        """Terrain nodes: 513 stations by 18 columns."""
        return HeightfieldGrid(
            x0=self.x_min,
            y0=self.y_min,
            dx=self.station_spacing,
            dy=self.column_spacing,
            nx=round((self.x_max - self.x_min) / self.station_spacing) + 1,
            ny=round((self.y_max - self.y_min) / self.column_spacing) + 1,
        )

    def grade_height(self, x: npt.ArrayLike, grade: float) -> npt.NDArray[np.float64]:
        """Road height [m] at x [m] for a grade (fraction, + uphill): parabola, constant grade, parabola, level."""
        x = np.asarray(x, dtype=np.float64)
        ease_in, ease_out = self.grade_full_x - self.change_x, self.grade_end_x - self.grade_ease_x
        into = np.clip(x - self.change_x, 0.0, ease_in)
        constant = np.clip(x - self.grade_full_x, 0.0, self.grade_ease_x - self.grade_full_x)
        out = np.clip(x - self.grade_ease_x, 0.0, ease_out)
        profile = grade * (into**2 / (2.0 * ease_in) + constant + out - out**2 / (2.0 * ease_out))
        return profile + 0.0  # turns -0.0 into 0.0: flat ground has the same bits whatever the grade's sign


ROAD = LaneClosureRoad()
"""The benchmark's road."""


def lane_closure_terrain(condition: Condition, road: LaneClosureRoad = ROAD) -> TerrainVariant:
    """Terrain variant of a condition: its grade, the closing-lane friction patch, then the condition's own patches.

    Args:
        condition: A condition, as `sf3d_envs.registry.load_condition` returns it.
        road: Road geometry.

    Returns:
        The variant, named after the condition. Surface friction is 1.0 outside the patches.
    """
    grid = road.grid
    profile = road.grade_height(grid.x0 + grid.dx * np.arange(grid.nx), condition.grade)
    heights = np.repeat(profile[:, None], grid.ny, axis=1)
    patches: list[Patch] = list(condition.patches)
    if condition.friction is not None:
        patches.insert(0, closing_lane_patch(condition.friction, road))
    return TerrainVariant(condition.slug, Heightfield(grid, heights), patches)


def closing_lane_patch(friction: float, road: LaneClosureRoad = ROAD) -> Rectangle:
    """The benchmark's patch: the closing lane from ``change_x`` to ``patch_end_x``, with a surface friction [-]."""
    length, width = road.patch_end_x - road.change_x, road.lane_line_y - road.paved_y_min
    return Rectangle(
        x=road.change_x + 0.5 * length,
        y=road.paved_y_min + 0.5 * width,
        length=length,
        width=width,
        friction=friction,
    )
