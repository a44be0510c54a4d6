"""Accelerations, equations of motion and snapshots."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp

from sf3d_envs import Simulator, StaleSnapshotError, StateConfig, VehicleParams
from sf3d_envs.sim.state import views
from sf3d_envs.terrain import plane

from .worlds import UP, make, mixed

G = 9.81
DT = 1.0 / 240.0


def moving(solver: str = "vehicle", **options) -> Simulator:
    """Cars that brake, turn, fly and are pushed, on a slope."""
    state = StateConfig(accelerations=True, dynamics=True)
    sim = Simulator(5, [plane(0.6, slope_x=0.05)], num_vehicles=2, solver=solver, state=state, threads=1, **options)
    position = torch.tensor([[0.0, 0.0, 0.66], [30.0, 0.0, 2.16]])
    sim.state.set_root_state(position, UP, torch.tensor([9.0, 0.5, 0.45]), torch.tensor([0.1, 0.05, 0.3]))
    sim.state.set_wheel_state(torch.full((4,), 28.0), torch.tensor(0.05))
    sim.commands.driver(torch.tensor([[[-4.0, 0.2]], [[3.0, -0.5]], [[0.0, 0.0]], [[-8.0, 0.0]], [[2.0, 1.0]]]))
    high = torch.tensor([[10.0, 20.0, 8.0], [30.0, 20.0, 8.0]])
    sim.state.set_root_state(high, UP, torch.ones(3), torch.ones(3), worlds=2)
    return sim


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_accelerations_are_the_change_of_velocity(solver: str) -> None:
    sim = moving(solver)
    for _ in range(5):
        before = sim.state.root_state[..., 7:].clone()
        sim.control_step()
        mean = (sim.state.root_state[..., 7:] - before) * 60.0
        assert torch.allclose(sim.state.accelerations(), mean, atol=2e-3, rtol=1e-4)
    free = sim.state.accelerations()[2, 0]
    assert free[2] == pytest.approx(-G, abs=0.02)


def test_nothing_moves_nothing_accelerates() -> None:
    sim = make(2, 1, accelerations=True)
    assert not sim.state.accelerations().any()
    sim.control_step(200)
    assert sim.state.accelerations().abs().max() < 0.02


def test_frozen_placed_and_set_worlds_have_no_acceleration() -> None:
    sim = moving()
    sim.state.stepping[0] = 0
    sim.control_step()
    assert not sim.state.accelerations()[0].any() and sim.state.accelerations()[1].any()
    saved = sim.save()
    sim.reset(1)
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 5.0]), worlds=3, vehicles=0)
    sim.restore(saved, worlds=[4], source=4)
    acceleration = sim.state.accelerations()
    assert not acceleration[1].any() and not acceleration[3, 0].any() and not acceleration[4].any()
    assert acceleration[2].any() and acceleration[3, 1].any()


def test_accelerations_are_lazy_and_cached() -> None:
    sim = moving()
    state = sim.state
    assert state._accelerations is None
    with pytest.raises(RuntimeError, match="compute=True"):
        state.accelerations(compute=False)
    sim.control_step()
    first = state.accelerations()
    first.fill_(7.0)  # a second read of this generation computes nothing
    assert (state.accelerations() == 7.0).all()
    sim.control_step()
    assert (state.accelerations(compute=False) == 7.0).all()
    assert not (state.accelerations() == 7.0).any()
    assert state.accelerations().data_ptr() == first.data_ptr()


def test_dynamics_are_lazy_and_cached() -> None:
    sim = moving()
    state = sim.state
    assert state._dynamics is None
    with pytest.raises(RuntimeError, match="compute=True"):
        state.dynamics(compute=False)
    first = state.dynamics()
    first.tire.fill_(7.0)
    assert (state.dynamics().tire == 7.0).all()
    state.set_wrench(torch.tensor([1.0, 2.0, 3.0]))  # a set begins a generation
    assert (state.dynamics(compute=False).tire == 7.0).all()
    again = state.dynamics()
    assert not (again.tire == 7.0).any() and again.tire.data_ptr() == first.tire.data_ptr()
    assert again.external[1, 1].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]


def test_what_is_off_costs_no_launch_and_no_memory() -> None:
    plain, opted = make(2, 1), make(2, 1, accelerations=True, dynamics=True)
    assert len(opted.step_launches) == len(plain.step_launches) + 1
    assert plain.arrays.velocity_before.size == 0 and opted.arrays.velocity_before.size == 2
    for name in ("accelerations", "dynamics"):
        with pytest.raises(RuntimeError, match=rf"state=StateConfig\({name}=True\)"):
            getattr(plain.state, name)()


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_mass_times_acceleration_is_the_sum_of_the_forces(solver: str) -> None:
    """Over one substep; the linear part is what the integrator does, the angular part agrees to first order in dt."""
    sim = moving(solver)
    sim.control_step(7)
    sim.state.set_wrench(torch.tensor([500.0, -2000.0, 100.0]), torch.tensor([200.0, -300.0, 400.0]), vehicles=0)
    terms = sim.state.dynamics()
    force = terms.gravity + terms.gyroscopic + terms.tire + terms.drag + terms.external
    expected = torch.linalg.solve(terms.mass_matrix, force)
    before = sim.state.root_state[..., 7:].clone()
    sim.solver.step(sim.newton_state, sim.newton_state, None, None, DT)
    found = (sim.state.root_state[..., 7:] - before) / DT
    assert torch.allclose(found[..., :3], expected[..., :3], atol=5e-3, rtol=1e-4)
    assert torch.allclose(found[..., 3:], expected[..., 3:], atol=0.02, rtol=0.01)
    assert expected[..., :3].norm(dim=-1).max() > 3.0


def test_terms_of_the_equations() -> None:
    car = VehicleParams(mass=1500.0, inertia=(600.0, 2000.0, 2500.0))
    sim = Simulator(1, [plane(0.5)], num_vehicles=1, vehicle=car, state=StateConfig(dynamics=True))
    turn = torch.tensor([0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4)], dtype=torch.float32)
    velocity, omega = torch.tensor([3.0, 4.0, 0.0]), torch.tensor([1.0, 2.0, 3.0])
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 20.0]), turn, velocity, omega)
    terms = sim.state.dynamics()
    inertia = torch.diag(torch.tensor([2000.0, 600.0, 2500.0]))  # a quarter turn swaps x and y
    assert torch.allclose(terms.mass_matrix[0, 0, 3:, 3:], inertia, atol=0.01)
    assert torch.equal(terms.mass_matrix[0, 0, :3, :3], 1500.0 * torch.eye(3))
    assert not terms.mass_matrix[0, 0, :3, 3:].any() and not terms.tire.any()
    assert torch.allclose(terms.gravity[0, 0], torch.tensor([0.0, 0.0, -1500.0 * G, 0.0, 0.0, 0.0]))
    assert torch.allclose(terms.gyroscopic[0, 0, 3:], -torch.linalg.cross(omega, inertia @ omega), atol=0.5)
    assert torch.allclose(terms.drag[0, 0, :3], torch.tensor([-0.39 * 15.0, -0.39 * 20.0, 0.0]), rtol=1e-5)


def test_at_rest_the_legs_carry_the_weight() -> None:
    sim = make(1, 1, dynamics=True)
    sim.control_step(300)
    terms = sim.state.dynamics()
    assert torch.allclose(terms.tire + terms.gravity, torch.zeros(()), atol=15.0)


def test_dynamics_of_a_world_do_not_depend_on_the_batch() -> None:
    one, many = (mixed(make(n, 2, dynamics=True, accelerations=True)) for n in (1, 6))
    many.restore(one.save(), worlds=[4], source=0)
    one.restore(one.save())
    for sim in (one, many):
        sim.control_step()
    for name in ("mass_matrix", "gravity", "gyroscopic", "tire", "drag"):
        assert torch.equal(getattr(one.state.dynamics(), name)[0], getattr(many.state.dynamics(), name)[4])
    assert torch.equal(one.state.accelerations()[0], many.state.accelerations()[4])


def test_snapshots_are_copies_that_know_when_they_are_stale() -> None:
    sim = mixed(make(2, 2))
    snapshot = sim.snapshot()
    assert not snapshot.is_stale and snapshot.generation == sim.state.generation
    for name in views():
        copy, live = getattr(snapshot, name), getattr(sim.state, name)
        assert torch.equal(copy, live) and copy.data_ptr() != live.data_ptr() and copy.device.type == "cpu"
    before = snapshot.position.clone()
    sim.control_step()
    assert snapshot.is_stale
    with pytest.raises(StaleSnapshotError, match=r"refresh\(\)"):
        snapshot.position  # noqa: B018
    snapshot.strict = False
    assert torch.equal(snapshot.position, before)
    snapshot.strict = True
    assert torch.equal(snapshot.refresh().position, sim.state.position)
    for act in (sim.reset, lambda: sim.commands.driver(torch.zeros(2)), lambda: sim.restore(sim.save())):
        snapshot.refresh()
        act()
        assert snapshot.is_stale
    relaxed = sim.snapshot(strict=False)
    sim.control_step()
    assert relaxed.is_stale and relaxed.wheel_spin.shape == (2, 2, 4)


def test_snapshots_refuse_what_they_are_not() -> None:
    sim = make(2, 1)
    with pytest.raises(TypeError, match="strict"):
        sim.snapshot(strict=1)
    with pytest.raises(AttributeError, match="wheel_spin"):
        sim.snapshot().wheelspin  # noqa: B018
    assert "wheel_spin" in dir(sim.snapshot())
    assert issubclass(StaleSnapshotError, RuntimeError)


def test_a_foreign_capture_is_refused() -> None:
    sim = make(2, 1, dynamics=True)
    sim.state.dynamics()
    with wp.ScopedCapture("cpu"), pytest.raises(RuntimeError, match="captur"):
        sim.state.set_wrench(torch.zeros(3))


def test_computing_in_one_thread_and_saving_in_another_do_not_wait_for_each_other() -> None:
    import threading

    sim = make(2, 1, accelerations=True, dynamics=True)

    def compute() -> None:
        for _ in range(200):
            sim.control_step()
            sim.state.accelerations(), sim.state.dynamics()

    def save() -> None:
        for _ in range(200):
            sim.save(), sim.state.set_wrench(torch.zeros(3))

    threads = [threading.Thread(target=job, daemon=True) for job in (compute, save)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
    assert not any(thread.is_alive() for thread in threads)


def test_dynamics_follow_a_write_in_place_when_told() -> None:
    sim = moving()
    before = sim.state.dynamics().external.clone()
    sim.state.wrench_force[0, 0, 0] = 777.0
    assert torch.equal(sim.state.dynamics().external, before)
    sim.mark_changed()
    assert sim.state.dynamics().external[0, 0, 0] == 777.0


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_a_substep_through_newtons_interface_is_a_step_call_of_its_own(solver: str) -> None:
    sim = make(2, 1, solver=solver, accelerations=True, contacts=True)
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 0.449]), torch.tensor([1.0, 0.0, 0.0, 0.0]))
    sim.control_step(5)
    sensor = sim.state.contact_sensor()
    for _ in range(3):
        before = sim.state.root_state[..., 7:].clone()
        sim.solver.step(sim.newton_state, sim.newton_state, None, None, DT)
        assert sensor.elapsed.tolist() == pytest.approx([DT, DT])
        assert sensor.net_impulse[0, 0, 2] == pytest.approx(1350.0 * G * DT, rel=0.2)
        found = sim.state.accelerations()
        assert torch.allclose(found, (sim.state.root_state[..., 7:] - before) / DT, atol=5e-3, rtol=1e-3)
