"""Torch views of an environment's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
