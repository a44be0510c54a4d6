"""Arguments of the lane-closure environment, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..launches import MAX_WORLDS, check_threads
from ..observation.spec import ObservationSpec
from ..registry import Condition, load_condition, load_vehicle
from ..sim.dynamics import CONTROL_HZ
from ..sim.state_config import StateConfig
from ..sim.vehicle import VehicleParams
from ..task.reward import RewardConfig
from ..task.termination import MAX_HORIZON_S, RULES, TaskConfig
from .randomization import DomainRandomization

if TYPE_CHECKING:
    import torch

CONTROLS = ("all", "ego")
AUTORESET_MODES = ("NextStep", "SameStep", "Disabled")
RENDER_MODES = (None, "rgb_array", "human")
NUM_VEHICLES = 12


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What a :class:`~sf3d_envs.envs.torch_env.TorchEnv` is made of.

    Attributes:
        num_worlds: Worlds W.
        condition: A condition (slug, TOML path or :class:`~sf3d_envs.registry.Condition`) for all worlds, or one each.
        suite: Suite (name or TOML path) that slugs refer to.
        control: "all": a row per vehicle; "ego": a row per world.
        ego: The controlled vehicle with ``control="ego"``, 0-11; 0-4 start in the closing lane.
        traffic: Agent (name or object) that drives the vehicles that are not controlled.
        preview: Whether observations carry the 12 preview channels.
        rules: "training" or "scoring" (see :class:`~sf3d_envs.task.TaskConfig`).
        decision_hz: Decisions per second, a divisor of 60.
        horizon_s: Episode length [s].
        autoreset_mode: "NextStep", "SameStep" or "Disabled". Worlds under the scoring rules never reset by themselves.
        reward: Weights of the reward terms.
        reward_fn: Replaces the reward: ``(view, terms) -> float tensor [W, R]``.
        termination_fn: Ends rows in addition to the events: ``(view) -> bool tensor [W, R]``.
        vehicle: A vehicle (registry name, TOML path or :class:`~sf3d_envs.sim.vehicle.VehicleParams`) for all, or
            one per vehicle; None = the benchmark car.
        resample_variant: Draw each episode's road anew from those of ``condition``.
        randomization: What else varies from world to world, a
            :class:`~sf3d_envs.envs.randomization.DomainRandomization` or a dict of its fields; None = nothing. Only
            under the training rules: the scoring rules measure the vehicles as they are given.
        solver: "vehicle", or "xpbd" for the reference path (:class:`~sf3d_envs.sim.solver_xpbd.SolverReference`):
            slower, on one thread, and without ``randomization`` of vehicle parameters.
        state: Quantities of the tensor state beyond the plain one, such as contact sensors
            (:class:`~sf3d_envs.sim.state_config.StateConfig`).
        device: "cpu" or "cuda:N".
        threads: CPU threads; None = all usable cores.
        render_mode: None, "rgb_array" or "human".
        render_size: Width and height of frames [px].
        render_view: "chase" or "top".
    """

    num_worlds: int = 1
    condition: str | Condition | Sequence[str | Condition] = "reference"
    suite: str = "ucx-conditions-1"
    control: str = "all"
    ego: int = 0
    traffic: Any = "idm17"
    preview: bool = False
    rules: str = "training"
    decision_hz: int = 10
    horizon_s: float = 66.0
    autoreset_mode: str = "NextStep"
    reward: RewardConfig = field(default_factory=RewardConfig)
    reward_fn: Callable[..., torch.Tensor] | None = None
    termination_fn: Callable[..., torch.Tensor] | None = None
    vehicle: str | VehicleParams | Sequence[str | VehicleParams] | None = None
    resample_variant: bool = False
    randomization: DomainRandomization | Mapping[str, Any] | None = None
    solver: str = "vehicle"
    state: StateConfig = field(default_factory=StateConfig)
    device: str = "cpu"
    threads: int | None = None
    render_mode: str | None = None
    render_size: tuple[int, int] = (640, 360)
    render_view: str = "chase"

    def __post_init__(self) -> None:
        """Check every argument before anything is allocated.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If it is out of range; the message names it, its value and what is allowed.
        """
        _integer("num_worlds", self.num_worlds, 1, MAX_WORLDS)
        _integer("ego", self.ego, 0, NUM_VEHICLES - 1)
        _integer("decision_hz", self.decision_hz, 1, CONTROL_HZ)
        if CONTROL_HZ % self.decision_hz:
            raise ValueError(f"decision_hz must be a divisor of {CONTROL_HZ}, got {self.decision_hz}")
        _choice("control", self.control, CONTROLS)
        _choice("rules", self.rules, RULES)
        mode = getattr(self.autoreset_mode, "value", self.autoreset_mode)
        _choice("autoreset_mode", mode, AUTORESET_MODES)
        object.__setattr__(self, "autoreset_mode", mode)
        _choice("render_mode", self.render_mode, RENDER_MODES)
        _choice("render_view", self.render_view, ("chase", "top"))
        for name in ("preview", "resample_variant"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, got {getattr(self, name)!r}")
        if isinstance(self.horizon_s, bool) or not isinstance(self.horizon_s, (int, float)):
            raise TypeError(f"horizon_s must be a number of seconds, got {self.horizon_s!r}")
        decisions = self.horizon_s * self.decision_hz
        in_range = 0.0 < self.horizon_s <= MAX_HORIZON_S
        if not in_range or decisions < 1 - 1e-6 or abs(decisions - round(decisions)) > 1e-6:
            raise ValueError(
                f"horizon_s must be a positive multiple of the decision period 1/{self.decision_hz} s, at most "
                f"{MAX_HORIZON_S:g}, got {self.horizon_s!r}"
            )
        check_threads(self.threads)
        size = self.render_size
        if not isinstance(size, (tuple, list)) or len(size) != 2:
            raise TypeError(f"render_size must be (width, height) in px, got {size!r}")
        for value in size:
            _integer("render_size", value, 16, 8192)
        if not isinstance(self.condition, (str, os.PathLike, Condition, list, tuple)):
            raise TypeError(f"condition must be a slug, TOML path, Condition or a list of them, got {self.condition!r}")
        if not isinstance(self.reward, RewardConfig):
            raise TypeError(f"reward must be a RewardConfig, got {self.reward!r}; for a function use reward_fn=")
        for name in ("reward_fn", "termination_fn"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise TypeError(f"{name} must be callable or None, got {getattr(self, name)!r}")
        self._check_randomization()

    def _check_randomization(self) -> None:
        given = self.randomization
        if given is None:
            return
        if isinstance(given, Mapping):
            given = DomainRandomization.from_dict(given)
            object.__setattr__(self, "randomization", given)
        if not isinstance(given, DomainRandomization):
            raise TypeError(f"randomization must be a DomainRandomization, a dict of its fields or None, got {given!r}")
        if self.rules != "training":
            raise ValueError(
                f"randomization needs rules='training', got rules={self.rules!r}: the scoring rules measure the "
                "vehicles as they are given; leave randomization out"
            )
        given.deviations(ObservationSpec(self.preview))

    @property
    def steps_per_decision(self) -> int:
        """Control steps of a decision."""
        return CONTROL_HZ // self.decision_hz

    @property
    def active_randomization(self) -> DomainRandomization | None:
        """What varies from world to world; None if nothing does."""
        given = self.randomization
        return given if isinstance(given, DomainRandomization) and given.varies else None

    @property
    def task(self) -> TaskConfig:
        """Horizon and rules as the task kernels take them."""
        return TaskConfig(horizon_s=self.horizon_s, rules=self.rules)

    @property
    def controlled(self) -> tuple[int, ...]:
        """Vehicle of each row."""
        return tuple(range(NUM_VEHICLES)) if self.control == "all" else (self.ego,)

    def vehicles(self) -> VehicleParams | list[VehicleParams] | None:
        """Vehicle parameters as the simulator takes them.

        Raises:
            TypeError: If an entry is neither a name, a path nor VehicleParams.
            ValueError: If a name is unknown or a file holds a bad value.
        """
        if self.vehicle is None:
            return None
        if isinstance(self.vehicle, (list, tuple)):
            return [_load_vehicle(item) for item in self.vehicle]
        return _load_vehicle(self.vehicle)

    def conditions(self) -> tuple[Condition, ...]:
        """Condition of each world.

        Raises:
            ValueError: If a slug is unknown or the list's length is not ``num_worlds``.
        """
        if isinstance(self.condition, (list, tuple)):
            if len(self.condition) != self.num_worlds:
                raise ValueError(f"condition has {len(self.condition)} entries for num_worlds={self.num_worlds}")
            known: dict[Any, Condition] = {}
            for item in self.condition:
                if item not in known:
                    known[item] = load_condition(item, self.suite)
            return tuple(known[item] for item in self.condition)
        return (load_condition(self.condition, self.suite),) * self.num_worlds


def _load_vehicle(vehicle: object) -> VehicleParams:
    if isinstance(vehicle, VehicleParams):
        return vehicle
    if not isinstance(vehicle, (str, os.PathLike)):
        raise TypeError(f"vehicle must be a registry name, a TOML path or VehicleParams, got {vehicle!r}")
    values = load_vehicle(vehicle)
    try:
        return VehicleParams.from_dict(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"vehicle {str(vehicle)!r}: {error}") from None


def _integer(name: str, value: object, low: int, high: int) -> None:
    allowed = f"an int in [{low}, {high}]"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be {allowed}, got {value}")


def _choice(name: str, value: object, allowed: tuple) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
