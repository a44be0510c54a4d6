"""The one place where an environment meets an agent: who drives the vehicles that are not controlled."""

from __future__ import annotations

from typing import Any

from ..sim.dynamics import CONTROL_HZ


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
