"""Bitwise promises: batch size, order, threads, launch shape, masked placement, save and restore."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..registry import load_condition
from ..sim.simulator import Simulator
from ..terrain.lane_closure import ROAD, lane_closure_terrain
from ..terrain.variants import TerrainVariant
from .check import Record

SLUGS = ("reference", "mu018", "gradeN045", "gradeP030-mu018")
VEHICLES, STEPS, EVERY = 12, 180, 30
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
"""State and readings that are compared byte by byte."""

History = dict[int, list[tuple[bytes, ...]]]


class Worlds:
    """Worlds known by an identity, which fixes road, start and commands wherever the world sits in a batch."""

    def __init__(self, variants: Sequence[TerrainVariant], identities: Sequence[int], **options):
        self.identities = list(identities)
        self.sim = Simulator(len(self.identities), variants, [k % len(variants) for k in self.identities], **options)
        self.place(np.ones(len(self.identities), dtype=bool))
        self.commands = np.stack([_commands(k) for k in self.identities], axis=1)

    def place(self, mask: np.ndarray) -> None:
        """Two dense columns that drive onto the patch or grade."""
        position = np.zeros((len(self.identities), VEHICLES, 3))
        speed = np.zeros(position.shape[:2])
        lane = np.arange(VEHICLES) % 2
        for row, identity in enumerate(self.identities):
            rng = np.random.default_rng(1000 + identity)
            position[row, :, 0] = 36.0 - 7.0 * (np.arange(VEHICLES) // 2) + rng.uniform(-0.5, 0.5, VEHICLES)
            position[row, :, 1] = np.where(lane == 0, ROAD.closing_lane_y, ROAD.open_lane_y)
            position[row, :, 2] = [car.rest_height for car in self.sim.vehicles]
            speed[row] = rng.uniform(6.0, 14.0, VEHICLES)
        self.sim.place(mask, position, 0.0, speed)

    def step(self, step: int) -> None:
        """One control step."""
        self.sim.command.assign(self.commands[step])
        self.sim.control_step()

    def bits(self) -> list[tuple[bytes, ...]]:
        """State of each world as bytes, one entry per array."""
        count = len(self.identities)
        tables = [getattr(self.sim, name).numpy().reshape(count, -1) for name in ARRAYS]
        return [tuple(table[row].tobytes() for table in tables) for row in range(count)]

    def run(self, start: int = 0) -> History:
        """Trajectory of each identity from a step on, sampled every half second; closes the simulator."""
        history: History = {identity: [] for identity in self.identities}
        for step in range(start, STEPS):
            self.step(step)
            if (step + 1) % EVERY == 0:
                for identity, bits in zip(self.identities, self.bits(), strict=True):
                    history[identity].append(bits)
        self.sim.close()
        return history


def _commands(identity: int) -> np.ndarray:
    """Harsh random commands held for a third of a second, [STEPS, V, 2]: they collide, spin and leave the road."""
    rng = np.random.default_rng(2000 + identity)
    accel = rng.uniform(-8.0, 5.0, (STEPS // 20 + 1, VEHICLES))
    steering = rng.uniform(-0.6, 0.6, accel.shape)
    return np.repeat(np.stack([accel, steering], axis=-1), 20, axis=0)[:STEPS].astype(np.float32)


def different(history: History, batch: History, last: int | None = None) -> int:
    """How many identities of a run have other bits than in the batch, at any sample (or the last few)."""
    begin = 0 if last is None else -last
    return sum(history[k][begin:] != batch[k][begin:] for k in history)


def run(record: Record) -> None:
    """Compare each form of run with one batch of 64 worlds on one thread."""
    variants = [lane_closure_terrain(load_condition(slug)) for slug in SLUGS]
    batch = Worlds(variants, range(64), threads=1).run()
    source = {"source": "promise: a world's bits depend on nothing but its own road, start and commands"}

    def same(name: str, states: str, history: History, last: int | None = None) -> None:
        record.at_most(name, different(history, batch, last), 0, "worlds", states=states, **source)

    record.at_least(
        "the worlds differ",
        len({tuple(rows[-1]) for rows in batch.values()}),
        64,
        "worlds",
        states="64 worlds of 12 colliding vehicles end in 64 different states, so the comparisons mean something.",
        source="starts and commands differ",
    )
    alone = {k: rows for k in (0, 1, 2, 3, 41) for rows in Worlds(variants, [k]).run().values()}
    same("batch of 1", "Five worlds, each run alone.", alone)
    same("batch of 7", "Seven worlds together.", Worlds(variants, [3, 9, 14, 21, 40, 55, 63]).run())
    order = np.random.default_rng(5).permutation(64).tolist()
    same("order, 1 thread", "64 worlds in another order.", Worlds(variants, order, threads=1).run())
    same("order, 2 threads", "64 worlds in another order on two threads.", Worlds(variants, order, threads=2).run())
    for fused, name in ((True, "thread per world"), (False, "thread per vehicle")):
        history = Worlds(variants, range(16), threads=2, fused=fused).run()
        same(f"launch shape, {name}", f"16 worlds with a {name} for the forces.", history)
    _masked(record, variants, batch)
    if record.full:
        _long(record, variants, batch)


def _masked(record: Record, variants: Sequence[TerrainVariant], batch: History) -> None:
    worlds = Worlds(variants, range(9), threads=1)
    mask = np.arange(9) % 2 == 0
    for step in range(STEPS):
        if step in (20, 90):
            worlds.place(mask)
        worlds.step(step)
    changed = [bits != batch[k][-1] for k, bits in enumerate(worlds.bits())]
    worlds.place(np.ones(9, dtype=bool))
    again = worlds.run()
    words = {"source": "promise: placement clears what the physics carries, in the masked worlds alone"}
    record.at_most(
        "masked placement, neighbours",
        sum(c for c, m in zip(changed, mask, strict=True) if not m),
        0,
        "worlds",
        states="Every second world is placed anew twice; the others keep their bits.",
        **words,
    )
    record.at_least(
        "masked placement, masked",
        sum(c for c, m in zip(changed, mask, strict=True) if m),
        int(mask.sum()),
        "worlds",
        states="The worlds that were placed anew are elsewhere.",
        **words,
    )
    record.at_most(
        "placement forgets",
        different(again, batch),
        0,
        "worlds",
        states="Placed anew after 3 s of collisions, nine worlds repeat their run from the start.",
        **words,
    )


def _long(record: Record, variants: Sequence[TerrainVariant], batch: History) -> None:
    words = {"source": "promise: a world's bits depend on nothing but its own road, start and commands"}
    order = np.random.default_rng(6).permutation(256).tolist()
    large = Worlds(variants, order, threads=3).run()
    record.at_most(
        "batch of 256, 3 threads",
        different({k: large[k] for k in batch}, batch),
        0,
        "worlds",
        states="64 worlds among 256 in another order on three threads.",
        **words,
    )
    first = Worlds(variants, range(16), threads=1)
    for step in range(90):
        first.step(step)
    saved = first.sim.save()
    rest = first.run(90)
    order = np.random.default_rng(7).permutation(16).tolist()
    second = Worlds(variants, order, threads=1)
    for step in range(33):
        second.step(step)
    second.sim.restore(saved, source=order)
    again = second.run(90)
    record.at_most(
        "save and restore",
        different(again, rest) + different(rest, batch, last=3),
        0,
        "worlds",
        states="Worlds saved after 1.5 s and put into another simulator in another order go on with the same bits.",
        source="promise: what a simulator saves is the whole state",
    )
