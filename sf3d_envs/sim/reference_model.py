"""The Newton model of the reference path: chassis boxes and one heightfield road per world."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import newton
import numpy as np
import warp as wp

from .kernels_xpbd import RoadShapes
from .vehicle import VehicleParams

if TYPE_CHECKING:
    from ..terrain.variants import TerrainVariant

CONTACT_GAP = 0.15
"""Distance at which a chassis looks for contact [m]; a pair looks twice as far, which holds closing speeds of 72 m/s.
The box of the benchmark car stands 0.195 m above the road, so a car at rest on its wheels finds none."""


def build_reference_model(
    worlds: int, vehicles: Sequence[VehicleParams], variants: Sequence[TerrainVariant], device: wp.Device
) -> tuple[newton.Model, RoadShapes]:
    """Newton model of all worlds, world-major, and the shape rows of their roads.

    Each world holds its chassis boxes and a road shape. The variants stand once beside the worlds as shapes that
    collide with nothing; the road shape of a world takes over the row of the world's variant (``follow_variants``), so
    a world may change its variant. Newton averages the friction of two shapes and knows no patches: a road of base
    friction μ gets c·(2μ − 1), c the (mean) chassis friction, so that the average with the chassis is c·μ.
    """
    world = newton.ModelBuilder()
    for index, car in enumerate(vehicles):
        body = world.add_link(
            mass=car.mass, inertia=wp.mat33(np.diag(car.inertia)), lock_inertia=True, label=f"vehicle_{index}"
        )
        world.add_shape_box(
            body,
            hx=0.5 * car.length,
            hy=0.5 * car.width,
            hz=0.5 * car.height,
            cfg=_shape(car.chassis_friction, gap=CONTACT_GAP),
        )
    placeholder = newton.Heightfield(np.zeros((2, 2)), 2, 2)
    world.add_shape_heightfield(heightfield=placeholder, cfg=_shape(0.0), label="road")

    builder = newton.ModelBuilder()
    builder.replicate(world, worlds)
    chassis_friction = float(np.mean([car.chassis_friction for car in vehicles]))
    of_variant = [_add_variant(builder, variant, chassis_friction) for variant in variants]
    with warnings.catch_warnings():
        # Roads never meet: each world has one.
        warnings.filterwarnings("ignore", message="Heightfield-vs-heightfield")
        model = builder.finalize(device=device)
    _set_road_bounds(model, of_variant, variants)

    roads = RoadShapes()
    per_world = len(vehicles) + 1
    roads.of_world = wp.array(np.arange(worlds) * per_world + len(vehicles), dtype=int, device=device)
    roads.of_variant = wp.array(of_variant, dtype=int, device=device)
    roads.transform, roads.heightfield = model.shape_transform, model.shape_heightfield_index
    roads.source, roads.radius = model.shape_source_ptr, model.shape_collision_radius
    roads.lower, roads.upper = model.shape_collision_aabb_lower, model.shape_collision_aabb_upper
    roads.friction = model.shape_material_mu
    return model, roads


def reachable_facets(vehicles: Sequence[VehicleParams], variants: Sequence[TerrainVariant]) -> int:
    """Most facets that the bounding box of one vehicle, grown by the contact gap, can lie over."""
    reach = max(math.hypot(car.length, car.width, car.height) for car in vehicles) + 2.0 * CONTACT_GAP
    grids = [variant.heightfield.grid for variant in variants]
    return max(2 * (math.ceil(reach / grid.dx) + 1) * (math.ceil(reach / grid.dy) + 1) for grid in grids)


def _shape(friction: float, *, gap: float = 0.0, collides: bool = True) -> newton.ModelBuilder.ShapeConfig:
    return newton.ModelBuilder.ShapeConfig(
        density=0.0, mu=friction, mu_torsional=0.0, mu_rolling=0.0, gap=gap, has_shape_collision=collides
    )


def _set_road_bounds(model: newton.Model, rows: Sequence[int], variants: Sequence[TerrainVariant]) -> None:
    """Local bounds of the variants' shapes; Newton 1.8 gives all heightfields of a model those of the first one."""
    lower, upper = model.shape_collision_aabb_lower.numpy(), model.shape_collision_aabb_upper.numpy()
    for row, variant in zip(rows, variants, strict=True):
        grid, heights = variant.heightfield.grid, variant.heightfield.heights
        half_x, half_y = 0.5 * (grid.x1 - grid.x0), 0.5 * (grid.y1 - grid.y0)
        lower[row] = -half_x, -half_y, heights.min()
        upper[row] = half_x, half_y, heights.max()
    model.shape_collision_aabb_lower.assign(lower)
    model.shape_collision_aabb_upper.assign(upper)


def _add_variant(builder: newton.ModelBuilder, variant: TerrainVariant, chassis_friction: float) -> int:
    """Add a road that collides with nothing; Newton's rows run along y, ours along x."""
    grid = variant.heightfield.grid
    half_x, half_y = 0.5 * (grid.x1 - grid.x0), 0.5 * (grid.y1 - grid.y0)
    road = newton.Heightfield(variant.heightfield.heights.T, grid.ny, grid.nx, hx=half_x, hy=half_y)
    return builder.add_shape_heightfield(
        heightfield=road,
        xform=wp.transform(wp.vec3(grid.x0 + half_x, grid.y0 + half_y, 0.0), wp.quat_identity()),
        cfg=_shape(chassis_friction * (2.0 * variant.base_friction - 1.0), collides=False),
        label=variant.name,
    )
