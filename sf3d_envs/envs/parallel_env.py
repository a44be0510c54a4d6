"""The PettingZoo environment: one world, twelve agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium.error import ClosedEnvironmentError
from gymnasium.spaces import Box
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseWrapper
from pettingzoo.utils.conversions import parallel_to_aec

from ..observation.spec import CLIP, ObservationSpec
from .config import NUM_VEHICLES
from .errors import WorldError
from .shells import (
    RENDER_MODES,
    CallOrder,
    action_space,
    observation_space,
    row_info,
    shell_config,
    to_actions,
    to_numpy,
)
from .torch_env import TorchEnv

AGENTS = tuple(f"vehicle_{v}" for v in range(NUM_VEHICLES))
"""Agent names; ``vehicle_0`` to ``vehicle_4`` start in the closing lane."""


class LaneClosureParallelEnv(ParallelEnv[str, np.ndarray, np.ndarray], EzPickle):
    """One lane-closure world whose twelve vehicles act at once; ``pettingzoo.make("parallel", "SF3D/LaneClosure-v0")``.

    Task, action, observation and reward of every agent are those of
    :class:`~sf3d_envs.envs.gym_env.LaneClosureEnv`. An agent gets its last values in the step in which it ends and then
    leaves ``agents``; its vehicle brakes fully and stays an obstacle. All agents that are left end at the horizon or
    when a vehicle has a fault. ``state()`` is the observations of all twelve vehicles, of those too that have ended.

    Args:
        condition: Road condition; None = the ID's, or else the reference.
        id_condition: Condition that the ID carries; set by the registry.
        max_cycles: Shortens the horizon to so many decisions.
        **kwargs: Fields of :class:`~sf3d_envs.envs.config.EnvConfig`.

    Raises:
        TypeError: If an argument is unknown or has the wrong type.
        ValueError: If a value is out of range, or ``condition`` contradicts the ID.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "name": "lane_closure_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        condition: Any = None,
        *,
        id_condition: str | None = None,
        max_cycles: int | None = None,
        **kwargs: Any,
    ) -> None:
        EzPickle.__init__(self, condition, id_condition=id_condition, max_cycles=max_cycles, **kwargs)
        config = shell_config(
            "LaneClosureParallelEnv",
            kwargs,
            condition=condition,
            id_condition=id_condition,
            max_steps=("max_cycles", max_cycles),
            num_worlds=1,
            control="all",
            autoreset_mode="Disabled",
        )
        self.core = TorchEnv(config=config)
        self.render_mode = config.render_mode
        self.max_cycles = round(config.horizon_s * config.decision_hz)
        self.metadata = {**type(self).metadata, "render_fps": config.decision_hz}
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self._action_spaces = {agent: action_space() for agent in AGENTS}
        self._observation_spaces = {agent: observation_space(config.preview) for agent in AGENTS}
        size = NUM_VEHICLES * self.core.observation_spec.size
        self.state_space = Box(-CLIP, CLIP, (size,), dtype=np.float32)
        self._order = CallOrder("LaneClosureParallelEnv")

    @property
    def observation_spec(self) -> ObservationSpec:
        """Named access to the observation vector."""
        return self.core.observation_spec

    def observation_space(self, agent: str) -> Box:
        """Space of an agent's observation; the same object at each call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """Space of an agent's action; the same object at each call."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        """Start an episode.

        Args:
            seed: Restarts the stream of scenarios; None continues it.
            options: ``scenario_seed``: scenario of this episode, an int. Other entries are ignored, as PettingZoo's
                own tests demand.

        Returns:
            Observations and infos by agent.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ValueError: If a seed is negative.
        """
        self._order.require("reset()", started=False)
        scenario_seed = (options or {}).get("scenario_seed")
        obs, infos = self.core.reset(seed=seed, options={"scenario_seed": scenario_seed})
        self._order.started()
        self.agents = list(AGENTS)
        self._show()
        rows = to_numpy(obs[0])
        return (
            {agent: rows[v].copy() for v, agent in enumerate(AGENTS)},
            {agent: row_info(infos, v) for v, agent in enumerate(AGENTS)},
        )

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Hold one action per live agent for a decision period.

        Args:
            actions: Acceleration [m/s^2] and normalized steering, shape [2], of each live agent; those of agents that
                have ended are ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos of the agents that were live; empty without any.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
            ValueError: If an action is missing, belongs to nobody, holds NaN or anything but real numbers, or has
                another shape.
        """
        self._order.require("step()")
        unknown = [agent for agent in actions if agent not in self._action_spaces]
        if unknown:
            raise ValueError(f"actions has an entry for {unknown[0]!r}; agents are {AGENTS[0]!r} ... {AGENTS[-1]!r}")
        live = self.agents
        if not live:
            return {}, {}, {}, {}, {}
        batch = np.zeros((NUM_VEHICLES, 2), dtype=np.float32)
        rows = {agent: AGENTS.index(agent) for agent in live}
        for agent, v in rows.items():
            if agent not in actions:
                raise ValueError(f"actions lacks the live agent {agent!r}; live: {', '.join(live)}")
            batch[v] = to_actions(actions[agent], (2,), f"actions[{agent!r}]")
        obs, reward, terminated, truncated, infos = self.core.step(torch.from_numpy(batch).to(self.core.device)[None])
        values, rewards = to_numpy(obs[0]), reward[0].tolist()
        ended, cut = terminated[0].tolist(), truncated[0].tolist()
        self.agents = [agent for agent, v in rows.items() if not (ended[v] or cut[v])]
        self._show()
        return (
            {agent: values[v].copy() for agent, v in rows.items()},
            {agent: rewards[v] for agent, v in rows.items()},
            {agent: ended[v] for agent, v in rows.items()},
            {agent: cut[v] for agent, v in rows.items()},
            {agent: row_info(infos, v) for agent, v in rows.items()},
        )

    def state(self) -> np.ndarray:
        """Observations of all vehicles, one after the other and without noise, float32 [12 D].

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
        """
        self._order.require("state()")
        return to_numpy(self.core.view.observation(self.core.config.preview)[0]).reshape(-1)

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """Frame, uint8 [height, width, 3]; None in the modes None and "human".

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
        """
        self._order.require("render()")
        return self.core.render()

    def errors(self, *, past: bool = False) -> list[WorldError]:
        """What went wrong in which world and when; see :meth:`TorchEnv.errors <sf3d_envs.TorchEnv.errors>`."""
        return self.core.errors(past=past)

    def close(self) -> None:
        """Free the simulator."""
        self._order.closed = True
        self.core.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.core.render()


def parallel_env(**kwargs: Any) -> LaneClosureParallelEnv:
    """Make a :class:`LaneClosureParallelEnv`; takes its arguments."""
    return LaneClosureParallelEnv(**kwargs)


def env(**kwargs: Any) -> AECEnv:
    """Make the turn-based (AEC) form: agents act one after the other, the world moves when all have acted.

    Args:
        **kwargs: Arguments of :class:`LaneClosureParallelEnv`.
    """
    return CheckedTurns(parallel_to_aec(parallel_env(**kwargs)))  # type: ignore[arg-type]


class CheckedTurns(BaseWrapper):
    """Refuses a bad action at its own agent's turn, and any turn after close."""

    _closed = False

    def step(self, action: Any) -> None:
        """Take the action of the agent whose turn it is; None for one that has ended.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ValueError: If a live agent's action holds NaN or anything but real numbers, or has another shape.
        """
        if self._closed:
            raise ClosedEnvironmentError("step() on a closed LaneClosure AEC environment; make a new one")
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            action = to_actions(action, (2,), f"action of {agent!r}")
        super().step(action)

    def close(self) -> None:
        """Free the simulator."""
        self._closed = True
        super().close()
