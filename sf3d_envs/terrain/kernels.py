"""Warp side of the terrain: the one query that wheels, preview and chassis contact share.

A heightfield cell is two triangles split along the diagonal from its low corner ``p00`` to its high corner ``p11``;
normals are facet normals. Outside the extents the edge cell is continued, so a query never reads past the table.
"""

import warp as wp

from ..lanes import lane_code

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

PATCH_DISC = 0
PATCH_RECTANGLE = 1


@wp.struct
class TerrainGrid:
    """Grid and patch range of one terrain variant; lengths in metres."""

    x0: float
    y0: float
    inv_dx: float
    inv_dy: float
    dx: float
    dy: float
    nx: int
    ny: int
    offset: int
    patch_begin: int
    patch_end: int
    base_friction: float


@wp.struct
class FrictionPatch:
    """One patch of constant friction: a disc (radius in ``half_length``) or a rotated rectangle.

    ``bound`` is the radius of a circle about its centre that holds it.
    """

    kind: int
    x: float
    y: float
    half_length: float
    half_width: float
    cos_yaw: float
    sin_yaw: float
    bound: float
    friction: float


@wp.struct
class Terrain:
    """A bank of variants and the variant of each world.

    ``bulge`` bounds, for each cell, how far the road around it rises above the cell's facet planes [m].
    """

    grids: wp.array(dtype=TerrainGrid)
    heights: wp.array(dtype=float)
    bulge: wp.array(dtype=float)
    patches: wp.array(dtype=FrictionPatch)
    world_variant: wp.array(dtype=int)


FACET = """
    const lanes u = (at(x) - grid.x0) * grid.inv_dx;
    const lanes v = (at(y) - grid.y0) * grid.inv_dy;
    const lanes i = least(most(down(u), 0.0f), (float)(grid.nx - 2));
    const lanes j = least(most(down(v), 0.0f), (float)(grid.ny - 2));
    const lanes fx = u - i;
    const lanes fy = v - j;
    const whole base = grid.offset + truncate(i) * grid.ny + truncate(j);
    const mask lower = fx >= fy;
    const whole third = lower ? base + grid.ny : base + 1;
    const lanes h00 = lookup(terrain.heights.data, base);
    const lanes h11 = lookup(terrain.heights.data, base + (grid.ny + 1));
    const lanes corner = lookup(terrain.heights.data, third);
    const lanes step_x = pick(lower, corner - h00, h11 - corner);
    const lanes step_y = pick(lower, h11 - corner, corner - h00);
    put(0, h00 + fx * step_x + fy * step_y);
    put(1, step_x * grid.inv_dx);
    put(2, step_y * grid.inv_dy);
    put(3, least(size(fx - fy), least(least(fx, fy), 1.0f - most(fx, fy))));
"""


@wp.func_native(lane_code(FACET, rows=4, form="one"))
def terrain_facet(terrain: Terrain, grid: TerrainGrid, x: float, y: float) -> wp.vec4:
    """Plane of the facet under (x, y): (height at (x, y) [m], dh/dx, dh/dy, margin).

    The margin says how far one may move and stay on this facet: while |Δx|/dx + |Δy|/dy is smaller. Negative beyond the
    extents.
    """
    ...


@wp.func_native(lane_code(FACET, rows=4))
def terrain_facets(terrain: Terrain, grid: TerrainGrid, x: wp.vec4, y: wp.vec4) -> wp.mat44:
    """:func:`terrain_facet` at four points, from the same text; a row per component."""
    ...


@wp.func
def terrain_bulge(terrain: Terrain, grid: TerrainGrid, x: float, y: float) -> float:
    """How far the road near (x, y), within the bank's reach, can rise above the plane of the facet there [m]."""
    i = wp.clamp(int(wp.floor((x - grid.x0) * grid.inv_dx)), 0, grid.nx - 2)
    j = wp.clamp(int(wp.floor((y - grid.y0) * grid.inv_dy)), 0, grid.ny - 2)
    return terrain.bulge[grid.offset + i * grid.ny + j]


@wp.func
def facet_normal(facet: wp.vec4) -> wp.vec3:
    """Upward unit normal of a facet from :func:`terrain_facet`."""
    return wp.normalize(wp.vec3(-facet[1], -facet[2], 1.0))


@wp.func
def inside_patch(patch: FrictionPatch, x: float, y: float) -> bool:
    """Whether a patch holds (x, y), its edge included."""
    dx = x - patch.x
    dy = y - patch.y
    if patch.kind == PATCH_DISC:
        return dx * dx + dy * dy <= patch.half_length * patch.half_length
    along = dx * patch.cos_yaw + dy * patch.sin_yaw
    across = dy * patch.cos_yaw - dx * patch.sin_yaw
    return wp.abs(along) <= patch.half_length and wp.abs(across) <= patch.half_width


@wp.func
def surface_friction(terrain: Terrain, grid: TerrainGrid, x: float, y: float) -> float:
    """Surface friction coefficient at (x, y): the last patch that holds the point, else the base value."""
    friction = grid.base_friction
    for k in range(grid.patch_begin, grid.patch_end):
        if inside_patch(terrain.patches[k], x, y):
            friction = terrain.patches[k].friction
    return friction


@wp.func
def surface_friction_near(
    terrain: Terrain, grid: TerrainGrid, x: wp.vec4, y: wp.vec4, centre: wp.vec3, reach: float
) -> wp.vec4:
    """:func:`surface_friction` at four points within ``reach`` of a centre; a patch out of reach is passed over."""
    friction = wp.vec4(grid.base_friction)
    for k in range(grid.patch_begin, grid.patch_end):
        patch = terrain.patches[k]
        dx = centre[0] - patch.x
        dy = centre[1] - patch.y
        clear = patch.bound + reach
        if dx * dx + dy * dy <= clear * clear:
            for i in range(4):
                if inside_patch(patch, x[i], y[i]):
                    friction[i] = patch.friction
    return friction


@wp.func
def inside_extents(grid: TerrainGrid, x: float, y: float) -> bool:
    """Whether (x, y) lies on the map."""
    return (
        x >= grid.x0
        and x <= grid.x0 + grid.dx * float(grid.nx - 1)
        and y >= grid.y0
        and y <= grid.y0 + grid.dy * float(grid.ny - 1)
    )
