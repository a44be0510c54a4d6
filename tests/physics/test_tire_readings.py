"""The readings of the last substep: forces, slip, contact points and normals, in float64 from the states around it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sf3d_envs import Simulator, VehicleParams
from sf3d_envs.terrain import Disc, plane
from sf3d_envs.verification.reference.vehicle64 import rotation

CAR = VehicleParams()
DT = 1.0 / 240.0
COMMANDS = torch.tensor([[-8.0, 0.3], [5.0, -1.0], [-2.0, 0.05], [0.0, 0.4], [3.0, 0.0]])


@pytest.fixture(scope="module", params=["vehicle", "xpbd"])
def substep(request):
    """State before a substep, readings of it, and the state after it, for five cars on a slope with a slippery disc."""
    patches = [Disc(x=22.0, y=0.0, radius=6.0, friction=0.15)]
    sim = Simulator(5, [plane(0.8, slope_x=0.04, slope_y=-0.02, patches=patches)], num_vehicles=1, solver=request.param)
    sim.place(np.ones(5, dtype=bool), [8.0, 0.0, CAR.rest_height + 0.32], speed=11.0)
    sim.commands.driver(COMMANDS[:, None])
    sim.control_step(60)
    before = sim.snapshot(strict=False)
    sim.solver.step(sim.newton_state, sim.newton_state, None, None, DT)
    return sim, before


def frames(sim: Simulator, before) -> tuple[np.ndarray, ...]:
    """Normal, heading and left axis of each wheel, [5, 4, 3], from the steering angle and the chassis' axes."""
    axes = rotation(before.rotation[:, 0].double().numpy())
    normal = sim.state.contact_normal[:, 0].double().numpy()
    steer = sim.state.steer_angle[:, 0].double().numpy()
    turn = np.zeros((5, 4))
    span, offset = CAR.wheelbase * np.tan(steer), 0.5 * CAR.track * np.tan(steer)
    turn[:, 0], turn[:, 1] = span / (CAR.wheelbase - offset), span / (CAR.wheelbase + offset)
    heading = axes[:, None, :, 0] + turn[..., None] * axes[:, None, :, 1]
    heading -= (heading * normal).sum(-1, keepdims=True) * normal
    heading /= np.linalg.norm(heading, axis=-1, keepdims=True)
    return normal, heading, np.cross(normal, heading)


def arms(sim: Simulator, before) -> np.ndarray:
    return sim.state.contact_point[:, 0].double().numpy() - before.position[:, 0].double().numpy()[:, None]


def speeds(sim: Simulator, before) -> np.ndarray:
    """Velocity of the contact points, [5, 4, 3]."""
    velocity = before.linear_velocity[:, 0].double().numpy()[:, None]
    omega = before.angular_velocity[:, 0].double().numpy()[:, None]
    return velocity + np.cross(omega, arms(sim, before))


def test_forces_make_the_change_of_momentum(substep) -> None:
    sim, before = substep
    normal, heading, left = frames(sim, before)
    load = sim.state.wheel_load[:, 0].double().numpy()[..., None]
    along, across = (sim.state.tire_force[:, 0].double().numpy()[..., k, None] for k in range(2))
    force = load * normal + along * heading + across * left
    velocity = before.linear_velocity[:, 0].double().numpy()
    drag = -CAR.drag * np.linalg.norm(velocity, axis=-1, keepdims=True) * velocity
    total = force.sum(axis=1) + drag + np.array([0.0, 0.0, -9.81 * CAR.mass])
    gained = (sim.state.linear_velocity[:, 0].double().numpy() - velocity) / DT
    assert np.abs(gained - total / CAR.mass).max() < 0.01
    torque = np.cross(arms(sim, before), force).sum(axis=1)
    assert np.abs(torque).max() > 500.0


def test_forces_keep_to_the_friction_circle(substep) -> None:
    sim, _ = substep
    state = sim.state
    limit = (state.wheel_load * state.wheel_friction)[:, 0]
    used = state.tire_force[:, 0].norm(dim=-1)
    assert (used <= limit * (1 + 1e-5) + 1e-3).all()
    assert (used[0] > 0.99 * limit[0]).any()  # full brake
    assert set(state.wheel_friction.flatten().mul(100).round().int().tolist()) <= {80, 15}


def test_slip_follows_from_speeds_and_spin(substep) -> None:
    sim, before = substep
    _, heading, left = frames(sim, before)
    velocity = speeds(sim, before)
    along, across = (velocity * heading).sum(-1), (velocity * left).sum(-1)
    spin = sim.state.wheel_spin[:, 0].double().numpy()
    ratio = (CAR.wheel_radius * spin - along) / np.maximum(np.abs(along), 1.0)
    angle = np.arctan2(across, np.maximum(np.abs(along), 2.0))
    assert np.abs(sim.state.slip_ratio[:, 0].numpy() - ratio).max() < 2e-5
    assert np.abs(sim.state.slip_angle[:, 0].numpy() - angle).max() < 2e-5
    assert np.abs(angle).max() > 0.03 and np.abs(ratio).max() > 0.05


def test_contacts_lie_on_the_road(substep) -> None:
    sim, before = substep
    point = sim.state.contact_point[:, 0].double().numpy()
    assert np.abs(point[..., 2] - (0.04 * point[..., 0] - 0.02 * point[..., 1])).max() < 2e-5
    normal = np.array([-0.04, 0.02, 1.0])
    assert np.abs(sim.state.contact_normal[:, 0].numpy() - normal / np.linalg.norm(normal)).max() < 1e-6
    rate = -(speeds(sim, before) * sim.state.contact_normal[:, 0].double().numpy()).sum(-1)
    assert np.abs(sim.state.suspension_rate[:, 0].numpy() - rate).max() < 2e-5


def test_nothing_is_read_in_the_air() -> None:
    sim = Simulator(1, [plane(0.8)], num_vehicles=1)
    sim.control_step()
    assert sim.state.contact_normal[0, 0, :, 2].tolist() == [1.0] * 4
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 20.0]), linear_velocity=torch.tensor([9.0, 2.0, 0.0]))
    sim.control_step()
    for name in ("tire_force", "slip_ratio", "slip_angle", "contact_point", "contact_normal", "suspension_rate"):
        assert not getattr(sim.state, name).any(), name
    assert not sim.state.wheel_load.any() and not sim.state.suspension_deflection.any()
