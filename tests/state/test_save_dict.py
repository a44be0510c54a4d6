"""Saved worlds as tensors, and going on in the middle of traffic."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from sf3d_envs import SavedState, Simulator, TorchEnv, load_condition
from sf3d_envs.agents import make_agent
from sf3d_envs.terrain import lane_closure_terrain, plane

from .worlds import changed, make, mixed, rows

MIDDLE, FURTHER = 300, 1000
"""Control steps before and after the save."""


@pytest.fixture(scope="module")
def traffic() -> tuple[SavedState, np.ndarray]:
    """IDM's world at its start, and IDM's commands at every control step, [T, 1, 12, 2]."""
    env, agent = TorchEnv(1, condition="mu018", rules="scoring", decision_hz=60), make_agent("idm17")
    env.reset(options={"scenario_seed": 100_003})
    agent.bind(env.view)
    start, commands = env.sim.save(), []
    for _ in range(MIDDLE + FURTHER):
        env.advance(agent.act(env.view))
        commands.append(env.sim.state.command.numpy().copy())
    env.close()
    return start, np.stack(commands)


def road_simulator(worlds: int, **options) -> Simulator:
    return Simulator(worlds, [lane_closure_terrain(load_condition("mu018"))], **options)


def replay(sim: Simulator, commands: np.ndarray, world: int = 0) -> None:
    """Drive one world by recorded commands; the others by none."""
    for command in torch.from_numpy(commands):
        sim.state.command[world] = command[0]
        sim.control_step()


def test_a_thousand_further_steps_in_traffic(traffic) -> None:
    start, commands = traffic
    never = road_simulator(1)
    never.restore(start)
    replay(never, commands[:MIDDLE])
    saved = never.save()
    carried = io.BytesIO()
    torch.save(saved.state_dict(), carried)
    carried.seek(0)
    loaded = SavedState.from_state_dict(torch.load(carried, weights_only=True))
    replay(never, commands[MIDDLE:])
    expected = rows(never)
    assert never.state.position[0, :, 0].max() > 100.0
    for worlds, slot, source, options in (
        (1, 0, saved, {}),
        (9, 6, loaded, {"threads": 2}),
        (2, 1, loaded, {"fused": False}),
    ):
        sim = road_simulator(worlds, **options)
        sim.control_step(7)
        sim.restore(source, worlds=slot, source=0)
        replay(sim, commands[MIDDLE:], slot)
        found = rows(sim)
        for name, table in expected.items():
            assert np.array_equal(found[name][slot], table[0]), name


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_going_on_in_the_middle_of_a_collision(solver: str) -> None:
    sim = make(2, 3, solver=solver, contacts=True)
    sim.state.set_root_state(
        torch.tensor([[0.0, 0.0, 0.65], [4.4, 0.3, 0.65], [8.9, -0.3, 0.65]]),
        linear_velocity=torch.tensor([[14.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    )
    sim.control_step(3)
    assert sim.state.contact_sensor().in_contact.any()
    saved = sim.save()
    sim.control_step(60)
    expected = rows(sim)
    sim.control_step(5)
    sim.restore(SavedState.from_state_dict(saved.state_dict()))
    sim.control_step(60)
    assert not changed(expected, rows(sim)).any()


@pytest.mark.parametrize("params_per_world", [False, True])
def test_round_trip(params_per_world: bool) -> None:
    sim = mixed(make(3, 2, params_per_world=params_per_world))
    saved = sim.save([2, 0])
    state = saved.state_dict()
    assert state["command"].shape == (2, 2, 2) and torch.equal(state["command"], sim.state.command[[2, 0]])
    assert state["command"].data_ptr() == saved.arrays["command"].ptr
    again = SavedState.from_state_dict(state)
    assert again.vehicles == saved.vehicles and again.roads == saved.roads and again.solver == saved.solver
    for name, array in saved.arrays.items():
        assert again.arrays[name].numpy().tobytes() == array.numpy().tobytes()
        assert again.arrays[name].ptr != array.ptr
    sim.restore(again, [0, 1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda d: d.pop("fit"), ValueError, ["fit"]),
        (lambda d: d["fit"].pop("roads"), ValueError, ["fit"]),
        (lambda d: d.pop("command"), ValueError, ["lacks", "command"]),
        (lambda d: d.update(extra=torch.zeros(2)), ValueError, ["extra"]),
        (lambda d: d.update(command=d["command"].double()), ValueError, ["command", "float32", "float64"]),
        (lambda d: d.update(command=d["command"][:1]), ValueError, ["command", "[2, 2, 2]", "[1, 2, 2]"]),
        (lambda d: d.update(tire_force=d["tire_force"][..., :1]), ValueError, ["tire_force"]),
        (lambda d: d.update(command=[1.0]), TypeError, ["command", "list"]),
    ],
)
def test_broken_dictionaries(change, error, words) -> None:
    state = make(2, 2).save().state_dict()
    change(state)
    with pytest.raises(error) as caught:
        SavedState.from_state_dict(state)
    for word in words:
        assert word in str(caught.value)


def test_no_dictionary() -> None:
    with pytest.raises(TypeError, match="dictionary"):
        SavedState.from_state_dict([])  # pyright: ignore


def test_a_state_of_another_road_is_still_refused() -> None:
    state = make(1, 1).save().state_dict()
    other = Simulator(1, [plane(0.9)], num_vehicles=1)
    with pytest.raises(ValueError, match="road"):
        other.restore(SavedState.from_state_dict(state))


@pytest.mark.parametrize("variant", [-1, 1, 1_000_000])
def test_a_road_that_is_not_there_is_refused(variant: int) -> None:
    sim = make(2, 1)
    state = sim.save().state_dict()
    state["world_variant"][1] = variant
    before = rows(sim)
    with pytest.raises(ValueError, match=f"world_variant.*{variant}|world_variant {variant}"):
        sim.restore(SavedState.from_state_dict(state))
    assert not changed(before, rows(sim)).any()
