"""Traffic that collides, in worlds with a clock of their own, compared byte by byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import warp as wp

from sf3d_envs.sim.arrays import CARRIED

from .test_bits import STEPS, VEHICLES, Worlds

Bits = tuple[bytes, ...]


class Traffic(Worlds):
    """Worlds known by an identity, each at its own control step; commands repeat after 3 s.

    A world that was restored, or placed anew, goes on at another step than its neighbours.
    """

    def __init__(self, variants: Sequence, identities: Sequence[int], **options):
        self.identity = np.array(identities)
        self.clock = np.zeros(len(self.identity), dtype=int)
        super().__init__(variants, identities, **options)
        self.table = {k: self._commands(k) for k in {*map(int, identities)}}

    def place(self, mask: np.ndarray) -> None:
        super().place(mask)
        self.clock[np.asarray(mask, dtype=bool)] = 0

    def become(self, rows: Iterable[int], identity: Iterable[int] | int, clock: int) -> None:
        """Take over what other worlds go on with, after they were restored into rows."""
        rows = list(rows)
        self.identity[rows], self.clock[rows] = identity, clock
        self.table |= {int(k): self._commands(int(k)) for k in self.identity[rows]}

    def advance(self, count: int = 1) -> None:
        for _ in range(count):
            pairs = zip(self.identity.tolist(), self.clock.tolist(), strict=True)
            self.sim.command.assign(np.stack([self.table[k][step % STEPS] for k, step in pairs]))
            self.sim.control_step()
            self.clock += 1

    def all_bits(self) -> list[Bits]:
        """Every world as bytes, one entry per carried array."""
        count = len(self.identity)
        tables = [getattr(self.sim.arrays, name).numpy().reshape(count, -1) for name in CARRIED]
        return [tuple(table[row].tobytes() for table in tables) for row in range(count)]

    def contacts(self) -> np.ndarray:
        """Contact points of each world in the last substep, [W]."""
        return self.sim.dynamics.rigid_contacts.count.numpy()

    def driving(self) -> np.ndarray:
        """Vehicles of each world that are faster than 1 m/s, [W]."""
        speed = np.linalg.norm(self.sim.body_qd.numpy()[:, :3], axis=1)
        return (speed.reshape(len(self.identity), VEHICLES) > 1.0).sum(axis=1)

    def spoil(self, rows: Iterable[int]) -> None:
        """Make everything in the memory of some worlds' vehicles and contacts non-finite or wrong."""
        found = [getattr(self.sim.arrays, name) for name in CARRIED]
        contacts = self.sim.dynamics.rigid_contacts
        for array in (*found, contacts.multiplier, contacts.count, self.sim.stepping, contacts.overflow):
            spoil(array, list(rows), len(self.identity))


def spoil(array: wp.array, rows: list[int], worlds: int) -> None:
    """NaN into the rows of an array of floats, 1 into those of integers but 0 into ones."""
    values = array.numpy().copy()
    table = values.reshape(worlds, -1)
    table[rows] = np.nan if np.issubdtype(table.dtype, np.floating) else 1 - np.minimum(table[rows], 1)
    array.assign(values)
