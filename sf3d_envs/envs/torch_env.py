"""The only environment: batched lane-closure worlds as torch tensors on the simulator's device."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import warp as wp

from .._warp import RANDOMIZATION_MODULES, get_device, load_kernels
from ..launches import LaunchList, outside_captures
from ..lifetime import DeviceOwner, exclusive
from ..observation.spec import ObservationSpec
from ..observation.view import Observer
from ..scenario.route import RouteTable
from ..sim.simulator import CONTROL_HZ, Simulator
from ..task.kernels import TaskState, task_state
from ..task.kernels_errors import error_log
from ..task.reward import REWARD_TERMS
from ..terrain.lane_closure import lane_closure_terrain
from .config import NUM_VEHICLES, EnvConfig
from .digests import run_digests
from .episodes import Episodes, world_mask
from .errors import WorldError, read_errors
from .live_view import live_view
from .outputs import check_action, output_tensors
from .probes import Probe, check_probes
from .randomizer import Randomizer
from .rows import allocate_rows
from .step_lists import StepBuffers, record_steps
from .traffic import bind_traffic, load_traffic, traffic_commands


class TorchEnv(DeviceOwner):
    """W worlds of twelve physical vehicles before a lane closure, stepped together.

    Everything is a torch tensor on the simulator's device. The tensors that :meth:`reset` and :meth:`step` return are
    views of the environment's own memory, overwritten by the next call: clone what you keep (the Gymnasium, PettingZoo
    and SB3 shells copy for you).

    Shapes: W worlds, R rows per world (12 with ``control="all"``, 1 with ``control="ego"``), D = 112 channels, 124 with
    preview. Action [W, R, 2]: requested acceleration, clipped to [-8, 5] m/s², and normalized steering, clipped to
    [-1, 1], positive to the left. A non-finite action counts as (0, 0) and flags its world (:meth:`errors`).

    Training rules: a row terminates once, on its vehicle's first event, and is then inactive: zero observation and
    reward, flags False, ``infos["active"]`` False; its vehicle brakes fully and stays an obstacle. A world ends when
    all its rows are inactive, at the horizon (live rows truncated) or at a fault (the faulting row terminated, live
    rows truncated). Scoring rules: vehicles drive on after an event; a fault ends the world, which is then frozen.

    Autoreset: "NextStep" resets a done world in the following step, which ignores its action, gives reward 0 and sets
    ``infos["episode_start"]``; "SameStep" resets it at once and puts the last observation in ``infos["final_obs"]``;
    "Disabled" waits for ``reset(options={"reset_mask": ...})``.

    Infos (tensors [W, R] unless noted): ``event`` int8 (first event: 0 none, 1 fault, 2 collision, 3 off-road,
    4 incursion), ``passage`` bool (has validly passed the counting line), ``active`` bool, ``episode_start`` bool,
    ``scenario_seed`` uint64 [W], ``reward_terms/<name>`` float for progress, passage, event, route, comfort; with
    ``randomization=`` also ``randomization/<name>`` [W], the drawn values of its fields.

    Args:
        num_worlds: Worlds W.
        config: A complete configuration; mutually exclusive with the fields as keyword arguments.
        probes: What measures inside the step (:class:`~sf3d_envs.envs.probes.Probe`); none costs nothing.
        **kwargs: Fields of :class:`~sf3d_envs.envs.config.EnvConfig`.

    Raises:
        TypeError, ValueError: If an argument is wrong; the message names it, its value and what is allowed.
    """

    _kept = frozenset({"config", "conditions", "num_worlds", "num_rows", "observation_spec", "device", "_state"})
    _instead = "pickle env.config and make a new one with TorchEnv(config=config)"

    @outside_captures
    def __init__(
        self,
        num_worlds: int | None = None,
        *,
        config: EnvConfig | None = None,
        probes: Sequence[Probe] = (),
        **kwargs: Any,
    ):
        probes = check_probes(probes)
        if config is None:
            known = {field.name for field in dataclasses.fields(EnvConfig)}
            unknown = sorted(set(kwargs) - known)
            if unknown:
                raise TypeError(f"unknown argument {unknown[0]!r}; known: {', '.join(sorted(known))}")
            config = EnvConfig(num_worlds=1 if num_worlds is None else num_worlds, **kwargs)
        elif not isinstance(config, EnvConfig):
            raise TypeError(f"config must be an EnvConfig, got {config!r}")
        elif num_worlds is not None or kwargs:
            raise ValueError("give either config= or keyword arguments, not both")
        self.config = config
        conditions = config.conditions()
        self.conditions = conditions
        self._device = get_device(config.device)
        controlled = config.controlled
        traffic = load_traffic(config.traffic)
        self._traffic = None if config.control == "all" else traffic
        randomization = config.active_randomization
        load_kernels(self._device, extra=() if randomization is None else RANDOMIZATION_MODULES)

        distinct = list(dict.fromkeys(conditions))
        variants = [lane_closure_terrain(condition) for condition in distinct]
        self.sim = Simulator(
            config.num_worlds,
            variants,
            [distinct.index(condition) for condition in conditions],
            vehicle=config.vehicles(),
            num_vehicles=NUM_VEHICLES,
            device=self._device,
            threads=config.threads,
            solver=config.solver,
            state=config.state,
            params_per_world=randomization is not None and randomization.varies_vehicles,
        )
        self.num_worlds, self.num_rows = config.num_worlds, len(controlled)
        self.observation_spec = ObservationSpec(config.preview)
        self.device = torch.device(wp.device_to_torch(self._device))
        self.routes = RouteTable(device=self._device)
        self.task = task_state(self.num_worlds, NUM_VEHICLES, self._device)
        self._errors = error_log(self.task.step, self._device)
        self._rows = allocate_rows(self.num_worlds, controlled, NUM_VEHICLES, self._errors, self._device)
        self._randomizer = None if randomization is None else Randomizer(randomization, self.sim, self.observation_spec)
        self._episodes = Episodes(
            self.sim,
            self.routes,
            self.task,
            self._rows,
            resample_variant=config.resample_variant,
            randomizer=self._randomizer,
        )
        command = self.sim.command if self._randomizer is None else self._randomizer.requested
        self.view = live_view(self.sim, self.task, self._episodes, self.routes, command)
        self._probes = probes
        for probe in probes:
            probe.bind(self.view, self.task, self.sim)
        self._episodes.probes = probes
        self._observer = Observer(self.view, controlled, preview=config.preview, row_active=self._rows.code)
        self._recorded_traffic = bind_traffic(self._traffic, self.view)
        self._buffers = StepBuffers(self.num_worlds, self.num_rows, self._observer.obs, self._device)
        self._lists = record_steps(
            config,
            self.sim,
            self.view,
            self.task,
            self._rows,
            self._errors,
            self._episodes,
            self._observer,
            self._buffers,
            traffic_hz=CONTROL_HZ if self._traffic is None else self._traffic.decision_hz,
            traffic=self._recorded_traffic,
            randomizer=self._randomizer,
            probes=probes,
        )
        self._tensors = output_tensors(self._rows, self._episodes, self.sim, self._observer, self._buffers)
        self._state = "new"
        self._renderer: Any = None

    @exclusive
    @outside_captures
    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: World i gets the stream ``seed + i``; or a sequence with one entry per world; None continues the
                streams (fresh entropy at first).
            options: ``scenario_seed``: int n (world i gets n + i) or a sequence, for the first episode only;
                ``reset_mask``: worlds (bool [W]) or rows (bool [W, R], equal within a world) to reset, all if absent.

        Returns:
            Observation [W, R, D] and infos.

        Raises:
            RuntimeError: After :meth:`close`.
            ValueError: If an option is unknown, a mask differs within a world or the first reset is partial.
        """
        self._require_open("reset()")
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options must be a mapping or None, got {options!r}")
        options = dict(options or {})
        unknown = sorted(set(options) - {"scenario_seed", "reset_mask"})
        if unknown:
            raise ValueError(f"unknown reset option {unknown[0]!r}; known: 'scenario_seed', 'reset_mask'")
        mask = None
        if options.get("reset_mask") is not None:
            mask = world_mask(options["reset_mask"], self.num_worlds, self.num_rows)
            if self._state == "new" and not mask.all():
                raise ValueError("reset_mask must select every world at the first reset")
        self._episodes.reset(seed, options.get("scenario_seed"), mask)
        chosen = self._tensors["mask"]
        for name in ("reward", "event", "terms"):
            self._tensors[name][chosen] = 0
        for name in ("terminated", "truncated", "passage", "ended"):
            self._tensors[name][chosen] = False
        self._lists.observe_masked.run()
        if self._traffic is not None:
            self._traffic.reset(chosen)
        self.sim.mark_changed()
        self._state = "running"
        return self._tensors["obs"], self._infos()

    @exclusive
    def step(
        self, action: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Hold one action per row for a decision period.

        Args:
            action: float32 [W, R, 2] on the simulator's device.

        Returns:
            Observation [W, R, D], reward [W, R], terminated [W, R], truncated [W, R], infos.

        Raises:
            RuntimeError: Before :meth:`reset` or after :meth:`close`.
            TypeError, ValueError: If the action has another dtype, shape or device.
        """
        self._take(action)
        if self._lists.whole is not None:
            self._lists.whole.run()
        else:
            self._step_in_parts()
        self._finish_step()
        t = self._tensors
        return t["obs"], t["reward"], t["terminated"], t["truncated"], self._infos(stepped=True)

    @exclusive
    def advance(self, action: torch.Tensor) -> None:
        """Like :meth:`step`, without observation, reward and flags: what an evaluation needs."""
        self._take(action)
        if self._lists.whole_unrewarded is not None:
            self._lists.whole_unrewarded.run()
        else:
            self._state = "interrupted"
            self._drive(self._lists.control_unrewarded)
            self._state = "running"
        self._finish_step()

    def _finish_step(self) -> None:
        self.sim.mark_changed()
        for probe in self._probes:
            probe.advanced(self.config.steps_per_decision)

    def _take(self, action: torch.Tensor) -> None:
        self._require_open("step()")
        if self._state == "new":
            raise RuntimeError("step() before reset(): call reset() first")
        if self._state == "interrupted":
            raise RuntimeError("an exception interrupted the last step half-way: call reset() before the next")
        check_action(action, (self.num_worlds, self.num_rows, 2), self.device)
        if self._recorded_traffic is not None:
            self._recorded_traffic.check_bound(self.view)
        self._buffers.action_tensor.copy_(action.detach())

    def _step_in_parts(self) -> None:
        """A step with calls of users' functions and of a traffic agent between the launches."""
        self._state = "interrupted"
        self._drive(self._lists.control)
        if self.config.termination_fn is not None:
            self._tensors["user_terminated"].copy_(self._row_tensor("termination_fn", torch.bool))
        self._lists.finish.run()
        if self.config.reward_fn is not None:
            self._tensors["user_reward"].copy_(self._row_tensor("reward_fn", torch.float32))
            self._lists.replace_reward.run()
        self._lists.observe_and_reset.run()
        if self._traffic is not None and self.config.autoreset_mode == "SameStep":
            self._traffic.reset(self._tensors["mask"])
        self._state = "running"

    def _drive(self, control: LaunchList) -> None:
        """Begin a decision and run its control steps; a traffic agent decides at its own rate in between."""
        self._lists.begin.run()
        steps = self.config.steps_per_decision
        if self._traffic is None or self._recorded_traffic is not None:
            control.run(steps)
            return
        if self.config.autoreset_mode == "NextStep":
            self._traffic.reset(self._tensors["mask"])
        period = CONTROL_HZ // self._traffic.decision_hz
        aligned = steps % period == 0
        for k in range(steps):
            if not aligned or k % period == 0:
                self._buffers.traffic_tensor.copy_(traffic_commands(self._traffic, self.view))
            control.run()

    def _row_tensor(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """Call a user's function and check what it returns."""
        function = getattr(self.config, name)
        value = function(self.view) if name == "termination_fn" else function(self.view, self._vehicle_terms())
        shape = (self.num_worlds, self.num_rows)
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            given = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(f"{name} must return a tensor of shape {shape} (worlds, rows), got {given}")
        if (dtype == torch.bool) != (value.dtype == torch.bool) or value.is_complex():
            kind = "bool" if dtype == torch.bool else "real"
            raise TypeError(f"{name} must return a {kind} tensor, got {value.dtype}")
        return value.to(dtype)

    def _vehicle_terms(self) -> dict[str, torch.Tensor]:
        return {name: self._tensors["terms"][..., k] for k, name in enumerate(REWARD_TERMS)}

    def _infos(self, *, stepped: bool = False) -> dict[str, Any]:
        t = self._tensors
        infos: dict[str, Any] = {name: t[name] for name in ("event", "passage", "active", "episode_start")}
        infos["scenario_seed"] = t["seed"]
        for name, value in self._vehicle_terms().items():
            infos[f"reward_terms/{name}"] = value
        for name, value in self.randomization.items():
            infos[f"randomization/{name}"] = value
        if stepped and self.config.autoreset_mode == "SameStep":
            mask = t["ended"] & t["mask"].unsqueeze(-1)
            infos["final_obs"], infos["_final_obs"] = t["final_obs"], mask
            infos["final_info"] = {name: t[f"final_{name}"] for name in ("event", "passage", "scenario_seed")}
            infos["_final_info"] = mask
            for name, value in () if self._randomizer is None else self._randomizer.last_values.items():
                infos["final_info"][f"randomization/{name}"] = value
        return infos

    def step_launches(self) -> list[tuple[LaunchList, int]]:
        """The launches of a step, each list with how often it runs; for profiling."""
        return self._lists.of_step(self.config.steps_per_decision)

    @property
    def randomization(self) -> dict[str, torch.Tensor]:
        """Drawn values of the running episodes by field name, tensors [W] overwritten at resets; empty when off."""
        return {} if self._randomizer is None else self._randomizer.values

    @exclusive
    def all_done(self) -> bool:
        """Whether every world has ended and none will step again without a reset (synchronizes with the device)."""
        self._require_open("all_done()")
        return not bool(self._tensors["stepping"].any())

    @exclusive
    def task_numpy(self) -> dict[str, np.ndarray]:
        """Host copy of the task state: what happened to every vehicle and world since its reset."""
        self._require_open("task_numpy()")
        return {name: getattr(self.task, name).numpy().copy() for name in TaskState.vars}

    @exclusive
    def digests(self) -> dict[str, Any]:
        """Digests of what was simulated: scenario, terrain and initial state per world, and the routes."""
        self._require_open("digests()")
        return run_digests(self)

    @exclusive
    def errors(self, *, past: bool = False) -> list[WorldError]:
        """What went wrong: the first error of each kind in the running episodes (synchronizes with the device).

        Args:
            past: Also the last ones of earlier episodes, which a reset or autoreset has ended.

        Returns:
            Errors by world and time; empty when all is well.
        """
        self._require_open("errors()")
        return read_errors(self._errors, self.config.controlled, self.config.steps_per_decision, past=past)

    @exclusive
    @outside_captures
    def render(self, world: int = 0, overlay: tuple[str, ...] | None = None) -> np.ndarray | None:
        """Frame of one world, uint8 [height, width, 3]; None in the modes None and "human" (which updates the viewer).

        Raises:
            RuntimeError: Before :meth:`reset` or after :meth:`close`.
            ValueError: If ``world`` does not exist.
        """
        self._require_open("render()")
        if self.config.render_mode is None:
            return None
        if self._state == "new":
            raise RuntimeError("render() before reset(): call reset() first")
        if not 0 <= world < self.num_worlds:
            raise ValueError(f"world must be in [0, {self.num_worlds - 1}], got {world}")
        if self._renderer is None:
            from .rendering import EnvRenderer

            self._renderer = EnvRenderer(self)
        return self._renderer.frame(world, overlay)

    @exclusive
    def close(self) -> None:
        """Free memory and threads, once a running step has ended; any later call but ``close`` raises RuntimeError."""
        if self._state == "closed":
            return
        self._state = "closed"
        if self._renderer is not None:
            self._renderer.close()
        self.sim.close()
        self._free()

    def _require_open(self, call: str) -> None:
        if self._state == "closed":
            raise RuntimeError(f"{call} on a closed environment; make a new one")
