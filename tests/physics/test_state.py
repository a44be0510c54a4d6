"""``Simulator.save`` and ``restore``: what is carried, what may be chosen, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import warp as wp

from sf3d_envs import Simulator, VehicleParams
from sf3d_envs.terrain.friction import Disc

from .fleets import flat_variant

ROADS = [flat_variant(), flat_variant(0.3)]
WORLDS, VEHICLES = 5, 2


def make(worlds: int = WORLDS, roads=ROADS, **options) -> Simulator:
    options = {"num_vehicles": VEHICLES, "threads": 1} | options
    return Simulator(worlds, roads, [w % len(roads) for w in range(worlds)], **options)


def drive(sim: Simulator, steps: int = 20) -> Simulator:
    """Each world by other commands."""
    commands = np.random.default_rng(3).uniform([-4.0, -0.5], [4.0, 0.5], (sim.num_worlds, sim.num_vehicles, 2))
    sim.command.assign(commands.astype(np.float32))
    sim.control_step(steps)
    return sim


def rows(sim: Simulator) -> list[bytes]:
    """Each world's pose, velocity, wheel speed, command and variant."""
    found = [sim.body_q, sim.body_qd, sim.wheel_spin, sim.command, sim.world_variant]
    tables = [array.numpy().reshape(sim.num_worlds, -1) for array in found]
    return [b"".join(table[w].tobytes() for table in tables) for w in range(sim.num_worlds)]


def test_arrays_have_worlds_first_and_equal_the_simulators() -> None:
    sim = drive(make())
    saved = sim.save([3, 1])
    assert saved.num_worlds == 2
    assert str(saved.device) == "cpu" and saved.to("cpu") is saved
    assert saved.vehicles == sim.vehicles
    for name in ("body_q", "body_qd", "command", "wheel_spin", "steer_angle", "nonfinite"):
        array = getattr(sim, name)
        assert saved.arrays[name].dtype is array.dtype
        assert saved.arrays[name].shape == (2, VEHICLES)
        expected = array.numpy().reshape(WORLDS, VEHICLES, -1)[[3, 1]]
        assert saved.arrays[name].numpy().reshape(expected.shape).tobytes() == expected.tobytes()
    assert saved.arrays["world_variant"].numpy().tolist() == [1, 1]


@pytest.mark.parametrize("vehicles", [1, 2])
def test_a_saved_state_is_a_copy_and_pickles(vehicles: int) -> None:
    sim = drive(make(num_vehicles=vehicles))
    saved = sim.save()
    before = rows(sim)
    copy = pickle.loads(pickle.dumps(saved))
    drive(sim)
    assert rows(sim) != before
    for state in (saved, copy):
        drive(sim, 3)
        sim.restore(state)
        assert rows(sim) == before
    assert copy.arrays["body_q"].shape == (WORLDS, vehicles)
    assert {name: array.dtype for name, array in copy.arrays.items()} == {
        name: array.dtype for name, array in saved.arrays.items()
    }


def test_commands_are_held_across_a_restore() -> None:
    sim = drive(make())
    saved = sim.save()
    sim.control_step(30)
    after = rows(sim)
    sim.command.fill_(wp.vec2(-8.0, 1.0))
    sim.restore(saved)
    sim.control_step(30)
    assert rows(sim) == after


@pytest.mark.parametrize(
    ("worlds", "source", "expected"),
    [
        (None, None, [0, 1, 2, 3, 4]),
        (None, 2, [2, 2, 2, 2, 2]),
        (None, torch.tensor(2), [2, 2, 2, 2, 2]),
        (3, 1, [None, None, None, 1, None]),
        ([4, 0], [0, 0], [0, None, None, None, 0]),
        (range(1, 3), np.array([4, 2]), [None, 4, 2, None, None]),
        (torch.tensor([4, 1]), (2, 3), [None, 3, None, None, 2]),
        (np.array([True, False, True, False, False]), [3, 4], [3, None, 4, None, None]),
        (torch.tensor([False, True, False, False, False]), [False, False, False, True, False], [None, 3] + 3 * [None]),
        ([4, 3, 2, 1, 0], None, [4, 3, 2, 1, 0]),
        ([], [], 5 * [None]),
        (np.zeros(5, dtype=bool), 1, 5 * [None]),
    ],
)
def test_chosen_worlds_are_restored_and_no_others(worlds, source, expected) -> None:
    sim = drive(make())
    saved, before = sim.save(), rows(sim)
    drive(sim, 10)
    here = rows(sim)
    sim.restore(saved, worlds, source)
    assert rows(sim) == [here[w] if k is None else before[k] for w, k in enumerate(expected)]


def test_flags_and_gravity_are_carried() -> None:
    sim = make()
    sim.stepping.assign(np.array([1, 0, 1, 1, 1], dtype=np.int8))
    sim.dynamics.rigid_contacts.overflow.assign(np.array([0, 0, 1, 0, 0], dtype=np.int8))
    sim.nonfinite.assign(np.array([[0, 0], [0, 0], [0, 0], [0, 1], [0, 0]], dtype=np.int8))
    moon = np.array([0.0, 0.0, -1.62], dtype=np.float32)
    sim.model.set_gravity(tuple(moon.tolist()), world=4)
    other = make(6)
    other.restore(sim.save(), worlds=range(1, 6))
    assert other.stepping.numpy().tolist() == [1, 1, 0, 1, 1, 1]
    assert other.contact_overflow().tolist() == [False, False, False, True, False, False]
    assert other.nonfinite.numpy().sum(axis=1).tolist() == [0, 0, 0, 0, 1, 0]
    gravity = other.dynamics.gravity.numpy()
    assert np.array_equal(gravity[5], moon) and (gravity[[0, 1, 2, 3, 4, 6], 2] < -9.8).all()


@pytest.mark.parametrize("vehicles", [None, (VehicleParams(), VehicleParams(mass=1800.0))])
def test_parameters_per_world_are_carried(vehicles) -> None:
    """A world of other masses and grips goes on with them in a simulator that was built without."""
    sim, other = (make(w, params_per_world=True, vehicle=vehicles) for w in (WORLDS, 8))
    values = sim.arrays.params.numpy().copy()
    values["grip"] *= np.linspace(0.5, 1.0, len(values)).astype(np.float32)
    sim.arrays.params.assign(values)
    drive(sim)
    saved = sim.save()
    assert saved.arrays["params"].shape == (WORLDS, 1 if vehicles is None else 2)
    other.restore(pickle.loads(pickle.dumps(saved)), worlds=[7, 6, 5, 2, 1])
    sim.control_step(50)
    other.control_step(50)
    expected, found = rows(sim), rows(other)
    assert [found[w] for w in (7, 6, 5, 2, 1)] == expected
    assert len(set(expected)) == WORLDS


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.save(5), ValueError, ["worlds", "[0, 4]", "5"]),
        (lambda s: s.save(-1), ValueError, ["worlds", "[0, 4]", "-1"]),
        (lambda s: s.save([1, 3, 1]), ValueError, ["worlds", "once", "1 2 times"]),
        (lambda s: s.save([]), ValueError, ["worlds", "empty"]),
        (lambda s: s.save(np.zeros(5, dtype=bool)), ValueError, ["worlds", "empty"]),
        (lambda s: s.save([True, False]), ValueError, ["worlds", "(5,)", "(2,)"]),
        (lambda s: s.save(1.0), TypeError, ["worlds", "1.0"]),
        (lambda s: s.save(True), TypeError, ["worlds", "True"]),
        (lambda s: s.save("all"), TypeError, ["worlds", "'all'"]),
        (lambda s: s.save([[0, 1]]), TypeError, ["worlds", "[[0, 1]]"]),
        (lambda s: s.save([[0], [1, 2]]), TypeError, ["worlds", "[[0], [1, 2]]"]),
        (lambda s: s.restore(s.save(), worlds=[0, 7], source=0), ValueError, ["worlds", "[0, 4]", "7"]),
        (lambda s: s.restore(s.save(), worlds=[2, 2], source=0), ValueError, ["worlds", "once", "2 2 times"]),
        (lambda s: s.restore(s.save([0, 1]), worlds=[3, 4], source=[0, 2]), ValueError, ["source", "[0, 1]", "2"]),
        (lambda s: s.restore(s.save([0, 1]), source="a"), TypeError, ["source", "'a'"]),
        (lambda s: s.restore(s.save([0, 1])), ValueError, ["5 worlds", "2 saved", "source"]),
        (lambda s: s.restore(s.save(), worlds=[1, 2]), ValueError, ["2 worlds", "5 saved", "source"]),
        (lambda s: s.restore(s.save(), worlds=[1, 2], source=[3]), ValueError, ["2 worlds", "1 saved", "source"]),
        (lambda s: s.restore({"body_q": 0}), TypeError, ["saved", "SavedState", "dict"]),
        (lambda s: s.restore(None), TypeError, ["saved", "SavedState", "NoneType"]),
    ],
)
def test_wrong_choices_are_named_and_change_nothing(call, error, words) -> None:
    sim = drive(make())
    before = rows(sim)
    with pytest.raises(error) as caught:
        call(sim)
    for word in words:
        assert word in str(caught.value)
    assert rows(sim) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_vehicles": 3}, ["2 vehicles", "3"]),
        ({"vehicle": VehicleParams(mass=1500.0)}, ["mass", "1350.0", "1500.0", "vehicle 0"]),
        ({"vehicle": [VehicleParams(), VehicleParams(grip=0.9)]}, ["grip", "1.0", "0.9", "vehicle 1"]),
        ({"params_per_world": True}, ["params_per_world", "per world", "shared"]),
        ({"roads": ROADS[:1]}, ["2 terrain variants", "1"]),
        ({"roads": ROADS[::-1]}, ["terrain variant 0"]),
        (
            {"roads": [ROADS[0], flat_variant(0.3, patches=[Disc(x=0.0, y=0.0, radius=1.0, friction=0.5)])]},
            ["variant 1"],
        ),
    ],
)
def test_worlds_of_another_kind_of_simulator_are_refused(options, words) -> None:
    saved, other = make().save(), make(**options)
    before = rows(other)
    with pytest.raises(ValueError) as caught:
        other.restore(saved)
    for word in ["saved", *words]:
        assert word in str(caught.value)
    assert rows(other) == before


def test_equal_roads_and_vehicles_need_not_be_the_same_objects() -> None:
    saved = drive(make()).save()
    other = make(roads=[flat_variant(), flat_variant(0.3)], vehicle=VehicleParams())
    other.restore(saved)
    assert rows(other)[0] != rows(make())[0]


def test_a_closed_simulator_refuses_and_its_saved_worlds_live_on() -> None:
    sim = drive(make())
    saved, expected = sim.save(), rows(sim)
    sim.close()
    for call in (sim.save, lambda: sim.restore(saved)):
        with pytest.raises(RuntimeError, match="closed Simulator"):
            call()
    other = make()
    other.restore(saved)
    assert rows(other) == expected
