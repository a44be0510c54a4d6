"""What happens after an exception in a user's function, and around captures and forks."""

from __future__ import annotations

import multiprocessing
import os
import threading

import pytest
import torch
import warp as wp

from sf3d_envs.envs.torch_env import TorchEnv


@pytest.mark.parametrize("hook", ["reward_fn", "termination_fn"])
def test_after_an_exception_in_a_users_function_only_a_reset_goes_on(hook: str) -> None:
    calls = []

    def fails(view, *terms):
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError("mine")
        return torch.zeros(2, 12, dtype=torch.bool if hook == "termination_fn" else torch.float32)

    env = TorchEnv(2, control="all", **{hook: fails})
    env.reset(seed=0)
    action = torch.zeros(2, 12, 2)
    env.step(action)
    env.step(action)
    with pytest.raises(ZeroDivisionError, match="mine"):
        env.step(action)
    with pytest.raises(RuntimeError, match="interrupted the last step half-way: call reset"):
        env.step(action)
    env.reset(seed=0)
    env.step(action)
    env.close()


def test_a_users_capture_is_refused_and_not_broken() -> None:
    env = TorchEnv(1)
    env.reset(seed=0)
    with wp.ScopedCapture("cpu"):
        with pytest.raises(RuntimeError, match="Warp is capturing launches on the CPU"):
            TorchEnv(1)
        with pytest.raises(RuntimeError, match="Warp is capturing launches on the CPU"):
            env.reset(seed=1)
    env.reset(seed=1)
    env.step(torch.zeros(1, env.num_rows, 2))
    env.close()


def _child(env: TorchEnv, queue) -> None:
    env.step(torch.zeros(1, env.num_rows, 2))
    other = TorchEnv(1)
    other.reset(seed=0)
    other.step(torch.zeros(1, other.num_rows, 2))
    queue.put("done")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_locks_are_held_does_not_hang() -> None:
    """Another thread is in a step and in a reset of the environment when the process forks."""
    env = TorchEnv(1)
    env.reset(seed=0)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        from sf3d_envs import launches

        with env._lock, launches._CAPTURING:
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(env, queue))
    child.start()
    try:
        assert queue.get(timeout=60) == "done"
    finally:
        release.set()
        thread.join()
        child.terminate()
        child.join()
        env.close()
