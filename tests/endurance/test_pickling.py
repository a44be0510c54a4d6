"""What describes an environment can be pickled and copied; what is alive refuses and says what to do instead."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
import pytest

import sf3d_envs
from sf3d_envs import EnvConfig, RewardConfig, Simulator, TorchEnv, VehicleParams, load_condition, load_suite
from sf3d_envs.envs.sb3 import LaneClosureVecEnv
from sf3d_envs.task import TaskConfig
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

ROUND_TRIPS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "cloudpickle": lambda value: pickle.loads(cloudpickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
DESCRIPTIONS = {
    "EnvConfig": EnvConfig(
        num_worlds=2,
        condition=["mu018", load_condition("gradeN030")],
        vehicle=[VehicleParams()] * 11 + [VehicleParams(mass=2000.0)],
        reward=RewardConfig(progress=0.2),
    ),
    "EnvSpec": gymnasium.spec("SF3D/LaneClosure-mu018-v0"),
    "Condition": load_condition("gradeP030-mu018"),
    "Suite": load_suite("ucx-conditions-1"),
    "VehicleParams": VehicleParams(mass=1500.0),
    "RewardConfig": RewardConfig(comfort=0.0),
    "TaskConfig": TaskConfig(horizon_s=30.0),
    "ObservationSpec": sf3d_envs.ObservationSpec(preview=True),
    "Event": sf3d_envs.Event.COLLISION,
}


@pytest.mark.parametrize("way", ROUND_TRIPS)
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_survive(name: str, way: str) -> None:
    value = DESCRIPTIONS[name]
    again = ROUND_TRIPS[way](value)
    assert type(again) is type(value)
    if name == "ObservationSpec":
        assert again.slice("route") == value.slice("route")
    else:
        assert again == value


def test_a_config_with_functions_survives_cloudpickle() -> None:
    config = EnvConfig(reward_fn=lambda view, terms: terms["progress"], termination_fn=None)
    again = pickle.loads(cloudpickle.dumps(config))
    assert again.reward_fn(None, {"progress": 3}) == 3
    assert dataclasses.replace(again, reward_fn=None) == dataclasses.replace(config, reward_fn=None)


def test_a_pickled_config_makes_the_same_environment() -> None:
    config = EnvConfig(num_worlds=2, condition="mu018", control="ego")
    observations = []
    for item in (config, pickle.loads(pickle.dumps(config))):
        env = TorchEnv(config=item)
        observations.append(env.reset(seed=5)[0].numpy().copy())
        env.close()
    assert np.array_equal(*observations)


def simulator() -> Simulator:
    return Simulator(1, [lane_closure_terrain(load_condition("reference"))], num_vehicles=1)


@pytest.mark.parametrize(
    ("make", "instead"),
    [
        (lambda: TorchEnv(1), r"pickle env\.config and make a new one with TorchEnv\(config=config\)"),
        (simulator, "pickle its arguments and make a new one"),
        (lambda: LaneClosureVecEnv(1), "make a new one with the same arguments; PPO.save"),
    ],
)
def test_live_objects_refuse_and_say_what_to_do(make: Callable[[], Any], instead: str) -> None:
    env = make()
    for way in ROUND_TRIPS.values():
        with pytest.raises(TypeError, match=f"a live {type(env).__name__} can't be pickled or copied: {instead}"):
            way(env)
    env.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make("SF3D/LaneClosure-mu018-v0", ego=3).unwrapped,
        lambda: gymnasium.make_vec("SF3D/LaneClosure-v0", num_envs=2, condition="mu050"),
        lambda: sf3d_envs.LaneClosureParallelEnv("mu050"),
    ],
)
def test_the_shells_pickle_as_their_arguments(make: Callable[[], Any]) -> None:
    env = make()
    env.reset(seed=1)
    again = pickle.loads(pickle.dumps(env))
    assert again is not env
    assert again.core.config == env.core.config
    again.reset(seed=1)
    assert np.array_equal(again.core.view.body_q.numpy(), env.core.view.body_q.numpy())
    env.close()
    again.close()
