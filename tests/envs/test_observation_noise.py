"""Observation noise: its size, where it is and is not, and which random numbers it is made of."""

import numpy as np
import pytest
import torch

from sf3d_envs import LaneClosureParallelEnv, ObservationSpec, TorchEnv
from sf3d_envs.random import Domain, philox4x32

SPEC = ObservationSpec(preview=True)
DEVIATION = 0.05
EXACT = [
    k
    for k, name in enumerate(SPEC.names)
    if name.startswith("planner.")
    or name.endswith((".present", ".valid", ".owes_merge", ".desired_speed"))
    or ".previous_" in name
]
GATES = {
    k: SPEC["route.owes_merge"] if "distance_merge" in name else SPEC[f"traffic.{name.split('.')[1]}.present"]
    for k, name in enumerate(SPEC.names)
    if name.startswith("traffic.") or "distance_merge" in name
}


def pair(worlds, noise=DEVIATION, **kwargs):
    """An environment without and one with noise, alike in everything else."""
    return [TorchEnv(worlds, preview=True, randomization=r, **kwargs) for r in (None, {"observation_noise": noise})]


def roll(env, steps, seed=7):
    """Observations, scenario seeds and control steps after the reset and after each decision of gentle driving."""
    generator = torch.Generator().manual_seed(0)
    obs, infos = env.reset(seed=seed)
    found = [(obs.clone(), infos["scenario_seed"].clone(), env.view.step.numpy().copy())]
    for _ in range(steps):
        action = torch.rand((env.num_worlds, env.num_rows, 2), generator=generator) * 0.02
        obs, *_, infos = env.step(action)
        found.append((obs.clone(), infos["scenario_seed"].clone(), env.view.step.numpy().copy()))
    return [np.array([item[part].numpy() if part < 2 else item[part] for item in found]) for part in range(3)]


@pytest.fixture(scope="module")
def rolled():
    exact, noisy = pair(48)
    first, seeds, steps = roll(exact, 15)
    second, *_ = roll(noisy, 15)
    exact.close()
    noisy.close()
    return first, second, seeds, steps


def noise_of(rolled):
    """Noise in standard deviations [T, W, R, D] and where it belongs."""
    exact, noisy, *_ = rolled
    present = np.abs(exact) < 10.0
    present[..., EXACT] = False
    present &= exact[..., [SPEC["ego.valid"]]] != 0.0
    for channel, gate in GATES.items():
        present[..., channel] &= exact[..., gate] != 0.0
    return (noisy.astype(np.float64) - exact) / DEVIATION, present


def test_noise_is_unit_normal_where_it_belongs_and_nowhere_else(rolled):
    noise, present = noise_of(rolled)
    assert (noise[~present] == 0.0).all()
    sample = noise[present]
    assert len(sample) > 500_000
    assert abs(sample.mean()) < 5 / np.sqrt(len(sample))
    assert sample.std() == pytest.approx(1.0, abs=5 / np.sqrt(2 * len(sample)))
    # Fourth moment 3 and tails of a normal distribution, each to five standard errors.
    assert (sample**4).mean() == pytest.approx(3.0, abs=5 * np.sqrt(96 / len(sample)))
    tail = (np.abs(sample) > 2.0).mean()
    assert tail == pytest.approx(0.0455, abs=5 * np.sqrt(0.0455 / len(sample)))
    spread = noise[..., [k for k in range(SPEC.size) if k not in EXACT and k not in GATES]].std(axis=(0, 1, 2))
    assert spread == pytest.approx(1.0, abs=0.05)


def test_noise_is_independent_over_channels_rows_worlds_and_time(rolled):
    noise, _ = noise_of(rolled)
    chosen = [k for k in range(SPEC.size) if k not in EXACT and k not in GATES]
    noise = noise[..., chosen]
    flat = noise.reshape(-1, len(chosen))
    assert np.abs(np.corrcoef(flat.T) - np.eye(len(chosen))).max() < 5.5 / np.sqrt(len(flat))
    for a, b in (
        (noise[1:], noise[:-1]),
        (noise[:, 1:], noise[:, :-1]),
        (noise[:, :, 1:], noise[:, :, :-1]),
        (noise[..., 1:], noise[..., :-1]),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(a.size)


def test_noise_is_addressed_by_seed_step_vehicle_and_channel(rolled):
    """Box and Muller in float64 on the words of the address, to float32 rounding of values up to 10."""
    exact, noisy, seeds, steps = rolled
    _, present = noise_of(rolled)
    for t, world, row in ((0, 0, 0), (0, 5, 11), (4, 3, 2), (15, 47, 7)):
        block = np.arange(SPEC.size // 4)
        words = philox4x32(seeds[t, world], int(steps[t, world]) * 64 + block, row, Domain.NOISE).astype(np.float64)
        u = (np.floor(words[:, 0::2] / 256) + 0.5) / 2**24
        angle = 2 * np.pi * np.floor(words[:, 1::2] / 256) / 2**24
        radius = np.sqrt(-2 * np.log(u))
        normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1)
        expected = exact[t, world, row] + DEVIATION * np.where(present[t, world, row], normals, 0.0)
        assert noisy[t, world, row] == pytest.approx(np.clip(expected, -10, 10), abs=2e-6)


def test_noise_changes_no_trajectory():
    """The environments of a pair, and what agents and user functions see, stay equal bit for bit."""
    exact, noisy = pair(4, control="ego")
    for env in (exact, noisy):
        roll(env, 20)
    assert np.array_equal(exact.view.body_q.numpy(), noisy.view.body_q.numpy())
    assert torch.equal(exact.view.observation(True), noisy.view.observation(True))
    exact.close()
    noisy.close()


def test_blocks_and_channels_get_their_own_noise():
    exact, noisy = pair(16, {"ego.yaw_rate": 0.5, "ego": 0.01, "preview": 0.2})
    difference = (roll(noisy, 10)[0] - roll(exact, 10)[0]).reshape(-1, SPEC.size)
    size = difference.std(axis=0)
    assert size[SPEC["ego.yaw_rate"]] == pytest.approx(0.5, rel=0.1)
    assert size[SPEC["ego.speed_lat"]] == pytest.approx(0.01, rel=0.1)
    assert size[SPEC.slice("preview")] == pytest.approx(0.2, rel=0.1)
    for block in ("route", "traffic", "planner"):
        assert (size[SPEC.slice(block)] == 0.0).all()
    exact.close()
    noisy.close()


def test_noise_is_clipped_and_leaves_the_ends_of_the_range():
    env = TorchEnv(8, randomization={"observation_noise": 8.0})
    obs, _ = env.reset(seed=0)
    assert obs.abs().max() == 10.0
    assert ((obs.abs() < 10.0) & (obs != 0.0)).any()
    env.close()


def test_final_observations_carry_the_noise_of_their_own_step_once():
    exact, noisy = pair(12, autoreset_mode="SameStep", horizon_s=0.2)
    action = torch.zeros(12, 12, 2)
    found = []
    for env in (exact, noisy):
        env.reset(seed=3)
        env.step(action)
        obs, *_, infos = env.step(action)
        assert infos["_final_obs"].all()
        found.append((infos["final_obs"].clone(), obs.clone()))
    for plain, with_noise in zip(*found, strict=True):
        noise = ((with_noise - plain) / DEVIATION).flatten(0, 1)
        chosen = noise[:, [k for k in range(SPEC.size) if k not in EXACT and k not in GATES]]
        # Noise that was added twice would have a standard deviation of 1.41.
        assert chosen.std().item() == pytest.approx(1.0, abs=0.06)
    assert not torch.equal(found[0][0] - found[1][0], found[0][1] - found[1][1])
    exact.close()
    noisy.close()


def test_inactive_rows_stay_zero_and_a_masked_reset_leaves_the_others():
    env = TorchEnv(3, autoreset_mode="Disabled", randomization={"observation_noise": 0.1})
    env.reset(seed=0)
    for _ in range(40):
        obs, *_, infos = env.step(torch.tensor([2.0, 0.4]).expand(3, 12, 2).contiguous())
    inactive = ~infos["active"]
    assert inactive.any()
    obs, *_ = env.step(torch.zeros(3, 12, 2))
    assert (obs[inactive] == 0.0).all()
    before = obs.clone()
    obs, _ = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert torch.equal(obs[[0, 2]], before[[0, 2]])
    assert not torch.equal(obs[1], before[1])
    env.close()


def test_global_state_of_the_parallel_environment_is_exact():
    plain, noisy = (LaneClosureParallelEnv(randomization=r) for r in (None, {"observation_noise": 0.1}))
    first, _ = plain.reset(seed=1)
    second, _ = noisy.reset(seed=1)
    assert not np.array_equal(first["vehicle_0"], second["vehicle_0"])
    assert np.array_equal(plain.state(), noisy.state())
