"""Heightfields on the host: facets by hand, extents, bad input."""

import numpy as np
import pytest

from sf3d_envs.terrain import Heightfield, HeightfieldGrid

GRID = HeightfieldGrid(x0=10.0, y0=-4.0, dx=5.0, dy=2.0, nx=3, ny=3)
# Rows are stations. Cell (0, 0) is warped: p00 = 0, p10 = 1, p11 = 3, p01 = 4.
HEIGHTS = [[0.0, 4.0, 4.0], [1.0, 3.0, 3.0], [1.0, 3.0, 7.0]]
FIELD = Heightfield(GRID, HEIGHTS)


def test_nodes_give_their_heights():
    x, y = np.meshgrid(10.0 + 5.0 * np.arange(3), -4.0 + 2.0 * np.arange(3), indexing="ij")
    np.testing.assert_array_equal(FIELD.height_at(x, y), HEIGHTS)


@pytest.mark.parametrize(
    ("fx", "fy", "height", "slope_x", "slope_y"),
    [
        # fx >= fy, nodes p00 p10 p11: 0 + fx (1 - 0) + fy (3 - 1)
        (0.75, 0.25, 1.25, 0.2, 1.0),
        (0.5, 0.0, 0.5, 0.2, 1.0),
        # fx < fy, nodes p00 p11 p01: 0 + fx (3 - 4) + fy (4 - 0)
        (0.25, 0.75, 2.75, -0.2, 2.0),
        (0.0, 0.5, 2.0, -0.2, 2.0),
        # the diagonal belongs to the first facet
        (0.5, 0.5, 1.5, 0.2, 1.0),
    ],
)
def test_two_facets_per_cell_by_hand(fx, fy, height, slope_x, slope_y):
    x, y = 10.0 + 5.0 * fx, -4.0 + 2.0 * fy
    assert FIELD.height_at(x, y) == pytest.approx(height, abs=1e-12)
    normal = np.array([-slope_x, -slope_y, 1.0])
    np.testing.assert_allclose(FIELD.normal_at(x, y), normal / np.linalg.norm(normal), atol=1e-12)


def test_second_cell_uses_its_own_nodes():
    # Cell (1, 1): p00 = 3, p10 = 3, p01 = 3, p11 = 7.
    assert FIELD.height_at(15.0 + 4.0, -2.0 + 1.0) == pytest.approx(3.0 + 0.5 * 4.0)
    assert FIELD.height_at(15.0 + 1.0, -2.0 + 1.0) == pytest.approx(3.0 + 0.2 * 4.0)


def test_height_is_continuous_across_edges_and_the_diagonal():
    rng = np.random.default_rng(0)
    field = Heightfield(HeightfieldGrid(x0=0, y0=0, dx=1.0, dy=1.0, nx=5, ny=5), rng.normal(size=(5, 5)))
    t = np.linspace(0.05, 3.95, 79)
    for x, y, across in (
        (t, np.full_like(t, 2.0), (0.0, 1e-9)),
        (np.full_like(t, 2.0), t, (1e-9, 0.0)),
        (t, t, (1e-9, 0)),
    ):
        step = np.abs(field.height_at(x - across[0], y - across[1]) - field.height_at(x + across[0], y + across[1]))
        assert step.max() < 1e-7


def test_plane_is_exact_everywhere_and_continues_outside():
    grid = HeightfieldGrid(x0=-2.0, y0=3.0, dx=0.5, dy=0.25, nx=9, ny=17)
    x, y = np.meshgrid(-2.0 + 0.5 * np.arange(9), 3.0 + 0.25 * np.arange(17), indexing="ij")
    field = Heightfield(grid, 0.5 * x - 0.25 * y + 2.0)
    px, py = np.random.default_rng(1).uniform(-10, 10, (2, 200))
    np.testing.assert_allclose(field.height_at(px, py), 0.5 * px - 0.25 * py + 2.0, atol=1e-12)
    expected = np.array([-0.5, 0.25, 1.0]) / np.sqrt(1.0 + 0.25 + 0.0625)
    np.testing.assert_allclose(field.normal_at(px, py), np.broadcast_to(expected, (200, 3)), atol=1e-12)


def test_shapes_broadcast():
    assert FIELD.height_at(np.zeros((4, 1)), np.zeros(3)).shape == (4, 3)
    assert FIELD.normal_at(np.zeros((4, 1)), np.zeros(3)).shape == (4, 3, 3)
    assert FIELD.height_at(12, -3).shape == ()


def test_extents_are_closed():
    assert (GRID.x1, GRID.y1) == (20.0, 0.0)
    assert GRID.contains([10.0, 20.0, 15.0], [-4.0, 0.0, -2.0]).all()
    assert not GRID.contains([9.99, 20.01, 15.0, 15.0, np.nan], [-2.0, -2.0, -4.01, 0.01, -2.0]).any()


def test_heights_are_a_frozen_float32_copy():
    source = np.zeros((3, 3))
    field = Heightfield(GRID, source)
    source[0, 0] = 9.0
    assert field.heights.dtype == np.float32
    assert field.heights[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        field.heights[0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ny": 1}, "ny must be at least 2 .*got 1"),
        ({"nx": 1}, "nx must be at least 2 .*got 1"),
        ({"dx": 0.0}, r"spacing dx must be above 0 m, got 0\.0"),
        ({"dy": -2.0}, r"spacing dy must be above 0 m, got -2\.0"),
        ({"x0": float("nan")}, "x0 must be finite, got nan"),
        ({"dy": float("inf")}, "dy must be finite, got inf"),
    ],
)
def test_bad_grids_are_refused(change, message):
    values = {"x0": 0.0, "y0": 0.0, "dx": 1.0, "dy": 1.0, "nx": 3, "ny": 3} | change
    with pytest.raises(ValueError, match=message):
        HeightfieldGrid(**values)


@pytest.mark.parametrize(
    ("heights", "message"),
    [
        (np.zeros((3, 2)), r"shape \[nx, ny\] = \[3, 3\], got \[3, 2\]"),
        (np.zeros(9), r"got \[9\]"),
        ([[0, 0, 0], [0, np.nan, 0], [0, 0, np.inf]], r"finite, got nan at node \[1, 1\] \(2 bad in all\)"),
        (np.full((3, 3), 1e39), r"finite, got inf at node \[0, 0\]"),
    ],
)
def test_bad_heights_are_refused(heights, message):
    with pytest.raises(ValueError, match=message):
        Heightfield(GRID, heights)
