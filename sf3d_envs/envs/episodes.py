"""Seeds, scenarios and resets of worlds: everything that decides how an episode starts."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import warp as wp

from ..launches import LaunchList
from ..random import unsigned_integers
from ..scenario.kernels import project_to_routes_global
from ..scenario.lane_closure import ScenarioBuffers, sample_scenarios
from ..scenario.route import RouteTable
from ..sim.simulator import Simulator
from ..task.kernels import TaskState, reset_task
from .kernels import EpisodeArrays, RowArrays, begin_episodes, place_scenario, select_done
from .probes import Probe
from .randomizer import Randomizer


class Episodes:
    """Episode seeds and the masked reset of worlds, on the simulator's device.

    World i draws from stream ``seed + i``; the scenario of its k-th episode has seed Philox(stream, k) >= 2**32, so
    training never meets the benchmark's scenarios (decisions.md, "Seeds").

    Args:
        sim: The simulator to reset.
        routes: Route table.
        task: Task state, cleared with a world.
        rows: Row state, restarted with a world.
        resample_variant: Whether each episode draws its road.
        randomizer: Draws each episode's vehicle parameters and delay; None = nothing is randomized.

    Attributes:
        scenario: Scenario memory of the worlds.
        route_index: Nearest sample of each vehicle on each route, int32 [W, V, R].
        seed: Scenario seeds of the running episodes, uint64 [W].
        mask: Worlds of the last reset, bool [W].
        probes: Probes that a reset clears; set before the first launch is recorded.
    """

    def __init__(
        self,
        sim: Simulator,
        routes: RouteTable,
        task: TaskState,
        rows: RowArrays,
        *,
        resample_variant: bool,
        randomizer: Randomizer | None = None,
    ):
        self._sim, self._randomizer = sim, randomizer
        self._routes, self._task, self._rows = routes, task, rows
        self._resample = int(resample_variant)
        worlds, device = sim.num_worlds, sim.device
        self.arrays = EpisodeArrays()
        self.arrays.stream = wp.zeros(worlds, dtype=wp.uint64, device=device)
        self.arrays.episode = wp.zeros(worlds, dtype=wp.uint32, device=device)
        self.arrays.override = wp.zeros(worlds, dtype=wp.int8, device=device)
        self.arrays.seed = wp.zeros(worlds, dtype=wp.uint64, device=device)
        self.seed = self.arrays.seed
        self.scenario = ScenarioBuffers(worlds, device)
        self.route_index = wp.zeros((worlds, sim.num_vehicles, len(routes)), dtype=int, device=device)
        self.mask = wp.zeros(worlds, dtype=wp.bool, device=device)
        self._seeded = False
        self.probes: Sequence[Probe] = ()

    @cached_property
    def _masked(self) -> LaunchList:
        return self.record(LaunchList(self._sim.shards))

    def record(self, launches: LaunchList, *, done_worlds: bool = False, hold: bool = False) -> LaunchList:
        """Append a masked reset to a list and return it.

        Args:
            launches: The list.
            done_worlds: Reset the worlds that are done, instead of those in ``mask``.
            hold: Let the reset worlds wait for the end of the running step.
        """
        sim = self._sim
        if done_worlds:
            launches.add(select_done, [self._rows, self.mask])
        launches.add(
            begin_episodes,
            [self.mask, self.arrays, self._rows, sim.terrain, sim.stepping, self._resample, int(hold)],
        )
        launches.add(sample_scenarios, [self.arrays.seed, self.mask, self.scenario.arrays])
        if self._randomizer is not None:
            self._randomizer.record_draw(launches, self.mask, self.arrays.seed)
        launches.add(
            place_scenario,
            [self.mask, self.scenario.arrays, sim.terrain, sim.arrays],
            per_world=(sim.num_vehicles,),
        )
        launches.add(
            project_to_routes_global,
            [
                sim.body_q,
                sim.num_vehicles,
                len(self._routes),
                self._routes.points,
                self._routes.count,
                self.mask,
                self.route_index,
            ],
        )
        launches.add(reset_task, [self.mask, self._task, sim.num_vehicles])
        for probe in self.probes:
            probe.record_reset(launches, self.mask)
        return launches

    def reset(
        self,
        seed: int | Sequence[int] | None,
        scenario_seed: int | Sequence[int] | None,
        mask: np.ndarray | None,
    ) -> None:
        """Reset worlds now.

        Args:
            seed: Restarts the streams of the reset worlds: world i gets ``seed + i``, or one entry per world. None
                continues them (fresh entropy at the very first reset).
            scenario_seed: Scenario of the next episode: n + i, or one per world.
            mask: Worlds to reset, bool [W]; None = all.

        Raises:
            TypeError: If a seed is not an integer.
            ValueError: If a seed is negative, too large, or the wrong number of them is given.
        """
        worlds = self._sim.num_worlds
        chosen = np.ones(worlds, dtype=bool) if mask is None else mask
        streams = None if seed is None else _world_seeds("seed", seed, worlds)
        scenarios = None if scenario_seed is None else _world_seeds("scenario_seed", scenario_seed, worlds)
        if streams is None and not self._seeded:
            streams = _world_seeds("seed", secrets.randbits(63), worlds)
        if streams is not None:
            everyone = chosen if self._seeded else np.ones(worlds, dtype=bool)
            self.arrays.stream.assign(np.where(everyone, streams, self.arrays.stream.numpy()))
            episode = np.where(everyone, np.uint32(0), self.arrays.episode.numpy())
            self.arrays.episode.assign(episode.astype(np.uint32))
            self._seeded = True
        if scenarios is not None:
            self.arrays.seed.assign(np.where(chosen, scenarios, self.arrays.seed.numpy()))
            self.arrays.override.assign(chosen.astype(np.int8))
        self.mask.assign(chosen)
        self._masked.run()


def world_mask(mask: Any, worlds: int, rows: int) -> np.ndarray:
    """Worlds that a ``reset_mask`` selects, bool [W].

    Args:
        mask: Worlds, bool [W], or rows, bool [W, R] or [W·R], equal within a world; an array or tensor.
        worlds: W.
        rows: R.

    Raises:
        TypeError: If it is not bool.
        ValueError: If its shape is another or it differs within a world.
    """
    array = mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(f"reset_mask must be bool, got {array.dtype}")
    if array.shape in ((worlds * rows,), (worlds, rows)):
        by_world = array.reshape(worlds, rows)
        mixed = np.flatnonzero(by_world.any(axis=1) != by_world.all(axis=1))
        if mixed.size:
            raise ValueError(f"reset_mask differs within world {mixed[0]}: worlds reset whole, select all its rows")
        return np.asarray(by_world.all(axis=1))
    if array.shape != (worlds,):
        raise ValueError(f"reset_mask must have shape ({worlds},) or ({worlds}, {rows}), got {array.shape}")
    return array


def _world_seeds(name: str, seed: int | Sequence[int], worlds: int) -> np.ndarray:
    """Seeds of all worlds, uint64 [W]: n + i modulo 2**64 for one number, or the given list."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        first = unsigned_integers(name, int(seed), 64)
        return (np.arange(worlds, dtype=np.uint64) + first).astype(np.uint64)
    if isinstance(seed, (str, bytes, float, bool)) or not hasattr(seed, "__len__"):
        raise TypeError(f"{name} must be an int in [0, 2**64), a sequence of {worlds} of them, or None, got {seed!r}")
    seeds = unsigned_integers(name, np.array([_integer(name, item) for item in seed], dtype=object), 64)
    if seeds.shape != (worlds,):
        raise ValueError(f"{name} must have one entry per world ({worlds}), got {len(seeds)}")
    return seeds


def _integer(name: str, item: object) -> int:
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
        raise TypeError(f"{name} entries must be integers, got {item!r}")
    return int(item)
