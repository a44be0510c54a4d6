"""Projection kernels against brute force in float32, on the benchmark's routes and on curled ones."""

import numpy as np
import pytest
import warp as wp
from alone import project_to_routes

from sf3d_envs.scenario.kernels import (
    PROJECTION_WINDOW,
    project_global,
    project_local,
    project_to_routes_global,
)
from sf3d_envs.scenario.route import Route, RouteTable, lane_closure_routes


def circle(radius):
    count = int(2.0 * np.pi * radius / 0.5)
    angle = 0.5 * np.arange(count) / radius
    curvature = np.full(count, 1.0 / radius)
    return Route("circle", radius * np.cos(angle), radius * np.sin(angle), angle + 0.5 * np.pi, curvature)


def stub(count):
    s = 0.5 * np.arange(count)
    return Route("stub", s, np.zeros(count), np.zeros(count), np.zeros(count))


TABLE = RouteTable([*lane_closure_routes(), circle(40.0), stub(2), stub(33)])
COUNT = TABLE.count.numpy()


@wp.kernel
def local_kernel(
    points: wp.array2d(dtype=wp.vec4),
    count: wp.array(dtype=int),
    reach: wp.array(dtype=float),
    route: int,
    window: int,
    guess: wp.array(dtype=int),
    xy: wp.array(dtype=wp.vec2),
    out: wp.array(dtype=int),
):
    i = wp.tid()
    out[i] = project_local(points, route, count[route], reach[route], guess[i], window, xy[i][0], xy[i][1])


@wp.kernel
def global_kernel(
    points: wp.array2d(dtype=wp.vec4),
    count: wp.array(dtype=int),
    route: int,
    xy: wp.array(dtype=wp.vec2),
    out: wp.array(dtype=int),
):
    i = wp.tid()
    out[i] = project_global(points, route, count[route], xy[i][0], xy[i][1])


def run_global(route, xy):
    xy = np.asarray(xy, dtype=np.float32)
    out = wp.zeros(len(xy), dtype=int, device="cpu")
    inputs = [TABLE.points, TABLE.count, route, wp.array(xy, dtype=wp.vec2, device="cpu"), out]
    wp.launch(global_kernel, dim=len(xy), inputs=inputs, device="cpu")
    return out.numpy()


def run_local(route, xy, guess, window=PROJECTION_WINDOW):
    xy = np.asarray(xy, dtype=np.float32)
    out = wp.zeros(len(xy), dtype=int, device="cpu")
    guess = wp.array(np.broadcast_to(guess, len(xy)).astype(np.int32), dtype=int, device="cpu")
    xy = wp.array(xy, dtype=wp.vec2, device="cpu")
    inputs = [TABLE.points, TABLE.count, TABLE.reach, route, window, guess, xy, out]
    wp.launch(local_kernel, dim=len(out), inputs=inputs, device="cpu")
    return out.numpy()


def brute(route, xy, first=0, last=None):
    """Lowest index of the least float32 squared distance over samples first..last."""
    samples = TABLE.points.numpy()[route, first : COUNT[route] if last is None else last + 1, :2]
    delta = np.asarray(xy, dtype=np.float32)[:, None, :] - samples
    return first + np.argmin(delta[..., 0] * delta[..., 0] + delta[..., 1] * delta[..., 1], axis=1)


def positions(route, rng, number=150, scatter=6.0):
    samples = TABLE.points.numpy()[route, : COUNT[route], :2]
    picked = rng.integers(0, COUNT[route], number)
    return picked, (samples[picked] + rng.normal(0.0, scatter, (number, 2))).astype(np.float32)


@pytest.mark.parametrize("route", range(5))
@pytest.mark.parametrize("scatter", [0.3, 6.0, 200.0])
def test_global_equals_brute_force(route, scatter):
    _, xy = positions(route, np.random.default_rng(route), scatter=scatter)
    np.testing.assert_array_equal(run_global(route, xy), brute(route, xy))


def test_global_far_off_the_map():
    xy = [(1e4, -1e4), (-3e3, 5.0), (9e3, -28.0), (30.0, 4e3), (0.0, 0.0)]
    for route in range(5):
        np.testing.assert_array_equal(run_global(route, xy), brute(route, xy))


def test_walking_downhill_is_limited_by_curvature():
    """0.5 R less the window of 10.5 m; 0 on a route too short to have a curvature."""
    reach = TABLE.reach.numpy()
    assert reach[2] == pytest.approx(0.5 * 40.0 - 10.5, abs=0.01)
    assert reach[3] == 0.0
    assert 70.0 < reach[1] < 100.0 == reach[0]


@pytest.mark.parametrize("scatter", [0.3, 6.0, 40.0])
@pytest.mark.parametrize("route", range(5))
def test_local_equals_brute_force_over_the_window(route, scatter):
    rng = np.random.default_rng(10 + route)
    picked, xy = positions(route, rng, number=600, scatter=scatter)
    guess = picked + rng.integers(-30, 31, len(picked))
    centre = np.clip(guess, 0, COUNT[route] - 1)
    expected = [
        brute(route, xy[i : i + 1], max(c - PROJECTION_WINDOW, 0), min(c + PROJECTION_WINDOW, COUNT[route] - 1))[0]
        for i, c in enumerate(centre)
    ]
    np.testing.assert_array_equal(run_local(route, xy, guess), expected)


def test_local_stays_within_the_window_where_global_does_not():
    # The circle's start and end touch: from the start's side the window must not see the end.
    xy = TABLE.points.numpy()[2, COUNT[2] - 1, :2][None]
    assert run_global(2, xy)[0] == COUNT[2] - 1
    assert run_local(2, xy, 5)[0] <= 5 + PROJECTION_WINDOW
    assert run_local(0, [(0.0, -26.25)], 0)[0] == PROJECTION_WINDOW
    assert run_local(0, [(0.0, -26.25)], 0, window=7)[0] == 7


def test_ties_take_the_lowest_index():
    between = [(-300.0 + 0.5 * i + 0.25, -26.25) for i in (0, 31, 32, 600, 5119)]
    expected = [0, 31, 32, 600, 5119]
    assert run_global(0, between).tolist() == expected
    assert run_local(0, between, expected).tolist() == expected
    assert run_local(0, between, np.array(expected) + 1).tolist() == expected
    assert run_global(2, [(0.0, 0.0)]).tolist() == brute(2, [(0.0, 0.0)]).tolist()


def test_ends_of_the_route():
    assert run_global(0, [(-900.0, 0.0), (5000.0, 0.0)]).tolist() == [0, 5120]
    assert run_local(0, [(-900.0, 0.0), (5000.0, 0.0)], [3, 5118]).tolist() == [0, 5120]
    assert run_local(0, [(-300.0, -26.25), (2260.0, -26.25)], [-50, 99_999]).tolist() == [0, 5120]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_positions_keep_an_index_of_the_route(bad):
    assert run_local(0, [(bad, 0.0), (0.0, bad)], [77, 99_999]).tolist() == [77, 5120]
    assert run_global(0, [(bad, 0.0), (0.0, bad)]).tolist() == [0, 0]


WORLDS, VEHICLES, ROUTES = 4, 3, 2


def body_poses(rng):
    pose = np.zeros((WORLDS * VEHICLES, 7), dtype=np.float32)
    pose[:, 0] = rng.uniform(-250.0, 250.0, len(pose))
    pose[:, 1] = rng.uniform(-31.0, -25.0, len(pose))
    pose[:, 2], pose[:, 6] = 0.6, 1.0
    return pose


def kernel_inputs(pose, mask, index, begin):
    return [
        wp.array(pose, dtype=wp.transform, device="cpu"),
        VEHICLES,
        ROUTES,
        TABLE.points,
        TABLE.count,
        mask,
        index,
        begin,
    ]


def following_inputs(pose, stepping, index, begin):
    inputs = kernel_inputs(pose, stepping, index, begin)
    return [*inputs[:5], TABLE.reach, *inputs[5:]]


def nearest(pose):
    xy = pose[:, :2]
    return np.stack([brute(r, xy) for r in range(ROUTES)], axis=1).reshape(WORLDS, VEHICLES, ROUTES)


def test_reset_worlds_are_projected_globally_and_others_kept():
    pose = body_poses(np.random.default_rng(0))
    index = wp.full((WORLDS, VEHICLES, ROUTES), -1, dtype=int, device="cpu")
    mask = np.array([True, False, True, True])
    inputs = kernel_inputs(pose, wp.array(mask, dtype=wp.bool, device="cpu"), index, 0)
    wp.launch(project_to_routes_global, dim=WORLDS, inputs=inputs, device="cpu")
    np.testing.assert_array_equal(index.numpy()[mask], nearest(pose)[mask])
    assert (index.numpy()[1] == -1).all()


def test_stepping_worlds_follow_their_vehicles():
    pose = body_poses(np.random.default_rng(1))
    start = nearest(pose).astype(np.int32)
    index = wp.array(start, dtype=int, device="cpu")
    stepping = np.array([1, 0, 1, 1], dtype=np.int8)
    for _ in range(5):
        pose[:, 0] += 7.3
        inputs = following_inputs(pose, wp.array(stepping, dtype=wp.int8, device="cpu"), index, 0)
        wp.launch(project_to_routes, dim=WORLDS, inputs=inputs, device="cpu")
    moving = stepping == 1
    np.testing.assert_array_equal(index.numpy()[moving], nearest(pose)[moving])
    np.testing.assert_array_equal(index.numpy()[1], start[1])


def test_shards_of_worlds_give_the_same_indices():
    pose = body_poses(np.random.default_rng(2))
    pose[5, 0] = np.nan
    ones = wp.ones(WORLDS, dtype=wp.int8, device="cpu")
    whole, parts = (wp.full((WORLDS, VEHICLES, ROUTES), 600, dtype=int, device="cpu") for _ in range(2))
    wp.launch(project_to_routes, dim=WORLDS, inputs=following_inputs(pose, ones, whole, 0), device="cpu")
    for begin, dim in ((3, 1), (0, 3)):
        wp.launch(project_to_routes, dim=dim, inputs=following_inputs(pose, ones, parts, begin), device="cpu")
    np.testing.assert_array_equal(whole.numpy(), parts.numpy())
    assert (whole.numpy()[1, 2] == 600).all()
