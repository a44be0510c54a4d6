"""The one place where an environment meets an agent: who drives the vehicles that are not controlled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ..sim.dynamics import CONTROL_HZ

if TYPE_CHECKING:
    from sf3d_envs.agents import Agent, RecordedAgent

    from ..observation.view import WorldView


def load_traffic(traffic: Any) -> Any:
    """Resolve the ``traffic`` argument to an agent object.

    Args:
        traffic: Agent name or object.

    Raises:
        TypeError: If it is neither.
        ValueError: If the name is unknown or the agent's rate is no divisor of 60 Hz.
    """
    from sf3d_envs.agents import make_agent

    try:
        agent = make_agent(traffic)
    except (TypeError, ValueError) as error:
        raise type(error)(f"traffic: {error}") from None
    rate = agent.decision_hz
    if not isinstance(rate, int) or rate < 1 or CONTROL_HZ % rate:
        raise ValueError(f"traffic agent {agent.name!r} decides at {rate!r} Hz; allowed: divisors of {CONTROL_HZ}")
    return agent


def bind_traffic(agent: Any, view: WorldView) -> RecordedAgent | None:
    """Bind a traffic agent, if there is one.

    Returns:
        The agent if its decision can be recorded among the launches of a control step, None if it must be asked.
    """
    from sf3d_envs.agents import RecordedAgent

    if agent is None:
        return None
    agent.bind(view)
    return agent if isinstance(agent, RecordedAgent) and agent.decision_hz == CONTROL_HZ else None


def traffic_commands(agent: Agent, view: WorldView) -> torch.Tensor:
    """Let a traffic agent decide and check what it returns, [W, V, 2].

    Raises:
        ValueError: If it is no tensor of that shape.
    """
    commands = agent.act(view)
    expected = (view.num_worlds, view.num_vehicles, 2)
    if not isinstance(commands, torch.Tensor) or tuple(commands.shape) != expected:
        given = tuple(commands.shape) if isinstance(commands, torch.Tensor) else type(commands).__name__
        raise ValueError(
            f"traffic agent {agent.name!r} must return a tensor of shape {expected} (worlds, vehicles, 2), got {given}"
        )
    return commands
