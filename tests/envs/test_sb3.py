"""The Stable-Baselines3 shell and PPO that leaves inactive rows out of its loss."""

import importlib
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from sf3d_envs import LaneClosureVectorEnv
from sf3d_envs.envs.sb3 import ActiveRolloutBuffer, LaneClosureVecEnv, MaskedPPO

NET = {"net_arch": [16]}


def learn(env, seed=3, updates=2, algorithm=MaskedPPO, **kwargs):
    model = algorithm(
        "MlpPolicy", env, n_steps=24, batch_size=64, n_epochs=2, seed=seed, device="cpu", policy_kwargs=NET, **kwargs
    )
    return model.learn(updates * 24 * env.num_envs)


def parameters(model):
    return torch.cat([p.detach().flatten() for p in model.policy.parameters()])


@pytest.mark.parametrize("wrap", [VecMonitor, lambda env: VecNormalize(VecMonitor(env))], ids=["monitor", "normalize"])
def test_ppo_with_a_seed_repeats(wrap):
    found = []
    for seed in (3, 3, 4):
        env = wrap(LaneClosureVecEnv(2, horizon_s=3.0))
        found.append(parameters(learn(env, seed)))
        env.close()
    assert torch.isfinite(found[0]).all()
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_plain_ppo_on_egos_and_evaluation(tmp_path):
    env = VecMonitor(LaneClosureVecEnv(3, control="ego", ego=6, horizon_s=1.0))
    model = learn(env, algorithm=PPO)
    assert {episode["l"] for episode in model.ep_info_buffer} == {10}
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", env=env, device="cpu")
    mean, _ = evaluate_policy(loaded, env, n_eval_episodes=3)
    assert np.isfinite(mean)
    env.close()


def test_rows_are_those_of_the_vector_environment():
    env = LaneClosureVecEnv(2, "mu018", horizon_s=3.0)
    other = LaneClosureVectorEnv(24, "mu018", control="all", autoreset_mode="SameStep", horizon_s=3.0)
    env.seed(5)
    active = np.ones(24, dtype=bool)
    assert np.array_equal(env.reset(), other.reset(seed=5)[0])
    assert len(env.reset_infos) == 24
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(40):
        action = rng.uniform([-4, -1], [4, 1], (24, 2)).astype(np.float32)
        obs, reward, dones, infos = env.step(action)
        expected, expected_reward, terminated, truncated, expected_infos = other.step(action)
        assert np.array_equal(obs, expected)
        assert np.array_equal(reward, expected_reward)
        assert np.array_equal(dones, terminated | truncated)
        assert np.array_equal(env.transition_active, active)
        for row, info in enumerate(infos):
            assert info["active"] == active[row]
            assert info["TimeLimit.truncated"] == truncated[row]
            assert ("terminal_observation" in info) == dones[row]
            if dones[row]:
                ends += 1
                reset = expected_infos["_final_obs"][row]
                last = expected_infos["final_obs"][row] if reset else expected[row]
                assert np.array_equal(info["terminal_observation"], last)
                assert (info["event"] > 0) == terminated[row]
        active = expected_infos["active"]
    assert ends > 24
    env.close()
    other.close()


def filled_buffer(garbage):
    """A rollout of random data in which a third of the transitions is inactive; these hold ``garbage``."""
    env = LaneClosureVecEnv(1)
    rng = np.random.default_rng(1)
    active = rng.random((16, 12)) > 0.33
    model = MaskedPPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=3, seed=0, device="cpu", policy_kwargs=NET)
    buffer = model.rollout_buffer
    assert isinstance(buffer, ActiveRolloutBuffer)
    for step in range(16):
        buffer.source = lambda step=step: active[step]
        obs, action = rng.normal(size=(12, 112)).astype(np.float32), rng.normal(size=(12, 2)).astype(np.float32)
        reward, value = rng.normal(size=12).astype(np.float32), torch.from_numpy(rng.normal(size=12).astype(np.float32))
        waits = ~active[step]
        obs[waits], action[waits], reward[waits] = garbage, garbage, garbage
        # A row that waits was ended before, and starts anew afterwards.
        starts = waits if step == 0 else waits | ~active[step - 1]
        buffer.add(obs, action, reward, starts, value, torch.zeros(12))
    buffer.compute_returns_and_advantage(torch.zeros(12), np.zeros(12, dtype=bool))
    env.close()
    return model, active


def test_an_inactive_row_does_not_influence_the_loss():
    found = []
    for garbage in (0.0, 50.0):
        model, active = filled_buffer(garbage)
        np.random.seed(0)  # noqa: NPY002  the generator that SB3 shuffles with
        batches = list(model.rollout_buffer.get(32))
        assert sum(len(batch.actions) for batch in batches) == active.sum()
        np.random.seed(0)  # noqa: NPY002
        model._current_progress_remaining = 1.0
        model.set_logger(logger())
        model.train()
        found.append(parameters(model))
    assert torch.equal(found[0], found[1])


def logger():
    from stable_baselines3.common.logger import Logger

    return Logger(folder=None, output_formats=[])


def test_a_rollout_holds_waiting_rows_but_hands_out_none():
    env = LaneClosureVecEnv(1)
    model = learn(env, updates=4)
    buffer = model.rollout_buffer
    waiting = ~buffer.active.swapaxes(0, 1).reshape(-1)
    assert waiting.any()
    assert (buffer.rewards[~buffer.active] == 0).all()
    assert (buffer.rewards[buffer.active] != 0).all()
    assert buffer.observations[~waiting].any(axis=1).all()
    handed_out = torch.cat([batch.observations for batch in buffer.get(64)])
    assert len(handed_out) == buffer.active.sum()
    assert handed_out.any(dim=1).all()
    env.close()


def test_staggered_first_episodes():
    env = LaneClosureVecEnv(4, control="ego", ego=6, horizon_s=2.0, stagger=True)
    env.seed(0)
    env.reset()
    ends = {world: [] for world in range(4)}
    for step in range(1, 46):
        before = env._active.copy()
        obs, _, dones, infos = env.step(np.zeros((4, 2)))
        assert before.all()
        for world in np.flatnonzero(dones):
            ends[world].append(step)
            assert infos[world]["TimeLimit.truncated"]
            assert not np.array_equal(infos[world]["terminal_observation"], obs[world])
    assert ends == {0: [5, 25, 45], 1: [10, 30], 2: [15, 35], 3: [20, 40]}
    env.close()


def test_attributes_and_methods_are_per_row():
    env = LaneClosureVecEnv(2, decision_hz=20)
    assert env.get_attr("decision_hz") == [20] * 24
    assert env.get_attr("render_mode", [1, 2]) == [None, None]
    assert env.has_attr("num_worlds")
    assert not env.has_attr("nothing")
    assert env.env_is_wrapped(VecMonitor) == [False] * 24
    with pytest.raises(AttributeError, match="'render' only"):
        env.env_method("jump")
    with pytest.raises(AttributeError, match="can't be set"):
        env.set_attr("ego", 3)
    env.set_options({"scenario_seed": 100_000})
    env.reset()
    assert [info["scenario_seed"] for info in env.reset_infos[::12]] == [100_000, 100_001]
    env.reset()
    assert env.reset_infos[0]["scenario_seed"] > 2**32
    env.close()


def test_refusals():
    with pytest.raises(ValueError, match="rules must be 'training' here"):
        LaneClosureVecEnv(1, rules="scoring")
    with pytest.raises(ValueError, match=r"num_worlds must be an int in \[1, 1000000\], got 0"):
        LaneClosureVecEnv(0)
    with pytest.raises(TypeError, match="decides autoreset_mode itself"):
        LaneClosureVecEnv(1, autoreset_mode="NextStep")
    env = LaneClosureVecEnv(1)
    buffer = ActiveRolloutBuffer(4, env.observation_space, env.action_space, n_envs=12, device="cpu")
    with pytest.raises(RuntimeError, match="use it through MaskedPPO"):
        buffer.add(None)
    with pytest.raises(ValueError, match="NaN"):
        env.reset()
        env.step(np.full((12, 2), np.nan))
    env.close()


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "sf3d_envs.envs.sb3")
    with pytest.raises(ImportError, match=r'pip install "sf3d-envs\[sb3\]"'):
        importlib.import_module("sf3d_envs.envs.sb3")
