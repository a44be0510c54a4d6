"""Outcome classes of the same benchmark worlds on both solver paths.

The two paths share every force but contact. So a world must run alike on both until its first touch, to round-off and
Newton's velocity deadband, and only what follows a touch may differ: Newton solves contacts Jacobi-wise with each
body's correction divided by its number of contacts, the fused path one after the other; a glancing hit leaves the cars
with another yaw rate, and who is then in whose way can change. A world parts when a vehicle's positions on the two
paths, short of ``ZONE_END``, differ by more than ``SPLIT_DISTANCE``; one that parts before its first touch was driven
apart by a decision on a knife's edge.

Over the first 32 benchmark worlds with IDM-17, 10 of 1,152 vehicles change class: 3 on the reference road (two
collisions become passages, one passage a collision), 3 at μ 0.18 and 4 at -8 % (the tail of the open lane of one
world each, which crosses on the reference path and not on the fused one). All are in worlds where cars had touched
0.9 to 2.1 s before the courses parted. Of the 62 worlds that part, one (100008 at μ 0.18) does so untouched: a car
brakes for a merging one a moment earlier when 1 mm decides IDM's 2.0 m leader test, and no outcome changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation.batch import CONTROL_HZ, closing_lane, decision_count, make_scoring_env
from ..evaluation.outcomes import RunLabels, vehicle_outcomes
from ..registry import load_condition
from ..task.events import Event

if TYPE_CHECKING:
    from ..envs.torch_env import TorchEnv

PATHS = ("vehicle", "xpbd")
SPLIT_DISTANCE = 0.1
"""Positions further apart than this count as two different courses [m]; hard braking parts the paths by 4 mm."""
ZONE_END = 250.0
"""Vehicles are compared up to here, past everything that is scored [m]; far out, positions without the fused path's
compensated sum drift by decimetres."""
SEED0 = 100_000

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class ConditionComparison:
    """W worlds of V vehicles under one condition, on both paths; arrays start with the path, in the order of ``PATHS``.

    Attributes:
        condition: Slug.
        seeds: Scenario seeds, length W.
        outcome: Outcome class of each vehicle, [2, W, V] str.
        passed: Whether it passed validly, [2, W, V] bool.
        touch_step: Control step of a world's first collision event on either path, -1 without one, [W] int.
        split_step: Control step at which a world's courses were first seen apart, -1 where they never were, [W] int.
    """

    condition: str
    seeds: Sequence[int]
    outcome: np.ndarray
    passed: np.ndarray
    touch_step: np.ndarray
    split_step: np.ndarray

    @property
    def changed(self) -> np.ndarray:
        """Vehicles whose outcome class differs, [W, V] bool."""
        return self.outcome[0] != self.outcome[1]

    @property
    def passage(self) -> tuple[float, float]:
        """Share of valid passages on each path."""
        return float(self.passed[0].mean()), float(self.passed[1].mean())

    @property
    def changes(self) -> Counter[tuple[str, str]]:
        """How many vehicles went from which class (fused path) to which (reference path)."""
        pairs = zip(self.outcome[0][self.changed], self.outcome[1][self.changed], strict=True)
        return Counter((str(a), str(b)) for a, b in pairs)

    @property
    def split_before_touch(self) -> np.ndarray:
        """Worlds whose courses parted before anything touched, [W] bool."""
        return (self.split_step >= 0) & ((self.touch_step < 0) | (self.split_step < self.touch_step))

    def describe(self) -> str:
        """One line: how many vehicles changed, how, and in which worlds."""
        changes = ", ".join(f"{a} -> {b}: {n}" for (a, b), n in sorted(self.changes.items()))
        worlds = np.flatnonzero(self.changed.any(axis=1))
        where = " ".join(str(self.seeds[int(w)]) for w in worlds)
        return (
            f"{self.condition}: {int(self.changed.sum())} of {self.changed.size} vehicles changed class"
            f" ({changes or 'none'}), in worlds [{where}]; passage {self.passage[0]:.3f} and {self.passage[1]:.3f};"
            f" {int((self.touch_step >= 0).sum())} worlds touch, {int((self.split_step >= 0).sum())} part,"
            f" {int(self.split_before_touch.sum())} of them before a touch"
        )


def compare_solvers(
    worlds: int,
    conditions: Sequence[str],
    *,
    agent: str = "idm17",
    seed0: int = SEED0,
    horizon_s: float = 66.0,
    device: str = "cpu",
) -> list[ConditionComparison]:
    """Drive the same worlds on both solver paths, side by side, and compare outcomes.

    Args:
        worlds: Scenario seeds per condition, ``seed0`` onwards.
        conditions: Slugs of the registry.
        agent: Drives all vehicles.
        seed0: First scenario seed.
        horizon_s: Length of a run [s].
        device: "cpu" or "cuda:N".

    Returns:
        One comparison per condition.

    Raises:
        ValueError: For an unknown agent or condition, or fewer than one world.
    """
    if worlds < 1:
        raise ValueError(f"worlds is {worlds}; it must be >= 1")
    return [_compare(slug, range(seed0, seed0 + worlds), agent, horizon_s, device) for slug in conditions]


def _compare(slug: str, seeds: Sequence[int], agent: str, horizon_s: float, device: str) -> ConditionComparison:
    from ..agents import make_agent

    drivers = [make_agent(agent) for _ in PATHS]
    conditions = [load_condition(slug)] * len(seeds)
    envs: list[TorchEnv] = []
    try:
        for path, driver in zip(PATHS, drivers, strict=True):
            env = make_scoring_env(
                conditions, seeds, driver.decision_hz, device=device, horizon_s=horizon_s, solver=path
            )
            envs.append(env)
            driver.bind(env.view)
            driver.reset()
        split_step = np.full(len(seeds), -1)
        steps_per_decision = CONTROL_HZ // drivers[0].decision_hz
        for decision in range(1, decision_count(horizon_s, drivers[0].decision_hz) + 1):
            for env, driver in zip(envs, drivers, strict=True):
                env.advance(driver.act(env.view))
            both = [_positions(env) for env in envs]
            near = np.minimum(both[0][..., 0], both[1][..., 0]) < ZONE_END
            apart = (near & (np.linalg.norm(both[0] - both[1], axis=-1) > SPLIT_DISTANCE)).any(axis=-1)
            split_step[apart & (split_step < 0)] = decision * steps_per_decision
        return _summary(slug, seeds, envs, agent, horizon_s, split_step)
    finally:
        for env in envs:
            env.close()


def _positions(env) -> np.ndarray:
    """Body centres [m], [W, V, 3]."""
    view = env.view
    return view.body_q.numpy().reshape(view.num_worlds, view.num_vehicles, 7)[..., :3]


def _summary(
    slug: str, seeds: Sequence[int], envs: Sequence, agent: str, horizon_s: float, split_step: np.ndarray
) -> ConditionComparison:
    shape = (len(seeds), envs[0].view.num_vehicles)
    outcome, passed, touch = [], [], []
    for env in envs:
        task = env.task_numpy()
        labels = RunLabels(
            agent=agent,
            condition=[slug] * len(seeds),
            scenario_seed=list(seeds),
            closing_lane=closing_lane(env),
            horizon_steps=round(horizon_s * CONTROL_HZ),
        )
        frame = vehicle_outcomes(task, labels)
        outcome.append(frame["outcome"].to_numpy().astype(str).reshape(shape))
        passed.append(frame["valid_passage"].to_numpy().reshape(shape))
        collided = np.asarray(task["event"]) == Event.COLLISION
        touch.append(np.where(collided, task["first_event_step"].astype(np.int64), _NEVER).min(axis=1))
    first = np.minimum(*touch)
    return ConditionComparison(
        condition=slug,
        seeds=tuple(seeds),
        outcome=np.stack(outcome),
        passed=np.stack(passed),
        touch_step=np.where(first == _NEVER, -1, first),
        split_step=split_step,
    )
