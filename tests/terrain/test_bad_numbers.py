"""Roads, vehicles and simulators refuse what is no number of theirs, by name; fine grids stay quick."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sf3d_envs import Simulator, VehicleParams, load_condition
from sf3d_envs.terrain import bank
from sf3d_envs.terrain.friction import Disc, Rectangle
from sf3d_envs.terrain.heightfield import Heightfield, HeightfieldGrid
from sf3d_envs.terrain.variants import TerrainVariant

GRID = {"x0": 0.0, "y0": 0.0, "dx": 1.0, "dy": 1.0, "nx": 3, "ny": 3}
FLAT = Heightfield(HeightfieldGrid(**GRID), np.zeros((3, 3)))
ROAD = TerrainVariant("flat", FLAT)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: HeightfieldGrid(**{**GRID, "nx": 2.5}), TypeError, "nx must be an int"),
        (lambda: HeightfieldGrid(**{**GRID, "ny": True}), TypeError, "ny must be an int"),
        (lambda: HeightfieldGrid(**{**GRID, "dx": "1"}), TypeError, "heightfield dx must be a number"),
        (lambda: HeightfieldGrid(**{**GRID, "x0": None}), TypeError, "heightfield x0 must be a number"),
        (lambda: HeightfieldGrid(**{**GRID, "dx": 1e-50}), ValueError, "dx must be at least 0.001 m"),
        (lambda: TerrainVariant("a", FLAT, patches=None), TypeError, "patches must be a sequence"),
        (lambda: TerrainVariant("a", FLAT, base_friction="1"), TypeError, "base_friction must be a number"),
        (lambda: Disc(x="0", y=0, radius=1, friction=1), TypeError, "disc x must be a number"),
        (
            lambda: Rectangle(x=0, y=0, length=1, width=1, friction=True),
            TypeError,
            "rectangle friction must be a number",
        ),
        (lambda: VehicleParams(inertia=(1, 2, "x")), TypeError, "inertia must be a number"),
        (lambda: VehicleParams(mass=10**400), ValueError, "mass must be finite"),
        (lambda: Simulator(1, ROAD), TypeError, "variants must be a sequence of TerrainVariant"),
        (lambda: Simulator(1, [load_condition("mu018")]), TypeError, r"variants\[0\] must be a TerrainVariant"),
        (lambda: Simulator(1, [ROAD], vehicle=3), TypeError, "vehicle must be VehicleParams"),
        (lambda: Simulator(1, [ROAD], fused="x"), TypeError, "fused must be"),
        (lambda: Simulator(1, [ROAD], params_per_world="x"), TypeError, "params_per_world must be"),
    ],
)
def test_is_refused_by_name(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make()


def test_place_names_what_does_not_fit() -> None:
    sim = Simulator(2, [ROAD], num_vehicles=1)
    with pytest.raises(ValueError, match=r"position of shape \(5, 3\) does not broadcast to \(2, 1, 3\)"):
        sim.place(np.ones(2, bool), np.zeros((5, 3)))
    with pytest.raises(TypeError, match="mask must be bool"):
        sim.place(np.array([np.nan, 2.0]), np.zeros(3))
    sim.close()


@pytest.mark.parametrize("spacing", [0.4, 1.0])
def test_the_bound_for_fine_grids_is_from_above(spacing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = np.random.default_rng(0).normal(0.0, 0.2, (30, 24))
    exact = bank._bulge(heights, spacing, spacing, 2.0)
    monkeypatch.setattr(bank, "MOST_VERTICES", 0)
    bound = bank._bulge(heights, spacing, spacing, 2.0)
    assert (bound >= exact - 1e-6).all()
    assert bound[:-1, :-1].max() < 40.0


def test_a_fine_grid_is_built_quickly() -> None:
    started = time.process_time()
    bank._bulge(np.zeros((300, 300)), 0.01, 0.01, 2.4)
    assert time.process_time() - started < 3.0
