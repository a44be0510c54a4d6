"""Philox4x32-10: published known answers, and NumPy and Warp giving the same bits."""

import numpy as np
import pytest
import warp as wp

from sf3d_envs.random import (
    Domain,
    episode_scenario_seed,
    episode_seed,
    philox4x32,
    philox4x32_10,
    philox_block,
    philox_words,
    uniform_int,
)

# Random123, tests/kat_vectors, lines "philox4x32 10": counter, key, output.
KNOWN_ANSWERS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
SEEDS = (0, 1, 100_000, 2**32 - 1, 2**32, 2**63 + 17, 2**64 - 1)
EPISODE_WITH_ZERO_WORD = 783_432_766
"""Of stream 0: found by search, its second word is 0, where a plain (w1 << 32) | w0 would fall below 2**32."""


@wp.kernel
def words_kernel(
    counter: wp.array2d(dtype=wp.uint32), key: wp.array2d(dtype=wp.uint32), out: wp.array(dtype=wp.vec4ui)
):
    i = wp.tid()
    out[i] = philox_words(counter[i, 0], counter[i, 1], counter[i, 2], counter[i, 3], key[i, 0], key[i, 1])


@wp.kernel
def block_kernel(seed: wp.array(dtype=wp.uint64), draw: wp.array2d(dtype=wp.uint32), out: wp.array(dtype=wp.vec4ui)):
    i = wp.tid()
    out[i] = philox_block(seed[i], draw[i, 0], draw[i, 1], draw[i, 2])


@wp.kernel
def uniform_kernel(u: wp.array(dtype=wp.uint32), a: int, b: int, out: wp.array(dtype=int)):
    i = wp.tid()
    out[i] = uniform_int(u[i], a, b)


@wp.kernel
def episode_kernel(
    stream: wp.array(dtype=wp.uint64), episode: wp.array(dtype=wp.uint32), out: wp.array(dtype=wp.uint64)
):
    i = wp.tid()
    out[i] = episode_scenario_seed(stream[i], episode[i])


def test_numpy_known_answers():
    for counter, key, expected in KNOWN_ANSWERS:
        assert philox4x32_10(np.array(counter), np.array(key)).tolist() == list(expected)


def test_warp_known_answers():
    counter = wp.array(np.array([c for c, _, _ in KNOWN_ANSWERS], dtype=np.uint32), dtype=wp.uint32, device="cpu")
    key = wp.array(np.array([k for _, k, _ in KNOWN_ANSWERS], dtype=np.uint32), dtype=wp.uint32, device="cpu")
    out = wp.zeros(len(KNOWN_ANSWERS), dtype=wp.vec4ui, device="cpu")
    wp.launch(words_kernel, dim=len(KNOWN_ANSWERS), inputs=[counter, key, out], device="cpu")
    assert out.numpy().tolist() == [list(o) for _, _, o in KNOWN_ANSWERS]


def test_known_answer_is_reached_through_the_address():
    assert philox4x32(0, 0, 0, Domain.SCENARIO).tolist() == list(KNOWN_ANSWERS[0][2])
    by_hand = philox4x32_10(np.array((7, 3, 0, int(Domain.LIDAR))), np.array((0x89ABCDEF, 0x01234567)))
    assert philox4x32(0x0123456789ABCDEF, 7, 3, Domain.LIDAR).tolist() == by_hand.tolist()


def test_numpy_equals_warp_over_addresses():
    rng = np.random.default_rng(0)
    seed = np.concatenate([np.array(SEEDS, dtype=np.uint64), rng.integers(0, 2**64, 500, dtype=np.uint64)])
    draw = rng.integers(0, 2**32, (len(seed), 3), dtype=np.uint32)
    out = wp.zeros(len(seed), dtype=wp.vec4ui, device="cpu")
    inputs = [wp.array(seed, dtype=wp.uint64, device="cpu"), wp.array(draw, dtype=wp.uint32, device="cpu"), out]
    wp.launch(block_kernel, dim=len(seed), inputs=inputs, device="cpu")
    expected = philox4x32(seed, draw[:, 0], draw[:, 1], draw[:, 2])
    assert expected.dtype == np.uint32
    np.testing.assert_array_equal(out.numpy(), expected)


def test_vectorised_equals_scalar():
    table = philox4x32(np.array([5, 6])[:, None], 2, np.arange(12), Domain.NOISE)
    assert table.shape == (2, 12, 4)
    assert table[1, 7].tolist() == philox4x32(6, 2, 7, Domain.NOISE).tolist()


def test_addresses_do_not_share_numbers():
    blocks = {
        tuple(philox4x32(seed, draw, vehicle, domain).tolist())
        for seed in (0, 1, 2**32)
        for draw in (0, 1)
        for vehicle in (0, 1)
        for domain in Domain
    }
    assert len(blocks) == 3 * 2 * 2 * len(Domain)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (-512, 512), (2048, 8192), (-40960, 10240), (0, 2**31 - 2)])
def test_uniform_int_is_multiply_high_and_stays_inside(a, b):
    u = np.concatenate([[0, 1, 2**31, 2**32 - 1], np.random.default_rng(1).integers(0, 2**32, 200)]).astype(np.uint32)
    out = wp.zeros(len(u), dtype=int, device="cpu")
    wp.launch(uniform_kernel, dim=len(u), inputs=[wp.array(u, dtype=wp.uint32, device="cpu"), a, b, out], device="cpu")
    assert out.numpy().tolist() == [a + ((int(x) * (b - a + 1)) >> 32) for x in u]
    assert out.numpy()[0] == a
    assert out.numpy()[3] == b


def test_episode_seed_rule_and_twin():
    stream = np.append(np.repeat(np.array(SEEDS, dtype=np.uint64), 20), np.uint64(0))
    episode = np.append(np.tile(np.arange(20, dtype=np.uint32), len(SEEDS)), np.uint32(EPISODE_WITH_ZERO_WORD))
    out = wp.zeros(len(stream), dtype=wp.uint64, device="cpu")
    inputs = [wp.array(stream, dtype=wp.uint64, device="cpu"), wp.array(episode, dtype=wp.uint32, device="cpu"), out]
    wp.launch(episode_kernel, dim=len(stream), inputs=inputs, device="cpu")
    expected = [episode_seed(int(s), int(e)) for s, e in zip(stream, episode, strict=True)]
    assert out.numpy().tolist() == expected
    assert len(set(expected)) == len(expected)
    words = philox4x32(3, 4, 0, Domain.EPISODE).tolist()
    assert episode_seed(3, 4) == (words[1] << 32) + words[0]
    assert min(expected) >= 2**32
    words = philox4x32(0, EPISODE_WITH_ZERO_WORD, 0, Domain.EPISODE).tolist()
    assert words[1] == 0
    assert expected[-1] == 2**32 + words[0]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "7", np.array([3, -2]), np.array([1.0]), [1, -1]])
def test_bad_seed_is_refused_by_name(seed):
    with pytest.raises(ValueError, match=r"seed must .* 2\*\*64"):
        philox4x32(seed, 0, 0, Domain.SCENARIO)


def test_bad_words_are_refused_by_name():
    with pytest.raises(ValueError, match=r"draw must be an integer in \[0, 2\*\*32\), got 4294967296"):
        philox4x32(0, 2**32, 0, Domain.SCENARIO)
    with pytest.raises(ValueError, match="vehicle"):
        philox4x32(0, 0, -1, Domain.SCENARIO)
    with pytest.raises(ValueError, match="shapes"):
        philox4x32_10(np.zeros(3, dtype=int), np.zeros(2, dtype=int))
