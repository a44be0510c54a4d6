"""One batch of matched worlds: condition-major, one agent, to the horizon or until every world has stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..registry import Condition
from ..task.termination import MAX_HORIZON_S

if TYPE_CHECKING:
    from ..agents import Agent
    from ..envs.errors import WorldError
    from ..envs.probes import Probe
    from .trajectory import TrajectoryChunk

CONTROL_HZ = 60
_CHECK_SECONDS = 1.0
"""Simulated time between two looks at whether all worlds have stopped; each look waits for the device [s]."""
_PROBE_SECONDS = 1.0
"""Simulated time over which an agent's actions are compared between two batches [s]."""


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """End of a batch of W worlds with V vehicles.

    Attributes:
        task: Task arrays, [W, V] or [W].
        safety: Arrays of `SafetyProbe.result`, [W, V].
        position: Body centres at the end [m], shape [W, V, 3].
        closing_lane: Per vehicle, whether it starts in the closing lane, length V.
        extents: Edges of the terrain (x_min, x_max, y_min, y_max) [m].
        digests: `scenario`, `terrain` and `initial_state` with one entry per world, `route` for all.
        errors: What went wrong in which world.
    """

    task: Mapping[str, np.ndarray]
    safety: Mapping[str, np.ndarray]
    position: np.ndarray
    closing_lane: Sequence[bool]
    extents: tuple[float, float, float, float]
    digests: Mapping[str, Any]
    errors: Sequence[WorldError]

    def record(self, condition_index: int, worlds: int) -> dict[str, Any]:
        """Digests and errors of one condition of the batch, as JSON values."""
        mine = slice(condition_index * worlds, (condition_index + 1) * worlds)
        record: dict[str, Any] = {k: list(v[mine]) for k, v in self.digests.items() if not isinstance(v, str)}
        record |= {k: v for k, v in self.digests.items() if isinstance(v, str)}
        terrains = sorted(set(record["terrain"]))
        errors = [
            {name: getattr(error, name) for name in ("scenario_seed", "reason", "vehicle", "step", "time_s")}
            for error in self.errors
            if mine.start <= error.world < mine.stop
        ]
        return {**record, "terrain": terrains[0], "errors": errors}


def matched(conditions: Sequence[Condition], seeds: Sequence[int]) -> tuple[list[Condition], list[int]]:
    """Condition and scenario seed of every world of a matched batch: world = condition index · seeds + seed index."""
    return [c for c in conditions for _ in seeds], [s for _ in conditions for s in seeds]


def make_scoring_env(
    conditions: Sequence[Condition],
    seeds: Sequence[int],
    decision_hz: int,
    *,
    device: str = "cpu",
    threads: int | None = None,
    horizon_s: float = 66.0,
    solver: str = "vehicle",
    probes: Sequence[Probe] = (),
) -> Any:
    """A `TorchEnv` under the scoring rules, reset to one world per (condition, seed) pair.

    Args:
        conditions: Condition of each world.
        seeds: Scenario seed of each world.
        decision_hz: Decisions per second, a divisor of 60.
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None leaves the choice to the simulator.
        horizon_s: Length of a run [s].
        solver: `vehicle`, or `xpbd` for the reference path.
        probes: What measures inside the step.

    Returns:
        The environment; the caller closes it.
    """
    from ..envs.torch_env import TorchEnv

    env = TorchEnv(
        num_worlds=len(seeds),
        condition=list(conditions),
        control="all",
        rules="scoring",
        decision_hz=decision_hz,
        autoreset_mode="Disabled",
        horizon_s=horizon_s,
        solver=solver,
        device=device,
        threads=threads,
        probes=probes,
    )
    try:
        env.reset(options={"scenario_seed": list(seeds)})
    except BaseException:
        env.close()
        raise
    return env


def decision_count(seconds: float, decision_hz: int) -> int:
    """Decisions of a run.

    Raises:
        ValueError: If the run is no whole number (>= 1) of decisions.
    """
    count = seconds * decision_hz
    if not 0.0 < seconds <= MAX_HORIZON_S or count < 1 - 1e-6 or abs(count - round(count)) > 1e-6:
        raise ValueError(
            f"seconds is {seconds}; it must be a positive multiple of one decision, 1/{decision_hz} s, "
            f"and at most {MAX_HORIZON_S:g}"
        )
    return round(count)


def closing_lane(env: Any) -> list[bool]:
    """Per vehicle, whether its route owes a merge, which is so for those that start in the closing lane."""
    return [env.view.owes_merge[route] for route in env.view.own_route.numpy()]


def drive(env: Any, agent: Agent, seconds: float) -> Iterator[int]:
    """Drive a freshly reset environment to the horizon, or until every world has stopped.

    Args:
        env: From `make_scoring_env`, at the agent's decision rate.
        agent: Drives all vehicles.
        seconds: Length of the run [s].

    Yields:
        Control steps done, after each decision.
    """
    agent.bind(env.view)
    agent.reset()
    steps_per_decision = CONTROL_HZ // agent.decision_hz
    every = round(_CHECK_SECONDS * agent.decision_hz)
    for decision in range(1, decision_count(seconds, agent.decision_hz) + 1):
        env.advance(agent.act(env.view))
        yield decision * steps_per_decision
        if decision % every == 0 and env.all_done():
            return


def run_batch(
    agent: Agent,
    conditions: Sequence[Condition],
    seeds: Sequence[int],
    *,
    device: str = "cpu",
    threads: int | None = None,
    horizon_s: float = 66.0,
    solver: str = "vehicle",
    progress: Callable[[int], None] | None = None,
    rich_worlds: Sequence[int] = (),
    on_chunk: Callable[[TrajectoryChunk], object] | None = None,
) -> BatchResult:
    """Drive all vehicles of every (condition, seed) pair with one agent; safety measures are always taken.

    Args:
        agent: Drives all vehicles of all worlds, at its own decision rate.
        conditions: C conditions.
        seeds: S scenario seeds; the batch holds C·S worlds.
        device: `cpu` or `cuda:N`.
        threads: CPU threads; None leaves the choice to the simulator.
        horizon_s: Length of a run [s].
        solver: As for `make_scoring_env`.
        progress: Called with the control steps done.
        rich_worlds: Indices of worlds whose trajectories go to `on_chunk`, in chunks of 60 control steps that begin at
            the start of the run; the last one may be shorter.
        on_chunk: Takes them.

    Returns:
        Task arrays, final positions and digests of the batch.
    """
    from ..terrain.lane_closure import LaneClosureRoad
    from .logged import logging_probes

    safety, *trajectories = logging_probes(list(rich_worlds), on_chunk)
    world_conditions, world_seeds = matched(conditions, seeds)
    env = make_scoring_env(
        world_conditions,
        world_seeds,
        agent.decision_hz,
        device=device,
        threads=threads,
        horizon_s=horizon_s,
        solver=solver,
        probes=[safety, *trajectories],
    )
    try:
        digests = env.digests()
        for steps in drive(env, agent, horizon_s):
            if progress is not None and steps % CONTROL_HZ == 0:
                progress(steps)
        for probe in trajectories:
            probe.flush()
        view, road = env.view, LaneClosureRoad()
        return BatchResult(
            task=env.task_numpy(),
            safety=safety.result(),
            position=view.body_q.numpy().reshape(view.num_worlds, view.num_vehicles, 7)[..., :3].copy(),
            closing_lane=closing_lane(env),
            extents=(road.x_min, road.x_max, road.y_min, road.y_max),
            digests=digests,
            errors=env.errors(),
        )
    finally:
        env.close()


def agent_is_row_invariant(
    agent: Agent, first: Condition, last: Condition, seed: int, device: str, solver: str = "vehicle"
) -> bool:
    """Whether an agent's actions in one world are bit for bit the same alone and as the last world of a batch.

    Args:
        agent: Agent to test.
        first: Condition of the other worlds of the batch.
        last: Condition of the tested world.
        seed: Scenario seed of all worlds.
        device: `cpu` or `cuda:N`.
        solver: As for `make_scoring_env`.

    Returns:
        True if all actions of the first second agree.
    """
    actions = []
    for conditions in ([last], [first, first, last]):
        env = make_scoring_env(conditions, [seed] * len(conditions), agent.decision_hz, device=device, solver=solver)
        try:
            agent.bind(env.view)
            agent.reset()
            taken = []
            for _ in range(round(_PROBE_SECONDS * agent.decision_hz)):
                action = agent.act(env.view)
                taken.append(action[-1].detach().cpu().numpy().copy())
                env.advance(action)
            actions.append(np.stack(taken))
        finally:
            env.close()
    return bool(np.array_equal(actions[0].view(np.uint32), actions[1].view(np.uint32)))
