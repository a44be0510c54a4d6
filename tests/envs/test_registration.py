"""IDs, lazy public names and what an ID carries."""

import pickle

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest

import sf3d_envs
from sf3d_envs.registry import list_conditions


def test_every_condition_has_an_id_and_an_alias_everywhere():
    ids = sf3d_envs.environment_ids(aliases=True)
    assert len(ids) == 42
    assert [slug for name, slug in ids.items() if "/" in name and slug] == list(list_conditions())[1:]
    for name in ids:
        assert gym.spec(name).max_episode_steps is None
        assert name in pettingzoo.parallel_registry
        assert name in pettingzoo.aec_registry


@pytest.mark.parametrize("name", ["SF3D/LaneClosure-gradeN045-mu035-v0", "LaneClosure-gradeN045-mu035-v0"])
def test_an_id_carries_its_condition(name):
    for env in (gym.make(name), gym.make_vec(name), pettingzoo.make("parallel", name), gym.make(name, condition=SLUG)):
        assert env.unwrapped.core.conditions[0].slug == SLUG
        env.close()


SLUG = "gradeN045-mu035"


def test_registering_again_changes_nothing():
    before = dict(gym.registry)
    sf3d_envs.register()
    assert dict(gym.registry) == before


def test_an_id_may_name_the_module_to_import():
    env = gym.make("sf3d_envs:SF3D/LaneClosure-mu018-v0")
    assert env.spec.id == "SF3D/LaneClosure-mu018-v0"
    env.close()


def test_public_names_resolve():
    for name in sf3d_envs.__all__:
        assert getattr(sf3d_envs, name) is not None
        assert name in dir(sf3d_envs)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sf3d_envs.nothing  # noqa: B018


def test_specs_survive_json_and_pickle():
    envs = gym.make_vec("SF3D/LaneClosure-mu018-v0", num_envs=2, autoreset_mode="SameStep", preview=True)
    spec = gym.envs.registration.EnvSpec.from_json(envs.spec.to_json())
    again = gym.make_vec(spec)
    assert again.num_envs == 2
    assert again.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP
    copy = pickle.loads(pickle.dumps(envs.unwrapped))
    first = [env.reset(seed=4)[0] for env in (envs, again, copy)]
    assert np.array_equal(first[0], first[1])
    assert np.array_equal(first[0], first[2])
    for env in (envs, again, copy):
        env.close()


def make_one():
    return gym.make("SF3D/LaneClosure-v0", horizon_s=0.5)


@pytest.mark.slow
def test_worker_processes():
    from stable_baselines3.common.vec_env import SubprocVecEnv

    inside = make_one()
    expected, _ = inside.reset(seed=3)
    envs = gym.vector.AsyncVectorEnv([make_one, make_one], context="spawn")
    assert np.array_equal(envs.reset(seed=3)[0][0], expected)
    for _ in range(8):
        envs.step(np.zeros((2, 2), dtype=np.float32))
    envs.close()
    workers = SubprocVecEnv([make_one, make_one], start_method="spawn")
    workers.seed(3)
    assert np.array_equal(workers.reset()[0], expected)
    workers.close()
