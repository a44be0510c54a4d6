"""The tensors that go in and out of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import warp as wp

if TYPE_CHECKING:
    from ..observation.view import Observer
    from ..sim.simulator import Simulator
    from .episodes import Episodes
    from .kernels import RowArrays
    from .step_lists import StepBuffers

_ROW_NAMES = ("reward", "terminated", "truncated", "active", "event", "passage", "episode_start", "ended")


def output_tensors(
    rows: RowArrays, episodes: Episodes, sim: Simulator, observer: Observer, buffers: StepBuffers
) -> dict[str, torch.Tensor]:
    """Torch views, by name, of what a step writes."""
    tensors = {name: wp.to_torch(getattr(rows, name)) for name in _ROW_NAMES}
    tensors["final_event"] = wp.to_torch(rows.final_event)
    tensors["final_passage"] = wp.to_torch(rows.final_passage)
    tensors["final_scenario_seed"] = wp.to_torch(rows.final_seed)
    tensors["user_terminated"] = wp.to_torch(rows.user_terminated)
    tensors["terms"] = wp.to_torch(rows.terms)
    tensors["obs"] = observer.tensor
    tensors["final_obs"] = wp.to_torch(buffers.final_obs)
    tensors["seed"] = wp.to_torch(episodes.seed)
    tensors["mask"] = wp.to_torch(episodes.mask)
    tensors["stepping"] = wp.to_torch(sim.stepping)
    tensors["user_reward"] = wp.to_torch(buffers.user_reward)
    return tensors


def check_action(action: Any, shape: tuple[int, int, int], device: torch.device) -> None:
    """Refuse an action of another type, dtype, shape or device.

    Raises:
        TypeError: If it is no float32 tensor.
        ValueError: If its shape or device is another.
    """
    if not isinstance(action, torch.Tensor):
        raise TypeError(f"action must be a torch.Tensor of shape {shape}, got {type(action).__name__}")
    if action.dtype != torch.float32:
        raise TypeError(f"action must be torch.float32, got {action.dtype}")
    if tuple(action.shape) != shape:
        raise ValueError(f"action must have shape {shape} (worlds, rows, 2), got {tuple(action.shape)}")
    if action.device != device:
        raise ValueError(f"action must be on {device}, got {action.device}")
