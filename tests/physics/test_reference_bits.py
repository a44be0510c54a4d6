"""Bitwise promises of the reference path on a CPU, its capacity, and vehicles that turn non-finite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from sf3d_envs.registry import load_condition
from sf3d_envs.sim import solver_xpbd
from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

from .fleets import flat_variant
from .test_bits import SLUGS, VEHICLES, Worlds

ReferenceWorlds = partial(Worlds, solver="xpbd")
STEPS = 120
NEIGHBOURS = (0, 1, 2, 3, 5, 6, 7)


@pytest.fixture(scope="module")
def variants() -> list:
    return [lane_closure_terrain(load_condition(slug)) for slug in SLUGS]


def run(worlds: Worlds) -> tuple[dict[int, list[tuple[bytes, ...]]], int]:
    """Trajectory of each identity, sampled every half second, and the steps with contacts."""
    history: dict[int, list] = {identity: [] for identity in worlds.identities}
    touched = 0
    for step in range(STEPS):
        worlds.step(step)
        touched += int(worlds.sim.solver.rigid_contacts.count.numpy()[0] > 0)
        if (step + 1) % 30 == 0:
            for row, identity in enumerate(worlds.identities):
                history[identity].append(worlds.bits(row))
    return history, touched


@pytest.fixture(scope="module")
def shared(variants: list) -> Iterator[Worlds]:
    """Eight worlds in order, built once; placing them anew leaves nothing of the test before."""
    worlds = ReferenceWorlds(variants, range(8))
    yield worlds
    worlds.sim.close()


@pytest.fixture(scope="module")
def first_run(shared: Worlds) -> tuple[dict, int]:
    return run(shared)


@pytest.fixture(scope="module")
def batch(first_run: tuple[dict, int]) -> dict:
    """Trajectories of the eight worlds: what every other run is compared with."""
    return first_run[0]


@pytest.fixture
def eight(shared: Worlds, batch: dict) -> Worlds:
    """The eight worlds at their start."""
    shared.sim.stepping.assign(np.ones(8, dtype=np.int8))
    shared.place(np.ones(8, dtype=bool))
    return shared


def test_the_worlds_collide_and_differ(first_run: tuple[dict, int]) -> None:
    history, touched = first_run
    assert touched > 20
    assert len({states[-1] for states in history.values()}) == 8


def test_worlds_placed_anew_remember_nothing(eight: Worlds, batch: dict) -> None:
    assert run(eight)[0] == batch


@pytest.mark.parametrize(
    "identity", [3, pytest.param(0, marks=pytest.mark.slow), pytest.param(7, marks=pytest.mark.slow)]
)
def test_a_world_alone_equals_itself_in_the_batch(variants: list, batch: dict, identity: int) -> None:
    assert run(ReferenceWorlds(variants, [identity]))[0][identity] == batch[identity]


def test_order_and_threads_change_nothing(variants: list, batch: dict) -> None:
    assert run(ReferenceWorlds(variants, [3, 7, 1, 0, 5, 2, 6, 4], threads=2))[0] == batch


def test_replayed_launches_equal_single_ones(eight: Worlds, batch: dict) -> None:
    """A step is captured and replayed; launching its kernels one by one gives the same bits."""
    solver = eight.sim.solver
    for step in range(30):
        eight.sim.command.assign(eight.commands[step])
        solver._launch(solver.arrays, 4, 1.0 / 240.0)
    assert all(eight.bits(row) == batch[row][0] for row in range(8))


def test_a_frozen_world_keeps_its_bits(eight: Worlds, batch: dict) -> None:
    """Frozen in motion, in the midst of its collisions, and released again."""
    mask = np.ones(8, dtype=np.int8)
    for step in range(60):
        eight.step(step)
    mask[4] = 0
    eight.sim.stepping.assign(mask)
    before = eight.bits(4)
    for step in range(60, STEPS):
        eight.step(step)
    assert eight.bits(4) == before == batch[4][1]
    assert all(eight.bits(row) == batch[row][-1] for row in NEIGHBOURS)
    eight.sim.stepping.assign(np.ones(8, dtype=np.int8))
    for step in range(60, STEPS):
        eight.step(step)
    assert eight.bits(4) == batch[4][-1]


def test_a_masked_reset_leaves_neighbours_alone(eight: Worlds, batch: dict) -> None:
    mask = np.arange(8) % 2 == 0
    for step in range(STEPS):
        if step == 20:
            eight.place(mask)
        eight.step(step)
    for row in range(8):
        assert (eight.bits(row) == batch[row][-1]) == (not mask[row])


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_worlds_driven_to_nan_change_no_other(eight: Worlds, batch: dict, value: float) -> None:
    """Car 7 of a world for each array is spoilt; it is flagged and sent home, and the worlds between run on.

    Home may be taken by the car behind by then, which lifts it by up to a car's height in one control step.
    """
    sim, spoilt = eight.sim, {"body_q": 1, "body_qd": 4, "wheel_spin": 6}
    others = [row for row in range(8) if row not in spoilt.values()]
    home = sim.body_q.numpy().reshape(8, VEHICLES, 7)[:, 7, :3].copy()
    for step in range(STEPS):
        if step == 40:
            for array, row in spoilt.items():
                bad = getattr(sim, array).numpy().copy()
                bad.reshape(8, VEHICLES, -1)[row, 7] = value
                getattr(sim, array).assign(bad)
        eight.step(step)
        if step == 40:
            flags, now = sim.nonfinite.numpy(), sim.body_q.numpy().reshape(8, VEHICLES, 7)[:, 7, :3]
            assert not flags[others].any()
            for row in spoilt.values():
                assert flags[row, 7] == 1 and np.abs(now[row] - home[row]).max() < 2.0
    assert np.isfinite(sim.body_q.numpy()).all()
    assert all(eight.bits(row) == batch[row][-1] for row in others)


def test_saved_worlds_go_on_in_another_simulator(variants: list, batch: dict) -> None:
    """Saved in the midst of collisions, restored among more worlds, in another order and on other roads before."""
    worlds = ReferenceWorlds(variants, range(8))
    for step in range(60):
        worlds.step(step)
    assert worlds.sim.solver.rigid_contacts.count.numpy()[0] > 0
    saved = worlds.sim.save()
    worlds.sim.close()
    rows, origin = [9, 0, 2, 5, 7], [1, 6, 0, 1, 3]
    other = ReferenceWorlds(variants, range(10))
    for step in range(7):
        other.step(step)
    other.sim.restore(saved, worlds=rows, source=origin)
    other.commands[:, rows] = worlds.commands[:, origin]
    for step in range(60, STEPS):
        other.step(step)
    assert all(other.bits(row) == batch[k][-1] for row, k in zip(rows, origin, strict=True))
    fused = Worlds(variants, range(8))
    with pytest.raises(ValueError, match="solver 'xpbd', the simulator has 'vehicle'"):
        fused.sim.restore(saved)


@pytest.mark.parametrize(("name", "value"), [("PAIR_CONTACTS", 0), ("FACET_CONTACTS", 0)])
def test_overflow_raises(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    """Two cars on their roofs, one on the other, need both kinds of contacts."""
    for constant in ("PAIR_CONTACTS", "FACET_CONTACTS"):
        monkeypatch.setattr(solver_xpbd, constant, value if constant == name else 1)
    sim = Simulator(2, [flat_variant()], num_vehicles=2, solver="xpbd")
    assert not sim.contact_overflow().any()
    pose = sim.body_q.numpy().copy()
    pose[:, :3] = [[0, 0, 0.44], [0, 0, 1.33]] * 2
    pose[:, 3:] = [1.0, 0.0, 0.0, 0.0]
    sim.body_q.assign(pose)
    with pytest.raises(RuntimeError, match=r"more contacts than the buffer of .* for 2 worlds"):
        for _ in range(10):
            sim.control_step()
    assert sim.contact_overflow().all()
