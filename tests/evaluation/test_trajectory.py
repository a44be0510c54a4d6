"""Rich logging: order, chunks, step numbers, frozen and reset worlds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.agents import make_agent
from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation.logged import logging_probes
from sf3d_envs.evaluation.measures import TRAJECTORY, index_of
from sf3d_envs.evaluation.safety import SafetyProbe
from sf3d_envs.evaluation.trajectory import TrajectoryProbe


def run(probe, worlds=4, decisions=30, decision_hz=10, seeds=100000, threads=1, **kwargs):
    """Drive with IDM at its own place in the loop; the environment is closed afterwards."""
    kwargs = {"rules": "scoring", "autoreset_mode": "Disabled"} | kwargs
    env = TorchEnv(worlds, decision_hz=decision_hz, threads=threads, probes=[probe], **kwargs)
    env.reset(options={"scenario_seed": seeds})
    driver = make_agent("idm17")
    driver.bind(env.view)
    for _ in range(decisions):
        env.step(driver.act(env.view))
    env.close()
    return probe


@pytest.fixture(scope="module")
def whole():
    """3 s of four worlds in one piece."""
    return run(TrajectoryProbe(4)).result()


def test_rows_are_in_order_and_typed(whole):
    assert whole.data.shape == (180, 4, 12, len(TRAJECTORY))
    assert (whole.data.dtype, whole.step.dtype, whole.seed.dtype) == (np.float32, np.int32, np.uint64)
    assert np.array_equal(whole.step, np.arange(1, 181)[:, None].repeat(4, axis=1))
    assert np.array_equal(whole.seed[0], np.arange(100000, 100004))
    # Positions move on by speed · dt: rows are neither lost nor swapped.
    moved = np.diff(whole["x"], axis=0)
    np.testing.assert_allclose(moved, whole["speed_long"][1:] * np.cos(whole["yaw"][1:]) / 60.0, atol=2e-3)


@pytest.mark.parametrize(("chunk_steps", "decision_hz"), [(60, 10), (60, 60), (64, 10), (77, 4), (60, 1), (100, 10)])
def test_chunks_join_to_the_whole_whatever_their_length(chunk_steps, decision_hz):
    chunks = []
    probe = TrajectoryProbe(3, on_chunk=chunks.append, chunk_steps=chunk_steps)
    decisions = 5 * decision_hz
    run(probe, decisions=decisions, decision_hz=decision_hz)
    assert {len(chunk.step) for chunk in chunks} == {chunk_steps}
    probe.flush()
    assert sum(len(chunk.step) for chunk in chunks) == 300
    kept = run(TrajectoryProbe(3), decisions=decisions, decision_hz=decision_hz).result()
    assert np.array_equal(np.concatenate([chunk.step[:, 0] for chunk in chunks]), np.arange(1, 301))
    assert np.concatenate([chunk.data for chunk in chunks]).tobytes() == kept.data.tobytes()


def test_chunks_arrive_while_the_environment_steps_and_belong_to_the_callback():
    seen = []

    def take(chunk):
        seen.append((chunk.step[0, 0], chunk.step[-1, 0]))
        chunk.data[:] = 0.0

    run(TrajectoryProbe(1, on_chunk=take), decisions=25)
    assert seen == [(1, 60), (61, 120)]


def test_recording_may_go_on_after_a_look(whole):
    probe = TrajectoryProbe(4)
    env = TorchEnv(4, decision_hz=10, rules="scoring", autoreset_mode="Disabled", threads=1, probes=[probe])
    env.reset(options={"scenario_seed": 100000})
    driver = make_agent("idm17")
    driver.bind(env.view)
    for decision in range(30):
        env.step(driver.act(env.view))
        if decision in (3, 17):
            assert len(probe.result().step) == 6 * (decision + 1)
    env.close()
    assert probe.result().data.tobytes() == whole.data.tobytes()


def test_bits_depend_neither_on_the_batch_nor_on_threads(whole):
    alone = run(TrajectoryProbe(1), worlds=1, seeds=100002).result()
    assert alone.data[:, 0].tobytes() == whole.data[:, 2].tobytes()
    threaded = run(TrajectoryProbe(12), worlds=16, threads=2).result()
    assert threaded.data[:, :4].tobytes() == whole.data.tobytes()
    assert np.array_equal(threaded.step, np.arange(1, 181)[:, None].repeat(12, axis=1))


def test_frozen_worlds_are_marked():
    chunk = run(TrajectoryProbe(2), horizon_s=1.0, decisions=12).result()
    assert np.array_equal(chunk.step[:, 1], [*range(1, 61), *[-1] * 12])
    assert np.isnan(chunk.data[60:]).all()
    assert np.isfinite(chunk.data[:60, ..., : index_of("ttc", TRAJECTORY)]).all()


def test_without_a_safety_probe_conflicts_are_not_known(whole):
    assert np.isnan(whole["ttc"]).all()
    assert np.isnan(whole["need_ratio"]).all()


def test_the_safety_probe_stands_before_the_trajectories():
    safety = SafetyProbe()
    with pytest.raises(RuntimeError, match="this SafetyProbe has measured nothing"):
        TorchEnv(2, probes=[TrajectoryProbe(1, safety=safety), safety])
    other = SafetyProbe()
    TorchEnv(3, probes=[other]).close()
    with pytest.raises(ValueError, match="safety serves another environment"):
        TorchEnv(2, probes=[TrajectoryProbe(1, safety=other)])


@pytest.mark.parametrize(("mode", "pause"), [("NextStep", 6), ("SameStep", 0)])
def test_an_autoreset_starts_the_step_numbers_anew(mode, pause):
    probe = TrajectoryProbe(2)
    run(probe, rules="training", horizon_s=1.0, autoreset_mode=mode, decisions=14)
    chunk = probe.result()
    expected = [*range(1, 61), *[-1] * pause, *range(1, 25 - pause)]
    assert np.array_equal(chunk.step[:, 0], expected)
    assert chunk.seed[0, 0] == 100000
    assert chunk.seed[-1, 0] >= 2**32


def test_a_masked_reset_restarts_its_world_even_after_a_single_step():
    probe = TrajectoryProbe(2)
    env = TorchEnv(2, decision_hz=60, rules="scoring", autoreset_mode="Disabled", probes=[probe])
    env.reset(options={"scenario_seed": 100000})
    driver = make_agent("idm17")
    driver.bind(env.view)
    env.advance(driver.act(env.view))
    env.reset(options={"reset_mask": np.array([True, False]), "scenario_seed": 100000})
    env.advance(driver.act(env.view))
    env.close()
    chunk = probe.result()
    assert chunk.step.tolist() == [[1, 1], [1, 2]]
    assert chunk.data[0, 0].tobytes() == chunk.data[1, 0].tobytes()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"worlds": 0}, ValueError, r"worlds must be in \[1, 1000000\], got 0"),
        ({"worlds": 2.0}, TypeError, "worlds must be an int"),
        ({"worlds": True}, TypeError, "worlds must be an int"),
        ({"worlds": 1, "chunk_steps": 59}, ValueError, r"chunk_steps must be in \[60, 3600\], got 59"),
        ({"worlds": 1, "on_chunk": 3}, TypeError, "on_chunk must be callable or None, got 3"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        TrajectoryProbe(**arguments)


def test_more_worlds_than_there_are():
    with pytest.raises(ValueError, match="worlds is 5; the environment has num_worlds=4"):
        TorchEnv(4, probes=[TrajectoryProbe(5)])


def test_misuse_says_what_to_do(whole):
    with pytest.raises(RuntimeError, match="recorded nothing"):
        TrajectoryProbe(1).result()
    with pytest.raises(RuntimeError, match="went to on_chunk"):
        TrajectoryProbe(1, on_chunk=print).result()
    with pytest.raises(KeyError, match="unknown column 'speed'; known: x, y, z"):
        whole["speed"]
    probe = run(TrajectoryProbe(1), decisions=1)
    with pytest.raises(RuntimeError, match="one per environment"):
        TorchEnv(1, probes=[probe])


def test_logging_probes():
    assert [type(probe) for probe in logging_probes()] == [SafetyProbe]
    safety, rich = logging_probes(2)
    assert isinstance(safety, SafetyProbe)
    assert isinstance(rich, TrajectoryProbe)
    assert rich.worlds == 2
    with pytest.raises(ValueError, match="rich_worlds must be an int >= 0, got -1"):
        logging_probes(-1)
    with pytest.raises(TypeError, match="rich_worlds must be an int >= 0, got True"):
        logging_probes(True)
