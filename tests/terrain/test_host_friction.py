"""Friction patches and variants on the host: closed sets, precedence, digests, bad input."""

import math

import numpy as np
import pytest

from sf3d_envs.terrain import Disc, Heightfield, HeightfieldGrid, Rectangle, TerrainVariant

GRID = HeightfieldGrid(x0=0.0, y0=0.0, dx=1.0, dy=1.0, nx=3, ny=3)
FLAT = Heightfield(GRID, np.zeros((3, 3)))


def test_disc_is_a_closed_set():
    disc = Disc(x=1.0, y=-2.0, radius=5.0, friction=0.3)
    assert disc.contains([1.0, 6.0, 4.0, 1.0], [-2.0, -2.0, 2.0, -7.0]).all()
    assert not disc.contains([6.0001, 4.0001, 1.0], [-2.0, 2.0, 3.0001]).any()


def test_rectangle_is_a_closed_set():
    box = Rectangle(x=10.0, y=0.0, length=8.0, width=2.0, friction=0.3)
    assert box.contains([6.0, 14.0, 14.0, 10.0], [-1.0, 1.0, -1.0, 0.0]).all()
    assert not box.contains([5.9999, 14.0001, 10.0, 10.0], [0.0, 0.0, 1.0001, -1.0001]).any()


def test_rectangle_turns_counter_clockwise_with_length_along_local_x():
    box = Rectangle(x=0.0, y=0.0, length=10.0, width=1.0, yaw=math.radians(30.0), friction=0.3)
    along = np.array([math.cos(math.radians(30.0)), math.sin(math.radians(30.0))])
    assert box.contains(*(4.9 * along))
    assert not box.contains(*(5.1 * along))
    assert not box.contains(*(4.9 * along * (1, -1)))
    assert box.contains(*(0.49 * along[::-1] * (-1, 1)))
    assert not box.contains(*(0.51 * along[::-1] * (-1, 1)))


def test_later_patch_wins():
    wide = Rectangle(x=0.0, y=0.0, length=10.0, width=10.0, friction=0.2)
    spot = Disc(x=0.0, y=0.0, radius=1.0, friction=0.9)
    point, edge, outside = (0.0, 0.0), (3.0, 0.0), (6.0, 0.0)
    x, y = np.array([point, edge, outside]).T
    assert TerrainVariant("a", FLAT, (wide, spot), 0.7).friction_at(x, y).tolist() == [0.9, 0.2, 0.7]
    assert TerrainVariant("b", FLAT, (spot, wide), 0.7).friction_at(x, y).tolist() == [0.2, 0.2, 0.7]
    assert TerrainVariant("c", FLAT).friction_at(x, y).tolist() == [1.0, 1.0, 1.0]


def test_friction_zero_is_allowed_and_shapes_broadcast():
    variant = TerrainVariant("ice", FLAT, (Disc(x=0, y=0, radius=1, friction=0),))
    assert variant.friction_at(0, 0) == 0.0
    assert variant.friction_at(np.zeros((4, 1)), np.zeros(3)).shape == (4, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": 0.0}, r"disc radius must be above 0 m, got 0\.0"),
        ({"radius": -1.0}, "disc radius"),
        ({"friction": -0.1}, r"disc friction must be at least 0, got -0\.1"),
        ({"x": float("nan")}, "disc x must be finite, got nan"),
        ({"friction": float("inf")}, "disc friction must be finite, got inf"),
    ],
)
def test_bad_discs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Disc(**({"x": 0.0, "y": 0.0, "radius": 1.0, "friction": 0.5} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0.0}, r"rectangle length must be above 0 m, got 0\.0"),
        ({"width": 0.0}, r"rectangle width must be above 0 m, got 0\.0"),
        ({"width": -2.0}, "rectangle width"),
        ({"friction": -1.0}, "rectangle friction must be at least 0"),
        ({"yaw": float("nan")}, "rectangle yaw must be finite"),
    ],
)
def test_bad_rectangles_are_refused(change, message):
    values = {"x": 0.0, "y": 0.0, "length": 1.0, "width": 1.0, "yaw": 0.0, "friction": 0.5} | change
    with pytest.raises(ValueError, match=message):
        Rectangle(**values)


def test_bad_variants_are_refused():
    with pytest.raises(ValueError, match=r"terrain 'a': base_friction must be at least 0, got -0\.5"):
        TerrainVariant("a", FLAT, (), -0.5)
    with pytest.raises(ValueError, match="base_friction"):
        TerrainVariant("a", FLAT, (), float("nan"))
    with pytest.raises(TypeError, match=r"patches\[1\] must be Disc or Rectangle"):
        TerrainVariant("a", FLAT, (Disc(x=0, y=0, radius=1, friction=0.5), "patch"))
    with pytest.raises(TypeError, match="heightfield must be a Heightfield"):
        TerrainVariant("a", np.zeros((3, 3)))


def variant(grid=None, heights=None, patches=None, base=1.0, name="v"):
    grid = GRID if grid is None else grid
    heights = np.zeros((grid.nx, grid.ny)) if heights is None else heights
    patches = (Disc(x=1, y=2, radius=3, friction=0.5),) if patches is None else patches
    return TerrainVariant(name, Heightfield(grid, heights), patches, base)


def test_digest_ignores_names_and_number_types():
    digest = variant().digest
    assert digest == "fcda46f178380e471e6713b296a1a93abafa5ab978587180ea73788101a4f0c9"
    assert variant(name="other").digest == digest
    assert variant(patches=[Disc(x=1.0, y=2.0, radius=3.0, friction=0.5)]).digest == digest
    assert variant(heights=np.full((3, 3), -0.0)).digest == digest


@pytest.mark.parametrize(
    "other",
    [
        variant(base=0.9),
        variant(heights=np.eye(3) * 1e-6),
        variant(patches=()),
        variant(patches=(Disc(x=1, y=2, radius=3, friction=0.4),)),
        variant(patches=(Rectangle(x=1, y=2, length=3, width=0.5, friction=0.5),)),
        variant(patches=(Rectangle(x=1, y=2, length=3, width=0.5, yaw=0.1, friction=0.5),)),
        variant(patches=(Disc(x=1, y=2, radius=3, friction=0.5),) * 2),
        variant(grid=HeightfieldGrid(x0=0.0, y0=0.0, dx=1.0, dy=2.0, nx=3, ny=3)),
        variant(grid=HeightfieldGrid(x0=1.0, y0=0.0, dx=1.0, dy=1.0, nx=3, ny=3)),
    ],
)
def test_digest_sees_every_part_of_the_road(other):
    assert other.digest != variant().digest
    assert len(other.digest) == 64


def test_digest_sees_the_order_of_patches():
    a, b = Disc(x=0, y=0, radius=1, friction=0.1), Disc(x=0, y=0, radius=1, friction=0.2)
    assert variant(patches=(a, b)).digest != variant(patches=(b, a)).digest
