"""The scenario sampler against an independent NumPy sampler, and the facts its distribution must keep."""

import numpy as np
import pytest
import warp as wp

from sf3d_envs.random import Domain, philox4x32
from sf3d_envs.scenario.lane_closure import (
    OWN_ROUTE,
    UNIT,
    Lane,
    ScenarioBuffers,
    sample_lane_closure,
    sample_lane_closures,
    sample_scenarios,
)

FIELDS = ("start_x", "start_y", "start_speed", "headway", "min_gap", "accel_max", "comfort_decel")
LENGTH = 4.25


def reference_sampler(seeds):
    """The same distribution written from its definition: [low, high] ranges in 2**-10 units, one column per vehicle."""

    def draw(words, low, high):
        low, high = round(low * 1024), int(high * 1024)
        return low + ((words.astype(np.int64) * (high - low + 1)) >> 32)

    world = philox4x32(seeds, 0, 0, Domain.SCENARIO)
    motion = philox4x32(seeds[:, None], 1, np.arange(12), Domain.SCENARIO)
    driver = philox4x32(seeds[:, None], 2, np.arange(12), Domain.SCENARIO)
    stream = draw(world[:, 0], 2, 8)
    leader = world[:, 1] >= 2**31
    spacing = draw(motion[..., 0], 4, 14) + (4 * stream[:, None]) // 5 + round(LENGTH * 1024)
    closing_first = np.where(leader, draw(world[:, 2], 30, 37.5), draw(world[:, 2], 5, 20))
    closing = np.cumsum(np.column_stack([closing_first, -spacing[:, 1:5]]), axis=1)
    opened = np.cumsum(np.column_stack([draw(world[:, 3], -40, 10), -spacing[:, 6:]]), axis=1)
    offset = np.where(np.arange(12) < 5, draw(motion[..., 1], 0, 3), draw(motion[..., 1], -0.5, 0.5))
    units = {
        "start_x": np.hstack([closing, opened]),
        "start_y": np.broadcast_to(np.where(np.arange(12) < 5, -29.75, -26.25) * 1024, (len(seeds), 12)),
        "start_speed": stream[:, None] + offset,
        "headway": draw(motion[..., 2], 1, 1.6),
        "min_gap": draw(motion[..., 3], 1.5, 2.5),
        "accel_max": draw(driver[..., 0], 1, 2),
        "comfort_decel": draw(driver[..., 1], 1.5, 3),
    }
    return {name: (value / 1024.0).astype(np.float32) for name, value in units.items()}, stream / 1024.0, leader


def launch(seeds, buffers, *, begin=0, dim=None, mask=None):
    seed = wp.array(np.asarray(seeds, dtype=np.uint64), dtype=wp.uint64, device="cpu")
    mask = wp.array(np.ones(len(seeds), bool) if mask is None else mask, dtype=wp.bool, device="cpu")
    dim = len(seeds) if dim is None else dim
    wp.launch(sample_scenarios, dim=dim, inputs=[seed, mask, buffers.arrays, begin], device="cpu")


@pytest.fixture(scope="module")
def scenarios():
    return sample_lane_closures(range(100_000, 100_300))


def stack(scenarios, name):
    return np.stack([getattr(s, name) for s in scenarios])


def test_kernel_equals_independent_numpy_sampler_bit_for_bit():
    edges = np.array([0, 1, 2**32, 2**63, 2**64 - 1], dtype=np.uint64)
    spread = np.arange(40, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    seeds = np.concatenate([np.arange(100_000, 100_256, dtype=np.uint64), edges, spread])
    buffers = ScenarioBuffers(len(seeds))
    launch(seeds, buffers)
    expected, stream, leader = reference_sampler(seeds)
    for name in FIELDS:
        actual = getattr(buffers.arrays, name).numpy()
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual.view(np.uint32), expected[name].view(np.uint32), err_msg=name)
    np.testing.assert_array_equal(buffers.arrays.stream_speed.numpy(), stream.astype(np.float32))
    np.testing.assert_array_equal(buffers.arrays.has_leader.numpy(), leader)


def test_a_world_does_not_depend_on_batch_place_or_shard():
    seeds = np.arange(100_000, 100_009)
    whole, halves, reverse = ScenarioBuffers(9), ScenarioBuffers(9), ScenarioBuffers(9)
    launch(seeds, whole)
    launch(seeds, halves, begin=0, dim=4)
    launch(seeds, halves, begin=4, dim=5)
    launch(seeds[::-1].copy(), reverse)
    for name in FIELDS:
        value = getattr(whole.arrays, name).numpy()
        np.testing.assert_array_equal(value, getattr(halves.arrays, name).numpy())
        np.testing.assert_array_equal(value, getattr(reverse.arrays, name).numpy()[::-1])
    digests = [s.digest for s in whole.to_host(seeds)]
    assert digests == [sample_lane_closure(int(seed)).digest for seed in seeds]


def test_only_masked_worlds_are_written():
    buffers = ScenarioBuffers(3)
    launch([1, 2, 3], buffers)
    before = buffers.arrays.start_x.numpy().copy()
    launch([7, 8, 9], buffers, mask=np.array([False, True, False]))
    after = buffers.arrays.start_x.numpy()
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(after[1], sample_lane_closure(8).start_x.astype(np.float32))


def test_every_value_is_a_multiple_of_the_unit(scenarios):
    for name in FIELDS:
        units = stack(scenarios, name) / UNIT
        np.testing.assert_array_equal(units, np.rint(units), err_msg=name)


def test_lanes_and_routes(scenarios):
    assert OWN_ROUTE == (1,) * 5 + (0,) * 7
    for scenario in scenarios[:20]:
        assert scenario.lane.tolist() == list(OWN_ROUTE)
        assert (scenario.start_y[scenario.lane == Lane.CLOSING] == -29.75).all()
        assert (scenario.start_y[scenario.lane == Lane.OPEN] == -26.25).all()


def test_no_overlap_and_smallest_bumper_gap(scenarios):
    x, stream = stack(scenarios, "start_x"), np.array([s.stream_speed for s in scenarios])
    gaps = np.hstack([-np.diff(x[:, :5]), -np.diff(x[:, 5:])]) - LENGTH
    assert gaps.min() == pytest.approx(5.8, abs=0.2)
    net = gaps - 0.8 * stream[:, None]
    assert net.min() > 4.0 - 2 * UNIT
    assert net.max() <= 14.0
    assert net.mean() == pytest.approx(9.0, abs=0.2)


def test_everything_starts_upstream_of_the_changed_road(scenarios):
    bumpers = stack(scenarios, "start_x") + 0.5 * LENGTH
    assert 39.0 < bumpers.max() < 40.0


def test_first_vehicles_and_leader_flag(scenarios):
    x, leader = stack(scenarios, "start_x"), np.array([s.has_leader for s in scenarios])
    assert leader.mean() == pytest.approx(0.5, abs=0.1)
    for first, low, high in ((x[leader, 0], 30, 37.5), (x[~leader, 0], 5, 20), (x[:, 5], -40, 10)):
        assert low <= first.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < first.max() <= high


def test_speeds(scenarios):
    stream = np.array([s.stream_speed for s in scenarios])
    offset = stack(scenarios, "start_speed") - stream[:, None]
    assert 2.0 <= stream.min() < 2.1
    assert 7.9 < stream.max() <= 8.0
    assert 0.0 <= offset[:, :5].min() < 0.02
    assert 2.98 < offset[:, :5].max() <= 3.0
    assert -0.5 <= offset[:, 5:].min() < -0.49
    assert 0.49 < offset[:, 5:].max() <= 0.5


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("headway", 1.0, 1.6), ("min_gap", 1.5, 2.5), ("accel_max", 1.0, 2.0), ("comfort_decel", 1.5, 3.0)],
)
def test_driver_presets_are_uniform(scenarios, name, low, high):
    value = stack(scenarios, name)
    assert low <= value.min() < low + 0.01
    assert high - 0.01 < value.max() <= high
    assert value.mean() == pytest.approx(0.5 * (low + high), abs=0.02 * (high - low))
    assert value.std() == pytest.approx((high - low) / 12**0.5, rel=0.03)


def test_digest_names_the_scenario():
    assert sample_lane_closure(100_000).digest == GOLDEN_100000
    digests = {s.digest for s in sample_lane_closures(range(200))}
    assert len(digests) == 200


def test_digest_sees_every_value():
    scenario = sample_lane_closure(5)
    digest = scenario.digest
    for name in FIELDS:
        getattr(scenario, name)[11] += UNIT
        assert scenario.digest != digest, name
        getattr(scenario, name)[11] -= UNIT
    assert scenario.digest == digest


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "3", None])
def test_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="seed must be an integer"):
        sample_lane_closure(seed)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="num_worlds must be at least 1, got 0"):
        ScenarioBuffers(0)
    with pytest.raises(ValueError, match="num_worlds"):
        sample_lane_closures([])
    with pytest.raises(ValueError, match=r"seed must have shape \[2\]"):
        ScenarioBuffers(2).to_host([1, 2, 3])


GOLDEN_100000 = "e67f9c02f7d637ac49e60689410bd56be6c3d9503526a9d1cb6aa36eec76871f"
