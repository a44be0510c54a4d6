"""Contact manifold of two boxes: closed forms, symmetries, a float64 separating-axis test, and Newton's manifold."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from .boxes import CAR, Boxes, Manifolds, collide, collide_newton, gaps, pair, rotation

PAIRS = 20_000
# An edge direction wins only with less than 0.98 of the least face overlap.
SHARE = 0.98


def random_boxes() -> Boxes:
    """Boxes of 0.2 to 4 m in any pose."""
    rng = np.random.default_rng(3)
    axis, angle = rng.normal(size=(PAIRS, 2, 3)), rng.uniform(-np.pi, np.pi, (PAIRS, 2))
    return Boxes(rng.normal(0.0, 1.0, (PAIRS, 2, 3)), rotation(axis, angle), rng.uniform(0.1, 2.0, (PAIRS, 2, 3)))


def car_boxes() -> Boxes:
    """Cars on a road: any yaw, little roll and pitch."""
    rng = np.random.default_rng(4)
    position = rng.uniform(-2.0, 2.0, (PAIRS, 2, 3)) * np.array([1.0, 1.0, 0.02])
    upright = rotation(np.broadcast_to([0.0, 0.0, 1.0], (PAIRS, 2, 3)), rng.uniform(-np.pi, np.pi, (PAIRS, 2)))
    tilt = rotation(rng.normal(size=(PAIRS, 2, 3)), rng.normal(0.0, 0.02, (PAIRS, 2)))
    return Boxes(position, tilt @ upright, np.broadcast_to(CAR, (PAIRS, 2, 3)))


def beside_boxes() -> Boxes:
    """Nearly parallel cars, side by side within centimetres of touching."""
    rng = np.random.default_rng(5)
    position = np.zeros((PAIRS, 2, 3))
    position[:, 1] = rng.uniform([-4.0, 1.75, -0.05], [4.0, 1.83, 0.05], (PAIRS, 3))
    tilt = rotation(rng.normal(size=(PAIRS, 2, 3)), 10.0 ** rng.uniform(-4.0, -1.5, (PAIRS, 2)))
    return Boxes(position, tilt, np.broadcast_to(CAR, (PAIRS, 2, 3)))


def distinct(gap: np.ndarray) -> np.ndarray:
    """Pairs whose least overlap is less than all others by more than the share that faces are preferred with."""
    first, second = np.sort(gap, axis=1)[:, :-3:-1].T
    return first * (1.0 / SHARE + 0.01) > second + 1e-4


@pytest.fixture(scope="module", params=[random_boxes, car_boxes, beside_boxes])
def many(request: pytest.FixtureRequest) -> tuple[Boxes, Manifolds, np.ndarray]:
    """Pairs as float32 sees them, our manifolds, and the separations along all directions."""
    boxes = request.param()
    boxes = Boxes(*(value.astype(np.float32).astype(np.float64) for value in (boxes.position, boxes.turn, boxes.half)))
    return boxes, collide(boxes), gaps(boxes)


def test_contact_is_what_no_direction_separates(many: tuple) -> None:
    _, ours, gap = many
    wrong = (ours.count > 0) != (gap.max(axis=1) < 0.0)
    assert np.abs(gap.max(axis=1)[wrong]).max(initial=0.0) < 1e-4
    assert 0.2 < np.mean(ours.count > 0) < 0.95


def test_depth_is_the_least_overlap_or_the_face_that_nearly_is(many: tuple) -> None:
    """The bound below: some point shows the whole overlap along the normal; above: a face may win by the share."""
    _, ours, gap = many
    touching = ours.count > 0
    least = -gap.max(axis=1)[touching]
    depth = ours.depth[touching]
    assert (depth >= least - 1e-4).all()
    assert (depth <= least / SHARE + 1e-3).all()


def test_normals_are_unit_vectors_from_a_to_b(many: tuple) -> None:
    boxes, ours, _ = many
    touching = ours.count > 0
    np.testing.assert_allclose(np.linalg.norm(ours.normal[touching], axis=1), 1.0, atol=1e-6)
    apart = (boxes.position[:, 1] - boxes.position[:, 0])[touching]
    assert ((apart * ours.normal[touching]).sum(axis=1) > -1e-5).all()


def test_points_lie_between_the_two_surfaces(many: tuple) -> None:
    """Half a separation away along the normal, either way, lies on the surface of each box."""
    boxes, ours, _ = many
    points = ours.points.astype(np.float64)
    for k, way in ((0, -0.5), (1, 0.5)):
        surface = points + way * ours.separation[..., None] * ours.normal[:, None]
        local = np.einsum("nji,npj->npi", boxes.turn[:, k], surface - boxes.position[:, None, k])
        beyond = (np.abs(local) - boxes.half[:, None, k]).max(axis=2)
        assert np.nanmax(np.abs(beyond)) < 3e-4


def test_swapping_the_boxes_turns_the_normal_only(many: tuple) -> None:
    boxes, ours, gap = many
    back = collide(boxes.swapped())
    clear = np.abs(gap.max(axis=1)) > 1e-4
    assert ((ours.count > 0) == (back.count > 0))[clear].all()
    # With two directions that overlap equally either face is right.
    unique = (ours.count > 0) & distinct(gap)
    assert unique.sum() > 20
    np.testing.assert_allclose(back.normal[unique], -ours.normal[unique], atol=2e-4)
    np.testing.assert_allclose(back.depth[unique], ours.depth[unique], atol=1e-4)


def test_moving_both_boxes_moves_the_contact(many: tuple) -> None:
    boxes, ours, gap = many
    common = rotation([1.0, 2.0, -0.5], 0.7)
    shift = np.array([40.0, -30.0, 5.0])
    moved = collide(replace(boxes, position=boxes.position @ common.T + shift, turn=common @ boxes.turn))
    unique = (ours.count > 0) & distinct(gap)
    np.testing.assert_allclose(moved.normal[unique], ours.normal[unique] @ common.T, atol=2e-3)
    np.testing.assert_allclose(moved.depth[unique], ours.depth[unique], atol=1e-4)
    same = unique & (moved.count == ours.count) & (ours.count == 4)
    centre = ours.points[same][:, :4].mean(axis=1)
    np.testing.assert_allclose(moved.points[same][:, :4].mean(axis=1), centre @ common.T + shift, atol=1e-3)


def test_newton_finds_the_same_contacts(many: tuple) -> None:
    """Same verdict, depth and normal; along an edge direction Newton adds points that are deeper than the overlap."""
    boxes, ours, gap = many
    normals, separation = collide_newton(boxes)
    deepest = separation.min(axis=1)
    least = gap.max(axis=1)
    wrong = (ours.count > 0) != (deepest < 0.0)
    assert np.abs(least[wrong]).max(initial=0.0) < 1e-4
    both = (ours.count > 0) & (deepest < 0.0)
    face = both & (gap[:, :6].max(axis=1) > least - 1e-6)
    assert face.sum() > 1000
    np.testing.assert_allclose(ours.depth[face], -deepest[face], atol=1e-3)
    unique = both & distinct(gap)
    theirs = normals[np.arange(len(separation)), separation.argmin(axis=1)]
    assert ((theirs * ours.normal).sum(axis=1)[unique] > 1.0 - 1e-4).all()


@pytest.mark.parametrize(
    ("position", "normal", "depth"),
    [((4.2, 0.0, 0.0), (1, 0, 0), 0.05), ((0.0, -1.7, 0.0), (0, -1, 0), 0.08), ((0.0, 0.0, 0.88), (0, 0, 1), 0.02)],
    ids=["behind", "beside", "on top"],
)
def test_aligned_equal_boxes_touch_in_the_four_corners(position, normal, depth: float) -> None:
    boxes = pair(position)
    ours = collide(boxes)
    assert ours.count[0] == 4
    np.testing.assert_allclose(ours.normal[0], normal, atol=1e-6)
    np.testing.assert_allclose(ours.separation[0, :4], -depth, atol=1e-6)
    axis = int(np.argmax(np.abs(normal)))
    corners = 0.5 * np.array(position) + CAR * (np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T)
    corners[:, axis] = 0.5 * position[axis]
    np.testing.assert_allclose(ours.sorted_points(), np.unique(corners.round(4), axis=0), atol=2e-4)


def test_an_overhanging_box_touches_where_it_lies_over_the_other() -> None:
    """Side by side, half a car length ahead: points at the ends of the common stretch."""
    ours = collide(pair((2.0, 1.77, 0.1)))
    assert ours.count[0] == 4
    expected = [[x, 0.885, z] for x in (-0.125, 2.125) for z in (-0.35, 0.45)]
    np.testing.assert_allclose(ours.sorted_points(), expected, atol=2e-4)


def test_a_yawed_square_on_a_square_gives_an_octagon() -> None:
    half = np.array([1.0, 1.0, 0.5])
    ours = collide(pair((0.0, 0.0, 0.99), half_a=half, half_b=half, turn_b=rotation([0, 0, 1], 0.25 * np.pi)))
    assert ours.count[0] == 8
    np.testing.assert_allclose(ours.separation[0], -0.01, atol=1e-6)
    np.testing.assert_allclose(ours.points[0, :, 2], 0.495, atol=1e-6)
    across = np.sort(np.abs(ours.points[0, :, :2]), axis=1)
    np.testing.assert_allclose(across, np.broadcast_to([np.sqrt(2.0) - 1.0, 1.0], (8, 2)), atol=1e-4)


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_quarter_turn_keeps_four_points(quarter: int) -> None:
    """Sides in one plane up to round-off neither vanish nor double."""
    half = np.array([1.0, 1.0, 0.5])
    turn = rotation([0, 0, 1], 0.5 * np.pi * quarter)
    ours = collide(pair((0.0, 0.0, 0.99), half_a=half, half_b=half, turn_b=turn))
    assert ours.count[0] == 4
    np.testing.assert_allclose(np.abs(ours.points[0, :4, :2]), 1.0, atol=1e-4)


@pytest.mark.parametrize("tip", [-1.0, 1.0])
def test_a_corner_into_a_face_is_one_point(tip: float) -> None:
    """A cube on its corner, pressed 2 cm into the roof; from above and from below."""
    half = np.full(3, 0.5)
    on_corner = rotation([1.0, -1.0, 0.0], np.arctan(np.sqrt(2.0)))
    height = 0.45 + 0.5 * np.sqrt(3.0) - 0.02
    ours = collide(pair((0.3, 0.2, tip * height), half_b=half, turn_b=on_corner))
    assert ours.count[0] == 1
    np.testing.assert_allclose(ours.normal[0], [0.0, 0.0, tip], atol=1e-6)
    np.testing.assert_allclose(ours.separation[0, 0], -0.02, atol=1e-6)
    np.testing.assert_allclose(ours.points[0, 0], [0.3, 0.2, tip * 0.44], atol=1e-5)


def test_crossing_edges_are_one_point() -> None:
    """Two long bars on edge, square to each other: normal up, at the crossing."""
    half = np.array([2.0, 0.5, 0.5])
    on_edge = rotation([1, 0, 0], 0.25 * np.pi)
    turn_b = rotation([0, 0, 1], 0.5 * np.pi) @ on_edge
    height = np.sqrt(2.0) - 0.03
    ours = collide(pair((0.4, -0.3, height), half_a=half, half_b=half, turn_a=on_edge, turn_b=turn_b))
    assert ours.count[0] == 1
    np.testing.assert_allclose(ours.normal[0], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(ours.separation[0, 0], -0.03, atol=1e-6)
    np.testing.assert_allclose(ours.points[0, 0], [0.4, 0.0, 0.5 * height], atol=1e-5)


@pytest.mark.parametrize("angle", [1e-7, 1e-5, 1e-4, 1e-3])
def test_parallel_edges_keep_the_face(angle: float) -> None:
    """Cars side by side whose axes differ by less than they can be told apart: never one point of an edge direction."""
    for axis in np.random.default_rng(6).normal(size=(50, 3)):
        ours = collide(pair((1.0, 1.75, 0.0), turn_b=rotation(axis, angle)))
        assert ours.count[0] >= 4
        assert np.abs(ours.normal[0] @ [0.0, 1.0, 0.0]) > 1.0 - 1e-5


def test_a_box_deep_inside_another_leaves_by_the_nearest_face() -> None:
    turn = rotation([0, 0, 1], 0.5)
    reach = 0.2 * (np.cos(0.5) + np.sin(0.5))
    ours = collide(pair((0.5, -0.7, 0.0), half_b=np.full(3, 0.2), turn_b=turn))
    assert 2 <= ours.count[0] <= 4
    np.testing.assert_allclose(ours.normal[0], [0, -1, 0], atol=1e-6)
    assert ours.depth[0] == pytest.approx(0.89 + reach - 0.7, abs=1e-6)


def test_boxes_in_one_place_still_have_a_normal() -> None:
    ours = collide(pair((0.0, 0.0, 0.0)))
    assert ours.count[0] == 4 and ours.depth[0] == pytest.approx(0.9, abs=1e-6)
    np.testing.assert_allclose(np.abs(ours.normal[0]), [0, 0, 1], atol=1e-6)


def test_far_from_the_origin_the_contact_is_as_good() -> None:
    """Only the difference of the centres counts."""
    near, far = pair((4.25, 0.5, 0.0)), pair((4.25, 0.5, 0.0))
    near.position[:, 1, 0] = far.position[:, 1, 0] = 4.125
    far.position += np.array([2048.0, -1024.0, 0.0])
    assert collide(near).separation.tobytes() == collide(far).separation.tobytes()


def test_boxes_apart_or_just_touching_have_no_contact() -> None:
    for position in ((4.2501, 0.0, 0.0), (0.0, 1.7801, 0.0), (0.0, 0.0, -0.9001), (3.0, 3.0, 3.0), (1e6, 0.0, 0.0)):
        assert collide(pair(position)).count[0] == 0
    assert collide(pair((2.0, 0.0, 0.0), half_a=np.ones(3), half_b=np.ones(3))).count[0] == 0
    # Only an edge direction separates these.
    on_edge = rotation([1, 0, 0], 0.25 * np.pi)
    half = np.array([2.0, 0.5, 0.5])
    across = rotation([0, 0, 1], 0.5 * np.pi) @ on_edge
    assert collide(pair((0.0, 0.0, 1.415), half_a=half, half_b=half, turn_a=on_edge, turn_b=across)).count[0] == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field in ("position", "turn") for value in (np.nan, np.inf, -np.inf)] + [("half", np.nan)],
)
def test_values_that_are_not_finite_give_no_contact(field: str, value: float) -> None:
    size = np.size(getattr(pair((0.5, 0.5, 0.0)), field))
    for k in range(size):
        boxes = pair((0.5, 0.5, 0.0), turn_b=rotation([1, 2, 3], 0.4))
        getattr(boxes, field).reshape(-1)[k] = value
        assert collide(boxes).count[0] == 0


def test_results_are_the_same_bits_again_and_in_any_order(many: tuple) -> None:
    boxes, ours, _ = many
    order = np.random.default_rng(8).permutation(len(ours.count))
    again = collide(boxes.pick(order))
    assert again.points.tobytes() == ours.points[order].tobytes()
    assert again.separation.tobytes() == ours.separation[order].tobytes()


def test_the_step_kernels_load_without_newton() -> None:
    code = "import sys, sf3d_envs.sim.kernels_fused; assert 'newton' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
