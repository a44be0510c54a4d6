"""Torch views of an environment's memory, and the reset mask that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
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


def world_mask(mask: Any, worlds: int, rows: int) -> np.ndarray:
    """Worlds that a reset mask selects, bool [W].

    Args:
        mask: bool [W], [W, R] or [W·R]; array, list or tensor.
        worlds: W.
        rows: R.

    Raises:
        TypeError: If it is not bool.
        ValueError: If it has another shape or differs within a world.
    """
    array = mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else np.asarray(mask)
    if array.dtype != np.bool_:
        raise TypeError(f"reset_mask must be bool, got {array.dtype}")
    if array.shape in ((worlds * rows,), (worlds, rows)):
        by_world = array.reshape(worlds, rows)
        mixed = np.flatnonzero(by_world.any(axis=1) != by_world.all(axis=1))
        if mixed.size:
            raise ValueError(f"reset_mask differs within world {mixed[0]}: worlds reset whole, select all its rows")
        return np.asarray(by_world.all(axis=1))
    if array.shape != (worlds,):
        raise ValueError(f"reset_mask must have shape ({worlds},) or ({worlds}, {rows}), got {array.shape}")
    return array
