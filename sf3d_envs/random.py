"""Counter-based random numbers: Philox4x32-10, the same bits from NumPy and from Warp.

A number is addressed, never drawn from a hidden state: key = (low, high) word of the seed, counter = (draw, vehicle, 0,
domain). A world's numbers therefore do not depend on its place in a batch. The generator is Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

IntegerLike = int | np.integer | Sequence[int] | npt.NDArray[Any]


class Domain(IntEnum):
    """What a stream of numbers is for: counter word 3, so that uses of one seed never share numbers."""

    SCENARIO = 0
    TERRAIN = 1
    NOISE = 2
    RANDOMIZATION = 3
    LIDAR = 4
    EPISODE = 5


PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
"""Round multipliers of Philox4x32 (Salmon et al. 2011, table 2)."""

PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
"""Key increments per round: golden ratio and sqrt(3) - 1 (same source)."""

PHILOX_ROUNDS = 10

_M0 = wp.constant(wp.uint64(PHILOX_MULTIPLIERS[0]))
_M1 = wp.constant(wp.uint64(PHILOX_MULTIPLIERS[1]))
_W0 = wp.constant(wp.uint32(PHILOX_WEYL[0]))
_W1 = wp.constant(wp.uint32(PHILOX_WEYL[1]))
_ROUNDS = wp.constant(PHILOX_ROUNDS)
_EPISODE = wp.constant(wp.uint32(int(Domain.EPISODE)))


def unsigned_integers(name: str, value: IntegerLike, bits: int) -> npt.NDArray[np.uint64]:
    """Checked conversion of an argument to unsigned integers.

    Args:
        name: Argument name, used in the error text.
        value: One integer or an array of integers, any shape.
        bits: Number of bits the values must fit in, 32 or 64.

    Returns:
        The values as uint64, same shape.

    Raises:
        ValueError: A value is not an integer, is negative, or needs more than ``bits`` bits.
    """
    array = np.asarray(value) if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    for item in array.ravel() if array.dtype == object else ():
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
            raise ValueError(f"{name} must be an integer in [0, 2**{bits}), got {item!r}")
    if array.dtype != object and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers in [0, 2**{bits}), got dtype {array.dtype}")
    if array.size and (array.min() < 0 or int(array.max()) >> bits):
        bad = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"{name} must be an integer in [0, 2**{bits}), got {bad}")
    return array.astype(np.uint64)


def philox4x32_10(counter: npt.NDArray[Any], key: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Ten Philox4x32 rounds on whole counters and keys.

    Args:
        counter: Counter words, integers below 2**32, shape [..., 4].
        key: Key words, integers below 2**32, shape [..., 2]; broadcasts against ``counter``.

    Returns:
        Random words, uint32, shape [..., 4].

    Raises:
        ValueError: A last dimension or a word is out of range.
    """
    counter, key = unsigned_integers("counter", counter, 32), unsigned_integers("key", key, 32)
    if counter.shape[-1:] != (4,) or key.shape[-1:] != (2,):
        raise ValueError(f"counter and key must have shapes [..., 4] and [..., 2], got {counter.shape} and {key.shape}")
    shift, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    c0, c1, c2, c3, k0, k1 = np.broadcast_arrays(*(counter[..., i] for i in range(4)), key[..., 0], key[..., 1])
    for _ in range(PHILOX_ROUNDS):
        p0, p1 = c0 * np.uint64(PHILOX_MULTIPLIERS[0]), c2 * np.uint64(PHILOX_MULTIPLIERS[1])
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0, k1 = (k0 + np.uint64(PHILOX_WEYL[0])) & low, (k1 + np.uint64(PHILOX_WEYL[1])) & low
    return np.stack((c0, c1, c2, c3), axis=-1).astype(np.uint32)


def philox4x32(
    seed: IntegerLike, draw: IntegerLike, vehicle: IntegerLike, domain: IntegerLike
) -> npt.NDArray[np.uint32]:
    """Four random words at one address; the NumPy twin of `philox_block`. Arguments broadcast against each other.

    Args:
        seed: Seed below 2**64.
        draw: Which block of the stream, below 2**32.
        vehicle: Vehicle index, below 2**32.
        domain: A `Domain`.

    Returns:
        Random words, uint32, shape [..., 4].

    Raises:
        ValueError: An argument is not an integer of its range.
    """
    seeds = unsigned_integers("seed", seed, 64)
    words = (unsigned_integers(n, v, 32) for n, v in (("draw", draw), ("vehicle", vehicle), ("domain", domain)))
    seeds, draws, vehicles, domains = np.broadcast_arrays(seeds, *words)
    counter = np.stack((draws, vehicles, np.zeros_like(draws), domains), axis=-1)
    return philox4x32_10(counter, np.stack((seeds & np.uint64(0xFFFFFFFF), seeds >> np.uint64(32)), axis=-1))


def episode_seed(stream: int, episode: int) -> int:
    """Scenario seed of an episode of one world's stream: (max(w1, 1) << 32) | w0 of Philox(stream, episode).

    Never below 2**32, so training never meets the benchmark's scenario seeds 100000-101023.

    Args:
        stream: The world's stream seed, below 2**64.
        episode: Episode number, below 2**32.

    Returns:
        Scenario seed in [2**32, 2**64).

    Raises:
        ValueError: An argument is not an integer of its range.
    """
    words = philox4x32(stream, episode, 0, Domain.EPISODE)
    return (max(int(words[1]), 1) << 32) | int(words[0])


@wp.func
def philox_words(c0: wp.uint32, c1: wp.uint32, c2: wp.uint32, c3: wp.uint32, k0: wp.uint32, k1: wp.uint32) -> wp.vec4ui:
    """Ten Philox4x32 rounds on counter (c0, c1, c2, c3) and key (k0, k1)."""
    x0 = c0
    x1 = c1
    x2 = c2
    x3 = c3
    key0 = k0
    key1 = k1
    for _ in range(_ROUNDS):
        p0 = wp.uint64(x0) * _M0
        p1 = wp.uint64(x2) * _M1
        x0 = wp.uint32(p1 >> wp.uint64(32)) ^ x1 ^ key0
        x1 = wp.uint32(p1)
        x2 = wp.uint32(p0 >> wp.uint64(32)) ^ x3 ^ key1
        x3 = wp.uint32(p0)
        key0 = key0 + _W0
        key1 = key1 + _W1
    return wp.vec4ui(x0, x1, x2, x3)


@wp.func
def philox_block(seed: wp.uint64, draw: wp.uint32, vehicle: wp.uint32, domain: wp.uint32) -> wp.vec4ui:
    """Four random words at counter (draw, vehicle, 0, domain) under key (low, high) word of seed."""
    return philox_words(draw, vehicle, wp.uint32(0), domain, wp.uint32(seed), wp.uint32(seed >> wp.uint64(32)))


@wp.func
def uniform_int(u: wp.uint32, a: int, b: int) -> int:
    """Integer in [a, b] from one random word: a + (u (b - a + 1) >> 32)."""
    span = wp.uint64(b - a + 1)
    return a + int((wp.uint64(u) * span) >> wp.uint64(32))


@wp.func
def episode_scenario_seed(stream: wp.uint64, episode: wp.uint32) -> wp.uint64:
    """Scenario seed of an episode: (max(w1, 1) << 32) | w0 of Philox(stream, episode); the twin of `episode_seed`."""
    words = philox_block(stream, episode, wp.uint32(0), _EPISODE)
    high = wp.max(words[1], wp.uint32(1))
    return (wp.uint64(high) << wp.uint64(32)) | wp.uint64(words[0])
