"""What the API shells share: spaces, action and copy conversions, argument checks, call order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box

from ..observation.spec import CLIP, ObservationSpec
from ..registry import Condition, load_condition
from .config import EnvConfig

ACTION_LOW = (-4.0, -1.0)
"""Lower end of the shells' action space: acceleration [m/s^2], normalized steering."""

ACTION_HIGH = (4.0, 1.0)
"""Upper end of the shells' action space."""

RENDER_MODES = ("human", "rgb_array")


def action_space() -> Box:
    """A new action space of one vehicle."""
    return Box(np.array(ACTION_LOW, dtype=np.float32), np.array(ACTION_HIGH, dtype=np.float32), dtype=np.float32)


def observation_space(preview: bool) -> Box:
    """A new observation space of one vehicle."""
    return Box(-CLIP, CLIP, (ObservationSpec(preview).size,), dtype=np.float32)


def shell_config(
    shell: str,
    arguments: Mapping[str, Any],
    *,
    condition: Any = None,
    id_condition: str | None = None,
    max_steps: tuple[str, int | None] = ("max_steps", None),
    **fixed: Any,
) -> EnvConfig:
    """Configuration of the core from a shell's arguments.

    Args:
        shell: Name of the shell, for error texts.
        arguments: What the user gave beyond the shell's own arguments: fields of :class:`EnvConfig`.
        condition: The ``condition`` argument; None = the ID's, or else the reference.
        id_condition: Condition that the environment's ID carries.
        max_steps: Name and value of the API's own step limit; an int shortens the horizon to so many decisions.
        **fixed: Fields that the shell decides.

    Raises:
        TypeError: If an argument is unknown or decided by the shell, or has the wrong type.
        ValueError: If a value is out of range or ``condition`` contradicts the ID.
    """
    known = [field.name for field in dataclasses.fields(EnvConfig) if field.name not in fixed]
    for name in arguments:
        if name in fixed:
            raise TypeError(f"{shell} decides {name} itself ({fixed[name]!r}); leave the argument out")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"{shell} has no argument {name!r}{hint} Known: {', '.join(known)}")
    suite = arguments.get("suite", EnvConfig.suite)
    fixed["condition"] = _condition(condition, id_condition, suite)
    config = EnvConfig(**arguments, **fixed)
    name, limit = max_steps
    if limit is None:
        return config
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
        raise ValueError(f"{name} must be an int >= 1 or None, got {limit!r}")
    return dataclasses.replace(config, horizon_s=min(config.horizon_s, int(limit) / config.decision_hz))


def _condition(condition: Any, id_condition: str | None, suite: Any) -> Any:
    if id_condition is None:
        return "reference" if condition is None else condition
    carried = load_condition(id_condition)
    if condition is not None:
        asked: Sequence[Any] = condition if isinstance(condition, (list, tuple)) else [condition]
        for item in asked:
            if load_condition(item, suite) != carried:
                shown = item.slug if isinstance(item, Condition) else item
                raise ValueError(
                    f"condition {shown!r} contradicts the environment ID, which carries {id_condition!r}; "
                    f"use SF3D/LaneClosure-v0 with condition={shown!r}"
                )
    return carried


def to_actions(action: Any, shape: tuple[int, ...], name: str = "action") -> np.ndarray:
    """Actions clipped to the action space, as a new float32 array.

    Args:
        action: Anything that NumPy turns into real numbers: arrays, lists, tensors on any device.
        shape: Shape to have; the last axis is (acceleration, steering).
        name: What to call it in error texts.

    Raises:
        ValueError: If it holds NaN or anything but real numbers, or has another shape.
    """
    if isinstance(action, torch.Tensor):
        action = action.detach().cpu().numpy()
    try:
        array = np.asarray(action)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of shape {shape}: {error}") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers (float32 or what converts to it), got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if np.isnan(array).any():
        where = ", ".join(str(int(i)) for i in np.argwhere(np.isnan(array))[0])
        raise ValueError(f"{name}[{where}] is NaN; allowed: {list(ACTION_LOW)} ... {list(ACTION_HIGH)}")
    return np.clip(array, ACTION_LOW, ACTION_HIGH).astype(np.float32)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Copy of a tensor on the host."""
    return np.array(tensor.detach().cpu().numpy())


def row_info(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Infos of one row of world 0 as scalars.

    The scenario seed is a NumPy scalar: Gymnasium's Sync- and AsyncVectorEnv put a Python int into an int64 array.
    """
    info = {
        name: (value[0] if value.ndim == 1 else value[0, row]).item()
        for name, value in infos.items()
        if name != "scenario_seed"
    }
    info["scenario_seed"] = np.uint64(infos["scenario_seed"][0].item())
    return info


class CallOrder:
    """Refuses calls before ``reset()`` and after ``close()``.

    Attributes:
        closed: Whether ``close()`` was called.
    """

    def __init__(self, shell: str) -> None:
        self._shell = shell
        self._started = False
        self.closed = False

    def started(self) -> None:
        """Note that a reset succeeded."""
        self._started = True

    def require(self, call: str, *, started: bool = True) -> None:
        """Check that a call is allowed now.

        Raises:
            ClosedEnvironmentError: After ``close()``.
            ResetNeeded: Before the first ``reset()``.
        """
        if self.closed:
            raise ClosedEnvironmentError(f"{call} on a closed {self._shell}; make a new one")
        if started and not self._started:
            raise ResetNeeded(f"{call} before reset(): call reset() first")
