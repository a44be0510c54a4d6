"""What all agents share, and the two without a model: random and constant."""

from __future__ import annotations

import numpy as np
import pytest
from observation.worlds import random_scene

from sf3d_envs.agents import AGENTS, Agent, make_agent
from sf3d_envs.random import Domain, philox4x32


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_keeps_the_protocol(name):
    agent = make_agent(name)
    assert isinstance(agent, Agent)
    assert agent.name == name and 60 % agent.decision_hz == 0
    assert len(agent.digest) == 64 and agent.digest == make_agent(name).digest
    view = random_scene(np.random.default_rng(1), 2).view()
    with pytest.raises(RuntimeError, match=r"call bind\(view\)"):
        agent.act(view)
    agent.bind(view)
    agent.reset(None)
    actions = agent.act(view)
    assert actions.shape == (2, 12, 2) and str(actions.dtype) == "torch.float32"
    assert agent.act(view).data_ptr() == actions.data_ptr()


def test_digests_differ_by_agent_and_parameters():
    agents = [make_agent(name) for name in AGENTS]
    agents += [make_agent("idm17", desired_speed=15.0), make_agent("constant", acceleration=1.0)]
    assert len({agent.digest for agent in agents}) == len(agents)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(
        ValueError, match=r"agent 'idm' is unknown; did you mean 'idm17'\? Known: idm17, random, constant"
    ):
        make_agent("idm")
    with pytest.raises(TypeError, match="got int"):
        make_agent(3)
    with pytest.raises(ValueError, match=r"\['desired_speed'\] need an agent name"):
        make_agent(make_agent("idm17"), desired_speed=3.0)


def test_an_object_is_returned_as_it_is():
    agent = make_agent("constant")
    assert make_agent(agent) is agent


def test_constant_asks_for_the_same_everywhere():
    view = random_scene(np.random.default_rng(2), 2).view()
    agent = make_agent("constant", acceleration=-8.0, steering=0.25)
    agent.bind(view)
    assert (agent.act(view).numpy() == np.float32([-8.0, 0.25])).all()
    with pytest.raises(ValueError, match=r"steering must be in \[-1, 1\], got 1.5"):
        make_agent("constant", steering=1.5)


def test_random_numbers_are_addressed_by_seed_step_and_vehicle():
    scene = random_scene(np.random.default_rng(3), 3)
    scene.seed[:] = (100_000, 2**63 + 5, 100_000)
    scene.step[:] = (0, 6, 6)
    view, agent = scene.view(), make_agent("random")
    agent.bind(view)
    actions = agent.act(view).numpy()
    words = philox4x32(scene.seed[:, None], scene.step[:, None], np.arange(12), int(Domain.NOISE))
    unit = (words[..., :2] >> 8).astype(np.float64) / 2**23 - 1.0
    assert (actions == (unit * (4.0, 1.0)).astype(np.float32)).all()
    assert np.abs(actions).max(axis=(0, 1)) == pytest.approx([4.0, 1.0], rel=0.2)
    assert (actions[0] != actions[2]).all()


def test_random_skips_frozen_worlds():
    scene = random_scene(np.random.default_rng(4), 2)
    scene.stepping[1] = 0
    view, agent = scene.view(), make_agent("random")
    agent.bind(view)
    actions = agent.act(view).numpy()
    assert actions[0].any() and not actions[1].any()
