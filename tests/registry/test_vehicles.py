"""Vehicle files: the packaged car, user files, bad values."""

import pytest

from sf3d_envs.registry import list_vehicles, load_vehicle


def test_compact_is_the_benchmark_car():
    car = load_vehicle("compact")
    assert list_vehicles() == ("compact",)
    assert (car["length"], car["width"], car["height"], car["mass"]) == (4.25, 1.78, 0.90, 1350.0)
    assert car["inertia"] == (500.0, 2100.0, 2300.0)
    assert car["max_drive_torque"] == pytest.approx(4.91 * car["wheel_radius"] * car["mass"])
    assert (car["wheelbase"], car["track"], car["anchor_height"]) == (2.60, 1.46, -0.12)
    assert all(isinstance(value, (float, tuple)) for value in car.values())


def test_compact_has_the_fields_of_vehicle_params_at_their_defaults():
    vehicle = pytest.importorskip("sf3d_envs.sim.vehicle")
    default = vehicle.VehicleParams()
    for name, value in load_vehicle("compact").items():
        assert getattr(default, name) == pytest.approx(value), name


def test_user_file(tmp_path):
    path = tmp_path / "van.toml"
    path.write_text("mass = 2000\ninertia = [900, 4000, 4300]\n", encoding="utf-8")
    assert load_vehicle(path) == load_vehicle(str(path)) == {"mass": 2000.0, "inertia": (900.0, 4000.0, 4300.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mass = 'heavy'", "mass must be a finite number, got 'heavy'"),
        ("mass = nan", "mass must be a finite number, got nan"),
        ("mass = false", "mass must be a finite number, got False"),
        ("inertia = [1, 'x', 2]", r"inertia\[1\] must be a finite number, got 'x'"),
        ("[chassis]\nmass = 1", "chassis must be a finite number"),
        ("mass 3", "is not a TOML file"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        load_vehicle(path)
    assert "bad.toml" in str(caught.value)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(
        ValueError, match=r"vehicle 'compct' is not in the registry; did you mean 'compact'\? Known: compact"
    ):
        load_vehicle("compct")
