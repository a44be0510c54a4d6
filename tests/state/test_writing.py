"""Setters, resets and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sf3d_envs import CommandMode, Simulator
from sf3d_envs.sim.selection import Refusals
from sf3d_envs.terrain import plane

from .worlds import UP, VEHICLES, WORLDS, changed, make, mixed, rows

G = 9.81
DT = 1.0 / 240.0


@pytest.fixture(scope="module")
def shared() -> Simulator:
    return make()


@pytest.fixture
def sim(shared: Simulator) -> Simulator:
    shared.reset()
    return mixed(shared)


INDEX = st.one_of(
    st.none(),
    st.integers(-2, WORLDS + 1),
    st.lists(st.integers(-1, WORLDS), max_size=6),
    st.lists(st.booleans(), min_size=WORLDS, max_size=WORLDS),
)
FORMS = {
    "as it is": lambda value: value,
    "tuple": lambda value: tuple(value) if isinstance(value, list) else value,
    "numpy": lambda value: np.array(value, dtype=None if value else np.int64) if isinstance(value, list) else value,
    "int64": lambda value: (
        torch.tensor(value, dtype=None if value else torch.int64) if isinstance(value, list) else value
    ),
    "int32": lambda value: (
        torch.tensor(value, dtype=torch.int32)
        if isinstance(value, list) and not isinstance(next(iter(value), 0), bool)
        else value
    ),
}


def model_of(value) -> list[int] | None:
    """Worlds that a choice means; None if it must be refused."""
    if value is None:
        return list(range(WORLDS))
    if isinstance(value, int):
        value = [value]
    if value and isinstance(value[0], bool):
        return [w for w, chosen in enumerate(value) if chosen]
    if len(set(value)) != len(value) or any(not 0 <= w < WORLDS for w in value):
        return None
    return value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=INDEX, form=st.sampled_from(sorted(FORMS)), vehicles=st.sampled_from([None, 0, [2, 0], (1,), range(1, 3)]))
def test_index_forms(shared: Simulator, value, form: str, vehicles) -> None:
    sim = shared
    expected, before, generation = model_of(value), rows(sim), sim.state.generation
    columns = list(range(VEHICLES)) if vehicles is None else [vehicles] if isinstance(vehicles, int) else list(vehicles)
    is_mask = value is None or (isinstance(value, list) and value != [] and isinstance(value[0], bool))
    count = WORLDS if is_mask else 1 if isinstance(value, int) else len(value)
    numbers = torch.rand(count, len(columns), 4) + sim.state.wheel_spin.max()
    if expected is None:
        with pytest.raises(ValueError, match="worlds must"):
            sim.state.set_wheel_state(numbers, worlds=FORMS[form](value), vehicles=vehicles)
        assert sim.state.generation == generation and not changed(before, rows(sim)).any()
        return
    sim.state.set_wheel_state(numbers, worlds=FORMS[form](value), vehicles=vehicles)
    touched = np.zeros((WORLDS, VEHICLES), dtype=bool)
    touched[np.ix_(expected, columns)] = True
    assert np.array_equal(changed(before, rows(sim)), touched)
    for k, w in enumerate(expected):
        row = w if is_mask else k
        assert torch.equal(sim.state.wheel_spin[w, columns], numbers[row])


@pytest.mark.parametrize("worlds", ["0", 1.0, [0.5], True, {0}, [[0]], torch.zeros(2), object(), [None]])
def test_no_choice_of_worlds(sim: Simulator, worlds) -> None:
    for call in (lambda: sim.commands.driver(torch.zeros(2), worlds=worlds), lambda: sim.reset(worlds)):
        with pytest.raises((TypeError, ValueError), match="worlds"):
            call()


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.zeros(2, np.float32), TypeError, ["ndarray", "as_tensor"]),
        ([0.0, 0.0], TypeError, ["list"]),
        (1.0, TypeError, ["float"]),
        (None, TypeError, ["None"]),
        (torch.zeros(2, dtype=torch.float64), TypeError, ["float32", "float64"]),
        (torch.zeros(2, dtype=torch.int32), TypeError, ["int32"]),
        (torch.zeros(2, device="meta"), ValueError, ["cpu", "meta"]),
        (torch.zeros(3), ValueError, [f"({WORLDS}, {VEHICLES}, 2)", "(3,)"]),
        (torch.zeros(WORLDS, 2), ValueError, ["shape"]),
        (torch.zeros(2, VEHICLES, WORLDS).permute(2, 1, 0), ValueError, ["strides", "contiguous"]),
        (torch.zeros(2).to_sparse(), TypeError, ["layout"]),
        (torch.tensor([0.0, float("nan")]), ValueError, ["finite"]),
        (torch.tensor([float("inf"), 0.0]), ValueError, ["finite"]),
        (torch.tensor([0.0, 1.5]), ValueError, ["steering", "1.5"]),
    ],
)
def test_values_are_refused_with_what_was_expected(sim: Simulator, value, error, words) -> None:
    before = rows(sim)
    with pytest.raises(error) as caught:
        sim.commands.driver(value)
    for word in ("command", *words):
        assert word in str(caught.value)
    assert not changed(before, rows(sim)).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.commands.pedals(torch.tensor([-0.1, 0.0, 0.0])), ["pedals", "[0, 1]", "-0.1"]),
        (lambda s: s.commands.pedals(torch.tensor([0.0, 1.1, 0.0])), ["pedals", "1.1"]),
        (lambda s: s.commands.wheel_torque(torch.zeros(4), torch.zeros(()), torch.tensor([0, 0, 0, -1.0])), ["brake"]),
        (lambda s: s.commands.wheel_torque(torch.zeros(4), torch.tensor(float("nan"))), ["steer_angle", "finite"]),
        (lambda s: s.commands.wheel_torque(torch.full((4,), float("inf")), torch.zeros(())), ["torque", "inf"]),
        (lambda s: s.commands.steer_pd(*torch.zeros(2), -torch.ones(3), torch.ones(3)), ["kp", ">= 0", "-1"]),
        (
            lambda s: s.commands.steer_pd(torch.tensor(float("nan")), torch.zeros(()), torch.ones(3), torch.ones(3)),
            ["acceleration", "nan"],
        ),
        (lambda s: s.state.set_wrench(torch.full((3,), float("nan"))), ["force", "finite"]),
        (lambda s: s.state.set_root_state(), ["give"]),
        (lambda s: s.state.set_root_state(torch.zeros(3), root_state=torch.zeros(13)), ["root_state", "position"]),
        (lambda s: s.state.set_root_state(rotation=torch.ones(4)), ["rotation", "unit", "1"]),
        (lambda s: s.state.set_root_state(torch.tensor([0, 0, float("nan")])), ["position", "finite"]),
        (lambda s: s.state.set_wheel_state(), ["give"]),
        (lambda s: s.state.set_wheel_state(steer_angle=torch.tensor(-0.7)), ["steer_angle", "0.6", "-0.7"]),
        (lambda s: s.state.set_wrench(), ["give"]),
        (lambda s: s.state.set_suspension(), ["give"]),
        (lambda s: s.state.set_suspension(torch.full((4,), 0.31)), ["deflection", "0.3"]),
        (lambda s: s.state.set_suspension(torch.tensor([0.1, 0.1, 0.1, 0.2])), ["deflection", "0.025"]),
        (lambda s: s.state.set_suspension(rate=torch.tensor([0.0, 1.0, 1.0, 0.0])), ["rate", "0.5"]),
        (lambda s: s.commands.driver(torch.zeros(2), vehicles=3), ["vehicles", "[0, 2]", "3"]),
        (lambda s: s.commands.driver(torch.zeros(2), vehicles=[1, 1]), ["vehicles", "once"]),
    ],
)
def test_bad_values_write_nothing(sim: Simulator, call, words) -> None:
    before = rows(sim)
    with pytest.raises(ValueError) as caught:
        call(sim)
    for word in words:
        assert word in str(caught.value)
    assert not changed(before, rows(sim)).any()


@pytest.mark.parametrize("gain", [1.0, torch.tensor(1.0), torch.ones(2), None])
def test_scalar_gains_are_refused(sim: Simulator, gain) -> None:
    good = torch.ones(VEHICLES)
    for gains in ({"kp": gain, "kd": good}, {"kp": good, "kd": gain}):
        with pytest.raises(TypeError, match="per vehicle"):
            sim.commands.steer_pd(torch.zeros(()), torch.zeros(()), **gains)


def test_dense_and_sparse_command_echo(sim: Simulator) -> None:
    state, shape = sim.state, (WORLDS, VEHICLES)
    command = torch.rand(*shape, 2)
    sim.commands.driver(command)
    assert torch.equal(state.command, command) and (state.command_mode == CommandMode.DRIVER).all()
    pedals = torch.rand(2, VEHICLES, 3)
    sim.commands.pedals(pedals, worlds=[4, 1])
    assert torch.equal(state.pedals[[4, 1]], pedals)
    torque = 100.0 * torch.randn(4)
    sim.commands.wheel_torque(torque, torch.tensor(0.1), torch.tensor([1.0, 2.0, 3.0, 4.0]), worlds=0, vehicles=2)
    assert torch.equal(state.drive_torque[0, 2], torque) and state.steer_target[0, 2] == 0.1
    assert state.brake_torque[0, 2].tolist() == [1.0, 2.0, 3.0, 4.0]
    mask = torch.tensor([False, False, True, False, False])
    acceleration, gain = torch.rand(*shape), torch.rand(VEHICLES)
    sim.commands.steer_pd(acceleration, torch.tensor(0.2), gain, 2.0 * gain, worlds=mask)
    assert torch.equal(state.command[2, :, 0], acceleration[2]) and (state.command[2, :, 1] == 0).all()
    assert torch.equal(state.steer_gains[2], torch.stack([gain, 2.0 * gain], dim=-1))
    modes = [[0, 0, 2], [1, 1, 1], [3, 3, 3], [0, 0, 0], [1, 1, 1]]
    assert state.command_mode.tolist() == modes
    assert torch.equal(state.command[3], command[3])
    sim.commands.clear(worlds=[0, 1])
    assert state.command_mode[:2].tolist() == [[0, 0, 0], [0, 0, 0]] and not state.drive_torque[0].any()
    assert state.command_mode[2:].tolist() == modes[2:]


def test_writing_in_place_is_a_command(sim: Simulator) -> None:
    twin = make()
    for one in (sim, twin):
        one.reset()
    command = torch.full((WORLDS, VEHICLES, 2), 0.5)
    sim.commands.driver(command)
    twin.state.command[...] = command
    sim.control_step(20), twin.control_step(20)
    assert not changed(rows(sim), rows(twin)).any()


def test_reset_restores_commands_and_touches_no_other_world(sim: Simulator) -> None:
    fresh = rows(make())
    sim.commands.pedals(torch.tensor([1.0, 0.0, 0.0]))
    sim.state.set_wrench(torch.tensor([0.0, 5000.0, 0.0]), torch.tensor([0.0, 0.0, 100.0]))
    sim.control_step(20)
    sim.state.set_wrench(torch.tensor([0.0, 5000.0, 0.0]))
    sim.state.stepping[3] = 0
    before = rows(sim)
    sim.reset(torch.tensor([False, True, False, True, False]))
    after = rows(sim)
    assert np.array_equal(changed(before, after).any(axis=1), [False, True, False, True, False])
    assert not changed(fresh, after)[[1, 3]].any()
    assert sim.state.stepping.tolist() == [1, 1, 1, 0, 1]
    sim.state.stepping[3] = 1


def test_reset_forgets_a_fault_and_goes_to_the_last_placement() -> None:
    sim = make(2, 1)
    sim.state.linear_velocity[0, 0, 0] = float("nan")
    sim.control_step()
    assert sim.state.nonfinite.tolist() == [[1], [0]]
    sim.state.set_root_state(torch.tensor([9.0, 9.0, 3.0]))
    assert sim.state.nonfinite.tolist() == [[0], [0]]
    sim.reset()
    assert sim.state.position[:, 0, :2].tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_four_step_free_fall(solver: str) -> None:
    sim = make(2, 1, solver=solver)
    velocity = torch.tensor([3.0, -1.0, 2.0])
    sim.state.set_root_state(torch.tensor([5.0, 6.0, 4.0]), UP, velocity, worlds=1)
    sim.control_step()
    n = torch.arange(1, 5)
    drag = 0.39 / 1350.0 * velocity.norm() * velocity * DT
    fall = torch.tensor([0.0, 0.0, -G]) * DT
    expected = torch.tensor([5.0, 6.0, 4.0]) + 4 * velocity * DT + n.sum() * (fall - drag) * DT
    assert torch.allclose(sim.state.position[1, 0], expected, atol=1e-5)
    assert torch.allclose(sim.state.linear_velocity[1, 0], velocity + 4 * (fall - drag), atol=1e-5)


def test_omitted_velocities_are_zero_and_omitted_poses_stay(sim: Simulator) -> None:
    place, spin = sim.state.position.clone(), sim.state.wheel_spin.clone()
    sim.state.set_root_state(linear_velocity=torch.tensor([1.0, 2.0, 3.0]))
    assert torch.equal(sim.state.position, place) and torch.equal(sim.state.wheel_spin, spin)
    assert not sim.state.angular_velocity.any()
    sim.state.set_root_state(place)
    assert not sim.state.linear_velocity.any()


def test_a_root_state_leaves_no_trace_of_the_one_before() -> None:
    """From equal root states, wheels and commands, equal steps: nothing hidden is left over."""
    used, fresh = mixed(make(2, 1), steps=50), make(2, 1)
    root = torch.cat([torch.tensor([3.0, 4.0, 0.7]), UP, torch.tensor([5.0, 0.0, 0.0, 0.0, 0.0, 0.1])])
    for sim in (used, fresh):
        sim.state.set_root_state(root_state=root)
        sim.state.set_wheel_state(torch.full((4,), 15.0), torch.tensor(0.1), torch.tensor(0.0))
        sim.commands.driver(torch.tensor([1.0, 0.2]))
        sim.control_step(30)
    skipped = ("home_q", "wheel_angle")
    assert not changed(*[{k: v for k, v in rows(s).items() if k not in skipped} for s in (used, fresh)]).any()


@pytest.mark.parametrize(("slope_x", "slope_y"), [(0.0, 0.0), (0.08, 0.0), (-0.05, 0.06)])
def test_suspension_reads_back(slope_x: float, slope_y: float) -> None:
    sim = Simulator(3, [plane(0.5, slope_x=slope_x, slope_y=slope_y)], num_vehicles=1, threads=1)
    state = sim.state
    turn = torch.tensor([0.0, 0.0, np.sin(0.4), np.cos(0.4)], dtype=torch.float32)
    state.set_root_state(torch.tensor([10.0, -5.0, 3.0]), turn, torch.tensor([4.0, 1.0, 0.0]))
    deflection = torch.tensor([[[0.09, 0.10, 0.08, 0.09]], [[0.12, 0.12, 0.06, 0.06]], [[0.2, 0.16, 0.2, 0.16]]])
    rate = torch.tensor([0.05, 0.10, -0.05, 0.0])
    state.set_suspension(deflection, rate)
    assert torch.allclose(state.suspension_deflection, deflection, atol=1e-5)
    assert torch.allclose(state.suspension_rate, rate.expand(3, 1, 4), atol=2e-5)
    assert torch.allclose(state.position[..., :2], torch.tensor([10.0, -5.0]))
    horizontal = state.linear_velocity[..., :2]
    assert torch.allclose(horizontal, torch.tensor([4.0, 1.0]))
    sim.solver.step(sim.newton_state, sim.newton_state, None, None, DT)
    assert torch.allclose(state.suspension_deflection, deflection, atol=2e-5)  # read before the substep moved the car


def test_a_worlds_setter_is_the_same_in_a_larger_batch() -> None:
    one, many = make(1, 2), make(4, 2)
    for sim, world in ((one, 0), (many, 2)):
        sim.state.set_suspension(torch.tensor([0.1, 0.09, 0.09, 0.08]), worlds=world)
        sim.control_step(10)
    for name, bytes_ in rows(one).items():
        assert np.array_equal(bytes_[0], rows(many)[name][2]), name


def test_wrench_is_valid_for_one_step() -> None:
    sim = make(2, 2)
    sim.state.set_root_state(torch.tensor([0.0, 0.0, 30.0]), UP, vehicles=0)
    sim.state.set_wrench(torch.tensor([1350.0, 0.0, 0.0]), worlds=1, vehicles=0)
    sim.control_step()
    assert not sim.state.wrench_force.any()
    speed = sim.state.linear_velocity[..., 0].clone()
    assert speed[1, 0] == pytest.approx(1.0 / 60.0, rel=1e-5) and speed[0, 0] == 0.0
    sim.control_step()
    assert sim.state.linear_velocity[1, 0, 0] == pytest.approx(float(speed[1, 0]), rel=1e-5)


def deferred(sim: Simulator) -> Simulator:
    """Let the device check contents, as on a GPU."""
    sim.state._refusals = Refusals(torch.device("cpu"), deferred=True)
    return sim


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.commands.driver(torch.zeros(2), worlds=torch.tensor([0, 9])), ["[0, 4]", "9"]),
        (lambda s: s.commands.driver(torch.zeros(2), worlds=torch.tensor([3, 1, 3])), ["once", "3"]),
        (lambda s: s.commands.driver(torch.full((2,), float("nan"))), ["finite"]),
        (lambda s: s.state.set_root_state(rotation=torch.ones(4)), ["unit"]),
        (lambda s: s.state.set_suspension(torch.tensor([0.1, 0.1, 0.1, 0.2])), ["deflection", "0.025"]),
        (lambda s: s.state.set_wheel_state(steer_angle=torch.tensor([0.0, 2.0, 0.0])), ["steer_angle", "2"]),
    ],
)
def test_what_the_device_refuses_is_raised_by_the_next_look(call, words) -> None:
    sim = deferred(mixed(make()))
    before = rows(sim)
    call(sim)  # returns without waiting
    assert not changed(before, rows(sim)).any()
    with pytest.raises(ValueError) as caught:
        sim.state.check()
    for word in words:
        assert word in str(caught.value)
    sim.state.check()  # said once
    sim.commands.driver(torch.zeros(2), worlds=torch.tensor([1, 3], dtype=torch.int32))
    sim.state.set_suspension(torch.full((4,), 0.1), worlds=torch.tensor([0]))
    assert changed(before, rows(sim)).any(axis=1).tolist() == [True, True, False, True, False]
    call(sim)
    with pytest.raises(ValueError):
        sim.snapshot()


def test_index_tensors_of_another_device_are_refused(sim: Simulator) -> None:
    for call in (lambda w: sim.commands.driver(torch.zeros(2), worlds=w), sim.reset, sim.save):
        with pytest.raises(ValueError, match="meta"):
            call(torch.zeros(2, dtype=torch.int64, device="meta"))


@pytest.mark.parametrize("options", [{"threads": 2}, {"fused": False}, {"solver": "xpbd"}])
def test_setters_work_on_every_path(options) -> None:
    sim = make(9, 2, **options)
    sim.commands.pedals(torch.tensor([0.5, 0.0, 0.1]), worlds=range(0, 9, 2))
    sim.control_step(30)
    moved = sim.state.linear_velocity[:, 0, 0] > 0.5
    assert moved.tolist() == [w % 2 == 0 for w in range(9)]
