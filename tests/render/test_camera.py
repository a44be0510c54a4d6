from __future__ import annotations

import numpy as np
import pytest
from render.worlds import CARS, poses, road

from sf3d_envs.render import palette
from sf3d_envs.render.camera import RenderConfig, Renderer

WIDTH, HEIGHT, SPAN = 320, 180, 80.0
BARE = {"width": WIDTH, "height": HEIGHT, "labels": False, "legend": False, "threads": 1}


def top_renderer(condition: str = "reference", center: tuple[float, float] = (60.0, -28.0), **options) -> Renderer:
    config = RenderConfig(**{**BARE, "view": "top", "span": SPAN, "center": center, **options})
    return Renderer(road(condition), CARS, config)


def pixel(x: float, y: float, center: tuple[float, float] = (60.0, -28.0)) -> tuple[int, int]:
    """Row and column of a road point in the top view."""
    scale = WIDTH / SPAN
    return int(HEIGHT / 2 - (y - center[1]) * scale), int(WIDTH / 2 + (x - center[0]) * scale)


@pytest.fixture(scope="module")
def top() -> Renderer:
    return top_renderer()


@pytest.fixture(scope="module")
def chase() -> Renderer:
    return Renderer(road(), CARS, RenderConfig(**BARE))


@pytest.mark.parametrize("view", ["top", "chase"])
def test_picture_is_uint8_and_a_fresh_copy_each_call(view, request):
    renderer, body_q = request.getfixturevalue(view), poses(road())
    first = renderer.render(body_q)
    assert first.shape == (HEIGHT, WIDTH, 3)
    assert first.dtype == np.uint8
    kept = first.copy()
    second = renderer.render(body_q)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, second)
    renderer.render(poses(road(), shift=5.0))
    np.testing.assert_array_equal(first, kept)


def test_inputs_are_not_changed(chase):
    body_q, spin, steer = poses(road()).astype(np.float32), np.full((12, 4), 40.0), np.full(12, 0.1)
    kept = body_q.copy()
    chase.render(body_q, wheel_angle=spin, steer=steer, overlay=("text",))
    np.testing.assert_array_equal(body_q, kept)
    assert (spin == 40.0).all()
    assert (steer == 0.1).all()


def test_moving_a_vehicle_changes_its_old_and_new_place_only(top):
    before, after = poses(road()), poses(road())
    after[5, 0] -= 7.5
    changed = np.argwhere((top.render(before) != top.render(after)).any(axis=2))
    (top_row, left), (bottom_row, right) = changed.min(axis=0), changed.max(axis=0)
    assert top_row >= pixel(0.0, -24.0)[0]
    assert bottom_row <= pixel(0.0, -28.5)[0]
    assert left >= pixel(after[5, 0] - 4.0, 0.0)[1]
    assert right <= pixel(before[5, 0] + 4.0, 0.0)[1]


def test_left_is_up_and_forward_is_right_in_the_top_view(top):
    image = top.render(poses(road())).astype(int)
    ego, follower = np.array(palette.EGO), np.array(top.scene.colors[7])

    def mean_place(color: np.ndarray) -> np.ndarray:
        close = np.argwhere(np.abs(image - 0.94 * color).max(axis=2) < 24)
        assert len(close) > 10
        return close.mean(axis=0)

    ego_row, ego_column = mean_place(ego)
    follower_row, _ = mean_place(follower)
    assert follower_row < ego_row - 5
    assert ego_column == pytest.approx(pixel(60.0, 0.0)[1], abs=5)


def test_ego_has_its_own_colour_and_no_two_vehicles_share_one(top):
    assert top.scene.colors[0] == palette.EGO
    assert len(set(top.scene.colors)) == 12
    assert top_renderer(ego=7).scene.colors[7] == palette.EGO


@pytest.mark.parametrize("slug, friction", [("mu018", 0.18), ("mu005", 0.05), ("gradeN045-mu035", 0.35)])
def test_patch_colour_shows_on_the_patch_and_nowhere_else(slug, friction):
    center = (60.0, -28.0)
    body_q = poses(road(slug), shift=-150.0)
    image = top_renderer(slug, center).render(body_q).astype(int)
    near = np.abs(image - np.array(palette.friction_color(friction))).max(axis=2) <= 4
    assert near[pixel(60.0, -29.75)]
    assert near[pixel(41.0, -30.5)]
    rows, columns = np.nonzero(near)
    assert columns.min() >= pixel(40.0, 0.0)[1] - 1
    assert rows.min() >= pixel(0.0, -28.0)[0] - 1
    assert rows.max() <= pixel(0.0, -31.5)[0] + 1
    reference = top_renderer("reference", center).render(body_q).astype(int)
    assert not (np.abs(reference - np.array(palette.friction_color(friction))).max(axis=2) <= 4).any()


def test_closed_lane_and_counting_line_are_marked():
    center = (160.0, -28.0)
    image = top_renderer(center=center).render(poses(road(), shift=-150.0)).astype(int)
    open_lane, closed = image[pixel(160.0, -26.25, center)], image[pixel(160.0, -29.75, center)]
    np.testing.assert_allclose(open_lane, palette.ASPHALT, atol=2)
    assert closed[0] > closed[2] + 30
    counting = image[pixel(0.0, -25.0, center)[0] : pixel(0.0, -31.0, center)[0], pixel(170.2, 0.0, center)[1]]
    assert counting.max() > 200
    assert counting.min() < 60


def test_a_vehicle_casts_a_shadow_on_the_road(top):
    body_q, away = poses(road()), poses(road(), shift=-500.0)
    lit, shaded = top.render(away).astype(int), top.render(body_q).astype(int)
    darker = (shaded < 0.75 * lit).all(axis=2)
    row, column = pixel(body_q[5, 0], body_q[5, 1] + 1.1)
    assert darker[row - 2 : row + 3, column - 4 : column + 5].any()
    unlit = top_renderer(shadows=False).render(body_q).astype(int)
    np.testing.assert_array_equal(unlit[row, column], lit[row, column])


def test_chase_view_shows_sky_above_the_road(chase):
    image = chase.render(poses(road())).astype(int)
    assert (image[5, :, 2] > image[5, :, 0]).all()
    assert image[-5, WIDTH // 2].max() < 140


def test_grade_is_visible_in_the_chase_view():
    flat, down = (Renderer(road(slug), CARS, RenderConfig(**BARE)) for slug in ("reference", "gradeN080"))
    difference = flat.render(poses(road())).astype(int) - down.render(poses(road("gradeN080"))).astype(int)
    assert (np.abs(difference).max(axis=2) > 20).mean() > 0.01


def test_picture_does_not_depend_on_the_number_of_threads():
    body_q = poses(road())
    images = []
    for threads in (1, 2, 3):
        renderer = Renderer(road(), CARS, RenderConfig(**{**BARE, "threads": threads}))
        images += [renderer.render(body_q), renderer.render(body_q)]
        renderer.close()
    for image in images[1:]:
        np.testing.assert_array_equal(image, images[0])


def test_wheels_are_drawn_as_far_as_they_have_turned():
    renderer = Renderer(road(), CARS, RenderConfig(**BARE))
    first = renderer.render(poses(road()), wheel_angle=np.full((12, 4), 0.5))
    wheels = renderer.scene.state.body_q.numpy()[12:16]
    assert 2.0 * np.arctan2(wheels[:, 4], wheels[:, 6]) == pytest.approx(0.5, abs=1e-5)
    renderer.render(poses(road()), wheel_angle=np.full((12, 4), 2.0))
    again = renderer.render(poses(road()), wheel_angle=np.full((12, 4), 0.5))
    np.testing.assert_array_equal(first, again)


def test_overlay_legend_and_labels_draw_where_they_belong():
    body_q = poses(road())
    plain = Renderer(road(), CARS, RenderConfig(**BARE)).render(body_q)
    renderer = Renderer(road(), CARS, RenderConfig(**{**BARE, "legend": True}))
    changed = (renderer.render(body_q) != plain).any(axis=2)
    assert changed[HEIGHT - 16 :, :60].any()
    assert not changed[: HEIGHT - 40].any()
    text = (renderer.render(body_q, overlay=("\u03bc 0.18, a -1.8 m/s\u00b2",)) != plain).any(axis=2)
    assert text[:14, :60].mean() > 0.9
    assert not text[30 : HEIGHT - 40].any()
    labelled = Renderer(road(), CARS, RenderConfig(**{**BARE, "labels": True})).render(body_q)
    assert (labelled != plain).any()


def test_legend_names_each_friction_and_kind_of_vehicle():
    texts = [entry.text for entry in top_renderer("mu018").legend]
    assert texts == ["\u03bc 1.00", "\u03bc 0.18", "closed", "ego", "merging (warm)", "following (cool)"]
    assert [entry.color for entry in top_renderer("mu018").legend][1] == palette.friction_color(0.18)


def test_vehicle_with_a_pose_that_is_not_finite_is_left_out(top, chase):
    body_q = poses(road())
    body_q[[0, 6]] = np.nan
    image = top.render(body_q).astype(int)
    np.testing.assert_allclose(image[pixel(body_q[5, 0] - 15.0, -26.25)], palette.ASPHALT, atol=2)
    assert chase.render(body_q).shape == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"view": "side"}, "view must be 'chase' or 'top', got 'side'"),
        ({"width": 0}, "width must be an integer"),
        ({"height": 9000}, "height must be an integer"),
        ({"fov": 4.0}, "fov must be"),
        ({"span": -1.0}, "span must be positive"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_config_refuses_bad_values(kwargs, text):
    with pytest.raises(ValueError, match=text):
        RenderConfig(**kwargs)


def test_bad_arrays_and_indices_are_named(top):
    with pytest.raises(ValueError, match=r"body_q must have shape \[12, 7\], got \[11, 7\]"):
        top.render(poses(road())[:11])
    with pytest.raises(ValueError, match=r"steer must have shape \[12\]"):
        top.render(poses(road()), steer=np.zeros(3))
    with pytest.raises(ValueError, match=r"wheel_angle must have shape \[12, 4\]"):
        top.render(poses(road()), wheel_angle=np.zeros(12))
    with pytest.raises(ValueError, match=r"ego must be a vehicle index in \[0, 11\]"):
        Renderer(road(), CARS, RenderConfig(ego=12))
    with pytest.raises(ValueError, match="at least one vehicle"):
        Renderer(road(), [], RenderConfig())
