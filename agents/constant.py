"""An agent that always asks for the same: for tests, probes and smoke runs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .base import agent_digest, require_bound

if TYPE_CHECKING:
    import torch

    from sf3d_envs.observation.view import WorldView


@dataclass(frozen=True, kw_only=True)
class ConstantConfig:
    """The request.

    Attributes:
        acceleration: Requested acceleration [m/s^2].
        steering: Normalized steering in [-1, 1].

    Raises:
        ValueError: If a value is not finite or the steering is out of range.
    """

    acceleration: float = 0.0
    steering: float = 0.0

    def __post_init__(self) -> None:
        """Validate."""
        if not math.isfinite(self.acceleration):
            raise ValueError(f"acceleration must be finite, got {self.acceleration!r}")
        if not -1.0 <= self.steering <= 1.0:
            raise ValueError(f"steering must be in [-1, 1], got {self.steering!r}")


class ConstantAgent:
    """Holds one request for every vehicle; arguments are the fields of `ConstantConfig`."""

    name = "constant"
    decision_hz = 10

    def __init__(self, **parameters: float) -> None:
        self.config = ConstantConfig(**parameters)
        self._view: WorldView | None = None

    @cached_property
    def digest(self) -> str:
        """sha256 hex of name, parameters and this file."""
        return agent_digest(self, self.name, asdict(self.config))

    def bind(self, view: WorldView) -> None:
        """Allocate the output for the worlds of `view`."""
        import torch
        import warp as wp

        self._view = view
        self._actions = torch.zeros((view.num_worlds, view.num_vehicles, 2), device=wp.device_to_torch(view.device))
        self._actions[..., 0] = self.config.acceleration
        self._actions[..., 1] = self.config.steering

    def reset(self, mask: torch.Tensor | None = None) -> None:
        """Do nothing: the agent has no memory."""

    def act(self, view: WorldView) -> torch.Tensor:
        """Return the request, [W, V, 2].

        Raises:
            RuntimeError: If the agent is not bound to `view`.
        """
        require_bound(self.name, self._view, view)
        return self._actions
