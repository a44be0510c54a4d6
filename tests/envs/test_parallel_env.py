"""The PettingZoo shell: PettingZoo's tests, whole-episode determinism, dying agents."""

import pickle

import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ClosedEnvironmentError
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test, state_test
from pettingzoo.utils.conversions import parallel_to_aec

from sf3d_envs import LaneClosureParallelEnv, lane_closure_v0
from sf3d_envs.registry import list_conditions

pytestmark = pytest.mark.filterwarnings("error")


def test_parallel_api():
    parallel_api_test(lane_closure_v0.parallel_env(), num_cycles=120)


def test_aec_api():
    api_test(parallel_to_aec(lane_closure_v0.parallel_env()), num_cycles=120)
    api_test(lane_closure_v0.env(preview=True, condition="mu018"), num_cycles=120)


def test_seeds():
    parallel_seed_test(lane_closure_v0.parallel_env, num_cycles=30)
    seed_test(lane_closure_v0.env, num_cycles=30)


def test_max_cycles():
    max_cycles_test(lane_closure_v0)


def test_state():
    state_test(lane_closure_v0.env(), lane_closure_v0.parallel_env())


@pytest.mark.parametrize("slug", list_conditions()[1:])
def test_registered(slug):
    for kind, base in (("parallel", pettingzoo.ParallelEnv), ("aec", pettingzoo.AECEnv)):
        env = pettingzoo.make(kind, f"SF3D/LaneClosure-{slug}-v0", max_cycles=1)
        assert isinstance(env, base)
        assert env.unwrapped.core.conditions[0].slug == slug
        env.close()


def episode(env, seed):
    observations, infos = env.reset(seed=seed)
    seen = [(agent, obs.tobytes()) for agent, obs in observations.items()] + [repr(infos)]
    for v, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(v)
    while env.agents:
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, *rest = env.step(actions)
        seen.append(([(agent, obs.tobytes()) for agent, obs in observations.items()], repr(rest)))
    return seen


def test_a_whole_episode_repeats_bit_for_bit():
    env, other = lane_closure_v0.parallel_env(), lane_closure_v0.parallel_env()
    first = episode(env, 3)
    assert len(first) > 30
    assert episode(env, 3) == first
    assert episode(other, 3) == first
    assert episode(pickle.loads(pickle.dumps(env)), 3) == first
    assert episode(other, 4) != first
    env.close()
    other.close()


def test_an_agent_gets_its_last_values_and_leaves():
    env = LaneClosureParallelEnv()
    env.reset(options={"scenario_seed": 100_000})
    leaver, gone = "vehicle_11", False
    for _ in range(60):
        live = list(env.agents)
        actions = {agent: np.array([3.0, 1.0] if agent == leaver else [0.0, 0.0]) for agent in env.possible_agents}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for values in (observations, rewards, terminations, truncations, infos):
            assert list(values) == live
        assert all(type(flag) is bool for flag in (*terminations.values(), *truncations.values()))
        if leaver in live and terminations[leaver]:
            gone = True
            assert observations[leaver].any()
            assert infos[leaver]["event"] == 3
            assert leaver not in env.agents
    assert gone
    assert len(env.agents) == 11
    size = env.observation_spec.size
    state = env.state().reshape(12, size)
    assert state[11].any()
    assert np.array_equal(state[0], observations["vehicle_0"])
    env.close()


def test_no_agents_are_left_at_the_end():
    env = LaneClosureParallelEnv(max_cycles=2)
    assert env.max_cycles == 2
    env.reset(seed=0)
    for _ in range(2):
        assert len(env.agents) == 12
        truncations = env.step({agent: np.zeros(2) for agent in env.agents})[3]
    assert all(truncations.values())
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset()
    assert len(env.agents) == 12
    env.close()


def test_turns_refuse_bad_actions_at_once_and_after_close():
    env = lane_closure_v0.env(horizon_s=1.0)
    env.reset(seed=1)
    for bad in ([float("nan"), 0.0], None, "x", np.zeros(3)):
        with pytest.raises(ValueError, match="action of 'vehicle_0'"):
            env.step(bad)
    assert env.agent_selection == "vehicle_0"
    env.step(np.zeros(2))
    assert env.agent_selection == "vehicle_1"
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.step(np.zeros(2))
