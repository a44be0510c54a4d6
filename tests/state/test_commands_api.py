"""Commands and setters as one uses them: what is set is read back, only where it was set, on every path."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sf3d_envs import CommandMode, Simulator, VehicleParams
from sf3d_envs.sim.selection import Refusals
from sf3d_envs.terrain import plane
from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

from .worlds import UP, VEHICLES, WORLDS, changed, make, mixed, rows

PATHS = {
    "one thread": {},
    "two threads": {"threads": 2},
    "a thread per vehicle": {"fused": False},
    "reference": {"solver": "xpbd"},
}


def modes(sim: Simulator, worlds, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Give worlds 0 to 3 of ``worlds`` a mode each; what the state must read there."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(1, VEHICLES, *shape, generator=generator)

    command, pedals, torque, brake, angle, gains = draw(2), draw(3), 50 * draw(4), 9 * draw(4), 0.3 * draw(), draw(2)
    sim.commands.driver(command, worlds=worlds[:1])
    sim.commands.pedals(pedals, worlds=worlds[1:2])
    sim.commands.wheel_torque(torque, angle, brake, worlds=worlds[2:3])
    kp, kd = gains[..., 0].contiguous(), gains[..., 1].contiguous()
    sim.commands.steer_pd(command[..., 0].contiguous(), angle, kp, kd, worlds=worlds[3:4])
    return {
        "command": command[0],
        "pedals": pedals[0],
        "drive_torque": torque[0],
        "brake_torque": brake[0],
        "steer_target": angle[0],
        "steer_gains": gains[0],
    }


@pytest.mark.parametrize("path", PATHS)
def test_commands_are_held_and_read_back_on_every_path(path: str) -> None:
    sim = make(9, VEHICLES, **PATHS[path])
    state, worlds = sim.state, [7, 2, 5, 0]
    expected = modes(sim, torch.tensor(worlds), torch.Generator().manual_seed(1))
    sim.control_step(3)
    assert state.command_mode[worlds].tolist() == [[mode] * VEHICLES for mode in CommandMode]
    assert not state.command_mode[[1, 3, 4, 6, 8]].any() and not state.command[[1, 3, 4, 6, 8]].any()
    for name, world in (("command", 7), ("pedals", 2), ("drive_torque", 5), ("brake_torque", 5), ("steer_target", 5)):
        assert torch.equal(getattr(state, name)[world], expected[name]), name
    assert torch.equal(state.steer_gains[0], expected["steer_gains"])
    assert torch.equal(state.command[0, :, 0], expected["command"][:, 0]) and not state.command[0, :, 1].any()


@pytest.mark.parametrize(
    "where", [{"worlds": [3, 1]}, {"worlds": 4}, {"vehicles": 1}, {"worlds": [0], "vehicles": [2]}]
)
@pytest.mark.parametrize("deferred", [False, True])
def test_a_sparse_write_moves_only_its_rows(where: dict, deferred: bool) -> None:
    sim = mixed(make())
    sim.state._refusals = Refusals(torch.device("cpu"), deferred)
    touched = np.zeros((WORLDS, VEHICLES), dtype=bool)
    columns = np.atleast_1d(where.get("vehicles", range(VEHICLES)))
    touched[np.ix_(np.atleast_1d(where.get("worlds", range(WORLDS))), columns)] = True
    gains = torch.ones(len(columns))
    for call in (
        lambda: sim.commands.driver(torch.tensor([0.123, 0.456]), **where),
        lambda: sim.commands.pedals(torch.tensor([0.1, 0.2, 0.3]), **where),
        lambda: sim.commands.wheel_torque(torch.ones(4), torch.tensor(0.1), **where),
        lambda: sim.commands.steer_pd(torch.tensor(0.7), torch.tensor(0.2), gains, gains, **where),
        lambda: sim.commands.clear(**where),
        lambda: sim.state.set_wheel_state(torch.full((4,), 3.0), torch.tensor(0.2), torch.tensor(0.1), **where),
        lambda: sim.state.set_wrench(torch.ones(3), torch.ones(3), **where),
        lambda: sim.state.set_suspension(torch.full((4,), 0.11), torch.full((4,), 0.01), **where),
        lambda: sim.state.set_root_state(torch.tensor([9.0, 8.0, 7.0]), UP, **where),
    ):
        before = rows(sim)
        call()
        assert np.array_equal(changed(before, rows(sim)), touched)


def test_a_value_may_be_a_view_of_the_state() -> None:
    """What is written is what the value was at the call, though the write changes the memory it is read from."""
    state = mixed(make()).state
    sim = state._sim
    root = state.root_state.clone()
    state.set_root_state(root_state=state.root_state[:4], worlds=[1, 2, 3, 4])
    assert torch.equal(state.root_state[1:], root[:4])
    spin = state.wheel_spin.clone()
    state.set_wheel_state(state.wheel_spin[1:], worlds=[0, 1, 2, 3])
    assert torch.equal(state.wheel_spin[:4], spin[1:])
    state.drive_torque.fill_(5.0)
    state.brake_torque.fill_(7.0)
    sim.commands.wheel_torque(state.brake_torque, state.steer_target, state.drive_torque)
    assert (state.drive_torque == 7.0).all() and (state.brake_torque == 5.0).all()


def test_values_that_require_gradients_are_values() -> None:
    sim = make()
    command = torch.full((2,), 0.5, requires_grad=True)
    sim.commands.driver(command)
    assert (sim.state.command == 0.5).all() and not sim.state.command.requires_grad


def test_an_empty_choice_does_nothing() -> None:
    sim = mixed(make())
    before = rows(sim)
    for worlds in ([], np.zeros(0, int), range(0), torch.zeros(0, dtype=torch.int64), torch.zeros(WORLDS).bool()):
        sim.commands.driver(torch.tensor([1.0, 0.1]), worlds=worlds)
        sim.state.set_root_state(torch.zeros(3), worlds=worlds)
        sim.state.set_suspension(torch.full((4,), 0.1), worlds=worlds)
        sim.reset(worlds)
    sim.commands.driver(torch.tensor([1.0, 0.1]), vehicles=[])
    assert not changed(before, rows(sim)).any()


def crowned(rise: float = 0.04) -> TerrainVariant:
    """A road that falls to both sides of y = 0."""
    grid = HeightfieldGrid(x0=-100.0, y0=-10.0, dx=10.0, dy=2.0, nx=21, ny=11)
    y = grid.y0 + grid.dy * np.arange(grid.ny)
    return TerrainVariant("crowned", Heightfield(grid, np.tile(-rise * np.abs(y), (grid.nx, 1))))


@pytest.mark.parametrize("yaw", [0.0, 0.6])
@pytest.mark.parametrize("y", [0.0, 0.3, 3.0])
def test_suspension_reads_back_on_a_crowned_road(y: float, yaw: float) -> None:
    """Astride the crown the legs meet two planes; what a pose can have there is what it reads."""
    sim = Simulator(1, [crowned()], num_vehicles=1, threads=1)
    state = sim.state
    turn = torch.tensor([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)], dtype=torch.float32)
    state.set_root_state(torch.tensor([5.0, y, 0.6]), turn)
    sim.control_step(240)
    wanted = state.suspension_deflection.clone()
    assert (wanted > 0.05).all()
    place, rotation = state.position[0, 0, :2].clone(), state.rotation.clone()
    x, y_, z, w = rotation[0, 0].double().tolist()
    yaw = np.arctan2(2.0 * (x * y_ + z * w), 1.0 - 2.0 * (y_ * y_ + z * z))  # on the crown the car has turned a little
    upright = torch.tensor([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)], dtype=torch.float32)
    state.set_root_state(torch.tensor([*place.tolist(), 2.0]), upright)
    state.set_suspension(wanted)
    assert torch.allclose(state.suspension_deflection, wanted, atol=1e-4)
    assert torch.allclose(state.position[0, 0, :2], place)
    assert torch.allclose(state.rotation, rotation, atol=1e-4)
    sim.solver.step(sim.newton_state, sim.newton_state, None, None, 1.0 / 240.0)
    assert torch.allclose(state.suspension_deflection, wanted, atol=1e-4)


def test_the_suspension_limit_is_the_vehicles_own() -> None:
    cars = [VehicleParams(), VehicleParams(suspension_rest_length=0.5)]
    sim = Simulator(2, [plane()], num_vehicles=2, vehicle=cars, threads=1)
    sim.state.set_suspension(torch.full((4,), 0.4), vehicles=1)
    assert torch.allclose(sim.state.suspension_deflection[:, 1], torch.tensor(0.4))
    for vehicles in (0, None):
        with pytest.raises(ValueError, match=r"deflection .* \(0.3 or 0.5 m\), got 0.4"):
            sim.state.set_suspension(torch.full((4,), 0.4), vehicles=vehicles)


def test_a_suspension_that_cannot_be_names_the_vehicle_and_the_nearest() -> None:
    sim = make()
    wanted = torch.full((WORLDS, VEHICLES, 4), 0.1)
    wanted[3, 1, 3] = 0.2
    with pytest.raises(ValueError) as caught:
        sim.state.set_suspension(wanted)
    for words in ("vehicle 1 of world 3", "[0.1, 0.1, 0.1, 0.2] m", "[0.075", "off by 0.025", "0.001 allowed"):
        assert words in str(caught.value)


@pytest.mark.parametrize("pose", [(torch.tensor([0.0, 0.0, 5.0]), UP), (None, torch.tensor([1.0, 0.0, 0.0, 0.0]))])
def test_a_leg_off_the_road_has_no_rate(pose) -> None:
    sim = make(1, 1)
    sim.state.set_root_state(*pose, torch.tensor([1.0, 0.0, -2.0]))
    before = rows(sim)
    with pytest.raises(ValueError, match="vehicle 0 of world 0 has no motion with rate"):
        sim.state.set_suspension(rate=torch.full((4,), 0.1))
    assert not changed(before, rows(sim)).any()
    sim.state.set_suspension(rate=torch.zeros(4))
    assert not sim.state.suspension_rate.any() and sim.state.linear_velocity[0, 0, 2] == -2.0


def test_rates_with_a_wheel_in_the_air() -> None:
    sim = make(1, 1)
    roll = torch.tensor([np.sin(0.06), 0.0, 0.0, np.cos(0.06)], dtype=torch.float32)
    pitch = torch.tensor([0.0, np.sin(0.045), 0.0, np.cos(0.045)], dtype=torch.float32)
    turn = torch.tensor([roll[0] * pitch[3], roll[3] * pitch[1], roll[0] * pitch[1], roll[3] * pitch[3]])
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 0.68]), turn / turn.norm())
    sim.control_step()
    on = sim.state.suspension_deflection[0, 0] > 0.0
    assert on.sum() == 3
    sim.state.set_suspension(rate=torch.where(on, torch.tensor([0.1, 0.2, 0.3, 0.4]), 0.0))
    assert torch.allclose(sim.state.suspension_rate[0, 0][on], torch.tensor([0.1, 0.2, 0.3, 0.4])[on], atol=1e-3)
    assert sim.state.suspension_rate[0, 0][~on] == 0.0


def test_setters_after_close() -> None:
    sim = make(2, 1)
    state, commands = sim.state, sim.commands
    sim.close()
    for call in (
        lambda: commands.driver(torch.zeros(2)),
        commands.clear,
        lambda: state.set_wrench(torch.zeros(3)),
        lambda: state.set_root_state(torch.zeros(3)),
        state.check,
        sim.reset,
        lambda: sim.commands,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
