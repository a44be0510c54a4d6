"""The Gymnasium vector environment: rows of many worlds, batched natively."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.utils import EzPickle
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..observation.spec import ObservationSpec
from .config import NUM_VEHICLES
from .errors import WorldError
from .shells import RENDER_MODES, CallOrder, action_space, observation_space, shell_config, to_actions, to_numpy
from .torch_env import TorchEnv


class LaneClosureVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray], EzPickle):
    """N rows of lane-closure worlds behind Gymnasium's vector API; ``gymnasium.make_vec(id, num_envs=N)``.

    ``control="ego"``: a row is a world, of which it drives one vehicle (``ego=``) and ``traffic=`` the others.
    ``control="all"``: a row is a vehicle, the twelve rows of a world are consecutive, N = 12 W (parameter sharing). A
    row then ends at its vehicle's first event and stays inactive (zero observation and reward, flags False,
    ``infos["active"]`` False) until its world ends; ``infos["episode_start"]`` tells when it restarts.

    Task, action, observation and reward are those of :class:`~sf3d_envs.envs.gym_env.LaneClosureEnv`; observations and
    infos are copies.

    Autoreset (``autoreset_mode``): "NextStep", "SameStep" or "Disabled", as a string or an ``AutoresetMode``. In
    same-step mode ``infos["final_obs"]`` (float32 [N, D]) and ``infos["final_info"]`` are dense and valid where
    ``infos["_final_obs"]`` is True: at rows that ended in the very step that reset their world. A row that terminated
    while its world goes on finds its last observation in the observation itself.

    Infos are dense arrays [N], each with a mask under its name with ``_`` before it.

    Args:
        num_envs: Rows N.
        condition: Road condition for all worlds, or a list with one per world; None = the ID's, or else the reference.
        id_condition: Condition that the ID carries; set by the registry.
        max_episode_steps: Shortens the horizon to so many decisions.
        **kwargs: Fields of :class:`~sf3d_envs.envs.config.EnvConfig`; ``control`` is "ego" by default.

    Raises:
        TypeError: If an argument is unknown or has the wrong type.
        ValueError: If a value is out of range, ``num_envs`` does not fit, or ``condition`` contradicts the ID.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        condition: Any = None,
        *,
        id_condition: str | None = None,
        max_episode_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        EzPickle.__init__(
            self, num_envs, condition, id_condition=id_condition, max_episode_steps=max_episode_steps, **kwargs
        )
        kwargs = {"control": "ego", **kwargs}
        config = shell_config(
            "LaneClosureVectorEnv",
            kwargs,
            condition=condition,
            id_condition=id_condition,
            max_steps=("max_episode_steps", max_episode_steps),
            num_worlds=_worlds(num_envs, kwargs["control"]),
        )
        self.core = TorchEnv(config=config)
        self.num_envs = self.core.num_worlds * self.core.num_rows
        self.rows_per_world = self.core.num_rows
        self.render_mode = config.render_mode
        self.autoreset_mode = AutoresetMode(config.autoreset_mode)
        self.metadata = {
            **type(self).metadata,
            "render_fps": config.decision_hz,
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_action_space = action_space()
        self.single_observation_space = observation_space(config.preview)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._order = CallOrder("LaneClosureVectorEnv")
        self._calls = 0

    @property
    def observation_spec(self) -> ObservationSpec:
        """Named access to the observation vector."""
        return self.core.observation_spec

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: World i gets the stream ``seed + i``; or one entry per row, equal within a world; None continues.
            options: ``reset_mask``: rows to reset, bool [N], equal within a world; ``scenario_seed``: int n (world i
                gets n + i) or one entry per row, for the next episode only. The dictionary is left as it is.

        Returns:
            Observation [N, D] and infos; rows that are not reset keep theirs.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            TypeError, ValueError: If a seed or an option is wrong.
        """
        self._order.require("reset()", started=False)
        options = dict(options or {})
        if options.get("scenario_seed") is not None:
            options["scenario_seed"] = self._by_world("scenario_seed", options["scenario_seed"])
        mask = options.get("reset_mask")
        if mask is not None:
            mask = to_numpy(mask) if isinstance(mask, torch.Tensor) else np.asarray(mask)
            if mask.shape != (self.num_envs,):
                raise ValueError(f"reset_mask must have shape ({self.num_envs},), got {mask.shape}")
            options["reset_mask"] = mask
        obs, infos = self.core.reset(seed=self._by_world("seed", seed), options=options)
        if seed is not None:
            super().reset(seed=seed if isinstance(seed, (int, np.integer)) else int(seed[0]))
        self._order.started()
        self._calls += 1
        self._show()
        return self._rows(obs), self._infos(infos, np.ones(self.num_envs, dtype=bool) if mask is None else mask)

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Hold one action per row for a decision period.

        Args:
            actions: Acceleration [m/s^2] and normalized steering, shape [N, 2].

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
            ValueError: If the actions hold NaN or anything but real numbers, or have another shape.
        """
        self._order.require("step()")
        batch = torch.from_numpy(to_actions(actions, (self.num_envs, 2), "actions")).to(self.core.device)
        batch = batch.view(self.core.num_worlds, self.core.num_rows, 2)
        obs, reward, terminated, truncated, infos = self.core.step(batch)
        self._calls += 1
        self._show()
        rows = self._rows
        everyone = np.ones(self.num_envs, dtype=bool)
        return rows(obs), rows(reward), rows(terminated), rows(truncated), self._infos(infos, everyone)

    def render(self) -> Frames | None:  # type: ignore[override]
        """Frames of the rows, rendered as they are looked at; None in the modes None and "human".

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
        """
        self._order.require("render()")
        if self.render_mode == "rgb_array":
            return Frames(self)
        self._show()
        return None

    def errors(self, *, past: bool = False) -> list[WorldError]:
        """What went wrong in which world and when; see :meth:`TorchEnv.errors <sf3d_envs.TorchEnv.errors>`."""
        return self.core.errors(past=past)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulator."""
        self._order.closed = True
        self.core.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.core.render()

    def _rows(self, value: torch.Tensor) -> np.ndarray:
        """[W, R, ...] or [W] as a copy [N, ...]."""
        array = to_numpy(value)
        if array.ndim == 1:
            return np.repeat(array, self.rows_per_world)
        return array.reshape(self.num_envs, *array.shape[2:])

    def _infos(self, infos: dict[str, Any], present: np.ndarray) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in infos.items():
            if name.startswith("_"):
                continue
            mask = self._rows(infos[f"_{name}"]) if f"_{name}" in infos else present.copy()
            found[name] = self._infos(value, mask) if isinstance(value, dict) else self._rows(value)
            found[f"_{name}"] = mask
        return found

    def _by_world(self, name: str, value: Any) -> Any:
        """A seed per world from one per row; numbers and None stay as they are."""
        if value is None or not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, (str, bytes)):
            return value
        if len(value) != self.num_envs:
            raise ValueError(f"{name} must have one entry per row ({self.num_envs}), got {len(value)}")
        size = self.rows_per_world
        for first in range(0, self.num_envs, size):
            if any(item != value[first] for item in value[first : first + size]):
                raise ValueError(f"{name} differs within world {first // size}: its {size} rows share one scenario")
        return list(value[::size])


class Frames(Sequence):
    """Frames of a vector environment's rows, one of which is rendered when it is looked at.

    Rows of one world share a frame. A frame can be had until the environment moves on.
    """

    def __init__(self, env: LaneClosureVectorEnv) -> None:
        self._env = env
        self._call = env._calls
        self._kept: dict[int, np.ndarray | None] = {}

    def __len__(self) -> int:
        """Number of rows."""
        return self._env.num_envs

    def __getitem__(self, row: Any) -> Any:
        """Frame of a row, uint8 [height, width, 3], or a list of frames for a slice."""
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} is out of range for {len(self)} rows")
        world = (row % len(self)) // self._env.rows_per_world
        if world not in self._kept:
            if self._env._calls != self._call:
                raise RuntimeError("the environment has moved on since render(); look at frames before the next step")
            self._env._order.require("render()")
            self._kept[world] = self._env.core.render(world)
        return self._kept[world]


def _worlds(num_envs: Any, control: Any) -> int:
    if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)):
        raise TypeError(f"num_envs must be an int >= 1, got {num_envs!r}")
    if num_envs < 1:
        raise ValueError(f"num_envs must be an int >= 1, got {num_envs}")
    if control != "all":
        return int(num_envs)
    if num_envs % NUM_VEHICLES:
        raise ValueError(
            f'num_envs must be a multiple of {NUM_VEHICLES} (vehicles of a world) with control="all", got {num_envs}'
        )
    return int(num_envs) // NUM_VEHICLES
