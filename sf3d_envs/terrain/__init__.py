"""Road surfaces: heightfields, friction patches and the variants that worlds are mapped to."""

from .friction import Disc, Rectangle
from .heightfield import Heightfield, HeightfieldGrid
from .lane_closure import LaneClosureRoad, lane_closure_terrain
from .plane import plane
from .variants import TerrainVariant

__all__ = [
    "Disc",
    "Heightfield",
    "HeightfieldGrid",
    "LaneClosureRoad",
    "Rectangle",
    "TerrainVariant",
    "lane_closure_terrain",
    "plane",
]
