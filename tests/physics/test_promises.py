"""A world's bits in traffic that collides: batch, order, threads, launch shape, graphs, neighbours, save and restore.

One reference trajectory of sixteen worlds is run once; everything else is compared with it, all arrays, byte by byte.
"""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.registry import load_condition
from sf3d_envs.sim.saved import SavedState
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

from .test_bits import SLUGS, VEHICLES
from .traffic import Bits, Traffic

WORLDS = 16
ORIGIN = 6
"""The world that is branched."""
IN_TRAFFIC, IN_COLLISION = 12, 75
"""Control steps at which worlds are saved."""
FURTHER = 1000
END = IN_COLLISION + FURTHER
SHORT = 120
SAMPLES = sorted({*range(20, SHORT + 1, 20), IN_TRAFFIC, IN_COLLISION, 300, 600, IN_TRAFFIC + FURTHER, END})
History = dict[int, list[Bits]]
"""For each sampled control step, all worlds."""


@pytest.fixture(scope="module")
def variants() -> list:
    return [lane_closure_terrain(load_condition(slug)) for slug in SLUGS]


@pytest.fixture(scope="module")
def saved() -> dict[int, SavedState]:
    """Worlds of the reference run, saved on its way; filled by it."""
    return {}


@pytest.fixture(scope="module")
def reference(variants: list, saved: dict[int, SavedState]) -> History:
    """Sixteen worlds in order on one thread, saved twice on their way."""
    worlds = Traffic(variants, range(WORLDS), threads=1)
    history = {}
    for step in range(1, END + 1):
        worlds.advance()
        if step in SAMPLES:
            history[step] = worlds.all_bits()
        if step == IN_TRAFFIC:
            assert worlds.contacts().max() == 0 and worlds.driving().min() == VEHICLES
        if step == IN_COLLISION:
            assert (worlds.contacts() > 0).sum() >= 8 and worlds.contacts()[ORIGIN] > 0
            assert (worlds.driving() >= 4).sum() >= 8
        if step in (IN_TRAFFIC, IN_COLLISION):
            saved[step] = worlds.sim.save()
    worlds.sim.close()
    return history


def follows(worlds: Traffic, reference: History, rows: list[int], until: int) -> None:
    """Advance all worlds until the given rows, which share a clock, are at a step; those rows are the reference."""
    clock = int(worlds.clock[rows[0]])
    assert (worlds.clock[rows] == clock).all()
    for step in [sample for sample in SAMPLES if clock < sample <= until]:
        worlds.advance(step - int(worlds.clock[rows[0]]))
        found = worlds.all_bits()
        for row in rows:
            assert found[row] == reference[step][worlds.identity[row]], f"row {row} at control step {step}"


def test_the_reference_worlds_differ_and_still_drive_after_a_thousand_steps(reference: History) -> None:
    assert len(set(reference[END])) == WORLDS
    assert all(a != b for a, b in zip(reference[END], reference[IN_TRAFFIC + FURTHER], strict=True))


@pytest.mark.parametrize(("identities", "until"), [([5], END), ([0, 3, 4, 7, 9, 10, 15], END), (range(64), 80)])
def test_batch_size(variants: list, reference: History, identities, until: int) -> None:
    worlds = Traffic(variants, list(identities), threads=2)
    follows(worlds, reference, [row for row, k in enumerate(identities) if k < WORLDS], until)
    worlds.sim.close()


@pytest.mark.parametrize("until", [40, pytest.param(END, marks=pytest.mark.slow)])
def test_256_worlds_in_another_order_on_three_threads(variants: list, reference: History, until: int) -> None:
    order = np.random.default_rng(6).permutation(256)
    worlds = Traffic(variants, order.tolist(), threads=3)
    follows(worlds, reference, np.flatnonzero(order < WORLDS).tolist(), until)
    worlds.sim.close()


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_launch_shapes_and_graphs(
    variants: list, reference: History, threads: int, fused: bool, graphs: bool
) -> None:
    order = np.random.default_rng(threads).permutation(WORLDS).tolist()
    worlds = Traffic(variants, order, threads=threads, fused=fused)
    worlds.sim.shards.graphs = graphs
    follows(worlds, reference, list(range(WORLDS)), SHORT)
    worlds.sim.close()


@pytest.mark.parametrize("fused", [True, False])
def test_neighbours_that_are_placed_anew_in_a_collision(variants: list, reference: History, fused: bool) -> None:
    worlds = Traffic(variants, range(WORLDS), threads=2, fused=fused)
    mask = np.arange(WORLDS) % 3 == 0
    worlds.advance(IN_COLLISION)
    worlds.place(mask)
    follows(worlds, reference, np.flatnonzero(~mask).tolist(), SHORT)
    worlds.place(~mask)
    follows(worlds, reference, np.flatnonzero(mask).tolist(), SHORT)
    worlds.sim.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, -3e38])
@pytest.mark.parametrize("array", ["body_q", "body_qd", "wheel_spin", "steer_angle", "command"])
def test_a_neighbour_driven_to_nan(variants: list, reference: History, array: str, value: float) -> None:
    """Vehicle 7 of three worlds, in the midst of a collision; both launch shapes make the same of it.

    No command makes a state non-finite: what it asks for is clamped to what the vehicle can do.
    """
    bad = [2, 8, 9]
    good = [row for row in range(WORLDS) if row not in bad]
    ends = []
    for fused in (True, False):
        worlds = Traffic(variants, range(WORLDS), threads=2, fused=fused)
        follows(worlds, reference, good, IN_COLLISION)
        if array == "command":
            for k in bad:
                worlds.table[k] = worlds.table[k].copy()
                worlds.table[k][IN_COLLISION : IN_COLLISION + 30, 7] = value
        else:
            spoiled = getattr(worlds.sim, array)
            values = spoiled.numpy().copy()
            values.reshape(WORLDS, VEHICLES, -1)[bad, 7] = value
            spoiled.assign(values)
        follows(worlds, reference, good, SHORT)
        flags = worlds.sim.nonfinite.numpy()
        assert not flags[good].any()
        assert flags[bad, 7].tolist() == [int(array != "command")] * len(bad)
        assert np.isfinite(worlds.sim.body_q.numpy()).all() and np.isfinite(worlds.sim.body_qd.numpy()).all()
        ends.append(worlds.all_bits())
        assert all(ends[-1][row] != reference[SHORT][row] for row in bad)
        worlds.sim.close()
    assert ends[0] == ends[1]


@pytest.mark.parametrize("moment", [IN_TRAFFIC, IN_COLLISION])
def test_saving_and_restoring(variants: list, reference: History, saved: dict, moment: int) -> None:
    """A thousand further steps in a simulator whose memory held NaN before, on other threads and in another launch."""
    worlds = Traffic(variants, range(WORLDS), threads=2, fused=moment == IN_COLLISION)
    worlds.advance(3)
    worlds.spoil(range(WORLDS))
    worlds.sim.restore(saved[moment])
    worlds.become(range(WORLDS), range(WORLDS), moment)
    assert worlds.all_bits() == reference[moment]
    follows(worlds, reference, list(range(WORLDS)), moment + FURTHER)
    worlds.sim.close()


def test_a_simulator_goes_back_in_its_own_time(variants: list, reference: History, saved: dict) -> None:
    worlds = Traffic(variants, range(WORLDS), threads=2)
    follows(worlds, reference, list(range(WORLDS)), IN_COLLISION)
    own = worlds.sim.save(np.arange(WORLDS) < 5)
    follows(worlds, reference, list(range(WORLDS)), 100)
    worlds.sim.restore(own, [4, 0, 1, 3], [4, 0, 1, 3])
    worlds.become([0, 1, 3, 4], [0, 1, 3, 4], IN_COLLISION)
    follows(worlds, reference, [2, *range(5, WORLDS)], 120)
    follows(worlds, reference, [0, 1, 3, 4], 120)
    worlds.sim.close()


def test_restoring_into_a_simulator_with_more_worlds(variants: list, reference: History, saved: dict) -> None:
    """Sixteen saved worlds at other places among 40, on other roads before; the others go on untouched."""
    order = np.random.default_rng(8).permutation(40)
    rows, identities = order[:WORLDS].tolist(), np.random.default_rng(9).permutation(WORLDS).tolist()
    worlds = Traffic(variants, [k % WORLDS for k in range(40)], threads=3)
    others = sorted(set(range(40)) - set(rows))
    worlds.advance(40)
    worlds.sim.restore(saved[IN_COLLISION], worlds=rows, source=identities)
    worlds.become(rows, identities, IN_COLLISION)
    assert worlds.sim.world_variant.numpy()[rows].tolist() == [k % len(SLUGS) for k in identities]
    follows(worlds, reference, others, 80)
    follows(worlds, reference, rows, 300)
    worlds.sim.close()


def test_one_world_branched_into_sixteen(variants: list, reference: History, saved: dict) -> None:
    """Equal commands keep sixteen branches equal; other commands take each where a lone branch goes."""
    worlds = Traffic(variants, range(WORLDS), threads=2)
    worlds.sim.restore(saved[IN_COLLISION], source=ORIGIN)
    worlds.become(range(WORLDS), ORIGIN, IN_COLLISION)
    follows(worlds, reference, list(range(WORLDS)), 300)

    worlds.sim.restore(saved[IN_COLLISION], source=[ORIGIN] * WORLDS)
    worlds.become(range(WORLDS), range(WORLDS), IN_COLLISION)
    worlds.advance(60)
    found = worlds.all_bits()
    assert len(set(found)) == WORLDS
    assert found[ORIGIN] != reference[IN_COLLISION][ORIGIN]
    for row in (0, 11):
        alone = Traffic(variants, [row], threads=1)
        alone.sim.restore(saved[IN_COLLISION], source=ORIGIN)
        alone.become([0], row, IN_COLLISION)
        alone.advance(60)
        assert alone.all_bits()[0] == found[row]
        alone.sim.close()
    worlds.sim.close()
