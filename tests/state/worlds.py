"""Small simulators for the tests of the tensor state."""

from __future__ import annotations

import numpy as np
import torch

from sf3d_envs import Simulator, StateConfig
from sf3d_envs.sim.arrays import CARRIED
from sf3d_envs.terrain import plane

REST = 0.6454
UP = torch.tensor([0.0, 0.0, 0.0, 1.0])
ROOF = torch.tensor([1.0, 0.0, 0.0, 0.0])
MASS = 1350.0
WORLDS, VEHICLES = 5, 3


def make(worlds: int = WORLDS, vehicles: int = VEHICLES, *, friction: float = 0.5, **options) -> Simulator:
    """Cars on a plane, 20 m apart, at rest on their springs."""
    config = {key: options.pop(key) for key in StateConfig.__dataclass_fields__ if key in options}
    options = {"threads": 1} | options
    sim = Simulator(worlds, [plane(friction)], num_vehicles=vehicles, state=StateConfig(**config), **options)
    position = torch.zeros(vehicles, 3)
    position[:, 0], position[:, 2] = 20.0 * torch.arange(vehicles), REST
    sim.place(np.ones(worlds, dtype=bool), position.numpy())
    return sim


def mixed(sim: Simulator, seed: int = 0, steps: int = 10) -> Simulator:
    """Each vehicle in another state."""
    generator = torch.Generator().manual_seed(seed)
    shape = (sim.num_worlds, sim.num_vehicles)
    sim.state.command.copy_(torch.rand(*shape, 2, generator=generator) * 2.0 - 1.0)
    sim.control_step(steps)
    return sim


def rows(sim: Simulator) -> dict[str, np.ndarray]:
    """Bytes of every carried array, [E, V, n]."""
    found = {}
    for name in CARRIED:
        array = getattr(sim.arrays, name).numpy()
        flat = np.ascontiguousarray(array).reshape(sim.num_worlds, sim.num_vehicles, -1)
        found[name] = flat.view(np.uint8).reshape(sim.num_worlds, sim.num_vehicles, -1).copy()
    return found


def changed(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> np.ndarray:
    """Which vehicles differ in any bit, bool [E, V]."""
    return np.any([(before[name] != after[name]).any(axis=-1) for name in before], axis=0)
