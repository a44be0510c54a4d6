"""Launch, requested against realized acceleration, full-brake distances and the patch probe."""

from __future__ import annotations

import numpy as np
import pytest

from sf3d_envs.registry import load_condition
from sf3d_envs.terrain.friction import Rectangle
from sf3d_envs.terrain.lane_closure import ROAD, lane_closure_terrain
from sf3d_envs.terrain.variants import TerrainVariant

from .fleets import CONTROL, WarpCars, flat_variant, reference_cars

MASS, DRAG, GRAVITY, SPEED = 1350.0, 0.39, 9.81, 16.0
FRICTION = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05)
# Full brake from 16 m/s with the front axle already on the patch and the rest of the car still on dry road. The
# specification lists these as uniform friction; uniform friction gives the drag-corrected closed form instead.
FRONT_AXLE_AT_EDGE = (17.85, 19.66, 24.98, 35.10, 48.47, 66.50, 98.22, 144.72, 225.39)


def stopping_distance(speed: float, mu: np.ndarray, drag: float = DRAG) -> np.ndarray:
    """Closed form [m] for a constant friction deceleration with quadratic drag."""
    return MASS / (2.0 * drag) * np.log1p(drag * speed**2 / (MASS * mu * GRAVITY))


def patch_from(edge: float, mu: float) -> TerrainVariant:
    """Dry road with an endless patch of friction `mu` from x = `edge` on."""
    return flat_variant(patches=[Rectangle(x=edge + 450.0, y=0.0, length=900.0, width=900.0, yaw=0.0, friction=mu)])


# Full brake from 16 m/s at x = 0, by name; all runs of a model are one batch.
BRAKING = {
    "uniform": [flat_variant(mu) for mu in FRICTION],
    "front axle at the edge": [patch_from(1.3, mu) for mu in FRICTION],
    "centre at the edge": [patch_from(0.0, mu) for mu in FRICTION],
}


@pytest.fixture(scope="module", params=["warp", "float64"])
def brake_distance(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """Distance [m] that each car's centre of mass travels until it stands, by kind of start, in order of FRICTION."""
    build = WarpCars if request.param == "warp" else reference_cars
    car = build([variant for kind in BRAKING.values() for variant in kind], speed=SPEED)
    for _ in range(40 * 60):
        car.control_step(-8.0, 0.0)
        if np.abs(car.forward_speed).max() < 0.02:
            break
    assert np.abs(car.forward_speed).max() < 0.02 and not car.spin.any()
    return dict(zip(BRAKING, np.split(car.position[:, 0], len(BRAKING)), strict=True))


def test_launch_to_15_metres_per_second(cars) -> None:
    """3.17 s (counted in control steps) with a peak of 4.78 m/s^2: wheel inertia and drag take the rest of 4.91."""
    car = cars([flat_variant()])
    speeds = [0.0]
    while speeds[-1] < 15.0:
        car.control_step(8.0, 0.0)
        speeds.append(car.forward_speed[0])
    assert (len(speeds) - 1) * CONTROL == pytest.approx(3.17, abs=0.01)
    assert np.diff(speeds).max() / CONTROL == pytest.approx(4.78, abs=0.01)


def test_realized_acceleration(cars) -> None:
    """Requests of 1 to 4 m/s^2 realize .971, 1.941, 2.910, 3.878 (mean over the first 2.5 s)."""
    car = cars([flat_variant()] * 4)
    for _ in range(150):
        car.control_step(np.array([1.0, 2.0, 3.0, 4.0]), 0.0)
    np.testing.assert_allclose(car.forward_speed / 2.5, [0.971, 1.941, 2.910, 3.878], atol=2e-3)


def test_realized_deceleration(cars) -> None:
    """Requests of -1 to -6 m/s^2 realize about -1.06 to -6.13 from 16 m/s: brake torque, wheel inertia and drag."""
    requests = -np.arange(1.0, 7.0)
    car = cars([flat_variant()] * 6, speed=SPEED)
    for _ in range(60):
        car.control_step(requests, 0.0)
    realized = car.forward_speed - SPEED
    expected = requests / 8.0 * 4.0 * 900.0 / 0.32 / (MASS + 4.0 / 0.32**2)
    drag = DRAG * (SPEED + 0.5 * realized) ** 2 / MASS
    np.testing.assert_allclose(realized, expected - drag, atol=0.02)
    assert realized[0] == pytest.approx(-1.06, abs=0.03) and realized[-1] == pytest.approx(-6.13, abs=0.03)


def test_full_brake_distance_on_uniform_friction(brake_distance: dict[str, np.ndarray]) -> None:
    distance, mu = brake_distance["uniform"], np.array(FRICTION)
    low = mu <= 0.5
    np.testing.assert_allclose(distance[low], stopping_distance(SPEED, mu[low]), rtol=2e-3)
    assert distance[0] == pytest.approx(17.85, abs=0.05)
    # Above mu 0.5 the brakes' own limit and the locking rear wheels lengthen it.
    assert (distance[~low] > stopping_distance(SPEED, mu[~low]) * 1.05).all()


def test_full_brake_distance_with_the_front_axle_at_the_edge(brake_distance: dict[str, np.ndarray]) -> None:
    np.testing.assert_allclose(brake_distance["front axle at the edge"], FRONT_AXLE_AT_EDGE, atol=0.05)


def test_braking_probe(brake_distance: dict[str, np.ndarray]) -> None:
    """Braking starts as the centre crosses the edge; inside = the front bumper stops within 140 m: only mu >= .12."""
    bumper = brake_distance["centre at the edge"] + 0.5 * 4.25
    np.testing.assert_allclose(bumper[-3:], [103.9, 152.3, 236.2], atol=0.06)
    assert (bumper[:-2] <= 140.0).all() and (bumper[-2:] > 140.0).all()


def test_braking_probe_on_the_road_patch(cars) -> None:
    """The benchmark's own patch, closing lane, 140 m; beyond its end the road is dry again."""
    variants = [lane_closure_terrain(load_condition(slug)) for slug in ("mu012", "mu008", "mu005")]
    car = cars(variants, x=ROAD.change_x, y=ROAD.closing_lane_y, speed=SPEED)
    for _ in range(14 * 60):
        car.control_step(-8.0, 0.0)
    assert abs(car.forward_speed[0]) < 0.02
    bumper = car.position[:, 0] + 0.5 * 4.25
    assert bumper[0] - ROAD.change_x == pytest.approx(103.9, abs=0.06)
    assert list(bumper <= ROAD.patch_end_x) == [True, False, False]


@pytest.mark.parametrize(("mu", "below", "above"), [(0.18, 0.85, 1.0), (0.08, 0.35, 0.45)])
def test_rear_wheels_spin_up_beyond_their_friction(cars, mu: float, below: float, above: float) -> None:
    """Wheelspin sets in at about 0.9 m/s^2 at mu .18 and 0.4 at .08: half the weight is on the driven axle."""
    car = cars([flat_variant(mu)] * 2)
    for _ in range(180):
        car.control_step(np.array([below, above]), 0.0)
    slip = 0.32 * car.spin[:, 2:].mean(axis=1) - car.forward_speed
    assert slip[0] < 0.1 and slip[1] > 3.0


def test_locked_wheels_never_turn_back(cars) -> None:
    car = cars([flat_variant(mu) for mu in (1.0, 0.18, 0.05)], speed=SPEED)
    furthest = car.position[:, 0]
    for _ in range(240):
        car.control_step(-8.0, 0.0)
        furthest = np.maximum(furthest, car.position[:, 0])
        assert (car.spin >= 0.0).all()
    assert not car.spin[1].any() and car.forward_speed[1] > 5.0  # all four locked while still sliding
    assert (furthest - car.position[:, 0]).max() < 0.05  # the dive relaxes over locked wheels
