"""Uniformly random requests, keyed by scenario seed, step and vehicle: the same in any batch and on any device."""

from functools import cached_property
from typing import TYPE_CHECKING

import warp as wp

from sf3d_envs.random import Domain, philox_block

from .base import agent_digest, require_bound

if TYPE_CHECKING:
    import torch

    from sf3d_envs.launches import LaunchList
    from sf3d_envs.observation.view import WorldView

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NOISE = wp.constant(wp.uint32(int(Domain.NOISE)))
MAX_ACCELERATION = wp.constant(4.0)


@wp.func
def symmetric(u: wp.uint32) -> float:
    """Uniform number in [-1, 1) from the 24 high bits of a random word, exact in float32."""
    return float(u >> wp.uint32(8)) * (1.0 / 8388608.0) - 1.0


@wp.kernel
def drive_random(
    seed: wp.array(dtype=wp.uint64),
    step: wp.array(dtype=wp.int32),
    stepping: wp.array(dtype=wp.int8),
    action: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Write (acceleration in [-4, 4), steering in [-1, 1)) of each vehicle; dim (W, V)."""
    w, v = wp.tid()
    w = w + world_begin
    if stepping[w] == wp.int8(0):
        return
    words = philox_block(seed[w], wp.uint32(step[w]), wp.uint32(v), NOISE)
    action[w, v] = wp.vec2(MAX_ACCELERATION * symmetric(words[0]), symmetric(words[1]))


class RandomAgent:
    """Draws a new request at each decision."""

    name = "random"
    decision_hz = 10

    def __init__(self) -> None:
        self._view: WorldView | None = None

    @cached_property
    def digest(self) -> str:
        """sha256 hex of name and this file."""
        return agent_digest(self, self.name, {})

    def bind(self, view: "WorldView") -> None:
        """Allocate the output and record the launch for the worlds of `view`."""
        self._view = view
        shape = (view.num_worlds, view.num_vehicles)
        self.action = wp.zeros(shape, dtype=wp.vec2, device=view.device)
        self._tensor = wp.to_torch(self.action)
        self._arguments = [view.seed, view.step, view.stepping, self.action]
        self._decision = view.launches()
        self.record(self._decision)

    def record(self, launches: "LaunchList") -> None:
        """Append the launch of one decision to a list over shards of the worlds; `bind` must have been called."""
        launches.add(drive_random, self._arguments, per_world=(self.action.shape[1],))

    def check_bound(self, view: "WorldView") -> None:
        """Raise RuntimeError unless the agent is bound to `view`."""
        require_bound(self.name, self._view, view)

    def reset(self, mask: "torch.Tensor | None" = None) -> None:
        """Do nothing: the numbers are addressed by seed and step."""

    def act(self, view: "WorldView") -> "torch.Tensor":
        """Draw a request for every vehicle; [W, V, 2], the agent's own buffer.

        Raises:
            RuntimeError: If the agent is not bound to `view`.
        """
        self.check_bound(view)
        self._decision.run()
        return self._tensor
