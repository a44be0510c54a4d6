"""Bitwise promises of the reference path on a CPU, its capacity, and vehicles that turn non-finite."""

from __future__ import annotations

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


def run(worlds: Worlds) -> dict[int, list[tuple[bytes, ...]]]:
    """Trajectory of each identity, sampled every half second; vehicles have collided by then."""
    history: dict[int, list] = {identity: [] for identity in worlds.identities}
    for step in range(STEPS):
        worlds.step(step)
        if (step + 1) % 30 == 0:
            for row, identity in enumerate(worlds.identities):
                history[identity].append(worlds.bits(row))
    worlds.sim.close()
    return history


@pytest.fixture(scope="module")
def batch(variants: list) -> dict:
    """Eight worlds in order: what every other run is compared with."""
    return run(ReferenceWorlds(variants, range(8)))


def test_the_worlds_collide_and_differ(variants: list, batch: dict) -> None:
    worlds = ReferenceWorlds(variants, range(8))
    touched = 0
    for step in range(STEPS):
        worlds.step(step)
        touched += int(worlds.sim.solver.rigid_contacts.count.numpy()[0] > 0)
    assert touched > 20
    assert len({history[-1] for history in batch.values()}) == 8


@pytest.mark.parametrize("identity", [0, 3, 7])
def test_a_world_alone_equals_itself_in_the_batch(variants: list, batch: dict, identity: int) -> None:
    assert run(ReferenceWorlds(variants, [identity]))[identity] == batch[identity]


def test_order_and_threads_change_nothing(variants: list, batch: dict) -> None:
    assert run(ReferenceWorlds(variants, [3, 7, 1, 0, 5, 2, 6, 4], threads=2)) == batch


def test_replayed_launches_equal_single_ones(variants: list, batch: dict) -> None:
    """A step is captured and replayed; launching its kernels one by one gives the same bits."""
    worlds = ReferenceWorlds(variants, range(8))
    solver = worlds.sim.solver
    for step in range(30):
        worlds.sim.command.assign(worlds.commands[step])
        solver._launch(solver.arrays, 4, 1.0 / 240.0)
    assert all(worlds.bits(row) == batch[row][0] for row in range(8))


def test_a_frozen_world_keeps_its_bits(variants: list, batch: dict) -> None:
    """Frozen in motion, in the midst of its collisions, and released again."""
    worlds = ReferenceWorlds(variants, range(8))
    mask = np.ones(8, dtype=np.int8)
    for step in range(60):
        worlds.step(step)
    mask[4] = 0
    worlds.sim.stepping.assign(mask)
    before = worlds.bits(4)
    for step in range(60, STEPS):
        worlds.step(step)
    assert worlds.bits(4) == before == batch[4][1]
    assert all(worlds.bits(row) == batch[row][-1] for row in NEIGHBOURS)
    worlds.sim.stepping.assign(np.ones(8, dtype=np.int8))
    for step in range(60, STEPS):
        worlds.step(step)
    assert worlds.bits(4) == batch[4][-1]


def test_a_masked_reset_leaves_neighbours_alone(variants: list, batch: dict) -> None:
    worlds = ReferenceWorlds(variants, range(8))
    mask = np.arange(8) % 2 == 0
    for step in range(STEPS):
        if step == 20:
            worlds.place(mask)
        worlds.step(step)
    for row in range(8):
        assert (worlds.bits(row) == batch[row][-1]) == (not mask[row])


@pytest.mark.parametrize("array", ["body_q", "body_qd", "wheel_spin"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_a_world_driven_to_nan_changes_no_other(variants: list, batch: dict, array: str, value: float) -> None:
    worlds = ReferenceWorlds(variants, range(8))
    home = worlds.sim.body_q.numpy().reshape(8, VEHICLES, 7)[4, 7].copy()
    for step in range(STEPS):
        if step == 40:
            bad = getattr(worlds.sim, array).numpy().copy()
            bad.reshape(8, VEHICLES, -1)[4, 7] = value
            getattr(worlds.sim, array).assign(bad)
        worlds.step(step)
        if step == 40:
            flags = worlds.sim.nonfinite.numpy()
            assert flags[4, 7] == 1 and not flags[list(NEIGHBOURS)].any()
            assert np.abs(worlds.sim.body_q.numpy().reshape(8, VEHICLES, 7)[4, 7, :3] - home[:3]).max() < 1.0
    assert np.isfinite(worlds.sim.body_q.numpy()).all()
    assert all(worlds.bits(row) == batch[row][-1] for row in NEIGHBOURS)


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
