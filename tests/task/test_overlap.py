"""The separating-axis test against float64 polygon projections on random pairs."""

from __future__ import annotations

import numpy as np
import warp as wp

from sf3d_envs.observation.geometry import boxes_overlap

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def overlaps(
    delta: wp.array(dtype=wp.vec2),
    a: wp.array(dtype=wp.vec2),
    a_size: wp.array(dtype=wp.vec2),
    b: wp.array(dtype=wp.vec2),
    b_size: wp.array(dtype=wp.vec2),
    result: wp.array(dtype=wp.int8),
):
    i = wp.tid()
    result[i] = wp.int8(0)
    if boxes_overlap(delta[i], a[i], a_size[i], b[i], b_size[i]):
        result[i] = wp.int8(1)


def corners(centre: np.ndarray, heading: np.ndarray, size: np.ndarray) -> np.ndarray:
    left = np.array([-heading[1], heading[0]])
    return np.array(
        [centre + i * size[0] * heading + j * size[1] * left for i, j in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    )


def separation(a: np.ndarray, b: np.ndarray) -> float:
    """Largest gap between two convex polygons along any edge normal; negative if they overlap."""
    gaps = []
    for polygon in (a, b):
        for edge in np.roll(polygon, -1, axis=0) - polygon:
            normal = np.array([edge[1], -edge[0]]) / np.hypot(*edge)
            pa, pb = a @ normal, b @ normal
            gaps.append(max(pa.min() - pb.max(), pb.min() - pa.max()))
    return max(gaps)


def launch(delta, a, a_size, b, b_size) -> np.ndarray:
    arrays = [wp.array(value, dtype=wp.vec2, device="cpu") for value in (delta, a, a_size, b, b_size)]
    result = wp.zeros(len(delta), dtype=wp.int8, device="cpu")
    wp.launch(overlaps, dim=len(delta), inputs=[*arrays, result], device="cpu")
    return result.numpy().astype(bool)


def random_pairs(number: int):
    rng = np.random.default_rng(11)
    angle = rng.uniform(-np.pi, np.pi, (2, number))
    headings = np.stack((np.cos(angle), np.sin(angle)), axis=-1).astype(np.float32)
    sizes = rng.uniform((0.5, 0.5), (3.0, 1.5), (2, number, 2)).astype(np.float32)
    delta = rng.uniform(-5.0, 5.0, (number, 2)).astype(np.float32)
    return delta, headings[0], sizes[0], headings[1], sizes[1]


def test_random_pairs_agree_with_float64_polygons():
    pairs = random_pairs(2000)
    gap = np.array(
        [separation(corners(np.zeros(2), a, sa), corners(d, b, sb)) for d, a, sa, b, sb in zip(*pairs, strict=True)]
    )
    clear = np.abs(gap) > 1e-5
    assert clear.mean() > 0.99 and 0.2 < (gap < 0).mean() < 0.8
    assert (launch(*pairs)[clear] == (gap < 0)[clear]).all()


def test_overlap_is_symmetric_in_bits():
    delta, a, sa, b, sb = random_pairs(2000)
    touching = np.tile(np.float32([[0.0, 1.88]]), (2000, 1))
    for d in (delta, touching):
        assert (launch(d, a, sa, b, sb) == launch(-d, b, sb, a, sa)).all()


def test_a_non_finite_box_overlaps_nothing():
    one = np.float32([[1.0, 0.0]])
    size = np.float32([[2.0, 1.0]])
    nan = np.float32([[np.nan, 0.0]])
    assert not launch(nan, one, size, one, size)[0]
    assert not launch(np.float32([[0.5, 0.0]]), one, size, nan, size)[0]
