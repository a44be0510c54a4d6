"""Environments beside each other: on two Python threads, of different configuration, and closed from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from sf3d_envs import TorchEnv


def drive(make: Callable[[], TorchEnv], steps: int = 40) -> list[torch.Tensor]:
    env = make()
    obs, _ = env.reset(seed=11)
    seen = [obs.clone()]
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        action = 4.0 * torch.rand(env.num_worlds, env.num_rows, 2, generator=generator) - 2.0
        seen.append(env.step(action)[0].clone())
    env.close()
    return seen


def make_first() -> TorchEnv:
    return TorchEnv(20, condition="mu018", threads=2, autoreset_mode="SameStep", horizon_s=3.0)


def make_second() -> TorchEnv:
    return TorchEnv(9, condition="gradeN045", control="ego", ego=3, decision_hz=20, preview=True, threads=1)


def equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_two_threads_give_the_bits_that_each_gives_alone() -> None:
    alone = [drive(make_first), drive(make_second)]
    together: dict[int, list[torch.Tensor]] = {}
    start = threading.Barrier(2)

    def work(index: int, make: Callable[[], TorchEnv]) -> None:
        start.wait()
        together[index] = drive(make)

    threads = [threading.Thread(target=work, args=(k, make)) for k, make in enumerate((make_first, make_second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert equal(together[0], alone[0])
    assert equal(together[1], alone[1])


def test_two_configurations_in_turns_give_the_bits_that_each_gives_alone() -> None:
    alone = [drive(make_first), drive(make_second)]
    envs = [make_first(), make_second()]
    generators = [torch.Generator().manual_seed(1) for _ in envs]
    seen = [[env.reset(seed=11)[0].clone()] for env in envs]
    for _ in range(40):
        for env, generator, frames in zip(envs, generators, seen, strict=True):
            action = 4.0 * torch.rand(env.num_worlds, env.num_rows, 2, generator=generator) - 2.0
            frames.append(env.step(action)[0].clone())
    for env in envs:
        env.close()
    assert equal(seen[0], alone[0])
    assert equal(seen[1], alone[1])


@pytest.mark.parametrize("worlds", [1, 32])
def test_closing_while_another_thread_steps_is_a_clear_error(worlds: int) -> None:
    env = TorchEnv(worlds, threads=2)
    env.reset(seed=0)
    actions = torch.zeros(worlds, 12, 2)
    running, errors = threading.Event(), []

    def work() -> None:
        try:
            while True:
                env.step(actions)
                running.set()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert running.wait(timeout=60)
    env.close()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [RuntimeError]
    assert str(errors[0]) == "step() on a closed environment; make a new one"


def test_a_simulator_closed_while_its_environment_steps_is_a_clear_error() -> None:
    env = TorchEnv(16, threads=2)
    env.reset(seed=0)
    env.sim.close()
    with pytest.raises(RuntimeError, match="simulator is closed"):
        env.step(torch.zeros(16, 12, 2))
    env.close()


def test_two_threads_in_one_environment_take_turns() -> None:
    """Not a way to go faster, but the state stays whole: 2 x 25 steps on two threads equal 50 steps."""
    envs = [TorchEnv(16, threads=2, rules="scoring", autoreset_mode="Disabled") for _ in range(2)]
    actions = torch.full((16, 12, 2), 0.5)
    for env in envs:
        env.reset(seed=4)
    threads = [threading.Thread(target=lambda: [envs[0].step(actions) for _ in range(25)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for _ in range(50):
        envs[1].step(actions)
    assert torch.equal(envs[0].step(actions)[0], envs[1].step(actions)[0])
    for env in envs:
        env.close()
