"""The single-agent Gymnasium environment: one world, one ego vehicle."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.error import ResetNeeded
from gymnasium.utils import EzPickle

from ..observation.spec import ObservationSpec, observation_docs
from .errors import WorldError
from .shells import (
    RENDER_MODES,
    CallOrder,
    action_space,
    observation_space,
    row_info,
    shell_config,
    to_actions,
    to_numpy,
)
from .torch_env import TorchEnv


class LaneClosureEnv(gym.Env[np.ndarray, np.ndarray], EzPickle):
    """Drive one of twelve vehicles past a lane closure; the other eleven are driven by a traffic agent.

    The right lane of a two-lane road is closed from x = 150 m on. Five vehicles start in it and must merge between
    x = 50 m and 110 m, seven drive in the open lane. All are physical: a chassis on four suspended wheels with tyres,
    on a road whose friction and grade belong to the *condition*. The goal is to cross the counting line at x = 170 m
    in the open lane without an event. ``import sf3d_envs`` registers the IDs:

    - ``SF3D/LaneClosure-v0``, which takes any ``condition=``;
    - ``SF3D/LaneClosure-<slug>-v0`` for the other conditions of the suite (``mu018``, ``gradeN045-mu035``, ...);
    - both also without the namespace: ``LaneClosure-v0``, ``LaneClosure-mu018-v0``.

    ## Action

    ``Box([-4, -1], [4, 1], (2,), float32)``, held for a decision period. Values outside are clipped, NaN is refused.

    | index | name | unit | low | high | meaning |
    |---|---|---|---|---|---|
    | 0 | acceleration | m/s^2 | -4 | 4 | Requested acceleration; negative brakes. |
    | 1 | steering | 1 | -1 | 1 | Normalized steering, positive to the left. |

    ## Observation

    ``Box(-10, 10, (112,), float32)``; 124 channels with ``preview=True`` (the last twelve).
    ``env.unwrapped.observation_spec["ego.speed_long"]`` gives a channel's index.

    {observation_table}

    ## Reward

    Summed over the control steps of a decision; each term is in the infos as ``reward_terms/<name>``. Weights:
    ``reward=RewardConfig(...)``; another reward: ``reward_fn=``.

    | term | default |
    |---|---|
    | progress | 0.1 per metre along the own route |
    | passage | 10 once, for a valid passage of the counting line |
    | event | -10 once, at the first event; -20 if it is a fault |
    | route | -0.05 per metre of lateral offset and second |
    | comfort | -0.01 per m/s^2 of change of the requested acceleration between decisions |

    ## Start

    Lane centres, rolling freely on settled springs; gaps, speeds and driver presets are drawn from the scenario seed.
    ``reset(seed=s)`` restarts the stream of scenario seeds; ``options={"scenario_seed": n}`` names the next scenario.

    ## End of the episode

    Terminated at the ego's first event: fault (overturned, out of the map, non-finite), collision, off-road, incursion
    into the closed lane. Truncated after ``horizon_s`` (66 s) or when another vehicle has a fault. Under
    ``rules="scoring"`` only the ego's own fault terminates.

    ## Infos

    ``event`` (first event: 0 none, 1 fault, 2 collision, 3 off-road, 4 incursion), ``passage``, ``active``,
    ``episode_start``, ``scenario_seed``, ``reward_terms/<name>``; with ``randomization=`` the drawn values, as
    ``randomization/<name>``.

    ## Arguments

    Keyword arguments are fields of :class:`~sf3d_envs.envs.config.EnvConfig`; most used: ``condition``, ``ego``
    (0-11; 0-4 start in the closing lane), ``traffic`` (agent name or object), ``preview``, ``decision_hz`` (10),
    ``horizon_s``, ``rules``, ``vehicle``, ``randomization``
    (:class:`~sf3d_envs.envs.randomization.DomainRandomization` or a dict of its fields), ``solver``, ``device``,
    ``render_mode`` (None, "rgb_array", "human"), ``render_view``.

    ## Changelog

    - v0: first version.

    Args:
        condition: Road condition: slug, TOML path or :class:`~sf3d_envs.registry.Condition`. None = the ID's, or else
            the reference.
        id_condition: Condition that the ID carries; set by the registry.
        **kwargs: See above.

    Raises:
        TypeError: If an argument is unknown or has the wrong type.
        ValueError: If a value is out of range, or ``condition`` contradicts the ID.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012

    def __init__(self, condition: Any = None, *, id_condition: str | None = None, **kwargs: Any) -> None:
        EzPickle.__init__(self, condition, id_condition=id_condition, **kwargs)
        fixed = {"num_worlds": 1, "control": "ego", "autoreset_mode": "Disabled"}
        config = shell_config("LaneClosureEnv", kwargs, condition=condition, id_condition=id_condition, **fixed)
        self.core = TorchEnv(config=config)
        self.render_mode = config.render_mode
        self.metadata = {**type(self).metadata, "render_fps": config.decision_hz}
        self.action_space = action_space()
        self.observation_space = observation_space(config.preview)
        self._order = CallOrder("LaneClosureEnv")
        self._ended = False

    @property
    def observation_spec(self) -> ObservationSpec:
        """Named access to the observation vector."""
        return self.core.observation_spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode.

        Args:
            seed: Restarts the stream of scenarios; None continues it.
            options: ``scenario_seed``: scenario of this episode, an int.

        Returns:
            Observation [D] and infos.

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ValueError: If the seed is negative or an option is unknown.
        """
        self._order.require("reset()", started=False)
        if options and "reset_mask" in options:
            raise ValueError("unknown reset option 'reset_mask'; known: 'scenario_seed'")
        obs, infos = self.core.reset(seed=seed, options=options)
        super().reset(seed=seed)
        self._order.started()
        self._ended = False
        self._show()
        return to_numpy(obs[0, 0]), row_info(infos, 0)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Hold an action for a decision period.

        Args:
            action: Acceleration [m/s^2] and normalized steering, shape [2].

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`, and after the end of an episode.
            ValueError: If the action holds NaN or anything but real numbers, or has another shape.
        """
        self._order.require("step()")
        if self._ended:
            raise ResetNeeded("step() after the end of the episode: call reset() first")
        batch = torch.from_numpy(to_actions(action, (2,))).to(self.core.device).view(1, 1, 2)
        obs, reward, terminated, truncated, infos = self.core.step(batch)
        ended, cut = bool(terminated[0, 0]), bool(truncated[0, 0])
        self._ended = ended or cut
        self._show()
        return to_numpy(obs[0, 0]), float(reward[0, 0]), ended, cut, row_info(infos, 0)

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """Frame, uint8 [height, width, 3]; None in the modes None and "human".

        Raises:
            ClosedEnvironmentError: After :meth:`close`.
            ResetNeeded: Before :meth:`reset`.
        """
        self._order.require("render()")
        return self.core.render()

    def errors(self, *, past: bool = False) -> list[WorldError]:
        """What went wrong in which world and when; see :meth:`TorchEnv.errors <sf3d_envs.TorchEnv.errors>`."""
        return self.core.errors(past=past)

    def close(self) -> None:
        """Free the simulator."""
        self._order.closed = True
        self.core.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.core.render()


if LaneClosureEnv.__doc__:
    LaneClosureEnv.__doc__ = LaneClosureEnv.__doc__.replace(
        "{observation_table}", observation_docs(preview=True).rstrip().replace("\n", "\n    ")
    )
