"""Bitwise promises of the simulator: batch, order, threads, launch shape, masks, and roads that differ further on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sf3d_envs.registry import load_condition
from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.lane_closure import ROAD, lane_closure_terrain

SLUGS = ("reference", "mu018", "gradeN045", "gradeP030-mu018")
VEHICLES = 12
STEPS = 180
ARRAYS = (
    "body_q",
    "body_qd",
    "wheel_spin",
    "steer_angle",
    "wheel_load",
    "wheel_friction",
    "wheel_compression",
    "forward_accel",
    "nonfinite",
)


@pytest.fixture(scope="module")
def variants() -> list:
    return [lane_closure_terrain(load_condition(slug)) for slug in SLUGS]


class Worlds:
    """Worlds known by an identity, which fixes road, start and commands wherever the world sits in a batch."""

    def __init__(self, variants: Sequence, identities: Sequence[int], **options):
        self.identities = list(identities)
        self.sim = Simulator(
            len(self.identities), variants, [k % len(variants) for k in self.identities], device="cpu", **options
        )
        self.place(np.ones(len(self.identities), dtype=bool))
        self.commands = np.stack([self._commands(k) for k in self.identities], axis=1)

    def place(self, mask: np.ndarray) -> None:
        """Two dense columns that drive onto the patch or grade."""
        position = np.zeros((len(self.identities), VEHICLES, 3))
        speed = np.zeros(position.shape[:2])
        for row, identity in enumerate(self.identities):
            rng = np.random.default_rng(1000 + identity)
            lane = np.arange(VEHICLES) % 2
            position[row, :, 0] = 36.0 - 7.0 * (np.arange(VEHICLES) // 2) + rng.uniform(-0.5, 0.5, VEHICLES)
            position[row, :, 1] = np.where(lane == 0, ROAD.closing_lane_y, ROAD.open_lane_y)
            position[row, :, 2] = VehicleParams().rest_height
            speed[row] = rng.uniform(6.0, 14.0, VEHICLES)
        self.sim.place(mask, position, 0.0, speed)

    @staticmethod
    def _commands(identity: int) -> np.ndarray:
        """Harsh random commands held for a third of a second, [STEPS, V, 2]: they collide, spin and leave the road."""
        rng = np.random.default_rng(2000 + identity)
        accel = rng.uniform(-8.0, 5.0, (STEPS // 20 + 1, VEHICLES))
        steering = rng.uniform(-0.6, 0.6, accel.shape)
        return np.repeat(np.stack([accel, steering], axis=-1), 20, axis=0)[:STEPS].astype(np.float32)

    def step(self, step: int) -> None:
        self.sim.command.assign(self.commands[step])
        self.sim.control_step()

    def bits(self, row: int) -> tuple[bytes, ...]:
        """State of one world as bytes, one entry per array."""
        count = len(self.identities)
        return tuple(getattr(self.sim, name).numpy().reshape(count, -1)[row].tobytes() for name in ARRAYS)

    def run(self, every: int = 30) -> dict[int, list[tuple[bytes, ...]]]:
        """Trajectory of each identity, sampled every half second."""
        history: dict[int, list] = {identity: [] for identity in self.identities}
        for step in range(STEPS):
            self.step(step)
            if (step + 1) % every == 0:
                for row, identity in enumerate(self.identities):
                    history[identity].append(self.bits(row))
        self.sim.close()
        return history


@pytest.fixture(scope="module")
def batch(variants: list) -> dict:
    """64 worlds in order on one thread: what every other run is compared with."""
    return Worlds(variants, range(64), threads=1).run()


def test_the_worlds_collide_and_differ(variants: list, batch: dict) -> None:
    worlds = Worlds(variants, range(8), threads=1)
    touched = 0
    for step in range(STEPS):
        worlds.step(step)
        touched += int(worlds.sim.solver.rigid_contacts.count.numpy().sum() > 0)
    assert touched > 20
    assert len({history[-1] for history in batch.values()}) == 64


@pytest.mark.parametrize("identity", [0, 1, 2, 3, 41, 63])
def test_a_world_alone_equals_itself_in_the_batch(variants: list, batch: dict, identity: int) -> None:
    assert Worlds(variants, [identity]).run()[identity] == batch[identity]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_order_and_threads_change_nothing(variants: list, batch: dict, threads: int) -> None:
    order = np.random.default_rng(5).permutation(64)
    assert Worlds(variants, order.tolist(), threads=threads).run() == batch


def test_a_rerun_is_equal(variants: list, batch: dict) -> None:
    assert Worlds(variants, range(64), threads=1).run() == batch


@pytest.mark.parametrize("fused", [True, False])
def test_launch_shapes_agree(variants: list, batch: dict, fused: bool) -> None:
    """A thread per world over all substeps, or a thread per vehicle and a launch per substep."""
    history = Worlds(variants, range(16), threads=2, fused=fused).run()
    assert all(history[identity] == batch[identity] for identity in range(16))


def test_a_masked_reset_leaves_neighbours_alone(variants: list, batch: dict) -> None:
    worlds = Worlds(variants, range(9), threads=1)
    mask = np.arange(9) % 2 == 0
    for step in range(STEPS):
        if step in (20, 90):
            worlds.place(mask)
        worlds.step(step)
    for row in range(9):
        assert (worlds.bits(row) == batch[row][-1]) == (not mask[row])


def test_a_reset_world_forgets_its_past(variants: list, batch: dict) -> None:
    worlds = Worlds(variants, range(8), threads=1)
    for step in range(70):
        worlds.step(step)
    worlds.place(np.ones(8, dtype=bool))
    history = worlds.run()
    assert all(history[identity] == batch[identity] for identity in range(8))


@pytest.mark.parametrize("array", ["body_q", "body_qd", "wheel_spin"])
def test_a_world_driven_to_nan_changes_no_other(variants: list, batch: dict, array: str) -> None:
    worlds = Worlds(variants, range(9), threads=1)
    for step in range(STEPS):
        if step == 40:
            value = getattr(worlds.sim, array).numpy().copy()
            value.reshape(9, VEHICLES, -1)[4, 7] = np.nan
            getattr(worlds.sim, array).assign(value)
        worlds.step(step)
        if step == 40:
            flags = worlds.sim.nonfinite.numpy()
            assert flags[4, 7] == 1 and not flags[[0, 1, 2, 3, 5, 6, 7, 8]].any()
    assert all(worlds.bits(row) == batch[row][-1] for row in range(9) if row != 4)


def test_a_frozen_world_stands_still(variants: list, batch: dict) -> None:
    worlds = Worlds(variants, range(9), threads=1)
    mask = np.ones(9, dtype=np.int8)
    mask[3] = 0
    worlds.sim.stepping.assign(mask)
    before = worlds.bits(3)
    for step in range(STEPS):
        worlds.step(step)
    assert worlds.bits(3) == before
    assert all(worlds.bits(row) == batch[row][-1] for row in range(9) if row != 3)


@pytest.mark.parametrize("slug", ["mu018", "gradeN045", "gradeP030-mu018"])
def test_worlds_agree_until_the_first_wheel_reaches_the_changed_road(slug: str) -> None:
    """Reference and condition under equal commands: equal bits before a wheel is past x = 40 m, not afterwards."""
    changed = load_condition(slug)
    variants = [lane_closure_terrain(load_condition("reference")), lane_closure_terrain(changed)]
    sim = Simulator(2, variants, [0, 1], num_vehicles=2, device="cpu", threads=1)
    start = np.array([[5.0, ROAD.closing_lane_y, 0.6454], [-4.0, ROAD.open_lane_y, 0.6454]])
    sim.place(np.ones(2, dtype=bool), np.broadcast_to(start, (2, 2, 3)), 0.0, 10.0)
    command = np.broadcast_to(np.array([0.5, 0.0], dtype=np.float32), (2, 2, 2)).copy()
    first_difference = first_touch = None
    for step in range(300):
        sim.command.assign(command)
        sim.control_step()
        rows = [b"".join(getattr(sim, name).numpy().reshape(2, -1)[w].tobytes() for name in ARRAYS) for w in range(2)]
        front_axle = sim.body_q.numpy().reshape(2, 2, 7)[0, 0, 0] + 1.3
        if first_difference is None and rows[0] != rows[1]:
            first_difference = step
        if first_touch is None and front_axle >= ROAD.change_x:
            first_touch = step
    assert first_touch is not None and first_difference is not None
    # Wheel rays slant by the pitch angle, and a patch is noted in the step that touches it.
    assert 0 <= first_difference - first_touch <= 1
