"""Captured graphs against launches one by one: the whole environment step, bit for bit."""

import numpy as np
import pytest
import torch
import warp as wp

from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.launches import LaunchList, Shards

DEVICES = [
    "cpu",
    pytest.param(
        "cuda:0", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: none here")
    ),
]


def run(device: str, *, graphs: bool, autoreset: str, decisions: int = 60) -> list[np.ndarray]:
    """Observation, reward, flags and state after every decision of 12 worlds in which cars crash and reset."""
    env = TorchEnv(
        12, condition=["reference", "mu018", "gradeN080"] * 4, device=device, threads=2, autoreset_mode=autoreset
    )
    env.sim.shards.graphs = graphs
    env.reset(seed=5)
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(decisions):
        action = torch.rand((12, env.num_rows, 2), generator=generator) * torch.tensor([9.0, 2.0]) - torch.tensor(
            [4.0, 1.0]
        )
        obs, reward, terminated, truncated, infos = env.step(action.to(env.device))
        found += [item.cpu().numpy().copy() for item in (obs, reward, terminated, truncated, infos["episode_start"])]
        found += [env.view.body_q.numpy().copy(), env.view.body_qd.numpy().copy()]
    env.close()
    return found


@pytest.mark.parametrize("autoreset", ["NextStep", "SameStep"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_captured_step_equals_an_eager_one(device: str, autoreset: str) -> None:
    """Masked resets happen inside the graph: some rows start a new episode within the 6 s."""
    eager, graph = (run(device, graphs=flag, autoreset=autoreset) for flag in (False, True))
    assert any(starts.any() for starts in eager[4::7])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(eager, graph, strict=True))


@wp.kernel
def add_one(counter: wp.array(dtype=int), world_begin: int):
    w = wp.tid() + world_begin
    counter[w] = counter[w] + 1


def test_a_list_that_grows_after_a_run_is_captured_again() -> None:
    shards = Shards(9, wp.get_device("cpu"), threads=2)
    counter = wp.zeros(9, dtype=int, device="cpu")
    launches = LaunchList(shards)
    launches.add(add_one, [counter])
    launches.run()
    launches.add(add_one, [counter])
    launches.run(repeat=3)
    assert len(launches) == 2
    assert counter.numpy().tolist() == [7] * 9
    shards.close()


def test_python_calls_keep_their_place_and_need_an_unsplit_list() -> None:
    shards = Shards(2, wp.get_device("cpu"), threads=1)
    counter = wp.zeros(2, dtype=int, device="cpu")
    seen = []
    launches = LaunchList(shards)
    launches.add(add_one, [counter])
    launches.call(lambda: seen.append(counter.numpy().tolist()))
    launches.add(add_one, [counter])
    launches.run(repeat=2)
    assert seen == [[1, 1], [3, 3]]
    with pytest.raises(ValueError, match="split over 2 threads"):
        LaunchList(Shards(9, wp.get_device("cpu"), threads=2)).call(lambda: None)


def test_a_profile_names_every_launch() -> None:
    env = TorchEnv(1)
    env.reset(seed=0)
    names = [name for launches, _ in env.step_launches() for name, _ in launches.profile(repeat=1)]
    assert {"advance_worlds", "score_control_step", "observe"} <= set(names)
    env.close()
