"""Drivers: classical controllers and learned policies, one file each.

Agents read scenarios, observations and simulator views only; they import neither environments nor evaluation.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from .base import Agent, RecordedAgent, agent_digest

__all__ = ["AGENTS", "Agent", "RecordedAgent", "agent_digest", "make_agent"]

AGENTS: dict[str, tuple[str, str]] = {
    "idm17": (".idm", "IDMAgent"),
    "random": (".random_agent", "RandomAgent"),
    "constant": (".constant", "ConstantAgent"),
}
"""Agent name to (module, class); the module is imported when the agent is made."""


def make_agent(agent: str | Agent, **parameters: Any) -> Agent:
    """Return an agent.

    Args:
        agent: A name of `AGENTS`, or an agent object, which is returned as it is.
        **parameters: Fields of the agent's config dataclass.

    Raises:
        ValueError: If the name is unknown, or parameters accompany an object.
        TypeError: If a parameter is unknown, or the object is no agent.
    """
    if not isinstance(agent, str):
        if not isinstance(agent, Agent):
            raise TypeError(f"agent must be a name or have the members of Agent, got {type(agent).__name__}")
        if parameters:
            raise ValueError(f"parameters {sorted(parameters)} need an agent name, got the object {agent.name!r}")
        return agent
    if agent not in AGENTS:
        close = get_close_matches(agent, AGENTS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(f"agent {agent!r} is unknown{hint} Known: {', '.join(AGENTS)}")
    module, name = AGENTS[agent]
    return getattr(import_module(module, __package__), name)(**parameters)
