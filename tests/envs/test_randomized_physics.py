"""What randomized parameters and delays do to a vehicle, against closed forms and shifted actions."""

import numpy as np
import pytest
import torch

from sf3d_envs import TorchEnv, VehicleParams

CAR = VehicleParams()
GRAVITY = 9.81


def make(worlds=2, **randomization):
    return TorchEnv(worlds, decision_hz=60, autoreset_mode="Disabled", randomization=randomization or None)


def hold(env, acceleration, steering, steps):
    """Hold one action in all rows; returns body positions, velocities and yaw rates of before and after."""
    action = torch.tensor([acceleration, steering]).expand(env.num_worlds, 12, 2).contiguous()
    for _ in range(steps):
        env.step(action)


def state(env):
    """Position [W, 12, 3], forward and left speed and yaw rate [W, 12, 3] of vehicles that stay nearly upright."""
    q = env.view.body_q.numpy().reshape(env.num_worlds, 12, 7).astype(np.float64)
    qd = env.view.body_qd.numpy().reshape(env.num_worlds, 12, 6).astype(np.float64)
    yaw = 2 * np.arctan2(q[..., 5], q[..., 6])
    forward = qd[..., 0] * np.cos(yaw) + qd[..., 1] * np.sin(yaw)
    left = -qd[..., 0] * np.sin(yaw) + qd[..., 1] * np.cos(yaw)
    return q[..., :3], np.stack([forward, left, qd[..., 5]], axis=-1)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.6])
def test_mass_loads_the_wheels_and_compresses_the_springs(factor):
    env = make(mass=(factor, factor))
    env.reset(seed=0)
    hold(env, 0.0, 0.0, 60)
    load = env.sim.wheel_load.numpy().sum(axis=-1)
    assert load == pytest.approx(factor * CAR.mass * GRAVITY, rel=1e-3)
    compression = env.sim.wheel_compression.numpy().mean(axis=-1)
    assert compression == pytest.approx(factor * CAR.mass * GRAVITY / 4 / CAR.suspension_stiffness, rel=2e-3)
    env.close()


@pytest.mark.parametrize("factor", [1.0, 1.3, 1.8])
def test_full_throttle_follows_the_mass(factor):
    """a = T_max/R / (f·m + 4J/R²), less drag, over a second once the tyres and springs have settled."""
    env = make(mass=(factor, factor))
    env.reset(options={"scenario_seed": 100001})
    hold(env, 5.0, 0.0, 20)
    _, before = state(env)
    hold(env, 5.0, 0.0, 30)
    _, after = state(env)
    v = 0.5 * (before + after)[..., 0]
    inertial = factor * CAR.mass + 4 * CAR.wheel_inertia / CAR.wheel_radius**2
    drive = np.minimum(CAR.max_drive_torque, CAR.max_power / (v / CAR.wheel_radius)) / CAR.wheel_radius
    expected = (drive - CAR.drag * v**2) / inertial
    # The power limit bends the curve within the half second, and the driven wheels slip by a few per cent.
    assert (after - before)[..., 0] / 0.5 == pytest.approx(expected, rel=0.02)
    env.close()


@pytest.mark.parametrize("factor", [0.25, 0.5])
def test_braking_distance_follows_the_grip(factor):
    """Full brake on dry road: v²/(2·f·μ·g), drag being small at these speeds."""
    env = make(grip=(factor, factor))
    env.reset(options={"scenario_seed": 100001})
    start, before = state(env)
    hold(env, -8.0, 0.0, 360)
    end, after = state(env)
    assert (env.task_numpy()["event"] == 0).all()
    assert np.abs(after[..., 0]).max() < 0.05
    v = before[..., 0]
    distance = (end - start)[..., 0]
    # The wheels need a few hundredths of a second to lock: rel. to v, up to 0.02 s.
    assert (np.abs(distance - v**2 / (2 * factor * GRAVITY)) < 0.02 * v + 0.02 * distance).all()
    env.close()


def rear_slip_angles(factor):
    """Measured and expected slip angle of the rear axle [rad] in a steady turn, of faster vehicles without an event."""
    env = make(cornering_stiffness=(factor, factor))
    env.reset(options={"scenario_seed": 100001})
    hold(env, 0.0, 0.15, 60)
    samples = []
    for _ in range(12):
        hold(env, 0.0, 0.15, 1)
        samples.append(state(env)[1])
    forward, left, rate = np.moveaxis(np.mean(samples, axis=0), -1, 0)
    # Slower cars turn with slip angles of a quarter degree and less, where the turn's unsteadiness shows.
    alive = (env.task_numpy()["event"] == 0) & (forward > 4.5)
    env.close()
    slip = -(left - 0.5 * CAR.wheelbase * rate) / forward
    expected = 0.5 * CAR.mass * forward * rate / (2 * factor * CAR.tire_cornering_stiffness_rear)
    return slip, expected, alive


def test_cornering_stiffness_sets_the_slip_angles():
    """Half the mass times the lateral acceleration over the rear axle's stiffness.

    Twice and half the stiffness are compared, so that what does not depend on it (the body's roll and pitch) drops out.
    """
    (soft, expected_soft, a), (stiff, expected_stiff, b) = (rear_slip_angles(factor) for factor in (0.5, 2.0))
    alive = a & b
    assert alive.sum() >= 12
    change = (expected_soft - expected_stiff)[alive]
    assert change.min() > 0.005
    # The turn is not quite steady: the cars coast and lose some speed.
    assert (soft - stiff)[alive] == pytest.approx(change, rel=0.04)


def driven_slip_speeds(factor):
    """Slip speed R·ω - v of the rear wheels [m/s] at a request of 3 m/s²."""
    env = make(longitudinal_stiffness=(factor, factor))
    env.reset(options={"scenario_seed": 100001})
    hold(env, 3.0, 0.0, 45)
    _, now = state(env)
    wheels = env.sim.wheel_spin.numpy().astype(np.float64)
    env.close()
    return CAR.wheel_radius * wheels[..., 2:].mean(axis=-1) - now[..., 0]


def test_longitudinal_stiffness_sets_the_slip():
    """A driving force F per rear wheel needs a slip speed F/k_x; again soft against stiff."""
    torque = 0.5 * 3.0 / CAR.throttle_accel * CAR.max_drive_torque
    # A part of the torque spins the wheel up, at the 2.91 m/s² that the car reaches.
    force = torque / CAR.wheel_radius - CAR.wheel_inertia * 2.91 / CAR.wheel_radius**2
    expected = force / CAR.tire_longitudinal_stiffness * (1 / 0.5 - 1 / 2.0)
    assert driven_slip_speeds(0.5) - driven_slip_speeds(2.0) == pytest.approx(expected, rel=0.02)


def random_actions(steps, worlds, seed=0):
    generator = np.random.default_rng(seed)
    actions = generator.uniform([-8, -0.3], [5, 0.3], (steps, worlds, 12, 2))
    return torch.from_numpy(actions.astype(np.float32))


def physics(env):
    return [a.numpy().copy() for a in (env.sim.body_q, env.sim.body_qd, env.sim.wheel_spin, env.sim.steer_angle)]


@pytest.mark.parametrize("delay", [1, 3, 11])
def test_delayed_worlds_equal_undelayed_worlds_with_shifted_actions(delay):
    """Bit for bit, control step by control step, past events and their full brake."""
    steps, worlds = 240, 3
    actions = random_actions(steps, worlds)
    shifted = torch.cat([torch.zeros(delay, worlds, 12, 2), actions[:-delay]])
    plain, delayed = make(worlds), make(worlds, action_delay=(delay, delay))
    for env in (plain, delayed):
        env.reset(seed=4)
    previous = [plain.observation_spec["ego.previous_acceleration"], plain.observation_spec["ego.previous_steering"]]
    others = [k for k in range(plain.observation_spec.size) if k not in previous]
    for t in range(steps):
        expected, _, ended, *_ = plain.step(shifted[t])
        obs, _, ended_too, *_ = delayed.step(actions[t])
        assert all(np.array_equal(a, b) for a, b in zip(physics(plain), physics(delayed), strict=True)), t
        assert torch.equal(obs[..., others], expected[..., others])
        assert torch.equal(ended, ended_too)
        active = obs.abs().sum(dim=-1) > 0
        # The channels report what was asked for, not what the vehicle does.
        live = active & (delayed._tensors["event"] == 0)
        assert torch.equal(obs[..., previous][live], (actions[t] / torch.tensor([4.0, 1.0]))[live])
    assert (plain.task_numpy()["event"] != 0).any()
    plain.close()
    delayed.close()


def test_delay_counts_control_steps_within_slower_decisions():
    """At 10 decisions per second a delay of four control steps moves an action by four sixtieths of a second."""
    delay, decisions = 4, 20
    actions = random_actions(decisions, 2, seed=1)
    plain = make(2)
    delayed = TorchEnv(2, decision_hz=10, autoreset_mode="Disabled", randomization={"action_delay": (delay, delay)})
    for env in (plain, delayed):
        env.reset(seed=4)
    held = torch.cat([torch.zeros(delay, 2, 12, 2), actions.repeat_interleave(6, dim=0)])
    for t in range(decisions):
        delayed.step(actions[t])
        for k in range(6):
            plain.step(held[6 * t + k])
        assert all(np.array_equal(a, b) for a, b in zip(physics(plain), physics(delayed), strict=True)), t
    plain.close()
    delayed.close()


def test_each_world_has_its_own_delay_and_a_reset_forgets_the_past():
    env = make(40, action_delay=(0, 5))
    for seed in (0, 1):
        env.reset(seed=seed)
        delay = env.randomization["action_delay"].numpy().copy()
        assert set(delay) == set(range(6))
        action = torch.tensor([2.0, 0.1]).expand(40, 12, 2).contiguous()
        for t in range(8):
            env.step(action)
            applied = env.sim.command.numpy()
            arrived = np.where(delay <= t, 1.0, 0.0)[:, None]
            assert np.array_equal(applied[..., 0], np.broadcast_to(2.0 * arrived, (40, 12)))
            assert np.array_equal(applied[..., 1], np.broadcast_to(np.float32(0.1) * arrived, (40, 12)))
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_autoreset_forgets_the_past(mode):
    """After the reset the requests of the old episode never arrive."""
    env = TorchEnv(3, decision_hz=60, horizon_s=0.5, autoreset_mode=mode, randomization={"action_delay": (6, 6)})
    obs, _ = env.reset(seed=0)
    action = torch.tensor([3.0, 0.2]).expand(3, 12, 2).contiguous()
    seen = 0
    for _ in range(100):
        before = env.view.step.numpy().copy()
        obs, *_ = env.step(action)
        after = env.view.step.numpy()
        command = env.sim.command.numpy()
        if after[0] == 0:
            assert (obs[..., env.observation_spec["ego.previous_acceleration"]] == 0.0).all()
            assert (command == 0.0).all()
            seen += 1
        elif before[0] < 6:
            assert (command == 0.0).all()
        else:
            assert (command[..., 0] == 3.0).all()
    assert seen >= 2
    env.close()


def test_traffic_and_the_brake_after_an_event_are_not_delayed():
    commands = []
    for randomization in (None, {"action_delay": (9, 9)}):
        env = TorchEnv(2, control="ego", ego=3, decision_hz=60, autoreset_mode="Disabled", randomization=randomization)
        env.reset(options={"scenario_seed": 100003})
        found = []
        for _ in range(5):
            env.step(torch.tensor([1.0, 0.0]).expand(2, 1, 2).contiguous())
            found.append(env.sim.command.numpy().copy())
        commands.append(np.array(found))
        env.close()
    others = [v for v in range(12) if v != 3]
    assert np.array_equal(commands[0][0][:, others], commands[1][0][:, others])
    assert (np.abs(commands[1][:, :, others, 0]) > 0).any()
    assert (commands[0][:, :, 3, 0] == 1.0).all() and (commands[1][:, :, 3] == 0.0).all()

    env = make(2, action_delay=(9, 9))
    env.reset(seed=0)
    action = torch.tensor([2.0, 0.5]).expand(2, 12, 2).contiguous()
    for _ in range(200):
        event = env.task_numpy()["event"] != 0
        env.step(action)
        stepped = env.view.stepping.numpy() != 0
        braking = env.sim.command.numpy()[..., 0] == -8.0
        assert np.array_equal(braking[stepped], event[stepped])
    assert event.any()
    env.close()
