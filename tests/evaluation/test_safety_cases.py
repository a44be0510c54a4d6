"""Safety measures of situations worked out by hand; no physics runs, vehicles are put where the case wants them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation.safety import SafetyProbe
from sf3d_envs.launches import LaunchList
from sf3d_envs.sim.vehicle import VehicleParams

OPEN_Y, LENGTH = -26.25, 4.25
FOLLOWER, LEADER, BESIDE = 5, 6, 0  # two of the open lane; vehicle 0 is on the merge route


class Stage:
    """One world whose vehicles stand 150 m apart, far from the case, until they are put somewhere."""

    def __init__(self, **kwargs):
        self.probe = SafetyProbe()
        self.env = env = TorchEnv(1, rules="scoring", decision_hz=60, probes=[self.probe], **kwargs)
        env.reset(options={"scenario_seed": 100000})
        self.q = np.zeros((12, 7), np.float32)
        self.q[:, 6] = 1.0
        self.q[:, 0] = 300.0 + 150.0 * np.arange(12)
        self.q[:, 1] = OPEN_Y
        self.q[:, 2] = 0.6454
        self.qd = np.zeros((12, 6), np.float32)
        self.load = np.full((1, 12, 4), 3300.0, np.float32)
        self.friction = np.ones((1, 12, 4), np.float32)
        self.compression = np.full((1, 12, 4), 0.09, np.float32)
        self.accel = np.zeros((1, 12), np.float32)
        self.command = np.zeros((1, 12, 2), np.float32)
        self.valid = np.ones((1, 12), np.int8)
        self.fault = np.zeros(1, np.int8)
        self.step = 0
        self.launches = LaunchList(env.sim.shards)
        self.probe.record(self.launches)

    def put(self, v, x, speed, y=OPEN_Y):
        self.q[v, :2] = x, y
        self.qd[v, 0] = speed
        return self

    def look(self, steps=1):
        """Let the probe measure control steps after which the world looks like this."""
        env, sim = self.env, self.env.sim
        index = np.empty((1, 12, 2), np.int32)
        for r, route in enumerate(env.routes.routes):
            for v in range(12):
                index[0, v, r] = np.argmin((route.x - self.q[v, 0]) ** 2 + (route.y - self.q[v, 1]) ** 2)
        env.view.route_index.assign(index)
        for array, value in (
            (env.view.body_q, self.q),
            (env.view.body_qd, self.qd),
            (env.view.command, self.command),
            (env.view.forward_accel, self.accel),
            (sim.wheel_load, self.load),
            (sim.wheel_friction, self.friction),
            (sim.wheel_compression, self.compression),
            (env.task.valid, self.valid),
            (env.task.fault, self.fault),
        ):
            array.assign(value)
        for _ in range(steps):
            self.step += 1
            env.task.step.assign(np.array([self.step], np.int32))
            self.launches.run()
        return self

    def found(self, name, v=FOLLOWER):
        return self.probe.result()[name][0, v]


@pytest.fixture
def stage():
    made = Stage()
    yield made
    made.env.close()


def behind(stage, gap, closing, speed=10.0):
    """The follower with a bumper gap [m] to a leader that is slower by ``closing`` [m/s]; no lateral acceleration."""
    stage.put(FOLLOWER, 0.0, speed).put(LEADER, gap + LENGTH, speed - closing)
    stage.look()
    return stage


def test_gap_of_10_m_closing_at_5_m_s(stage):
    behind(stage, gap=10.0, closing=5.0)
    assert stage.found("ttc_min") == pytest.approx(2.0, rel=1e-5)
    assert stage.found("drac_max") == pytest.approx(1.25, rel=1e-5)
    assert stage.found("need_ratio_max") == pytest.approx(1.25 / 9.81, rel=1e-5)
    assert stage.found("leader_steps") == 1
    assert stage.found("ttc_below_3s_steps") == 1
    assert stage.found("ttc_below_1_5s_steps") == 0
    assert stage.found("leader_steps", LEADER) == 0


@pytest.mark.parametrize("closing", [0.0, -3.0])
def test_a_gap_that_does_not_shrink_has_no_time_to_collision(stage, closing):
    behind(stage, gap=5.0, closing=closing)
    assert stage.found("leader_steps") == 1
    assert math.isinf(stage.found("ttc_min"))
    assert stage.found("drac_max") == 0.0


@pytest.mark.parametrize(
    ("gap", "closing", "below_1_5", "below_3", "high_drac"),
    [(15.2, 5.0, 0, 0, 0), (14.8, 5.0, 0, 1, 0), (7.6, 5.0, 0, 1, 0), (7.4, 5.0, 1, 1, 0), (3.7, 5.0, 1, 1, 1)],
)
def test_thresholds_count_steps(stage, gap, closing, below_1_5, below_3, high_drac):
    """DRAC is 25 / (2 gap): above 3.35 m/s² for gaps below 3.73 m."""
    behind(stage, gap, closing).look(2)
    assert stage.found("ttc_below_1_5s_steps") == 3 * below_1_5
    assert stage.found("ttc_below_3s_steps") == 3 * below_3
    assert stage.found("drac_above_limit_steps") == 3 * high_drac


def test_side_by_side_the_gap_is_idms_least_one(stage):
    behind(stage, gap=2.0 - LENGTH, closing=1.0)
    assert stage.found("ttc_min") == pytest.approx(0.1, rel=1e-4)
    assert stage.found("drac_max") == pytest.approx(5.0, rel=1e-4)


@pytest.mark.parametrize(("offset", "leads"), [(0.0, 1), (1.99, 1), (2.0, 0), (-2.0, 0), (-1.99, 1)])
def test_a_leader_is_strictly_nearer_than_2_m_to_the_own_route(stage, offset, leads):
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, 20.0, 5.0, y=OPEN_Y + offset).look()
    assert stage.found("leader_steps") == leads


@pytest.mark.parametrize(("ahead", "leads"), [(100.0, 1), (100.5, 0), (0.0, 0), (-10.0, 0)])
def test_a_leader_is_ahead_and_within_100_m(stage, ahead, leads):
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, ahead, 5.0).look()
    assert stage.found("leader_steps") == leads


def test_the_nearest_of_two_leads_and_an_invalid_vehicle_still_does(stage):
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, 30.0 + LENGTH, 0.0).put(7, 10.0 + LENGTH, 5.0)
    stage.valid[0, 7] = 0
    stage.look()
    assert stage.found("ttc_min") == pytest.approx(2.0, rel=1e-5)


def test_a_merging_vehicle_is_led_along_its_own_route(stage):
    """Past the merge both routes run in the open lane; before it, the open lane is 3.5 m beside the merge route."""
    stage.put(BESIDE, 115.0, 10.0).put(FOLLOWER, 125.0 + LENGTH, 5.0).look()
    assert stage.found("ttc_min", BESIDE) == pytest.approx(2.0, rel=1e-4)
    stage.put(BESIDE, 0.0, 10.0, y=-29.75).put(FOLLOWER, 14.0, 5.0).look()
    assert stage.found("leader_steps", BESIDE) == 1


def turn(stage, accel_lat):
    """A control step in which the follower gains lateral velocity; afterwards its route velocity is as before."""
    stage.qd[FOLLOWER, 1] += accel_lat / 60.0
    return stage.look()


@pytest.mark.parametrize(
    ("friction", "accel_lat", "capacity"),
    [(1.0, 0.0, 9.81), (0.5, 0.0, 4.905), (0.5, 3.0, math.sqrt(4.905**2 - 9.0)), (0.5, -4.0, math.sqrt(4.905**2 - 16))],
)
def test_capacity_is_what_lateral_tyre_use_leaves(stage, friction, accel_lat, capacity):
    stage.friction[:] = friction
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, 10.0 + LENGTH, 10.0).look()
    stage.qd[LEADER, 0] = 5.0
    turn(stage, accel_lat)
    assert stage.found("need_ratio_max") == pytest.approx(1.25 / capacity, rel=2e-4)
    assert stage.found("need_above_capacity_steps") == 0


def test_no_capacity_is_left_beyond_the_friction_limit(stage):
    stage.friction[:] = 0.5
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, 10.0 + LENGTH, 10.0).look()
    stage.qd[LEADER, 0] = 5.0
    turn(stage, 6.0)
    assert math.isinf(stage.found("need_ratio_max"))
    assert stage.found("need_above_capacity_steps") == 1


def test_friction_is_weighted_by_load(stage):
    """(3000·0.1 + 1000·0.5) / 4000 = 0.2 on each side: capacity 1.962 m/s², need 2.5."""
    stage.load[0, FOLLOWER] = 3000.0, 1000.0, 3000.0, 1000.0
    stage.friction[0, FOLLOWER] = 0.1, 0.5, 0.1, 0.5
    stage.put(FOLLOWER, 0.0, 10.0).put(LEADER, 5.0 + LENGTH, 10.0).look()
    stage.qd[LEADER, 0] = 5.0
    stage.look()
    assert stage.found("need_ratio_max") == pytest.approx(2.5 / 1.962, rel=1e-4)
    assert stage.found("need_above_capacity_steps") == 1


def test_capacity_holds_the_vehicles_grip():
    made = Stage(vehicle=VehicleParams(grip=0.8))
    behind(made, gap=10.0, closing=5.0)
    assert made.found("need_ratio_max") == pytest.approx(1.25 / (9.81 * 0.8), rel=1e-4)
    made.env.close()


def test_hard_braking_counts_steps_and_onsets(stage):
    for accel in (-2.9, -3.1, -4.0, 0.0, -3.0, -3.5, -3.6):
        stage.accel[:] = accel
        stage.look()
    assert stage.found("hard_brake_steps") == 4
    assert stage.found("hard_brake_onsets") == 2


def test_realized_and_requested_acceleration(stage):
    for realized, requested in ((1.0, 2.0), (-1.0, 1.0), (0.0, 0.0), (3.0, 5.0)):
        stage.accel[:] = realized
        stage.command[..., 0] = requested
        stage.look()
    assert stage.found("realized_accel_mean") == pytest.approx(0.75)
    assert stage.found("requested_accel_mean") == pytest.approx(2.0)
    assert stage.found("accel_error_rms") == pytest.approx(1.5)


def test_distance_is_speed_over_time(stage):
    stage.put(FOLLOWER, 0.0, 12.0).look(10)
    assert stage.found("valid_steps") == 10
    assert stage.found("distance") == pytest.approx(2.0, rel=1e-5)


def test_speed_at_a_mark_is_interpolated_and_read_once(stage):
    stage.put(FOLLOWER, 19.75, 10.0).look()
    stage.put(FOLLOWER, 20.25, 12.0).look()
    stage.put(FOLLOWER, 19.0, 5.0).look()
    stage.put(FOLLOWER, 21.0, 5.0).look()
    assert stage.found("speed_at_20m") == pytest.approx(11.0, rel=1e-6)
    assert math.isnan(stage.found("speed_at_40m"))
    stage.put(FOLLOWER, 40.0, 7.0).look()
    assert stage.found("speed_at_40m") == pytest.approx(7.0, rel=1e-6)


def test_a_vehicle_that_starts_beyond_a_mark_has_no_speed_there():
    made = Stage()
    start = made.env.view.scenario.start_x.numpy()[0]
    made.q[:, 0] = start
    made.look()
    made.q[:, 0] = np.maximum(start, 45.0)
    made.look()
    speed = made.probe.result()["speed_at_20m"][0]
    assert np.array_equal(np.isnan(speed), start >= 20.0)
    made.env.close()


def test_patch_contact_needs_a_wheel_that_touches(stage):
    stage.look()
    stage.compression[0, FOLLOWER, 2] = 0.0
    stage.friction[0, FOLLOWER, 2] = 0.0  # in the air
    stage.look()
    assert stage.found("patch_steps") == 0
    assert stage.found("patch_first_step") == -1
    stage.friction[0, FOLLOWER, 1] = 0.18
    stage.look(2)
    stage.friction[0, FOLLOWER] = 1.0
    stage.look()
    assert stage.found("patch_steps") == 2
    assert stage.found("patch_first_step") == 3


def test_nothing_counts_after_an_event_or_a_fault_of_the_world(stage):
    behind(stage, gap=10.0, closing=5.0)
    before = stage.probe.result()
    stage.valid[0, FOLLOWER] = 0
    behind(stage, gap=1.0, closing=9.0)
    after = stage.probe.result()
    assert all(np.array_equal(before[k][0, FOLLOWER], after[k][0, FOLLOWER], equal_nan=True) for k in before)
    assert stage.found("valid_steps", LEADER) == 2
    stage.fault[:] = 1
    stage.look()
    assert stage.found("valid_steps", LEADER) == 2
