"""What is refused, at every shell: the message names the argument, the value and what is allowed."""

import gymnasium as gym
import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

import sf3d_envs
from sf3d_envs import LaneClosureEnv, LaneClosureParallelEnv, LaneClosureVectorEnv

SHELLS = [LaneClosureEnv, LaneClosureVectorEnv, LaneClosureParallelEnv]
BAD_ARGUMENTS = [
    ({"condition": "mu0.18"}, ValueError, r"condition 'mu0.18' is not in suite .* did you mean 'mu018'"),
    ({"device": "cuda:99"}, ValueError, r"device 'cuda:99' is not available; available: 'cpu'"),
    ({"device": 3}, TypeError, "device must be a string"),
    ({"solver": "magic"}, ValueError, "solver.*'magic'|'magic'.*solver"),
    ({"decision_hz": 7}, ValueError, "decision_hz must be a divisor of 60, got 7"),
    ({"horizon_s": 0.0}, ValueError, "horizon_s must be .* got 0.0"),
    ({"horizon_s": float("nan")}, ValueError, "horizon_s"),
    ({"rules": "loose"}, ValueError, "rules must be one of 'training', 'scoring', got 'loose'"),
    ({"render_mode": "ascii"}, ValueError, "render_mode must be one of .* got 'ascii'"),
    ({"preview": 1}, TypeError, "preview must be a bool, got 1"),
    ({"vehicle": "lorry"}, ValueError, "vehicle 'lorry'"),
    ({"prevew": True}, TypeError, "has no argument 'prevew'; did you mean 'preview'"),
    ({"suite": "ucx"}, ValueError, "suite 'ucx' is not in the registry"),
    ({"condition": "no/such.toml"}, ValueError, "'no/such.toml' cannot be read"),
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("arguments", "kind", "text"), BAD_ARGUMENTS, ids=[str(case[0]) for case in BAD_ARGUMENTS])
def test_bad_arguments(shell, arguments, kind, text):
    with pytest.raises(kind, match=text):
        shell(**arguments)


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("NaN", np.nan, float),
        ("real numbers.*complex", 1j, complex),
        ("real numbers.*bool", True, bool),
        ("real numbers.*object", None, object),
        ("real numbers.*<U", "0.5", None),
    ],
)
def test_bad_action_values(text, value, dtype):
    one, rows, agents = LaneClosureEnv(), LaneClosureVectorEnv(2), LaneClosureParallelEnv()
    for env in (one, rows, agents):
        env.reset(seed=0)
    with pytest.raises(ValueError, match=f"action.*{text}"):
        one.step(np.array([0, value], dtype=dtype))
    with pytest.raises(ValueError, match=f"actions.*{text}"):
        rows.step(np.array([[0, 0], [0, value]], dtype=dtype))
    actions = {agent: np.zeros(2, dtype=np.float32) for agent in agents.agents}
    with pytest.raises(ValueError, match=rf"actions\['vehicle_3'\].*{text}"):
        agents.step({**actions, "vehicle_3": np.array([0, value], dtype=dtype)})
    before = agents.state()
    agents.step(actions)
    assert not np.array_equal(before, agents.state())
    for env in (one, rows, agents):
        env.close()


def test_bad_action_shapes():
    one, rows, agents = LaneClosureEnv(), LaneClosureVectorEnv(2), LaneClosureParallelEnv()
    for env in (one, rows, agents):
        env.reset(seed=0)
    for bad in (0.0, [0.0], [0.0] * 3, [[0.0, 0.0]], [[0.0], [0.0, 1.0]]):
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            one.step(bad)
    for bad in (np.zeros(2), np.zeros((3, 2)), np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"actions must have shape \(2, 2\), got"):
            rows.step(bad)
    with pytest.raises(ValueError, match="lacks the live agent 'vehicle_0'"):
        agents.step({})
    with pytest.raises(ValueError, match="entry for 'car_0'; agents are 'vehicle_0'"):
        agents.step({"car_0": np.zeros(2)})
    for env in (one, rows, agents):
        env.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_call_order(shell):
    env = shell(render_mode="rgb_array")
    action = {LaneClosureEnv: np.zeros(2), LaneClosureVectorEnv: np.zeros((1, 2)), LaneClosureParallelEnv: {}}[shell]
    with pytest.raises(ResetNeeded, match=r"step\(\) before reset\(\)"):
        env.step(action)
    with pytest.raises(ResetNeeded, match=r"render\(\) before reset\(\)"):
        env.render()
    env.close()
    env.close()
    for call in (lambda: env.step(action), env.reset, env.render):
        with pytest.raises(ClosedEnvironmentError, match=r"closed LaneClosure.*make a new one"):
            call()


def test_step_after_the_end_asks_for_a_reset():
    env = LaneClosureEnv(horizon_s=0.1)
    env.reset(seed=0)
    env.step([0.0, 0.0])
    with pytest.raises(ResetNeeded, match="after the end of the episode"):
        env.step([0.0, 0.0])
    env.reset()
    env.step([0.0, 0.0])
    env.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_bad_seeds_leave_the_episode_alone(shell):
    env = shell()
    first = env.reset(seed=1)[0]
    for seed, options, text in (
        (-1, None, "seed"),
        (None, {"scenario_seed": -5}, "scenario_seed"),
        (2**64, None, "seed"),
        (0.5, None, "seed"),
        (None, {"scenario_seed": "x"}, "scenario_seed"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            env.reset(seed=seed, options=options)
    again = env.reset(seed=1)[0]
    assert repr(first) == repr(again)
    env.close()


def test_unknown_ids_and_reset_options():
    with pytest.raises(gym.error.NameNotFound, match="LaneClosur"):
        gym.make("SF3D/LaneClosur-v0")
    with pytest.raises(gym.error.Error):
        gym.make("SF3D/LaneClosure-mu017-v0")
    with pytest.raises(Exception, match="LaneClosure-mu017"):
        pettingzoo.make("parallel", "SF3D/LaneClosure-mu017-v0")
    env = LaneClosureEnv()
    for option in ("seeds", "reset_mask"):
        with pytest.raises(ValueError, match=f"unknown reset option '{option}'.*'scenario_seed'"):
            env.reset(options={option: 1})
    env.close()


def test_an_id_and_a_different_condition_contradict():
    text = "condition 'mu035' contradicts the environment ID, which carries 'mu018'"
    for make in (gym.make, gym.make_vec, lambda name, **kw: pettingzoo.make("parallel", name, **kw)):
        with pytest.raises(ValueError, match=text):
            make("SF3D/LaneClosure-mu018-v0", condition="mu035")
    with pytest.raises(ValueError, match=text):
        gym.make_vec("SF3D/LaneClosure-mu018-v0", num_envs=2, condition=["mu018", "mu035"])
    with pytest.raises(ValueError, match="contradicts"):
        gym.make("LaneClosure-mu018-v0", condition="reference")


def test_arguments_that_a_shell_decides():
    cases = ((LaneClosureEnv, "num_worlds"), (LaneClosureEnv, "control"), (LaneClosureVectorEnv, "num_worlds"))
    for shell, name in cases:
        with pytest.raises(TypeError, match=f"decides {name} itself"):
            shell(**{name: 2})


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"num_envs": 0}, ValueError, "num_envs must be an int >= 1, got 0"),
        ({"num_envs": 2.0}, TypeError, "num_envs must be an int >= 1, got 2.0"),
        ({"num_envs": 18, "control": "all"}, ValueError, "multiple of 12 .* got 18"),
        ({"control": "some"}, ValueError, "control must be one of 'all', 'ego', got 'some'"),
        ({"autoreset_mode": "Never"}, ValueError, "autoreset_mode must be one of .* got 'Never'"),
        ({"num_envs": 3, "condition": ["mu018"]}, ValueError, "condition has 1 entries for num_worlds=3"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps must be an int >= 1 or None, got 0"),
        ({"ego": 12}, ValueError, r"ego must be an int in \[0, 11\], got 12"),
        ({"traffic": "idm"}, ValueError, "traffic: agent 'idm' is unknown; did you mean 'idm17'"),
    ],
)
def test_bad_vector_arguments(arguments, kind, text):
    with pytest.raises(kind, match=text):
        gym.make_vec("SF3D/LaneClosure-v0", **arguments)


def test_nothing_is_left_behind_by_a_refused_environment():
    ids = sf3d_envs.environment_ids(aliases=True)
    with pytest.raises(ValueError, match="contradicts"):
        gym.make("SF3D/LaneClosure-mu018-v0", condition="mu035")
    assert gym.spec("SF3D/LaneClosure-mu018-v0").kwargs == {"id_condition": "mu018"}
    assert sf3d_envs.environment_ids(aliases=True) == ids
