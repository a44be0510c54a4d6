"""Rows, autoreset and seeds of the tensor environment."""

import numpy as np
import pytest
import torch

from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.random import episode_seed

FULL_THROTTLE = (5.0, 0.0)


def actions(env, value=(0.0, 0.0)):
    return torch.tensor(value, dtype=torch.float32).expand(env.num_worlds, env.num_rows, 2).contiguous()


def steer_off(env, row):
    """Everyone coasts; one row steers off the road."""
    action = actions(env, (0.5, 0.0)).clone()
    action[:, row] = torch.tensor([3.0, 1.0])
    return action


def kept(values):
    return tuple(v.clone() if isinstance(v, torch.Tensor) else {k: _clone(x) for k, x in v.items()} for v in values)


def _clone(x):
    if isinstance(x, torch.Tensor):
        return x.clone()
    return {k: _clone(v) for k, v in x.items()}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_row_ends_once_and_then_stays_silent(mode):
    env = TorchEnv(2, autoreset_mode=mode)
    env.reset(options={"scenario_seed": 100000})
    ended_at = None
    for step in range(120):
        obs, reward, terminated, truncated, infos = env.step(steer_off(env, row=11))
        assert not truncated.any()
        if terminated[0, 11]:
            assert ended_at is None
            ended_at = step
            assert obs[0, 11].abs().sum() > 0  # the last observation is a real one
            assert infos["event"][0, 11] == 3
            assert reward[0, 11] < -5.0
        elif ended_at is not None:
            assert not infos["active"][0, 11]
            assert (obs[0, 11] == 0).all()
            assert reward[0, 11] == 0.0
        if ended_at is not None and step > ended_at + 10:
            break
    assert ended_at is not None
    command = env.view.command.numpy()[0, 11]
    assert command[0] == -8.0  # the row's vehicle holds full brake
    env.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_horizon_truncates_live_rows(mode):
    env = TorchEnv(2, autoreset_mode=mode, horizon_s=0.5)
    env.reset(seed=3)
    for _ in range(4):
        _, _, terminated, truncated, _ = env.step(actions(env))
        assert not truncated.any()
    obs, reward, terminated, truncated, infos = kept(env.step(actions(env)))
    assert truncated.all()
    assert not terminated.any()
    assert (reward != 0).all()
    if mode == "SameStep":
        assert infos["episode_start"].all()
        assert infos["active"].all()
        assert infos["_final_obs"].all()
        assert not torch.equal(infos["final_obs"], obs)
        assert infos["final_obs"].abs().sum() > 0
        assert (infos["final_info"]["event"] == 0).all()
        assert infos["final_info"]["scenario_seed"].numpy().tolist() != infos["scenario_seed"].numpy().tolist()
    after, reward, terminated, truncated, infos = kept(env.step(actions(env, FULL_THROTTLE)))
    if mode == "NextStep":
        assert (reward == 0).all()
        assert not (terminated | truncated).any()
        assert infos["episode_start"].all()
        assert (after[..., 7] == 0).all()  # previous request: the reset step ignores its action
    if mode == "Disabled":
        assert not infos["active"].any()
        assert (after == 0).all()
        again, infos = env.reset(options={"reset_mask": torch.tensor([True, False])})
        assert infos["active"][0].all()
        assert not infos["active"][1].any()
        assert again[0].abs().sum() > 0
        assert (again[1] == 0).all()
    env.close()


def test_same_step_keeps_the_event_of_the_episode_that_ended():
    env = TorchEnv(2, control="ego", ego=11, autoreset_mode="SameStep")
    env.reset(options={"scenario_seed": 100000})
    for _ in range(120):
        _, _, terminated, _, infos = env.step(actions(env, (3.0, 1.0)))
        if terminated.any():
            row = terminated[:, 0]
            assert (infos["final_info"]["event"][row] > 0).all()
            assert (infos["event"][row] == 0).all()
            assert infos["active"][row].all()
            assert infos["_final_info"][:, 0].tolist() == row.tolist()
            break
    else:
        pytest.fail("nobody left the road")
    env.close()


def test_next_step_and_same_step_run_the_same_episodes():
    def starts(mode):
        env = TorchEnv(3, autoreset_mode=mode, horizon_s=0.3)
        obs, infos = env.reset(seed=11)
        found = [(infos["scenario_seed"].clone(), obs.clone())]
        for _ in range(9):
            obs, _, _, _, infos = env.step(actions(env))
            if infos["episode_start"].all():
                found.append((infos["scenario_seed"].clone(), obs.clone()))
        env.close()
        return found

    next_step, same_step = starts("NextStep"), starts("SameStep")
    assert len(next_step) >= 3
    for (seed_a, obs_a), (seed_b, obs_b) in zip(next_step, same_step, strict=False):
        assert torch.equal(seed_a, seed_b)
        assert torch.equal(obs_a, obs_b)
    seeds = [seed.numpy().tolist() for seed, _ in next_step[:3]]
    assert seeds == [[episode_seed(11 + w, k) for w in range(3)] for k in range(3)]


def test_scenario_seed_option_is_for_the_first_episode_only():
    env = TorchEnv(2, horizon_s=0.2, autoreset_mode="SameStep")
    _, infos = env.reset(seed=5, options={"scenario_seed": 100000})
    assert infos["scenario_seed"].numpy().tolist() == [100000, 100001]
    for _ in range(2):
        _, _, _, _, infos = env.step(actions(env))
    assert infos["scenario_seed"].numpy().tolist() == [episode_seed(5, 1), episode_seed(6, 1)]
    _, infos = env.reset(options={"scenario_seed": [7, 2**63]})
    assert infos["scenario_seed"].numpy().tolist() == [7, 2**63]
    env.close()


def test_scoring_rules_never_end_a_row_before_the_horizon():
    env = TorchEnv(1, rules="scoring", horizon_s=6.0)
    env.reset(options={"scenario_seed": 100000})
    saw_event = False
    for _ in range(60):
        _, _, terminated, truncated, infos = env.step(steer_off(env, row=11))
        saw_event = saw_event or bool(infos["event"][0, 11])
    assert saw_event
    assert truncated.all()
    assert not terminated.any()
    assert env.all_done()
    frozen = env.view.body_q.numpy().copy()
    env.step(actions(env))
    assert np.array_equal(frozen, env.view.body_q.numpy())
    env.close()


def test_a_fault_terminates_its_row_and_truncates_the_others():
    env = TorchEnv(2, autoreset_mode="Disabled")
    env.reset(options={"scenario_seed": 100000})
    pose = env.view.body_q.numpy()
    pose[3, 1] = 500.0  # vehicle 3 of world 0 leaves the map
    env.view.body_q.assign(pose)
    _, reward, terminated, truncated, infos = env.step(actions(env))
    assert terminated[0].nonzero().flatten().tolist() == [3]
    assert truncated[0].sum() == 11
    assert infos["event"][0, 3] == 1
    assert reward[0, 3] == pytest.approx(-20.0, abs=1.0)
    assert not (terminated[1] | truncated[1]).any()
    env.close()


def test_a_vehicle_that_turns_nan_is_a_fault_of_its_world_only():
    quiet = TorchEnv(3, autoreset_mode="Disabled")
    loud = TorchEnv(3, autoreset_mode="Disabled")
    for env in (quiet, loud):
        env.reset(options={"scenario_seed": 100000})
    velocity = loud.view.body_qd.numpy()
    velocity[12 + 4] = np.nan
    loud.view.body_qd.assign(velocity)
    for _ in range(5):
        expected, given = kept(quiet.step(actions(quiet))), kept(loud.step(actions(loud)))
        for a, b in zip(expected[:4], given[:4], strict=True):
            assert torch.equal(a[[0, 2]], b[[0, 2]])
        assert torch.isfinite(given[0]).all()
    assert loud.task_numpy()["own_fault"][1].tolist() == [0] * 4 + [1] + [0] * 7
    assert [(error.world, error.vehicle, error.reason) for error in loud.errors()] == [(1, 4, "state")]
    quiet.close()
    loud.close()


def test_masked_reset_leaves_neighbours_alone():
    plain, reset = (TorchEnv(4, autoreset_mode="Disabled") for _ in range(2))
    for env in (plain, reset):
        env.reset(seed=1)
        for _ in range(3):
            env.step(actions(env, (1.0, 0.05)))
    reset.reset(options={"reset_mask": np.array([False, True, False, False])})
    for _ in range(3):
        a, b = kept(plain.step(actions(plain)))[0], kept(reset.step(actions(reset)))[0]
        assert torch.equal(a[[0, 2, 3]], b[[0, 2, 3]])
        assert not torch.equal(a[1], b[1])
    plain.close()
    reset.close()


def test_reset_mask_must_select_whole_worlds():
    env = TorchEnv(2, autoreset_mode="Disabled")
    env.reset(seed=1)
    mask = torch.zeros(24, dtype=torch.bool)
    mask[3] = True
    with pytest.raises(ValueError, match="differs within world 0"):
        env.reset(options={"reset_mask": mask})
    with pytest.raises(TypeError, match="reset_mask must be bool"):
        env.reset(options={"reset_mask": [1, 0]})
    with pytest.raises(ValueError, match="shape"):
        env.reset(options={"reset_mask": np.zeros(3, dtype=bool)})
    env.close()


def test_reward_is_the_sum_of_its_terms():
    env = TorchEnv(2)
    env.reset(seed=4)
    for step in range(20):
        _, reward, _, _, infos = env.step(actions(env, (1.0 - 0.1 * step, 0.02)))
        total = sum(value for name, value in infos.items() if name.startswith("reward_terms/"))
        torch.testing.assert_close(total, reward)
        assert (infos["reward_terms/progress"] > 0).any()
    env.close()


def test_user_reward_and_termination():
    def reward(view, terms):
        assert set(terms) == {"progress", "passage", "event", "route", "comfort"}
        return 2.0 * terms["progress"]

    def stop(view):
        return torch.tensor(view.step.numpy() >= 12)[:, None].expand(-1, 12)

    env = TorchEnv(2, reward_fn=reward, termination_fn=stop, autoreset_mode="Disabled")
    env.reset(seed=4)
    _, given, terminated, _, infos = env.step(actions(env))
    torch.testing.assert_close(given, 2.0 * infos["reward_terms/progress"])
    assert not terminated.any()
    _, given, terminated, _, _ = env.step(actions(env))
    assert terminated.all()
    assert (given > 0).any()
    _, given, _, _, _ = env.step(actions(env))
    assert (given == 0).all()
    env.close()
    env = TorchEnv(2, reward_fn=lambda view, terms: torch.zeros(3))
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"reward_fn must return a tensor of shape \(2, 12\)"):
        env.step(actions(env))
    env.close()


def test_resampled_roads_depend_on_the_episode_seed_alone():
    def roads(worlds, seed):
        env = TorchEnv(
            worlds,
            condition=["reference", "mu018", "gradeN080"] * (worlds // 3),
            resample_variant=True,
            horizon_s=0.1,
            autoreset_mode="SameStep",
        )
        env.reset(seed=seed)
        found = []
        for _ in range(6):
            found.append(env.sim.world_variant.numpy().copy())
            env.step(actions(env))
        env.close()
        return np.array(found)

    few, many = roads(3, 20), roads(12, 20)
    assert np.array_equal(few, many[:, :3])
    assert set(many.ravel()) == {0, 1, 2}
