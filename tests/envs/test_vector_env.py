"""The vector shell: the contract on every ID and mode, rows, masks, seeds, infos, wrappers."""

import gymnasium as gym
import numpy as np
import pytest
import torch

import sf3d_envs
from sf3d_envs import LaneClosureEnv, LaneClosureVectorEnv, check_vector_env
from sf3d_envs.random import episode_seed

MODES = ["NextStep", "SameStep", "Disabled"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", list(sf3d_envs.environment_ids()))
def test_contract(name, mode):
    check_vector_env(lambda: gym.make_vec(name, num_envs=3, autoreset_mode=mode, horizon_s=0.3), steps=6)


@pytest.mark.parametrize("mode", MODES)
def test_contract_with_a_row_per_vehicle(mode):
    def make():
        return gym.make_vec("SF3D/LaneClosure-v0", num_envs=24, control="all", autoreset_mode=mode, preview=True)

    # Random driving ends all rows of a world within some six seconds.
    check_vector_env(make, steps=70)


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_members_strings_and_attributes(mode):
    member = gym.vector.AutoresetMode(mode)
    for given in (mode, member):
        envs = LaneClosureVectorEnv(2, autoreset_mode=given)
        assert envs.metadata["autoreset_mode"] is member
        assert envs.autoreset_mode is member
        envs.close()
    assert LaneClosureVectorEnv.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP


def rollout(envs, steps=25, rows=slice(None), seed=2):
    rng = np.random.default_rng(0)
    actions = rng.uniform([-1.0, -0.02], [1.0, 0.02], (steps, 9, 2)).astype(np.float32)
    seen = [envs.reset(seed=seed)[0][rows].tobytes()]
    for action in actions:
        obs, reward, terminated, truncated, _ = envs.step(action[: envs.num_envs])
        seen.append((obs[rows].tobytes(), reward[rows].tobytes(), (terminated | truncated)[rows].tobytes()))
    return seen


def test_a_row_does_not_depend_on_the_batch():
    """Nine worlds run on the thread pool, fewer on the calling thread."""
    found = []
    for count in (1, 3, 9):
        envs = LaneClosureVectorEnv(count, ego=6, horizon_s=2.0)
        found.append(rollout(envs, rows=slice(0, 1)))
        envs.close()
    assert found[0] == found[1] == found[2]


def test_a_single_environment_is_a_row():
    envs = LaneClosureVectorEnv(3, "mu018", horizon_s=2.0)
    single = LaneClosureEnv("mu018", horizon_s=2.0)
    batch, _ = envs.reset(seed=7)
    assert np.array_equal(single.reset(seed=9)[0], batch[2])
    for step in range(20):
        action = np.array([np.sin(step), 0.05 * np.cos(step)], dtype=np.float32)
        obs, reward, terminated, truncated, infos = envs.step(np.tile(action, (3, 1)))
        one = single.step(action)
        assert np.array_equal(one[0], obs[2])
        assert one[1:4] == (float(reward[2]), bool(terminated[2]), bool(truncated[2]))
        assert one[4]["event"] == infos["event"][2]
        assert one[4]["scenario_seed"] == infos["scenario_seed"][2]
    assert truncated.all()
    single.close()
    envs.close()


def test_seeds_name_worlds():
    envs = LaneClosureVectorEnv(24, control="all")
    rows = np.repeat([5, 9], 12)
    for seed in (rows, rows.tolist()):
        _, infos = envs.reset(seed=seed)
        assert infos["scenario_seed"].tolist() == [episode_seed(int(s), 0) for s in rows]
    _, infos = envs.reset(options={"scenario_seed": 100_000})
    assert infos["scenario_seed"].tolist() == np.repeat([100_000, 100_001], 12).tolist()
    _, infos = envs.reset(options={"scenario_seed": rows.tolist()})
    assert infos["scenario_seed"].tolist() == rows.tolist()
    with pytest.raises(ValueError, match="seed differs within world 1"):
        envs.reset(seed=[1] * 23 + [2])
    with pytest.raises(ValueError, match=r"scenario_seed must have one entry per row \(24\), got 2"):
        envs.reset(options={"scenario_seed": [1, 2]})
    envs.close()


def test_reset_mask_is_whole_worlds():
    envs = LaneClosureVectorEnv(24, control="all", autoreset_mode="Disabled")
    envs.reset(seed=0)
    before = envs.step(np.zeros((24, 2)))[0]
    mask = np.arange(24) >= 12
    obs, infos = envs.reset(options={"reset_mask": mask})
    assert np.array_equal(obs[:12], before[:12])
    assert not np.array_equal(obs[12:], before[12:])
    assert np.array_equal(infos["_scenario_seed"], mask)
    assert infos["episode_start"].tolist() == mask.tolist()
    obs_again, _ = envs.reset(options={"reset_mask": torch.from_numpy(mask)})
    assert np.array_equal(obs_again[:12], before[:12])
    with pytest.raises(ValueError, match="reset_mask differs within world 1"):
        envs.reset(options={"reset_mask": np.arange(24) >= 13})
    with pytest.raises(ValueError, match=r"reset_mask must have shape \(24,\), got \(2,\)"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.close()


def test_a_vehicle_row_ends_once_and_waits():
    envs = LaneClosureVectorEnv(12, control="all", autoreset_mode="SameStep")
    envs.reset(options={"scenario_seed": 100_000})
    action = np.zeros((12, 2))
    action[11] = 3.0, 1.0
    ended = None
    for step in range(60):
        obs, reward, terminated, truncated, infos = envs.step(action)
        if ended is None and terminated[11]:
            ended = step
            assert infos["event"][11] == sf3d_envs.Event.OFF_ROAD
            assert obs[11].any()
            assert not infos["_final_obs"][11]
        elif ended is not None:
            assert not obs[11].any()
            assert (reward[11], terminated[11], truncated[11], infos["active"][11]) == (0, False, False, False)
        assert infos["active"][:11].all()
    assert ended is not None
    envs.close()


def test_same_step_hands_over_the_last_observation():
    same, disabled = (LaneClosureVectorEnv(2, autoreset_mode=mode, horizon_s=0.3) for mode in MODES[1:])
    same.reset(seed=1)
    disabled.reset(seed=1)
    for _ in range(3):
        obs, _, _, truncated, infos = same.step(np.zeros((2, 2)))
        expected, *_ = disabled.step(np.zeros((2, 2)))
    assert truncated.all()
    assert infos["_final_obs"].all()
    assert infos["final_obs"].dtype == np.float32
    assert np.array_equal(infos["final_obs"], expected)
    assert infos["final_info"]["scenario_seed"].tolist() == [episode_seed(s, 0) for s in (1, 2)]
    assert infos["scenario_seed"].tolist() == [episode_seed(s, 1) for s in (1, 2)]
    assert not np.array_equal(obs, expected)
    same.close()
    disabled.close()


def test_conditions_by_world_and_step_limit():
    envs = gym.make_vec("LaneClosure-v0", num_envs=2, condition=["reference", "gradeN080"], max_episode_steps=2)
    assert [c.slug for c in envs.unwrapped.core.conditions] == ["reference", "gradeN080"]
    envs.reset(seed=0)
    assert [bool(envs.step(np.zeros((2, 2)))[3].all()) for _ in range(2)] == [False, True]
    envs.close()


@pytest.mark.parametrize("mode", MODES[:2])
def test_record_episode_statistics(mode):
    envs = LaneClosureVectorEnv(2, horizon_s=0.4, autoreset_mode=mode)
    envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
    envs.reset(seed=0)
    total, lengths = np.zeros(2), []
    for _ in range(13):
        _, reward, _, truncated, infos = envs.step(np.zeros((2, 2)))
        total += reward
        if truncated.any():
            assert infos["episode"]["r"] == pytest.approx(total, abs=1e-5)
            lengths += infos["episode"]["l"].tolist()
            total[:] = 0.0
    assert set(lengths) == {4}
    options = {"reset_mask": np.array([True, False])}
    envs.reset(options=options)
    envs.close()


@pytest.mark.parametrize("wrapper", ["NumpyToTorch", "DictInfoToList", "NormalizeObservation", "NormalizeReward"])
def test_vector_wrappers(wrapper):
    if wrapper == "NumpyToTorch":
        pytest.importorskip("array_api_compat")
    mode = "NextStep" if wrapper == "NormalizeObservation" else "SameStep"
    envs = gym.make_vec("SF3D/LaneClosure-v0", num_envs=2, horizon_s=0.3, autoreset_mode=mode)
    envs = getattr(gym.wrappers.vector, wrapper)(envs)
    action = torch.zeros(2, 2) if wrapper == "NumpyToTorch" else np.zeros((2, 2))
    envs.reset(seed=0)
    for _ in range(7):
        obs, *_, infos = envs.step(action)
    assert obs.shape == (2, 112)
    if wrapper == "NumpyToTorch":
        assert isinstance(infos["final_obs"], torch.Tensor)
    envs.close()
