"""IDM-17: the leader rule, both laws against float64, and rows that do not depend on their batch."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from observation.worlds import CAR, Scene, matrix, nearest_sample, random_scene

from sf3d_envs.agents import make_agent
from sf3d_envs.launches import LaunchList, Shards


def project(route: np.ndarray, index: int, place: np.ndarray) -> tuple[float, float]:
    """(arc length, lateral offset) of a point at a sample."""
    x, y, heading, _ = route[index]
    dx, dy = place - (x, y)
    return 0.5 * index + np.cos(heading) * dx + np.sin(heading) * dy, -np.sin(heading) * dx + np.cos(heading) * dy


def find_leader(scene: Scene, w: int, v: int) -> tuple[int, float]:
    """(vehicle or -1, arc length between the centres)."""
    r = scene.own_route[v]
    index = scene.route_index()[w, :, r]
    places = scene.body_q[w, :, :2].astype(np.float64)
    at = [project(scene.routes[r], index[j], places[j]) for j in range(scene.num_vehicles)]
    ahead = [(s - at[v][0], j) for j, (s, e) in enumerate(at) if j != v and 0 < s - at[v][0] <= 100 and abs(e) < 2.0]
    return (min(ahead)[1], min(ahead)[0]) if ahead else (-1, np.inf)


def drive64(scene: Scene, w: int, v: int) -> tuple[float, float]:
    """(requested acceleration, normalized steering) of one vehicle."""
    route = scene.routes[scene.own_route[v]]
    qd = scene.body_qd[w].astype(np.float64)
    m = matrix(scene.body_q[w, v, 3:])
    speed = max((m.T @ qd[v, :3])[0], 0.0)
    a_max, b = float(scene.accel_max[w, v]), float(scene.comfort_decel[w, v])
    request = 1 - (speed / 17.0) ** 4
    leader, distance = find_leader(scene, w, v)
    if leader >= 0:
        heading = route[scene.route_index()[w, leader, scene.own_route[v]], 2]
        closing = speed - (qd[leader, 0] * np.cos(heading) + qd[leader, 1] * np.sin(heading))
        follow = speed * float(scene.headway[w, v]) + speed * closing / (2 * np.sqrt(a_max * b))
        wanted = float(scene.min_gap[w, v]) + max(0.0, follow)
        request -= (wanted / max(distance - 4.25, 0.1)) ** 2

    yaw = np.arctan2(m[1, 0], m[0, 0])
    axle = scene.body_q[w, v, :2].astype(np.float64) + 1.3 * np.array([np.cos(yaw), np.sin(yaw)])
    index = nearest_sample(route, *axle)
    offset = project(route, index, axle)[1]
    error = (yaw - route[index, 2] + np.pi) % (2 * np.pi) - np.pi
    rate = (m.T @ qd[v, 3:])[2]
    angle = -error - np.arctan2(2.0 * offset, 1.0 + speed) - 0.1 * (rate - speed * route[index, 3])
    limit = CAR.max_steer / (1 + (np.linalg.norm(qd[v, :3]) / 22.0) ** 2)
    return float(np.clip(a_max * request, -6.0, a_max)), float(np.clip(angle / limit, -1.0, 1.0))


def act(scene: Scene, **parameters: float) -> np.ndarray:
    agent = make_agent("idm17", **parameters)
    view = scene.view()
    agent.bind(view)
    return agent.act(view).numpy().copy()


def follower(distance: float, lateral: float = 0.0, speed: float = 10.0, lead_speed: float = 10.0) -> float:
    """Acceleration request of a car behind another one on the open lane."""
    scene = Scene(1, 2)
    scene.put(0, 0, 0.0, -26.25, 0.0, speed)
    scene.put(0, 1, distance, -26.25 + lateral, 0.0, lead_speed)
    return float(act(scene)[0, 0, 0])


FREE = 1.5 * (1.0 - (10.0 / 17.0) ** 4)


def test_random_scenes_agree_with_float64():
    scene = random_scene(np.random.default_rng(21), 8)
    actions = act(scene)
    for w, v in np.ndindex(8, 12):
        assert actions[w, v] == pytest.approx(drive64(scene, w, v), abs=5e-4), (w, v, find_leader(scene, w, v))
    inside = actions[np.abs(actions[..., 1]) < 1.0]
    assert len(inside) > 20 and (inside[:, 0] > -6.0).sum() > 10


def test_following_matches_the_formula_by_hand():
    # s* = 2 + 10 * 1.3 + 10 * 4 / (2 sqrt(1.5 * 2)), gap = 30 - 4.25
    wanted = 2.0 + 13.0 + 40.0 / (2.0 * np.sqrt(3.0))
    assert follower(30.0, lead_speed=6.0) == pytest.approx(FREE - 1.5 * (wanted / 25.75) ** 2, abs=1e-4)


@pytest.mark.parametrize(
    ("distance", "lateral", "seen"),
    [
        (50.0, 1.999, True),
        (50.0, 2.001, False),
        (50.0, -2.001, False),
        (99.9, 0.0, True),
        (100.1, 0.0, False),
        (-5.0, 0.0, False),
        (0.2, 1.9, True),
    ],
)
def test_a_leader_is_ahead_near_the_route_and_within_sight(distance, lateral, seen):
    assert (follower(distance, lateral) < FREE - 1e-4) == seen


def test_the_lateral_limit_is_strict_and_the_nearest_leader_counts():
    scene = Scene(1, 3)
    scene.put(0, 0, 0.0, -26.0, 0.0, 10.0)
    scene.put(0, 1, 20.0, -24.25, 0.0, 10.0)  # exactly 2 m from the route
    scene.put(0, 2, 40.0, -26.25, 0.0, 10.0)
    assert act(scene)[0, 0, 0] == pytest.approx(FREE - 1.5 * (15.0 / 35.75) ** 2, abs=1e-4)


def test_equally_near_leaders_go_to_the_lower_index():
    scene = Scene(1, 3)
    scene.put(0, 2, 0.0, -26.25, 0.0, 10.0)
    scene.put(0, 0, 30.0, -26.75, 0.0, 4.0)
    scene.put(0, 1, 30.0, -25.75, 0.0, 14.0)
    slow = act(scene)[0, 2, 0]
    scene.put(0, 0, 30.0, -26.75, 0.0, 14.0)
    scene.put(0, 1, 30.0, -25.75, 0.0, 4.0)
    assert slow < -1.0 < act(scene)[0, 2, 0]


def test_a_leader_is_judged_on_the_own_route():
    scene = Scene(1, 2)
    scene.own_route[:] = (1, 0)
    scene.put(0, 0, 40.0, -29.75, 0.0, 10.0)
    scene.put(0, 1, 60.0, -26.25, 0.0, 10.0)  # abreast of the early merge: 3.4 m from it
    assert act(scene)[0, 0, 0] == pytest.approx(FREE, abs=1e-4)
    scene.put(0, 1, 100.0, -26.25, 0.0, 10.0)  # on the merge route's last part
    assert act(scene)[0, 0, 0] < FREE - 0.05


def test_requests_are_clipped():
    assert follower(4.0, speed=16.0, lead_speed=0.0) == -6.0
    scene = Scene(1, 1)
    scene.put(0, 0, 0.0, -26.25, 0.0, -3.0)
    assert act(scene)[0, 0, 0] == np.float32(1.5)  # backwards counts as standing


@pytest.mark.parametrize(
    ("y", "yaw", "sign"), [(-25.25, 0.0, -1), (-27.25, 0.0, 1), (-26.25, 0.2, -1), (-26.25, -0.2, 1)]
)
def test_steering_leads_back_to_the_route(y, yaw, sign):
    scene = Scene(1, 1)
    scene.put(0, 0, 0.0, y, yaw, 10.0)
    steering = act(scene)[0, 0, 1]
    assert np.sign(steering) == sign and abs(steering) <= 1.0


def test_steering_is_scaled_by_the_authority_at_speed():
    scene = Scene(1, 2)
    for v, speed in enumerate((5.0, 20.0)):
        scene.put(0, v, 100.0 * v, -26.25, 0.02, speed)
    offset = 1.3 * np.sin(0.02)
    expected = [
        -(0.02 + np.arctan2(2.0 * offset, 1.0 + speed)) / (0.6 / (1.0 + (speed / 22.0) ** 2)) for speed in (5.0, 20.0)
    ]
    assert act(scene)[0, :, 1] == pytest.approx(expected, abs=1e-4)


def test_rows_are_bitwise_independent_of_batch_and_place():
    scene = random_scene(np.random.default_rng(22), 9)
    whole = act(scene)
    for order in ([3, 1, 4, 0, 2], [2], [4, 4, 1]):
        assert act(scene.worlds(order)).tobytes() == whole[order].tobytes()
    view, agent = scene.view(), make_agent("idm17")
    agent.bind(view)
    shards = Shards(9, wp.get_device("cpu"), threads=2)
    launches = LaunchList(shards)
    agent.record(launches)
    launches.run()
    shards.close()
    assert agent.action.numpy().tobytes() == whole.tobytes()


def test_frozen_worlds_keep_their_last_action():
    scene = random_scene(np.random.default_rng(23), 3)
    view, agent = scene.view(), make_agent("idm17")
    agent.bind(view)
    before = agent.act(view).numpy().copy()
    view.body_qd.fill_(0.0)
    view.stepping.numpy()[1] = 0
    after = agent.act(view).numpy()
    assert (after[1] == before[1]).all()
    assert (after[[0, 2]] != before[[0, 2]]).any(axis=(1, 2)).all()


def test_parameters_reach_the_kernel():
    scene = Scene(1, 1)
    scene.put(0, 0, 0.0, -26.25, 0.0, 10.0)
    assert act(scene, desired_speed=10.0)[0, 0, 0] == pytest.approx(0.0, abs=1e-5)
    with pytest.raises(ValueError, match="min_acceleration must be negative, got 1"):
        make_agent("idm17", min_acceleration=1.0)
