"""Vehicle parameters: the registry's file, user files, and what is refused."""

import pytest

from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.registry import load_vehicle
from sf3d_envs.sim.vehicle import VehicleParams


def test_registry_file_is_the_default():
    assert VehicleParams.from_dict(load_vehicle("compact")) == VehicleParams()


def test_rest_height_and_throttle_of_the_benchmark_car():
    car = VehicleParams()
    assert car.rest_compression == pytest.approx(0.0946, abs=5e-5)
    assert car.rest_height == pytest.approx(0.6454, abs=5e-5)
    assert car.throttle_accel == pytest.approx(4.91)


def test_a_vehicle_on_its_bump_stops_rests_where_forces_balance():
    car = VehicleParams(suspension_stiffness=13_000.0)
    d = car.rest_compression
    force = 13_000.0 * d + 4 * 13_000.0 * max(0.0, d - 0.24)
    assert force == pytest.approx(0.25 * 1350.0 * 9.81)
    assert 0.24 < d < 0.30


def test_vehicle_from_a_user_file_drives(tmp_path):
    path = tmp_path / "van.toml"
    path.write_text(
        "mass = 2000.0\nheight = 1.3\nanchor_height = -0.3\nsuspension_stiffness = 52000.0\nmax_drive_torque = 3000.0\n"
    )
    env = TorchEnv(1, vehicle=str(path))
    assert env.sim.vehicles[0].mass == 2000.0
    env.reset(seed=0)
    env.sim.control_step(60)
    assert env.sim.wheel_load.numpy()[0].sum(axis=-1) == pytest.approx(2000.0 * 9.81, rel=0.02)
    env.close()


def test_mixed_vehicles_rest_at_their_own_heights():
    truck = VehicleParams(
        length=7.0,
        width=2.3,
        height=2.0,
        mass=5000.0,
        inertia=(4000.0, 20000.0, 21000.0),
        wheelbase=4.0,
        track=1.9,
        anchor_height=-0.8,
        suspension_stiffness=140_000.0,
        suspension_damping=12_000.0,
    )
    env = TorchEnv(1, vehicle=[VehicleParams()] * 11 + [truck], rules="scoring")
    env.reset(seed=0)
    heights = env.view.body_q.numpy()[:, 2]
    assert heights[0] == pytest.approx(VehicleParams().rest_height, abs=1e-6)
    assert heights[11] == pytest.approx(truck.rest_height, abs=1e-6)
    env.sim.control_step(120)
    assert env.view.body_q.numpy()[11, 2] == pytest.approx(truck.rest_height, abs=0.02)
    env.close()


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"mass": -1.0}, ValueError, ["mass", "-1.0", "> 0"]),
        ({"grip": -0.1}, ValueError, ["grip", "-0.1", ">= 0"]),
        ({"drag": float("nan")}, ValueError, ["drag", "finite"]),
        ({"mass": "heavy"}, TypeError, ["mass", "'heavy'"]),
        ({"inertia": 3.0}, TypeError, ["inertia"]),
        ({"suspension_stiffness": 100.0}, ValueError, ["suspension_stiffness", "100.0"]),
        ({"height": 1.5}, ValueError, ["height", "1.5", "anchor_height"]),
        ({"wheels": 4}, ValueError, ["wheels", "wheelbase"]),
    ],
)
def test_bad_parameters_are_named(values, error, words):
    with pytest.raises(error) as caught:
        VehicleParams.from_dict(values)
    for word in words:
        assert word in str(caught.value)
