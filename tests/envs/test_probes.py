"""The hook for probes: where they run, that they change nothing, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp

from sf3d_envs.agents import make_agent
from sf3d_envs.envs.probes import Probe
from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation.logged import logging_probes


@wp.kernel
def count_steps(step: wp.array(dtype=wp.int32), seen: wp.array2d(dtype=wp.int32), world_begin: int):
    w = wp.tid() + world_begin
    seen[w, 0] = seen[w, 0] + 1
    seen[w, 1] = step[w]


@wp.kernel
def clear_steps(
    mask: wp.array(dtype=wp.bool), step: wp.array(dtype=wp.int32), seen: wp.array2d(dtype=wp.int32), world_begin: int
):
    w = wp.tid() + world_begin
    if mask[w]:
        seen[w, 0] = 0
        seen[w, 2] = step[w]


class Counter:
    """Counts its launches per world; keeps the step count at the last launch and at the last reset."""

    def __init__(self):
        self.told = []

    def bind(self, view, task, sim):
        self.view, self.task, self.sim = view, task, sim
        self.seen = wp.full((view.num_worlds, 3), -1, dtype=wp.int32, device=view.device)

    def record(self, launches):
        launches.add(count_steps, [self.task.step, self.seen])

    def record_reset(self, launches, mask):
        launches.add(clear_steps, [mask, self.task.step, self.seen])

    def advanced(self, steps):
        self.told.append(steps)


def kernels_of(launches):
    """Names of the kernels of a list, shard 0."""
    return [command.kernel.key for command in launches._commands[0]]


STEP = ["latch_commands", "advance_worlds", "score_control_step"]


def test_without_probes_the_lists_are_those_of_the_step_alone():
    env = TorchEnv(2)
    assert kernels_of(env._lists.control) == STEP
    assert kernels_of(env._lists.control_unrewarded) == STEP
    assert kernels_of(env._episodes._masked) == [
        *("begin_episodes", "sample_scenarios", "place_scenario", "project_to_routes_global", "reset_task")
    ]
    env.close()


def test_a_probe_comes_last_in_both_lists():
    counter = Counter()
    env = TorchEnv(2, probes=[counter, *logging_probes(1)])
    assert kernels_of(env._lists.control) == [*STEP, "count_steps", "measure_worlds", "write_rows"]
    assert kernels_of(env._lists.control_unrewarded) == [*STEP, "count_steps", "measure_worlds", "write_rows"]
    assert counter.view is env.view
    assert counter.task is env.task
    assert counter.sim is env.sim
    env.close()


def test_a_probe_runs_once_per_control_step_and_is_told():
    counter = Counter()
    env = TorchEnv(3, decision_hz=20, probes=[counter])
    env.reset(seed=0)
    action = torch.zeros(3, 12, 2)
    env.step(action)
    env.advance(action)
    assert counter.seen.numpy()[:, :2].tolist() == [[6, 6]] * 3
    assert counter.told == [3, 3]
    env.reset(options={"reset_mask": np.array([False, True, False])})
    env.step(action)
    assert counter.seen.numpy().tolist() == [[9, 9, 0], [3, 3, 0], [9, 9, 0]]
    env.close()


@pytest.mark.parametrize(("mode", "launches"), [("NextStep", [60, 6, 12]), ("SameStep", [0, 6, 12])])
def test_an_autoreset_clears_a_probe(mode, launches):
    """Next-step: the reset comes at the start of the next step, whose control steps the world sits out."""
    counter = Counter()
    env = TorchEnv(1, horizon_s=1.0, autoreset_mode=mode, probes=[counter])
    env.reset(seed=0)
    for _ in range(9):
        env.step(torch.zeros(1, 12, 2))
    seen = []
    for _ in range(3):
        env.step(torch.zeros(1, 12, 2))
        seen.append(int(counter.seen.numpy()[0, 0]))
    assert seen == launches
    env.close()


@pytest.mark.parametrize("solo_call", ["step", "advance"])
def test_probes_change_no_bit_of_the_run(solo_call):
    ends = []
    for probes in ([], logging_probes(5)):
        env = TorchEnv(9, condition=["reference", "mu018", "mu005"] * 3, rules="scoring", decision_hz=20, probes=probes)
        env.reset(options={"scenario_seed": 100000})
        driver = make_agent("idm17")
        driver.bind(env.view)
        out = None
        for _ in range(240):
            out = getattr(env, solo_call)(driver.act(env.view))
        state = [env.view.body_q.numpy().tobytes(), env.view.body_qd.numpy().tobytes()]
        state += [array.tobytes() for array in env.task_numpy().values()]
        state += [] if out is None else [tensor.numpy().tobytes() for tensor in out[:4]]
        ends.append(state)
        env.close()
    assert ends[0] == ends[1]


class Half:
    """Lacks record_reset and advanced."""

    def bind(self, view, task, sim): ...

    def record(self, launches): ...


def test_bad_probes_are_named():
    counter = Counter()
    assert isinstance(counter, Probe)
    with pytest.raises(TypeError, match="probes must be a sequence of Probe objects"):
        TorchEnv(1, probes=counter)
    with pytest.raises(TypeError, match="probes must be a sequence of Probe objects"):
        TorchEnv(1, probes="safety")
    with pytest.raises(TypeError, match=r"probes\[1\] must be a Probe, an object with bind, record, record_reset and"):
        TorchEnv(1, probes=[counter, Half()])
    with pytest.raises(TypeError, match=r"probes\[0\] must be a Probe"):
        TorchEnv(1, probes=[Counter])
    with pytest.raises(ValueError, match=r"probes\[1\] is in the list twice"):
        TorchEnv(1, probes=[counter, counter])
