"""Environment IDs and their registration with Gymnasium and PettingZoo; imports nothing heavy."""

from __future__ import annotations

import gymnasium
import pettingzoo

from .registry import list_conditions

NAMESPACE = "SF3D"
BASE_ID = f"{NAMESPACE}/LaneClosure-v0"

_SINGLE = "sf3d_envs.envs.gym_env:LaneClosureEnv"
_VECTOR = "sf3d_envs.envs.vector_env:LaneClosureVectorEnv"
_PARALLEL = "sf3d_envs.envs.parallel_env:parallel_env"
_AEC = "sf3d_envs.envs.parallel_env:env"


def environment_ids(aliases: bool = False) -> dict[str, str | None]:
    """IDs of all environments and the condition that each carries; None where ``condition=`` is free.

    Args:
        aliases: Whether to add the IDs without namespace.
    """
    ids: dict[str, str | None] = {BASE_ID: None}
    ids.update({f"{NAMESPACE}/LaneClosure-{slug}-v0": slug for slug in list_conditions() if slug != "reference"})
    if aliases:
        ids.update({name.partition("/")[2]: slug for name, slug in list(ids.items())})
    return ids


def register() -> None:
    """Register every ID and alias; IDs that are registered already are left alone."""
    for name, slug in environment_ids(aliases=True).items():
        kwargs = {} if slug is None else {"id_condition": slug}
        if name not in gymnasium.registry:
            # The environment truncates by itself: Gymnasium's limit would not know the decision rate.
            gymnasium.register(
                name, entry_point=_SINGLE, vector_entry_point=_VECTOR, max_episode_steps=None, kwargs=kwargs
            )
        if name not in pettingzoo.parallel_registry:
            pettingzoo.register("parallel", name, entry_point=_PARALLEL, kwargs=kwargs)
        if name not in pettingzoo.aec_registry:
            pettingzoo.register("aec", name, entry_point=_AEC, kwargs=kwargs)
