from __future__ import annotations

import math

import numpy as np
import pytest
from render.worlds import CARS, poses, road

from sf3d_envs.render import palette
from sf3d_envs.render.road import RoadMarkings, ground_mesh, road_texture
from sf3d_envs.render.scene import Scene
from sf3d_envs.terrain import Disc, Heightfield, HeightfieldGrid, TerrainVariant


def bumpy() -> TerrainVariant:
    grid = HeightfieldGrid(x0=-10.0, y0=-5.0, dx=1.0, dy=0.5, nx=21, ny=21)
    heights = np.random.default_rng(7).normal(scale=0.2, size=(21, 21))
    return TerrainVariant("bumpy", Heightfield(grid, heights), [Disc(x=2.0, y=1.0, radius=1.5, friction=0.2)])


def height_on_mesh(mesh, x: float, y: float) -> float:
    """Height of the mesh over a point, by barycentric coordinates."""
    for corners in mesh.points[mesh.indices.reshape(-1, 3)].astype(np.float64):
        matrix = np.vstack([corners[:, :2].T, np.ones(3)])
        if abs(np.linalg.det(matrix)) < 1e-12:
            continue
        weights = np.linalg.solve(matrix, [x, y, 1.0])
        if (weights >= -1e-9).all():
            return float(weights @ corners[:, 2])
    raise AssertionError(f"no triangle over ({x}, {y})")


@pytest.mark.parametrize("slug", ["reference", "gradeP040", "gradeN080"])
def test_mesh_is_the_road_surface_with_few_triangles(slug):
    variant = road(slug)
    mesh = ground_mesh(variant)
    assert len(mesh.indices) // 3 < 150
    for x in np.linspace(-290.0, 2250.0, 83):
        assert height_on_mesh(mesh, x, -29.3) == pytest.approx(float(variant.heightfield.height_at(x, -29.3)), abs=2e-3)


def test_mesh_follows_any_heightfield_facet_by_facet():
    variant, random = bumpy(), np.random.default_rng(3)
    mesh = ground_mesh(variant)
    for x, y in random.uniform((-9.9, -4.9), (9.9, 4.9), size=(40, 2)):
        assert height_on_mesh(mesh, x, y) == pytest.approx(float(variant.heightfield.height_at(x, y)), abs=1e-4)


def test_mesh_faces_up_and_reaches_beyond_the_terrain():
    mesh = ground_mesh(road())
    a, b, c = np.moveaxis(mesh.points[mesh.indices.reshape(-1, 3)].astype(np.float64), 1, 0)
    assert (np.cross(b - a, c - a)[:, 2] > 0.0).all()
    assert mesh.points[:, 1].min() < -1000.0


def test_texture_paints_the_friction_that_the_wheels_read():
    variant = bumpy()
    image = road_texture(variant, None, (0.1, 0.1))
    assert image.shape == (100, 200, 3)
    x, y = -10.0 + (np.arange(200) + 0.5) * 0.1, 5.0 - (np.arange(100) + 0.5) * 0.1
    slippery = variant.friction_at(x[None, :], y[:, None]) == 0.2
    assert (image[slippery] == palette.friction_color(0.2)).all()
    assert (image[~slippery] == palette.ASPHALT).all()


def test_texture_stays_within_its_memory():
    image = road_texture(road(), RoadMarkings(), (0.01, 0.01))
    assert image.shape[0] * image.shape[1] <= 8_100_000


def test_friction_colours_get_lighter_as_friction_falls():
    lightness = [sum(palette.friction_color(mu)) for mu in (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05)]
    assert lightness == sorted(lightness)
    assert len(set(lightness)) == len(lightness)
    assert palette.friction_color(0.0) == palette.friction_color(0.05)
    assert palette.friction_color(1.4) == palette.friction_color(1.0) == palette.ASPHALT


def test_wheels_touch_the_road_and_front_wheels_steer_by_ackermann():
    variant = road("gradeP030")
    scene, body_q = Scene(variant, CARS, markings=RoadMarkings()), poses(variant)
    scene.place(body_q, steer=np.full(12, 0.3))
    wheels = scene.state.body_q.numpy()[12:].reshape(12, 4, 7)
    ground = variant.heightfield.height_at(wheels[..., 0], wheels[..., 1])
    np.testing.assert_allclose(wheels[..., 2] - ground, CARS[0].wheel_radius, atol=2e-3)
    yaw = 2.0 * np.arctan2(wheels[0, :, 5], wheels[0, :, 6])
    np.testing.assert_allclose(yaw[2:], 0.0, atol=1e-6)
    assert yaw[0] > 0.3 > yaw[1] > 0.2
    inner, outer = (1.0 / math.tan(angle) for angle in yaw[:2])
    assert outer - inner == pytest.approx(CARS[0].track / CARS[0].wheelbase, abs=1e-4)
    np.testing.assert_allclose(wheels[0, 0, :2] - body_q[0, :2], (1.30, 0.73), atol=1e-5)


def test_wheels_of_a_flying_car_hang_at_full_droop():
    scene, body_q = Scene(road(), CARS), poses(road())
    body_q[:, 2] += 3.0
    scene.place(body_q)
    wheels = scene.state.body_q.numpy()[12:].reshape(12, 4, 7)
    drop = CARS[0].anchor_height - CARS[0].suspension_rest_length
    np.testing.assert_allclose(wheels[..., 2] - body_q[:, None, 2], drop, atol=1e-5)
