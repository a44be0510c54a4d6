"""What the command modes do: closed forms, and equality with the driver's mode where they mean the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sf3d_envs import CommandMode, Simulator, VehicleParams
from sf3d_envs.terrain import plane

CAR = VehicleParams()
DT = 1.0 / 240.0
REST = CAR.rest_height
UP = torch.tensor([0.0, 0.0, 0.0, 1.0])


def cars(worlds: int, *, speed: float = 0.0, friction: float = 1.0, slope: float = 0.0, **options) -> Simulator:
    sim = Simulator(worlds, [plane(friction, slope_x=slope)], num_vehicles=1, threads=1, **options)
    sim.place(np.ones(worlds, dtype=bool), [0.0, 0.0, REST], speed=speed)
    return sim


def fly(sim: Simulator) -> None:
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 60.0]), UP)


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
@pytest.mark.parametrize("request_", [3.0, -4.0, 0.0])
def test_pedals_are_the_drivers_pedals(solver: str, request_: float) -> None:
    """Throttle a/a_thr and brake -a/8 with equal steering: the same bits."""
    driver, pedals = (cars(1, speed=12.0, solver=solver) for _ in range(2))
    a = np.float32(request_)
    throttle = np.clip(a * np.float32(1.0 / CAR.throttle_accel), 0.0, 1.0)
    brake = np.clip(-a * np.float32(1.0 / CAR.brake_accel_scale), 0.0, 1.0)
    driver.commands.driver(torch.tensor([a, 0.1]))
    pedals.commands.pedals(torch.tensor([throttle, brake, 0.1], dtype=torch.float32))
    for sim in (driver, pedals):
        sim.control_step(120)
    assert torch.equal(driver.state.root_state, pedals.state.root_state)
    assert torch.equal(driver.state.wheel_spin, pedals.state.wheel_spin)
    assert pedals.state.command_mode.item() == CommandMode.PEDALS


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_the_drivers_torques_written_by_hand(solver: str) -> None:
    """Half the drive torque on each rear wheel, below the power limit and straight: the same bits as the driver."""
    driver, torque = (cars(1, speed=3.0, solver=solver) for _ in range(2))
    driver.commands.pedals(torch.tensor([0.4, 0.0, 0.0]))
    half = 0.5 * (np.float32(0.4) * np.float32(CAR.max_drive_torque))
    torque.commands.wheel_torque(torch.tensor([0.0, 0.0, half, half], dtype=torch.float32), torch.zeros(()))
    for sim in (driver, torque):
        sim.control_step(60)
    assert torch.allclose(driver.state.root_state, torque.state.root_state, atol=1e-6)


def test_a_wheel_in_the_air_spins_by_its_torque() -> None:
    sim = cars(1)
    fly(sim)
    torque = torch.tensor([10.0, -20.0, 30.0, 0.0])
    sim.commands.wheel_torque(torque, torch.zeros(()))
    sim.control_step(6)
    assert torch.allclose(sim.state.wheel_spin[0, 0], torque / CAR.wheel_inertia * 24 * DT, rtol=1e-5)


def test_no_power_limit() -> None:
    """2,000 N·m at 100 rad/s is twice the car's power; a driver would get half of it."""
    sim = cars(2, speed=32.0)
    sim.commands.wheel_torque(torch.tensor([0.0, 0.0, 1000.0, 1000.0]), torch.zeros(()), worlds=0)
    sim.commands.pedals(torch.tensor([1.0, 0.0, 0.0]), worlds=1)
    sim.control_step(30)
    gained = sim.state.linear_velocity[:, 0, 0] - 32.0
    assert gained[0] == pytest.approx(0.5 * (2000.0 / CAR.wheel_radius - 0.39 * 32.0**2) / CAR.mass, rel=0.05)
    assert gained[0] > 1.7 * gained[1]


def test_torque_left_and_right_turns_the_car() -> None:
    """Yaw acceleration of a standing car: ΔF·t/2 of both axles over the inertia about z."""
    sim = cars(1)
    force = 500.0
    turn = torch.tensor([-1.0, 1.0, -1.0, 1.0]) * force * CAR.wheel_radius
    sim.commands.wheel_torque(turn, torch.zeros(()))
    sim.control_step(60)
    sim.commands.clear()
    assert sim.state.angular_velocity[0, 0, 2] > 0.0
    rolling = cars(1, speed=10.0)
    rolling.commands.wheel_torque(turn, torch.zeros(()))
    before = rolling.state.angular_velocity[0, 0, 2].clone()
    rolling.control_step(3)
    moment = 4.0 * force * 0.5 * CAR.track
    gained = rolling.state.angular_velocity[0, 0, 2] - before
    # While slip builds up the wheels take a part of the torque, and the tyres resist the yaw.
    assert 0.5 < gained / (moment / CAR.inertia[2] * 3 / 60) < 1.0


def test_negative_torque_drives_backwards() -> None:
    sim = cars(1)
    sim.commands.wheel_torque(torch.full((4,), -200.0), torch.zeros(()))
    sim.control_step(60)
    expected = -4.0 * 200.0 / CAR.wheel_radius / (CAR.mass + 4.0 * CAR.wheel_inertia / CAR.wheel_radius**2)
    assert sim.state.linear_velocity[0, 0, 0] == pytest.approx(expected, rel=0.03)


def test_a_brake_holds_on_a_slope_and_never_reverses() -> None:
    sim = cars(2, slope=0.05)
    sim.commands.wheel_torque(torch.zeros(4), torch.zeros(()), torch.full((4,), 600.0), worlds=0)
    sim.commands.wheel_torque(torch.zeros(4), torch.zeros(()), worlds=1)
    sim.control_step(180)
    held, free = sim.state.linear_velocity[:, 0, 0]
    rolling = CAR.mass / (CAR.mass + 4.0 * CAR.wheel_inertia / CAR.wheel_radius**2)
    assert abs(held) < 0.03 and free == pytest.approx(-9.81 * 0.05 * 3.0 * rolling, rel=0.01)
    assert not sim.state.wheel_spin[0].any()


def test_the_steering_angle_is_approached_at_the_steering_rate() -> None:
    sim = cars(1, speed=20.0)
    sim.commands.wheel_torque(torch.zeros(4), torch.tensor(0.3))
    sim.control_step(6)
    assert sim.state.steer_angle.item() == pytest.approx(1.3 * 0.1, rel=1e-5)  # no reduction by speed
    assert sim.state.steer_rate.item() == pytest.approx(1.3, rel=1e-4)
    sim.commands.wheel_torque(torch.zeros(4), torch.tensor(2.0))
    sim.control_step(60)
    assert sim.state.steer_angle.item() == pytest.approx(CAR.max_steer)


def oscillator(kp: float, kd: float, target: float, time: np.ndarray) -> np.ndarray:
    """Angle of δ'' = kp (target - δ) - kd δ' from rest, by the matrix exponential."""
    from scipy.linalg import expm

    system = np.array([[0.0, 1.0, 0.0], [-kp, -kd, kp * target], [0.0, 0.0, 0.0]])
    return np.array([(expm(system * t) @ [0.0, 0.0, 1.0])[0] for t in time])


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
@pytest.mark.parametrize(("kp", "kd"), [(100.0, 20.0), (60.0, 4.0), (25.0, 30.0)])
def test_gains_steer_as_the_damped_oscillator(solver: str, kp: float, kd: float) -> None:
    sim = cars(1, solver=solver)
    sim.commands.steer_pd(torch.zeros(()), torch.tensor(0.1), torch.tensor([kp]), torch.tensor([kd]))
    found = []
    for _ in range(60):
        sim.control_step()
        found.append(sim.state.steer_angle.item())
    expected = oscillator(kp, kd, 0.1, np.arange(1, 61) / 60.0)
    assert np.abs(np.array(found) - expected).max() < 0.004  # backward Euler at 240 Hz


def test_gains_keep_to_rate_and_angle_and_never_blow_up() -> None:
    sim = cars(3)
    kp, kd = torch.tensor([[1e6], [1e4], [1e8]]), torch.tensor([[0.0], [1.0], [1e6]])
    sim.commands.steer_pd(torch.zeros(()), torch.tensor(5.0), kp, kd)
    angles = []
    for _ in range(120):
        sim.control_step()
        angles.append(sim.state.steer_angle[:, 0].clone())
        assert sim.state.steer_rate.abs().max() <= 1.3 * (1 + 1e-4)
    table = torch.stack(angles)
    assert table.isfinite().all() and (table.abs() <= CAR.max_steer).all()
    assert torch.allclose(table[-1, :2], torch.tensor(CAR.max_steer))


def test_gains_leave_the_pedals_to_the_request() -> None:
    driver, gains = (cars(1, speed=10.0) for _ in range(2))
    driver.commands.driver(torch.tensor([-3.0, 0.0]))
    gains.commands.steer_pd(torch.tensor(-3.0), torch.zeros(()), torch.ones(1), torch.ones(1))
    for sim in (driver, gains):
        sim.control_step(40)
    assert torch.equal(driver.state.root_state, gains.state.root_state)


def test_modes_of_a_batch_do_not_mix() -> None:
    """Four modes in one batch, and each alone: the same bits."""
    together = cars(4, speed=8.0)
    alone = [cars(1, speed=8.0) for _ in range(4)]
    gain = torch.ones(1)
    for w, sims in enumerate((together, one) for one in alone):
        for sim in sims:
            world = w if sim is together else 0
            if w == CommandMode.DRIVER:
                sim.commands.driver(torch.tensor([1.0, 0.2]), worlds=world)
            if w == CommandMode.PEDALS:
                sim.commands.pedals(torch.tensor([0.3, 0.0, -0.2]), worlds=world)
            if w == CommandMode.WHEEL_TORQUE:
                sim.commands.wheel_torque(torch.tensor([50.0, 0.0, 90.0, 20.0]), torch.tensor(0.05), worlds=world)
            if w == CommandMode.STEER_PD:
                sim.commands.steer_pd(torch.tensor(2.0), torch.tensor(0.1), 90.0 * gain, 9.0 * gain, worlds=world)
    for sim in (together, *alone):
        sim.control_step(90)
    for w, one in enumerate(alone):
        assert torch.equal(one.state.root_state[0], together.state.root_state[w])


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_a_wrench_accelerates_by_mass_and_inertia(solver: str) -> None:
    sim = cars(2, solver=solver)
    fly(sim)
    turn = torch.tensor(
        [0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4)], dtype=torch.float32
    )  # world frame: x is body -y
    sim.state.set_root_state(rotation=turn)
    force, torque = torch.tensor([1350.0, -2700.0, 675.0]), torch.tensor([210.0, 50.0, 230.0])
    sim.state.set_wrench(force, torque, worlds=1)
    sim.control_step()
    free, pushed = sim.state.root_state[:, 0, 7:]
    gained = pushed - free
    assert torch.allclose(gained[:3], force / CAR.mass / 60.0, rtol=1e-3)
    inertia = torch.tensor([CAR.inertia[1], CAR.inertia[0], CAR.inertia[2]])
    assert torch.allclose(gained[3:], torque / inertia / 60.0, rtol=2e-3)
    sim.control_step()
    assert torch.allclose((sim.state.root_state[1] - sim.state.root_state[0])[0, 7:10], gained[:3], atol=2e-4)


def test_a_zero_wrench_keeps_every_bit_and_others_are_untouched() -> None:
    plain, wrench = (cars(2, speed=9.0) for _ in range(2))
    for _ in range(20):
        wrench.state.set_wrench(torch.zeros(3), torch.zeros(3), worlds=0)
        wrench.state.set_wrench(torch.tensor([0.0, 900.0, 0.0]), worlds=1)
        plain.control_step(), wrench.control_step()
    assert torch.equal(plain.state.root_state[0], wrench.state.root_state[0])
    assert not torch.equal(plain.state.root_state[1], wrench.state.root_state[1])


@pytest.mark.parametrize("name", ["wrench_force", "wrench_torque", "drive_torque", "steer_target"])
def test_bad_numbers_written_in_place_are_a_fault_of_their_world(name: str) -> None:
    sim = cars(2, speed=5.0)
    sim.commands.wheel_torque(torch.zeros(4), torch.zeros(()))
    view = getattr(sim.state, name)
    view[0] = float("nan")
    sim.control_step(2)
    assert sim.state.root_state.isfinite().all() and sim.state.wheel_spin.isfinite().all()
    assert sim.state.nonfinite[1].item() == 0
    assert sim.state.linear_velocity[1, 0, 0] > 4.9
