"""Every channel against a value worked out by hand on a hand-made scene: a swapped channel fails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from observation.worlds import Scene, arc_route, plane_terrain, quaternion, rotation, straight_route

from sf3d_envs.observation import ObservationSpec
from sf3d_envs.observation.view import Observer
from sf3d_envs.terrain.friction import Disc

SPEC = ObservationSpec(preview=True)
RADIUS = 400.0
EGO = 4
SAMPLE = 60  # arc length 30 m, route heading 0.075
YAW = 0.125
# Ego-frame position, relative velocity and relative yaw of the eleven others, in order of distance.
NEIGHBOURS = {
    7: (3.0, 0.0, 1.0, -0.1, 0.1),
    0: (0.0, 4.0, 2.0, -0.2, 0.2),
    3: (-5.0, 0.5, 3.0, -0.3, 0.3),
    11: (6.0, -1.0, 4.0, -0.4, -0.4),
    1: (7.0, 1.0, 5.0, -0.5, 0.5),
    9: (-8.0, 2.0, 6.0, -0.6, 0.6),
    2: (9.0, -2.0, -7.0, -0.7, -0.7),
    10: (10.0, 3.0, 8.0, -0.8, 2.5),
    5: (20.0, 0.0, 0.0, 0.0, 0.0),
    6: (30.0, 0.0, 0.0, 0.0, 0.0),
    8: (40.0, 0.0, 0.0, 0.0, 0.0),
}


def hand_made_scene() -> Scene:
    route = arc_route(RADIUS, 200.0)
    points = [route[SAMPLE + 2 * ahead] for ahead in (0, 8, 16, 24, 32, 40)]
    discs = tuple(Disc(x=p[0], y=p[1], radius=1.0, friction=0.2 + 0.1 * k) for k, p in enumerate(points))
    scene = Scene(1, 12, [straight_route(-26.25), route], [plane_terrain(0.05, 0.02, discs)])
    scene.own_route[EGO] = 1
    x, y, heading, _ = route[SAMPLE]
    x += 0.1 * math.cos(heading) - 0.7 * math.sin(heading)
    y += 0.1 * math.sin(heading) + 0.7 * math.cos(heading)
    body = rotation(YAW, 0.1, -0.05)
    velocity, rates = body @ (8.0, 0.5, 0.1), body @ (0.1, 0.2, 0.3)
    scene.body_q[0, EGO] = (x, y, 2.0, *quaternion(YAW, 0.1, -0.05))
    scene.body_qd[0, EGO] = (*velocity, *rates)
    ego = rotation(YAW)
    for v, (dx, dy, dvx, dvy, turn) in NEIGHBOURS.items():
        place = ego @ (dx, dy, 0.0) + (x, y, 2.0)
        scene.body_q[0, v] = (*place, *quaternion(YAW + turn))
        scene.body_qd[0, v, :2] = (ego @ (dvx, dvy, 0.0))[:2] + velocity[:2]
    scene.wheel_spin[0, EGO] = (99.0, 77.0, 27.0, 29.0)
    scene.steer_angle[0, EGO] = 0.15
    scene.forward_accel[0, EGO] = -1.7
    scene.command[0, EGO] = (2.2, -0.35)
    return scene


def expected_channels() -> dict[str, float]:
    """Unscaled values, from the numbers of the scene."""
    arc = 30.1
    value = {
        "ego.speed_long": 8.0,
        "ego.speed_lat": 0.5,
        "ego.yaw_rate": 0.3,
        "ego.accel_long": -1.7,
        "ego.roll": -0.05,
        "ego.pitch": 0.1,
        "ego.steering_angle": 0.15,
        "ego.previous_acceleration": 2.2,
        "ego.previous_steering": -0.35,
        "ego.desired_speed": 17.0,
        "ego.driven_slip": (0.32 * 28.0 - 8.0) / 8.0,
        "ego.valid": 1.0,
        "route.lateral_offset": 0.7,
        "route.heading_sin": math.sin(0.05),
        "route.heading_cos": math.cos(0.05),
        "route.curvature": 1.0 / RADIUS,
        "route.distance_merge_start": RADIUS * math.asin(50.0 / RADIUS) - arc,
        "route.distance_merge_end": RADIUS * math.asin(110.0 / RADIUS) - arc,
        "route.distance_counting_line": RADIUS * math.asin(170.0 / RADIUS) - arc,
        "route.owes_merge": 1.0,
    }
    for k, ahead in enumerate((0, 8, 16, 24, 32, 40)):
        # Frame of the projected sample: the route is a circle, the vehicle sits at (0.1, 0.7), turned by 0.05.
        turn = ahead / RADIUS
        px, py = RADIUS * math.sin(turn) - 0.1, RADIUS * (1.0 - math.cos(turn)) - 0.7
        value[f"route.preview_lateral_{ahead:02d}"] = -math.sin(0.05) * px + math.cos(0.05) * py
        value[f"route.preview_heading_{ahead:02d}"] = turn - 0.05
        value[f"preview.friction_{ahead:02d}"] = 0.2 + 0.1 * k
        value[f"preview.grade_{ahead:02d}"] = 0.05 * math.cos(0.075 + turn) + 0.02 * math.sin(0.075 + turn)
    for slot, (dx, dy, dvx, dvy, turn) in enumerate(list(NEIGHBOURS.values())[:8]):
        value[f"traffic.{slot}.present"] = 1.0
        value[f"traffic.{slot}.dx"] = dx
        value[f"traffic.{slot}.dy"] = dy
        value[f"traffic.{slot}.dvx"] = dvx
        value[f"traffic.{slot}.dvy"] = dvy
        value[f"traffic.{slot}.heading_sin"] = math.sin(turn)
        value[f"traffic.{slot}.heading_cos"] = math.cos(turn)
    value |= {f"planner.{index:02d}": 0.0 for index in range(24)}
    return value


@pytest.fixture(scope="module")
def row() -> np.ndarray:
    return hand_made_scene().view().observation(preview=True)[0, EGO].numpy().copy()


def test_hand_made_scene_names_every_channel():
    assert set(expected_channels()) == set(SPEC.names)


@pytest.mark.parametrize("name", SPEC.names)
def test_channel_has_its_hand_computed_value(name, row):
    index = SPEC[name]
    assert row[index] == pytest.approx(expected_channels()[name] / SPEC.scales[index], abs=2e-5)


def test_swapping_two_neighbouring_channels_would_be_seen():
    expected = expected_channels()
    scaled = [expected[name] / scale for name, scale in zip(SPEC.names, SPEC.scales, strict=True)]
    outside = [i for i in range(SPEC.size - 1) if not SPEC.names[i].startswith("planner")]
    same = [SPEC.names[i] for i in outside if abs(scaled[i] - scaled[i + 1]) < 1e-4]
    assert same == []


def test_values_are_clipped_and_never_non_finite():
    scene = hand_made_scene()
    scene.body_qd[0, EGO, :3] = 1e6
    scene.forward_accel[0, EGO] = np.nan
    scene.steer_angle[0, EGO] = -np.inf
    obs = scene.view().observation()[0, EGO].numpy()
    assert np.isfinite(obs).all() and np.abs(obs).max() == 10.0
    assert obs[SPEC["ego.accel_long"]] == 0.0
    assert obs[SPEC["traffic.0.dvx"]] == -10.0


def test_ties_go_to_the_lower_index_and_empty_slots_are_zero():
    scene = Scene(1, 4)
    for v, (x, y) in enumerate(((0.0, 5.0), (0.0, 0.0), (5.0, 0.0), (-3.0, 4.0))):
        scene.put(0, v, x, y)
    obs = scene.view().observation()[0, 1].numpy()
    dx = [50.0 * obs[SPEC[f"traffic.{slot}.dx"]] for slot in range(3)]
    assert dx == pytest.approx([0.0, 5.0, -3.0], abs=1e-5)
    assert not obs[SPEC["traffic.3.present"] : SPEC.slice("traffic").stop].any()


@pytest.mark.parametrize(
    ("y", "yaw", "owes"),
    [(-26.25, 0.0, 0.0), (-27.11, 0.0, 0.0), (-27.12, 0.0, 1.0), (-27.0, 0.06, 1.0), (-25.38, 0.0, 1.0)],
)
def test_a_merge_is_owed_until_the_footprint_is_in_the_open_lane(y, yaw, owes):
    scene = Scene(1, 2)
    scene.own_route[:] = (1, 0)
    scene.put(0, 0, 80.0, y, yaw)
    scene.put(0, 1, 60.0, -29.75)
    obs = scene.view().observation()[0].numpy()
    assert obs[0, SPEC["route.owes_merge"]] == owes
    assert (obs[0, SPEC["route.distance_merge_end"]] > 0.0) == bool(owes)
    assert (obs[0, SPEC["route.distance_merge_start"]] < 0.0) == bool(owes)
    assert not obs[1, SPEC["route.distance_merge_start"] : SPEC["route.distance_counting_line"]].any()
    assert obs[1, SPEC["route.distance_counting_line"]] == pytest.approx(1.1, abs=1e-5)


def test_route_points_stop_at_the_end_of_the_route():
    scene = Scene(1, 1, [straight_route(-26.25, 0.0, 100.0)])
    scene.put(0, 0, 90.0, -26.25, 0.1)
    obs = scene.view().observation()[0, 0].numpy()
    lateral = [10.0 * obs[SPEC[f"route.preview_lateral_{ahead:02d}"]] for ahead in (8, 16, 40)]
    assert lateral == pytest.approx([-8.0 * math.sin(0.1), -10.0 * math.sin(0.1), -10.0 * math.sin(0.1)], abs=1e-5)


def test_rows_follow_their_vehicles_and_are_kept_or_zeroed_on_request():
    scene = hand_made_scene()
    view = scene.view()
    everyone = view.observation(preview=True).clone()
    observer = Observer(view, [EGO, 2], preview=True)
    observer.tensor.fill_(5.0)
    observer.row_active.numpy()[0, 1] = 2
    observer.write()
    assert observer.tensor.shape == (1, 2, 124)
    assert (observer.tensor[0, 0] == everyone[0, EGO]).all()
    assert (observer.tensor[0, 1] == 5.0).all()
    observer.row_active.numpy()[0, 1] = 0
    observer.write()
    assert not observer.tensor[0, 1].any()
