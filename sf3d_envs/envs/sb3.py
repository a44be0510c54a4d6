"""Stable-Baselines3: a native VecEnv, and PPO that learns from active rows only. Needs the extra ``sb3``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NoReturn

import numpy as np
import torch

from .errors import WorldError
from .shells import CallOrder, action_space, observation_space, shell_config, to_actions, to_numpy
from .torch_env import TorchEnv

try:
    from stable_baselines3 import PPO
    from stable_baselines3.common.buffers import RolloutBuffer
    from stable_baselines3.common.type_aliases import RolloutBufferSamples
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        'sf3d_envs.envs.sb3 needs stable-baselines3, which is not installed: pip install "sf3d-envs[sb3]"'
    ) from error


class LaneClosureVecEnv(VecEnv):
    """Lane-closure worlds behind Stable-Baselines3's VecEnv.

    ``num_envs`` = worlds x 12 with ``control="all"`` (the twelve rows of a world are consecutive), or worlds with
    ``control="ego"``. Task, action, observation and reward are those of
    :class:`~sf3d_envs.envs.gym_env.LaneClosureEnv`.

    A row is done once per episode. With ``control="all"`` it then waits, with zero observation and reward, until its
    world resets; VecMonitor counts the waiting steps in the length (not the return) of the row's next episode. What
    happens while waiting must stay out of the loss: learn with :class:`MaskedPPO`, or read ``transition_active``.

    The info of a row holds ``event``, ``passage``, ``active`` (the transition may enter a loss), ``scenario_seed``,
    ``reward_terms/<name>``, ``TimeLimit.truncated`` and, where done, ``terminal_observation``.

    Args:
        num_worlds: Worlds W.
        condition: Road condition for all worlds, or a list with one per world; None = the reference.
        stagger: Spread the lengths of the first episodes over the horizon, so that worlds never all time out together
            (SB3 evaluates the value of each timed-out row in a call of its own).
        **kwargs: Fields of :class:`~sf3d_envs.envs.config.EnvConfig`.

    Attributes:
        transition_active: Whether the last transition of each row is a real one, bool [N].

    Raises:
        TypeError: If an argument is unknown or has the wrong type.
        ValueError: If a value is out of range, or ``rules`` is not "training".
    """

    def __init__(self, num_worlds: int = 1, condition: Any = None, *, stagger: bool = False, **kwargs: Any) -> None:
        config = shell_config(
            "LaneClosureVecEnv", kwargs, condition=condition, num_worlds=num_worlds, autoreset_mode="SameStep"
        )
        if config.rules != "training":
            raise ValueError(f"rules must be 'training' here, where worlds reset by themselves, got {config.rules!r}")
        self.core = TorchEnv(config=config)
        self.rows_per_world = self.core.num_rows
        self.observation_spec = self.core.observation_spec
        self._order = CallOrder("LaneClosureVecEnv")
        super().__init__(num_worlds * self.rows_per_world, observation_space(config.preview), action_space())
        self.metadata = {**self.metadata, "render_fps": config.decision_hz}
        self.transition_active = np.zeros(self.num_envs, dtype=bool)
        self._active = np.zeros(self.num_envs, dtype=bool)
        self._batch = torch.zeros(num_worlds, self.rows_per_world, 2)
        self._stagger = stagger
        self._decisions = 0
        self._cut_at = np.zeros(num_worlds, dtype=int)

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled or copied: the simulator holds device memory and threads.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            "a live LaneClosureVecEnv can't be pickled or copied: make a new one with the same arguments; PPO.save and "
            "VecNormalize.save leave the environment out by themselves"
        )

    def seed(self, seed: int | None = None) -> list[int | None]:  # type: ignore[override]
        """Seed the next reset: the rows of world i get ``seed + i``; None draws one from NumPy's global generator."""
        if seed is None:
            seed = int(np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32))  # noqa: NPY002
        self._seeds = [seed + row // self.rows_per_world for row in range(self.num_envs)]
        return self._seeds

    def reset(self) -> np.ndarray:
        """Start new episodes with the seeds and options (``scenario_seed``) that were set; infos in ``reset_infos``.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ValueError: If an option is unknown.
        """
        self._order.require("reset()", started=False)
        seeds = self._seeds[:: self.rows_per_world]
        options: dict[str, Any] = {}
        for name in dict.fromkeys(name for row in self._options for name in row):
            values = [row.get(name) for row in self._options]
            same = all(value == values[0] for value in values)
            options[name] = values[0] if same else values[:: self.rows_per_world]
        # What was set is used up even where it is refused, so that a slip does not stick to later resets.
        self._reset_seeds()
        self._reset_options()
        if "reset_mask" in options:
            raise ValueError("unknown reset option 'reset_mask'; known: 'scenario_seed'")
        obs, infos = self.core.reset(seed=None if seeds[0] is None else seeds, options=options)
        self._order.started()
        self._active = self._rows(infos["active"])
        self._decisions = 0
        if self._stagger:
            worlds = self.core.num_worlds
            horizon = round(self.core.config.horizon_s * self.core.config.decision_hz)
            self._cut_at = np.maximum(1, np.arange(1, worlds + 1) * horizon // worlds)
        self.reset_infos = self._row_infos(infos)
        return self._rows(obs)

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions of the next step, shape [N, 2].

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
            ValueError: If they hold NaN or anything but real numbers, or have another shape.
        """
        self._order.require("step()")
        array = to_actions(actions, (self.num_envs, 2), "actions")
        self._batch = torch.from_numpy(array).to(self.core.device).view(self.core.num_worlds, self.rows_per_world, 2)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step; returns observations [N, D], rewards [N], dones [N] and infos."""
        core = self.core
        obs, reward, terminated, truncated, infos = core.step(self._batch)
        self.transition_active, self._active = self._active, self._rows(infos["active"])
        rows, rewards, ended, cut = (self._rows(value) for value in (obs, reward, terminated, truncated))
        last, reset = self._rows(infos["final_obs"]), self._rows(infos["_final_obs"])
        last = np.where(reset[:, None], last, rows)
        row_infos = self._row_infos(infos)
        final = {name: self._rows(value).tolist() for name, value in infos["final_info"].items()}
        for row in np.flatnonzero(reset):
            row_infos[row].update({name: value[row] for name, value in final.items()})
        if self._stagger:
            rows, cut = self._cut_first_episodes(rows, cut, self._rows(infos["episode_start"]))
        dones = ended | cut
        for row, active in enumerate(self.transition_active.tolist()):
            row_infos[row]["active"] = active
            row_infos[row]["TimeLimit.truncated"] = bool(cut[row] and not ended[row])
        for row in np.flatnonzero(dones):
            row_infos[row]["terminal_observation"] = last[row]
        return rows, rewards, dones, row_infos

    def _cut_first_episodes(
        self, rows: np.ndarray, cut: np.ndarray, restarted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Truncate and reset the worlds whose first episode has reached its staggered length."""
        self._decisions += 1
        worlds = self.core.num_worlds
        self._cut_at[restarted.reshape(worlds, -1).any(axis=1)] = 0
        due = self._cut_at == self._decisions
        if not due.any():
            return rows, cut
        self._cut_at[due] = 0
        of_row = np.repeat(due, self.rows_per_world)
        cut = cut | (of_row & self._active)
        obs, infos = self.core.reset(options={"reset_mask": due})
        self._active = self._rows(infos["active"])
        return np.where(of_row[:, None], self._rows(obs), rows), cut

    def errors(self, *, past: bool = False) -> list[WorldError]:
        """What went wrong in which world and when; see :meth:`TorchEnv.errors <sf3d_envs.TorchEnv.errors>`."""
        return self.core.errors(past=past)

    def close(self) -> None:
        """Free the simulator."""
        self._order.closed = True
        self.core.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the configuration, of the tensor environment or of this shell, once per row."""
        for owner in (self.core.config, self.core, self):
            if hasattr(owner, attr_name):
                return [getattr(owner, attr_name) for _ in self._get_indices(indices)]
        raise AttributeError(f"LaneClosureVecEnv has no attribute {attr_name!r}")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Rows have no attributes of their own.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"attribute {attr_name!r} can't be set: rows of LaneClosureVecEnv share one simulator")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call ``render``, the only method that rows have: a frame for each row, of its world.

        Raises:
            AttributeError: If another method is asked for.
        """
        if method_name != "render":
            raise AttributeError(f"rows of LaneClosureVecEnv have the method 'render' only, got {method_name!r}")
        self._order.require("render()")
        return [self.core.render(row // self.rows_per_world) for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """False for each row: rows are not wrapped."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[np.ndarray | None]:  # type: ignore[override]
        """A frame of each world (not of each row: the rows of a world share it)."""
        self._order.require("render()")
        return [self.core.render(world) for world in range(self.core.num_worlds)]

    def _rows(self, value: torch.Tensor) -> np.ndarray:
        """[W, R, ...] or [W] as a copy [N, ...]."""
        array = to_numpy(value)
        if array.ndim == 1:
            return np.repeat(array, self.rows_per_world)
        return array.reshape(self.num_envs, *array.shape[2:])

    def _row_infos(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        names = [name for name in infos if not name.startswith(("_", "final_", "episode_start"))]
        columns = [self._rows(infos[name]).tolist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


class ActiveRolloutBuffer(RolloutBuffer):
    """A rollout buffer that hands out the transitions of active rows only.

    Attributes:
        source: Called at each :meth:`add`; whether the transition of each row is a real one, bool [n_envs].
        active: Which transitions are real, bool [buffer_size, n_envs].
    """

    source: Callable[[], np.ndarray] | None = None

    def reset(self) -> None:
        """Empty the buffer."""
        self.active = np.zeros((self.buffer_size, self.n_envs), dtype=bool)
        super().reset()

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Store one step of all rows.

        Raises:
            RuntimeError: Without a ``source``: use the buffer through :class:`MaskedPPO`.
        """
        if self.source is None:
            raise RuntimeError("ActiveRolloutBuffer has no source of activity; use it through MaskedPPO")
        self.active[self.pos] = self.source()
        super().add(*args, **kwargs)

    def get(self, batch_size: int | None = None) -> Generator[RolloutBufferSamples, None, None]:
        """Minibatches of active transitions in random order; the last one may be smaller."""
        if not self.full:
            raise RuntimeError(f"the rollout buffer holds {self.pos} of {self.buffer_size} steps; fill it first")
        if not self.generator_ready:
            for name in ("observations", "actions", "values", "log_probs", "advantages", "returns"):
                setattr(self, name, self.swap_and_flatten(getattr(self, name)))
            self.generator_ready = True
        # SB3 shuffles with NumPy's global generator, which is what PPO(seed=) seeds.
        indices = np.random.permutation(np.flatnonzero(self.active.swapaxes(0, 1)))  # noqa: NPY002
        size = len(indices) if batch_size is None else batch_size
        for start in range(0, len(indices), max(size, 1)):
            yield self._get_samples(indices[start : start + size])


class MaskedPPO(PPO):
    """SB3's PPO for :class:`LaneClosureVecEnv`: transitions of rows that wait for their world stay out of the loss.

    Takes PPO's arguments. The environment may be wrapped (VecMonitor, VecNormalize).
    """

    def _setup_model(self) -> None:
        if self.rollout_buffer_class is None:
            self.rollout_buffer_class = ActiveRolloutBuffer
        super()._setup_model()

    def collect_rollouts(self, env: Any, callback: Any, rollout_buffer: Any, n_rollout_steps: int) -> bool:
        """Collect a rollout, noting for each transition whether it is real."""
        rows = env.unwrapped
        if not hasattr(rows, "transition_active"):
            raise TypeError(f"MaskedPPO needs a LaneClosureVecEnv, got {type(rows).__name__}")
        rollout_buffer.source = lambda: rows.transition_active
        return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)
