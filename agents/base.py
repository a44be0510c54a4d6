"""What every agent offers to an environment or a runner."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch
    import warp as wp

    from sf3d_envs.launches import LaunchList
    from sf3d_envs.observation.view import WorldView


@runtime_checkable
class Agent(Protocol):
    """A driver of all vehicles of all worlds.

    Attributes:
        name: Name in tables and manifests.
        decision_hz: Decisions per second, a divisor of 60.
        digest: sha256 hex of whatever decides the agent's behaviour.
    """

    name: str
    decision_hz: int

    @property
    def digest(self) -> str:
        """sha256 hex of whatever decides the agent's behaviour."""
        ...

    def bind(self, view: WorldView) -> None:
        """Allocate for the worlds of `view`; called before the first `act`. The latest view is the one it serves."""
        ...

    def reset(self, mask: torch.Tensor | None = None) -> None:
        """Forget the masked worlds (bool [W]; None means all). The mask may select none."""
        ...

    def act(self, view: WorldView) -> torch.Tensor:
        """Decide.

        Returns:
            Tensor [W, V, 2] = requested acceleration [m/s^2] and normalized steering; the agent's own buffer, valid
            until the next call.
        """
        ...


@runtime_checkable
class RecordedAgent(Agent, Protocol):
    """An agent whose decision is recorded launches, which an environment puts among its own; it has no memory.

    Attributes:
        action: The buffer that the launches write, [W, V] vec2.
    """

    action: wp.array

    def record(self, launches: LaunchList) -> None:
        """Append the launches of one decision for all worlds of the bound view."""
        ...

    def check_bound(self, view: WorldView) -> None:
        """Raise RuntimeError unless the agent is bound to `view`."""
        ...


def require_bound(name: str, bound: WorldView | None, view: WorldView) -> None:
    """Refuse to act on worlds that an agent was not bound to last.

    Raises:
        RuntimeError: If the agent is unbound, or bound to another environment's view.
    """
    if bound is None:
        raise RuntimeError(f"agent {name!r} must be bound to a view before act(): call bind(view)")
    if bound is not view:
        raise RuntimeError(
            f"agent {name!r} has since been bound to another environment; an agent object serves one environment at a "
            f"time: make one per environment, or pass its name"
        )


def agent_digest(agent: object, name: str, parameters: Mapping[str, Any]) -> str:
    """Return sha256 hex over an agent's name, parameters and the text of the file that defines it."""
    source = inspect.getsource(inspect.getmodule(type(agent)))  # type: ignore[arg-type]
    head = json.dumps({"name": name, "parameters": dict(parameters)}, sort_keys=True)
    return hashlib.sha256(f"{head}\n{source}".encode()).hexdigest()
