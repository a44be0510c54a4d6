"""Canonical routes: geometry by hand, the four checks, digests, packing."""

import numpy as np
import pytest

from sf3d_envs.scenario.route import (
    Route,
    RouteError,
    RouteLimits,
    RouteTable,
    constant_offset,
    lane_closure_routes,
    lane_follow_route,
    merge_route,
    plan_route,
    quintic_offset,
)

FOLLOW, MERGE = lane_closure_routes()


def test_follow_route_is_the_open_lane_every_half_metre():
    np.testing.assert_array_equal(FOLLOW.x, -300.0 + 0.5 * np.arange(5121))
    np.testing.assert_array_equal(FOLLOW.y, -26.25)
    assert not FOLLOW.heading.any()
    assert not FOLLOW.curvature.any()
    assert FOLLOW.s[-1] == 2560.0


def test_merge_route_follows_the_quintic():
    before, after = MERGE.x <= 50.0, MERGE.x >= 110.0
    np.testing.assert_array_equal(MERGE.y[before], -29.75)
    np.testing.assert_allclose(MERGE.y[after], -26.25, atol=1e-12)
    blend = ~before & ~after
    t = (MERGE.x[blend] - 50.0) / 60.0
    np.testing.assert_allclose(MERGE.y[blend], -29.75 + 3.5 * (10 * t**3 - 15 * t**4 + 6 * t**5), atol=1e-9)


def test_merge_numbers():
    assert np.abs(MERGE.curvature).max() == pytest.approx(0.0056, abs=5e-5)
    clearance = MERGE.y[MERGE.x >= 150.0] - -28.0
    assert clearance.min() == pytest.approx(1.75, abs=1e-9)
    # The quintic is steepest in the middle, 1.875; the sample nearest to it is up to 0.25 m away.
    assert MERGE.heading.max() == pytest.approx(np.arctan(1.875 * 3.5 / 60.0), abs=1e-5)


@pytest.mark.parametrize("route", [FOLLOW, MERGE], ids=lambda r: r.name)
def test_samples_are_half_a_metre_of_arc_apart(route):
    chord = np.hypot(*np.diff(route.points, axis=0).T)
    # A chord is shorter than its arc by kappa^2 s^3 / 24, below 2e-7 m here.
    np.testing.assert_allclose(chord, 0.5, atol=1e-6)


def test_heading_and_curvature_are_the_derivatives_of_the_points():
    d1 = np.gradient(MERGE.points, 0.5, axis=0, edge_order=2)
    np.testing.assert_allclose(np.arctan2(d1[:, 1], d1[:, 0]), MERGE.heading, atol=5e-5)
    np.testing.assert_allclose(np.gradient(MERGE.heading, 0.5)[1:-1], MERGE.curvature[1:-1], atol=2e-4)


def test_curvature_at_a_hand_worked_sample():
    index = int(np.argmin(np.abs(MERGE.x - 65.0)))
    t = (MERGE.x[index] - 50.0) / 60.0
    slope = 3.5 / 60.0 * 30.0 * t**2 * (1 - t) ** 2
    second = 3.5 / 3600.0 * (60 * t - 180 * t**2 + 120 * t**3)
    assert MERGE.curvature[index] == pytest.approx(second / (1 + slope**2) ** 1.5, rel=1e-9)
    assert MERGE.curvature[index] > 0.0


@pytest.mark.parametrize("length", [20.0, 30.0, 37.9])
def test_too_short_merge_fails_the_curvature_check(length):
    with pytest.raises(RouteError, match=r"route 'merge': curvature check failed: .* 1/m at x = .*allowed 0\.0139"):
        merge_route(end_x=50.0 + length)


def test_shortest_admitted_merge():
    route = merge_route(end_x=50.0 + 38.2)
    assert 0.0135 < np.abs(route.curvature).max() <= 0.0139


def test_late_merge_fails_the_clearance_check():
    with pytest.raises(RouteError, match="closed-lane clearance check failed"):
        merge_route(start_x=110.0, end_x=170.0)


def test_following_the_closing_lane_fails_the_clearance_check():
    with pytest.raises(RouteError, match=r"closed-lane clearance check failed: 2\.95 m short"):
        lane_follow_route(-29.75)


def test_clearance_limit_is_closed():
    assert (lane_follow_route(-26.8).y == -26.8).all()
    with pytest.raises(RouteError, match="clearance"):
        lane_follow_route(-26.81)


def test_leaving_the_pavement_fails_the_bounds_check():
    with pytest.raises(RouteError, match=r"drivable bounds check failed: 0\.5 m outside"):
        lane_follow_route(-24.0)


def broken(**changes):
    arrays = {name: getattr(MERGE, name).copy() for name in ("x", "y", "heading", "curvature")}
    for name, (index, value) in changes.items():
        arrays[name][index] += value
    return Route("broken", **arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"y": (700, 0.1)},
        {"x": (slice(700, None), 0.01)},
        {"heading": (slice(700, None), 0.01)},
        {"curvature": (700, 0.01)},
    ],
    ids=["offset sample", "gap", "kink", "curvature that is not the path's"],
)
def test_discontinuous_route_fails_the_continuity_check(changes):
    with pytest.raises(RouteError, match="continuity check failed"):
        broken(**changes).check()


def test_jump_in_the_offset_fails_the_continuity_check():
    def jump(u):
        return np.where(u < 60.0, -1.75, 1.75), np.zeros_like(u), np.zeros_like(u)

    with pytest.raises(RouteError, match="continuity check failed"):
        plan_route("jump", jump)


def test_limits_can_be_tightened():
    MERGE.check()
    with pytest.raises(RouteError, match=r"curvature check failed.*allowed 0\.005"):
        MERGE.check(limits=RouteLimits(max_curvature=0.005))


def test_bad_input():
    with pytest.raises(ValueError, match="begin_u = 110"):
        merge_route(start_x=110.0, end_x=50.0)
    with pytest.raises(ValueError, match="begin_u"):
        quintic_offset(0.0, 1.0, 5.0, 5.0)
    with pytest.raises(RouteError, match=r"finite check failed: y\[3\] is nan"):
        broken(y=(3, np.nan))
    with pytest.raises(RouteError, match="shape check failed"):
        Route("short", np.zeros(4), np.zeros(3), np.zeros(4), np.zeros(4))
    with pytest.raises(RouteError, match="finite check failed"):
        plan_route("nan", constant_offset(float("nan")))
    with pytest.raises(ValueError, match="at least one Route"):
        RouteTable([])


def test_arrays_are_frozen():
    with pytest.raises(ValueError, match="read-only"):
        MERGE.x[0] = 0.0


def test_digests_are_stable_and_see_the_path():
    assert FOLLOW.digest == GOLDEN_FOLLOW
    assert MERGE.digest == GOLDEN_MERGE
    assert merge_route().digest == MERGE.digest
    assert merge_route(end_x=110.1).digest != MERGE.digest
    # Rounding in the last bit is the same route, a micrometre is not.
    assert broken(y=(9, 1e-12)).digest == MERGE.digest
    assert broken(y=(9, 2e-6)).digest != MERGE.digest
    assert RouteTable().digest == RouteTable([FOLLOW, MERGE]).digest != RouteTable([MERGE, FOLLOW]).digest


def test_table_packs_float32_samples_and_pads_with_the_last():
    short = Route("short", *(getattr(MERGE, name)[:100] for name in ("x", "y", "heading", "curvature")))
    table = RouteTable([MERGE, short])
    points = table.points.numpy()
    assert points.shape == (2, 5121, 4)
    assert points.dtype == np.float32
    assert table.count.numpy().tolist() == [5121, 100]
    assert len(table) == 2
    assert table.spacing == 0.5
    columns = (MERGE.x, MERGE.y, np.cos(MERGE.heading), np.sin(MERGE.heading))
    np.testing.assert_array_equal(points[0], np.stack(columns, axis=-1).astype(np.float32))
    np.testing.assert_array_equal(table.curvature.numpy()[0], MERGE.curvature.astype(np.float32))
    np.testing.assert_array_equal(points[1, 100:], np.broadcast_to(points[1, 99], (5021, 4)))


GOLDEN_FOLLOW = "62b1d7a5e02a41e932ec7e195a79d1ce6659d13530e2d13c559c9beed44c411b"
GOLDEN_MERGE = "a9112fff7f6efbe44b963802f75b9c0f95d6486aa71c929dcb7d21c8ac85ad82"
