"""Pairs of boxes, their contact manifolds (ours and Newton's) and their overlaps in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from newton.geometry import collide_box_box

from sf3d_envs.sim.kernels_box import collide_boxes, mat83, vec8

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CAR = np.array([2.125, 0.89, 0.45])


@dataclass
class Boxes:
    """N pairs of boxes.

    Attributes:
        position: Centres [N, 2, 3] m.
        turn: Rotation matrices [N, 2, 3, 3].
        half: Half extents [N, 2, 3] m.
    """

    position: np.ndarray
    turn: np.ndarray
    half: np.ndarray

    def swapped(self) -> Boxes:
        return Boxes(self.position[:, ::-1], self.turn[:, ::-1], self.half[:, ::-1])

    def pick(self, mask: np.ndarray) -> Boxes:
        return Boxes(self.position[mask], self.turn[mask], self.half[mask])

    def arrays(self) -> list[wp.array]:
        """Kernel arguments, in order."""
        out = []
        for k in range(2):
            for value, dtype in ((self.position, wp.vec3), (self.turn, wp.mat33), (self.half, wp.vec3)):
                out.append(wp.array(np.ascontiguousarray(value[:, k], np.float32), dtype=dtype, device="cpu"))
        return out


@dataclass
class Manifolds:
    """Contacts of N pairs; absent points have separation and position NaN.

    Attributes:
        normal: [N, 3], from the first box to the second.
        count: [N].
        separation: [N, 8] m.
        points: World positions [N, 8, 3] m.
    """

    normal: np.ndarray
    count: np.ndarray
    separation: np.ndarray
    points: np.ndarray

    @property
    def depth(self) -> np.ndarray:
        """Deepest penetration [N] m, 0 without contact."""
        return -np.nanmin(self.separation, axis=1, initial=0.0)

    def sorted_points(self, row: int = 0) -> np.ndarray:
        """Points of one pair, ordered by coordinates."""
        points = np.round(self.points[row, : self.count[row]].astype(np.float64), 4)
        return points[np.lexsort(points.T[::-1])]


@wp.kernel
def our_manifolds(
    pa: wp.array(dtype=wp.vec3),
    ra: wp.array(dtype=wp.mat33),
    ha: wp.array(dtype=wp.vec3),
    pb: wp.array(dtype=wp.vec3),
    rb: wp.array(dtype=wp.mat33),
    hb: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    count: wp.array(dtype=int),
    separation: wp.array(dtype=vec8),
    points: wp.array(dtype=mat83),
):
    k = wp.tid()
    manifold = collide_boxes(pa[k], ra[k], ha[k], pb[k], rb[k], hb[k])
    normal[k] = manifold.normal
    count[k] = manifold.count
    separation[k] = manifold.separation
    points[k] = manifold.points


@wp.kernel
def newton_manifolds(
    pa: wp.array(dtype=wp.vec3),
    ra: wp.array(dtype=wp.mat33),
    ha: wp.array(dtype=wp.vec3),
    pb: wp.array(dtype=wp.vec3),
    rb: wp.array(dtype=wp.mat33),
    hb: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=mat83),
    separation: wp.array(dtype=vec8),
):
    k = wp.tid()
    distance, _points, directions = collide_box_box(pa[k], ra[k], ha[k], pb[k], rb[k], hb[k], 0.0)
    normals[k] = directions
    separation[k] = distance


def collide(boxes: Boxes) -> Manifolds:
    """Manifolds of all pairs."""
    n = len(boxes.position)
    out = [wp.zeros(n, dtype=dtype, device="cpu") for dtype in (wp.vec3, int, vec8, mat83)]
    wp.launch(our_manifolds, dim=n, inputs=[*boxes.arrays(), *out], device="cpu")
    normal, count, separation, points = (value.numpy() for value in out)
    absent = np.arange(8) >= count[:, None]
    separation[absent] = np.nan
    points[absent] = np.nan
    return Manifolds(normal, count, separation, points + boxes.position[:, None, 0].astype(np.float32))


def collide_newton(boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Newton's normals [N, 8, 3] and separations [N, 8] (huge where there is no point)."""
    n = len(boxes.position)
    normals, separation = (wp.zeros(n, dtype=dtype, device="cpu") for dtype in (mat83, vec8))
    wp.launch(newton_manifolds, dim=n, inputs=[*boxes.arrays(), normals, separation], device="cpu")
    return normals.numpy(), separation.numpy()


def rotation(axis, angle) -> np.ndarray:
    """Rotation matrices about axes [..., 3] by angles [...] (Rodrigues)."""
    axis = np.asarray(axis, dtype=np.float64)
    x, y, z = np.moveaxis(axis / np.linalg.norm(axis, axis=-1, keepdims=True), -1, 0)
    zero = np.zeros_like(x)
    skew = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*axis.shape[:-1], 3, 3)
    angle = np.asarray(angle, dtype=np.float64)[..., None, None]
    return np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * (skew @ skew)


def pair(position, *, half_a=CAR, half_b=CAR, turn_a=None, turn_b=None) -> Boxes:
    """One pair with a at the origin."""
    turns = [np.eye(3) if turn is None else turn for turn in (turn_a, turn_b)]
    centres = np.array([[np.zeros(3), position]], dtype=np.float64)
    return Boxes(centres, np.array([turns]), np.array([[half_a, half_b]], dtype=np.float64))


def gaps(boxes: Boxes) -> np.ndarray:
    """Separation along the fifteen directions in float64 [N, 15] m; the boxes are apart if any is positive."""
    a, b = np.moveaxis(boxes.turn, 1, 0)
    apart = boxes.position[:, 1] - boxes.position[:, 0]
    axes = [m[:, :, i] for m in (a, b) for i in range(3)]
    axes += [np.cross(a[:, :, i], b[:, :, j]) for i in range(3) for j in range(3)]
    out = []
    for axis in axes:
        length = np.linalg.norm(axis, axis=1)
        unit = axis / np.maximum(length, 1e-300)[:, None]
        reach = sum((boxes.half[:, k] * np.abs(np.einsum("nij,ni->nj", m, unit))).sum(1) for k, m in enumerate((a, b)))
        out.append(np.where(length > 1e-6, np.abs((unit * apart).sum(1)) - reach, -np.inf))
    return np.stack(out, axis=1)
