"""The launches of an environment step, recorded once and replayed by every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from ..launches import LaunchList
from ..observation.view import Observer, WorldView
from ..sim.dynamics import CONTROL_HZ
from ..sim.simulator import Simulator
from ..task.kernels import TaskState, task_rules
from ..task.kernels_errors import ErrorLog
from ..task.kernels_score import ScoreInputs, score_control_step
from ..task.reward import REWARD_TERMS, begin_decision
from . import kernels
from .config import NUM_VEHICLES, EnvConfig
from .episodes import Episodes
from .kernels import RowArrays
from .probes import Probe
from .randomizer import Randomizer

REQUEST_LOW, REQUEST_HIGH = (-8.0, -1.0), (5.0, 1.0)
"""Limits of an action: requested acceleration [m/s²] and normalized steering."""


class StepBuffers:
    """Fixed memory that a step reads from and writes to.

    Args:
        num_worlds: W.
        num_rows: R.
        observation: The observation buffer, [W, R, D].
        device: Warp device.
    """

    def __init__(self, num_worlds: int, num_rows: int, observation: wp.array, device: wp.Device):
        vehicles = (num_worlds, NUM_VEHICLES)
        self.action = wp.zeros((num_worlds, num_rows, 2), dtype=float, device=device)
        self.request = wp.zeros(vehicles, dtype=wp.vec2, device=device)
        self.traffic = wp.zeros(vehicles, dtype=wp.vec2, device=device)
        self.traffic_held = wp.zeros(vehicles, dtype=wp.vec2, device=device)
        self.terms = wp.zeros((*vehicles, len(REWARD_TERMS)), dtype=float, device=device)
        self.user_reward = wp.zeros((num_worlds, num_rows), dtype=float, device=device)
        self.final_obs = wp.zeros_like(observation)
        self.action_tensor = wp.to_torch(self.action)
        self.traffic_tensor = wp.to_torch(self.traffic)


@dataclass(frozen=True)
class StepLists:
    """Recorded launches, in the order of a step.

    Attributes:
        begin: Resets waiting worlds (next-step autoreset), takes the actions, opens the reward terms.
        control: One control step of 1/60 s: commands, physics, routes, events, reward, probes.
        control_unrewarded: The same without the reward.
        finish: Reward, flags and activity of the rows.
        replace_reward: Puts a user's reward in place.
        observe_and_reset: Observes; resets done worlds (same-step autoreset) and observes those again.
        observe_masked: Observes the worlds of an explicit reset and leaves all other rows as they are.
        whole: A whole step, captured as one graph; None where a user's function or an unrecorded traffic agent is
            called in between.
        whole_unrewarded: Begin and control steps without the reward, likewise.
    """

    begin: LaunchList
    control: LaunchList
    control_unrewarded: LaunchList
    finish: LaunchList
    replace_reward: LaunchList
    observe_and_reset: LaunchList
    observe_masked: LaunchList
    whole: LaunchList | None = None
    whole_unrewarded: LaunchList | None = None

    def of_step(self, control_steps: int) -> list[tuple[LaunchList, int]]:
        """The lists of a plain step, each with how often it runs."""
        return [(self.begin, 1), (self.control, control_steps), (self.finish, 1), (self.observe_and_reset, 1)]


def record_steps(
    config: EnvConfig,
    sim: Simulator,
    view: WorldView,
    task: TaskState,
    rows: RowArrays,
    errors: ErrorLog,
    episodes: Episodes,
    observer: Observer,
    buffers: StepBuffers,
    *,
    traffic_hz: int,
    traffic: Any = None,
    randomizer: Randomizer | None = None,
    probes: Sequence[Probe] = (),
) -> StepLists:
    """Record every launch list of an environment."""
    training = int(config.rules == "training")
    weights = config.reward.weights()
    horizon = config.task.horizon_steps

    begin = LaunchList(sim.shards)
    sim.dynamics.record_begin(begin)
    if config.autoreset_mode == "NextStep" and training:
        episodes.record(begin, done_worlds=True, hold=True)
    low, high = wp.vec2(*REQUEST_LOW), wp.vec2(*REQUEST_HIGH)
    begin.add(kernels.take_actions, [buffers.action, rows, low, high, sim.stepping, buffers.request])
    begin.add(begin_decision, [buffers.request, view.command, rows.collecting, weights, buffers.terms, NUM_VEHICLES])

    unrewarded = LaunchList(sim.shards)
    if traffic is not None:
        traffic.record(unrewarded)
    unrewarded.add(
        kernels.latch_commands,
        [
            buffers.request,
            buffers.traffic if traffic is None else traffic.action,
            buffers.traffic_held,
            CONTROL_HZ // traffic_hz,
            rows,
            task,
            sim.stepping,
            training,
            max(car.brake_accel_scale for car in sim.vehicles),
            low,
            high,
            view.command,
        ],
    )
    if randomizer is not None:
        randomizer.record_delay(unrewarded, rows, task, training)
    sim.record_step(unrewarded)
    control = LaunchList(sim.shards)
    control.extend(unrewarded)
    inputs = _score_inputs(config, sim, view, rows)
    for launches, rewarded in ((control, 1), (unrewarded, 0)):
        launches.add(
            score_control_step,
            [
                inputs,
                rewarded,
                view.route_index,
                task,
                buffers.terms,
                sim.dynamics.rigid_contacts.overflow,
                errors,
                sim.stepping,
            ],
        )
        for probe in probes:
            probe.record(launches)

    finish = LaunchList(sim.shards)
    finish.add(kernels.finish_decision, [rows, task, buffers.terms, sim.stepping, 1 - training, horizon])
    replace_reward = LaunchList(sim.shards)
    replace_reward.add(kernels.replace_rewards, [rows, buffers.user_reward])

    def record_observation(launches: LaunchList) -> None:
        observer.record(launches)
        if randomizer is not None:
            randomizer.record_noise(launches, rows, task, episodes.seed, observer.obs)

    observe_masked = LaunchList(sim.shards)
    observe_masked.add(kernels.keep_running_rows, [episodes.mask, rows])
    record_observation(observe_masked)
    observe_and_reset = LaunchList(sim.shards)
    record_observation(observe_and_reset)
    if config.autoreset_mode == "SameStep" and training:
        observe_and_reset.add(
            kernels.copy_final,
            [rows, episodes.seed, observer.obs, buffers.final_obs],
            per_world=(observer.obs.shape[1],),
        )
        episodes.record(observe_and_reset, done_worlds=True)
        observe_and_reset.extend(observe_masked)
    whole = whole_unrewarded = None
    if config.control == "all" or traffic is not None:
        repeats = config.steps_per_decision
        whole_unrewarded = _joined(begin, *[unrewarded] * repeats)
        if config.termination_fn is None and config.reward_fn is None:
            whole = _joined(begin, *[control] * repeats, finish, observe_and_reset)
    return StepLists(
        begin,
        control,
        unrewarded,
        finish,
        replace_reward,
        observe_and_reset,
        observe_masked,
        whole,
        whole_unrewarded,
    )


def _joined(*lists: LaunchList) -> LaunchList:
    joined = LaunchList(lists[0].shards)
    for item in lists:
        joined.extend(item)
    return joined


def _score_inputs(config: EnvConfig, sim: Simulator, view: WorldView, rows: RowArrays) -> ScoreInputs:
    inputs = ScoreInputs()
    inputs.body_q, inputs.body_qd, inputs.nonfinite = sim.body_q, sim.body_qd, sim.nonfinite
    inputs.collecting = rows.collecting
    inputs.geometry, inputs.own_route = view.geometry, view.own_route
    inputs.route_points, inputs.route_count = view.routes.points, view.routes.count
    inputs.route_reach = view.routes.reach
    inputs.terrain = sim.terrain
    inputs.rules, inputs.weights = task_rules(config.task), config.reward.weights()
    inputs.num_vehicles, inputs.num_routes = NUM_VEHICLES, len(view.routes)
    inputs.stop_at_event = int(config.rules == "training")
    inputs.horizon, inputs.dt = config.task.horizon_steps, 1.0 / CONTROL_HZ
    return inputs
