"""Fixtures of the physics tests."""

from __future__ import annotations

import pytest

from .fleets import WarpCars, reference_cars


@pytest.fixture(params=["warp", "float64"])
def cars(request: pytest.FixtureRequest):
    """Builder of cars on variants, once for the simulator and once for the float64 reference."""
    return WarpCars if request.param == "warp" else reference_cars
