"""The contract test itself: it passes other environments and finds breaches."""

import gymnasium as gym
import numpy as np
import pytest

from sf3d_envs import LaneClosureVectorEnv, check_vector_env


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_gymnasiums_own_vectorization_passes_where_it_is_dense(mode):
    """Its same-step mode gives final observations as object arrays, which the contract refuses."""

    def make():
        envs = gym.make_vec(
            "CartPole-v1", 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, max_episode_steps=5
        )
        envs.unwrapped.metadata = dict(envs.unwrapped.metadata)
        return KeepOptions(envs)

    if mode == gym.vector.AutoresetMode.SAME_STEP:
        with pytest.raises(AssertionError, match="dense"):
            check_vector_env(make)
    else:
        check_vector_env(make)


class KeepOptions(gym.vector.VectorWrapper):
    """SyncVectorEnv takes the mask out of the caller's options."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options=dict(options) if options else None)


class PopsMask(LaneClosureVectorEnv):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        if options:
            options.pop("reset_mask", None)
        return result


class ReusesMemory(LaneClosureVectorEnv):
    def step(self, actions):
        obs, *rest = super().step(actions)
        self.kept = getattr(self, "kept", obs)
        self.kept[:] = obs
        return self.kept, *rest


class SharesMetadata(LaneClosureVectorEnv):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.metadata = type(self).metadata


class IgnoresSeed(LaneClosureVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


class SameSeed(LaneClosureVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=0, options=options)


class WholeNumbers(LaneClosureVectorEnv):
    def step(self, actions):
        obs, reward, *rest = super().step(actions)
        return obs, reward.astype(int), *rest


class RewardAfterTheEnd(LaneClosureVectorEnv):
    def step(self, actions):
        obs, reward, *rest = super().step(actions)
        return obs, reward + np.float32(1.0), *rest


class LosesFinal(LaneClosureVectorEnv):
    def step(self, actions):
        *rest, infos = super().step(actions)
        infos.pop("final_obs")
        return *rest, infos


class ResetsAll(LaneClosureVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)


BREACHES = [
    (PopsMask, "leave the caller's options"),
    (ReusesMemory, "same memory"),
    (SharesMetadata, "instance's own"),
    (IgnoresSeed, "second rollout with the same seed differs"),
    (SameSeed, "seed=s must be the list|another seed gave the same|repeated the episode"),
    (WholeNumbers, "rewards must be finite"),
    (RewardAfterTheEnd, "reward 0 and no flags"),
    (LosesFinal, "lack final_obs"),
    (ResetsAll, "outside of the mask changed"),
]


@pytest.mark.parametrize(("broken", "text"), BREACHES, ids=[broken.__name__ for broken, _ in BREACHES])
def test_breaches_are_found(broken, text):
    mode = "SameStep" if broken is LosesFinal else "NextStep"
    with pytest.raises(AssertionError, match=text):
        check_vector_env(lambda: broken(2, horizon_s=0.3, autoreset_mode=mode), steps=6)


def test_episodes_must_end():
    with pytest.raises(AssertionError, match="no episode ended within 2 steps"):
        check_vector_env(lambda: LaneClosureVectorEnv(1), steps=2)
