"""Frames through the shells, and Gymnasium's and PettingZoo's video and render tests."""

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import env_render_passive_checker
from pettingzoo.test import render_test

from sf3d_envs import LaneClosureVectorEnv, check_vector_env, lane_closure_v0

SMALL = {"render_mode": "rgb_array", "render_size": (64, 48)}


def test_every_shell_gives_a_frame():
    one = gym.make("SF3D/LaneClosure-mu018-v0", **SMALL)
    one.reset(seed=0)
    env_render_passive_checker(one.unwrapped)
    frame = one.render()
    agents = pettingzoo.make("parallel", "SF3D/LaneClosure-mu018-v0", **SMALL)
    agents.reset(seed=0)
    assert np.array_equal(agents.render(), frame)
    one.step(np.zeros(2))
    assert not np.array_equal(one.render(), frame)
    one.close()
    agents.close()
    silent = gym.make("SF3D/LaneClosure-v0").unwrapped
    silent.reset(seed=0)
    assert silent.render() is None
    silent.close()


def test_vector_frames_are_lazy_and_expire():
    envs = LaneClosureVectorEnv(24, control="all", **SMALL)
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 24
    assert frames[0] is frames[11]
    assert not np.array_equal(frames[0], frames[12])
    assert [frame.shape for frame in frames[22:]] == [(48, 64, 3)] * 2
    assert np.asarray(frames).shape == (24, 48, 64, 3)
    with pytest.raises(IndexError, match="24"):
        frames[24]
    late = envs.render()
    envs.step(np.zeros((24, 2)))
    assert frames[-1].dtype == np.uint8
    with pytest.raises(RuntimeError, match="has moved on"):
        late[0]
    envs.close()


def test_contract_with_frames():
    check_vector_env(lambda: gym.make_vec("SF3D/LaneClosure-v0", num_envs=2, horizon_s=0.2, **SMALL), steps=4)


def test_record_video(tmp_path):
    pytest.importorskip("moviepy")
    env = gym.make("SF3D/LaneClosure-v0", horizon_s=0.3, **SMALL)
    env = gym.wrappers.RecordVideo(env, str(tmp_path / "one"), episode_trigger=lambda episode: True)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(2))
    env.close()
    envs = gym.make_vec("SF3D/LaneClosure-v0", num_envs=2, horizon_s=0.3, **SMALL)
    envs = gym.wrappers.vector.RecordVideo(envs, str(tmp_path / "rows"), episode_trigger=lambda episode: True)
    envs.reset(seed=0)
    for _ in range(6):
        envs.step(np.zeros((2, 2)))
    envs.close()
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["rl-video-episode-0.mp4"]
    assert len(list((tmp_path / "rows").iterdir())) == 2


def test_sb3_frames():
    pytest.importorskip("stable_baselines3")
    from sf3d_envs.envs.sb3 import LaneClosureVecEnv

    env = LaneClosureVecEnv(2, **SMALL)
    env.seed(0)
    env.reset()
    assert [image.shape for image in env.get_images()] == [(48, 64, 3)] * 2
    assert env.render().shape == (96, 64, 3)
    assert [image.shape for image in env.env_method("render", indices=[0, 13])] == [(48, 64, 3)] * 2
    env.close()


def test_pettingzoo_render_test():
    pytest.importorskip("viser")
    render_test(lane_closure_v0.env)
