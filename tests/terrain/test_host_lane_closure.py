"""The lane-closure road: grid, grade profile and patch by hand, over the 21 conditions."""

import numpy as np
import pytest

from sf3d_envs.registry import Condition, load_suite
from sf3d_envs.terrain import Disc, LaneClosureRoad, Rectangle, lane_closure_terrain

ROAD = LaneClosureRoad()
SUITE = load_suite()
STATIONS = -300.0 + 5.0 * np.arange(513)
conditions = pytest.mark.parametrize("condition", SUITE.conditions, ids=SUITE.slugs)


def test_road_constants():
    assert (ROAD.open_lane_y, ROAD.closing_lane_y, ROAD.lane_line_y) == (-26.25, -29.75, -28.0)
    assert (ROAD.paved_y_min, ROAD.paved_y_max) == (-31.5, -24.5)
    assert (ROAD.closure_x, ROAD.counting_x) == (150.0, 170.0)
    assert (ROAD.merge_start_x, ROAD.merge_end_x) == (50.0, 110.0)


def test_grid_spans_the_map():
    grid = lane_closure_terrain(SUITE["reference"]).heightfield.grid
    assert (grid.x0, grid.dx, grid.nx, grid.x1) == (-300.0, 5.0, 513, 2260.0)
    assert (grid.y0, grid.dy, grid.ny, grid.y1) == (-45.0, 2.0, 18, -11.0)


@pytest.mark.parametrize(
    ("x", "per_grade"),
    [
        (-300.0, 0.0),
        (40.0, 0.0),
        (45.0, 25.0 / 40.0),  # parabola (x - 40)^2 / 40
        (50.0, 100.0 / 40.0),
        (60.0, 10.0),
        (120.0, 70.0),  # constant grade
        (180.0, 130.0),
        (185.0, 130.0 + 5.0 - 25.0 / 40.0),  # parabola again
        (190.0, 137.5),
        (200.0, 140.0),
        (1000.0, 140.0),  # level
        (2260.0, 140.0),
    ],
)
@pytest.mark.parametrize("grade", [0.04, -0.08])
def test_grade_profile_by_hand(x, per_grade, grade):
    terrain = lane_closure_terrain(Condition("g", grade=grade, group="grade"))
    for y in (-45.0, -31.5, -28.0, -11.0):
        assert terrain.heightfield.height_at(x, y) == pytest.approx(grade * per_grade, abs=2e-6)


@conditions
def test_grade_is_the_conditions_between_60_and_180_and_the_profile_is_smooth(condition):
    heights = lane_closure_terrain(condition).heightfield.heights.astype(np.float64)
    slope = np.diff(heights[:, 0]) / 5.0
    middle = 0.5 * (STATIONS[1:] + STATIONS[:-1])
    constant = (middle > 60.0) & (middle < 180.0)
    np.testing.assert_allclose(slope[constant], condition.grade, atol=1e-6)
    np.testing.assert_allclose(slope[(middle < 40.0) | (middle > 200.0)], 0.0, atol=1e-6)
    # Over 20 m the slope changes by the grade: a quarter of it between 5 m facets.
    assert np.abs(np.diff(slope)).max() <= abs(condition.grade) / 4.0 + 1e-6


@conditions
def test_every_condition_shares_the_flat_reference_road_up_to_40_bit_for_bit(condition):
    reference, terrain = lane_closure_terrain(SUITE["reference"]), lane_closure_terrain(condition)
    upstream = STATIONS <= 40.0
    before, after = (t.heightfield.heights[upstream].view(np.uint32) for t in (reference, terrain))
    np.testing.assert_array_equal(before, after)
    assert not before.any()
    x, y = np.meshgrid(np.linspace(-300.0, 39.99, 60), np.linspace(-45.0, -11.0, 40))
    assert (terrain.friction_at(x, y) == 1.0).all()


@conditions
def test_patch_is_the_closing_lane_from_40_to_180(condition):
    terrain = lane_closure_terrain(condition)
    mu = 1.0 if condition.friction is None else condition.friction
    inside_x, inside_y = np.meshgrid([40.0, 41.0, 110.0, 180.0], [-31.5, -29.75, -28.0])
    assert (terrain.friction_at(inside_x, inside_y) == mu).all()
    outside = [(39.99, -29.75), (180.01, -29.75), (110.0, -27.99), (110.0, -31.51), (110.0, -26.25)]
    assert (terrain.friction_at(*np.array(outside).T) == 1.0).all()
    assert terrain.name == condition.slug


def test_the_21_conditions_are_21_roads():
    assert len({lane_closure_terrain(c).digest for c in SUITE.conditions}) == 21


def test_golden_digests():
    for slug, digest in GOLDEN.items():
        assert lane_closure_terrain(SUITE[slug]).digest == digest, slug


def test_explicit_patches_come_after_the_standard_patch():
    spot = Disc(x=100.0, y=-29.75, radius=2.0, friction=0.9)
    far = Rectangle(x=300.0, y=-26.25, length=20.0, width=3.5, friction=0.4)
    terrain = lane_closure_terrain(Condition("own", 0.1, patches=[spot, far]))
    assert terrain.patches[1:] == (spot, far)
    assert terrain.friction_at([100.0, 103.0, 300.0], [-29.75, -29.75, -26.25]).tolist() == [0.9, 0.1, 0.4]
    assert lane_closure_terrain(Condition("own", patches=[spot, far])).patches == (spot, far)


GOLDEN = {
    "reference": "8b888f8652eaae0bdb8881495ed55c474719f50be441bfdc4d5daffe3d75c094",
    "mu018": "627263da90723ef3d69b75c60472430f56e4ba8976796bf7d834bb804c0cc5a5",
    "gradeN080": "b31bce270219061ed9e56fcfb0685231d215c402097f42c2ed7502153648fcda",
    "gradeP030-mu035": "a8709b634cd4bfdac7fffc097e42ffa37def30d3837f6b5410b29f0674543b5b",
}
