"""The comparison with other models, as far as they are installed; the command line of the benchmark itself."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="module")
def peers(repo_root: Path) -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(repo_root / "benchmarks" / "peers.py")))


def test_the_table_says_what_is_missing_and_measures_the_rest(repo_root: Path, tmp_path: Path) -> None:
    words = ["--worlds", "1", "--rounds", "1", "--seconds", "0.01", "--json", str(tmp_path / "peers.json")]
    done = subprocess.run(
        [sys.executable, str(repo_root / "benchmarks" / "peers.py"), *words], capture_output=True, text=True, check=True
    )
    report = json.loads((tmp_path / "peers.json").read_text())
    assert report["schema"] == "sf3d.peers/1"
    models = [row["model"].split()[0] for row in report["results"]]
    assert models[0] == "SF3D"
    for module, name in (("mujoco", "MuJoCo"), ("highway_env", "highway-env")):
        installed = importlib.util.find_spec(module) is not None
        assert (name in models) == installed == (f"{module.replace('_', '-')} is left out" not in done.stderr)
    assert all(row["vehicle_steps_per_s"] > 0.0 for row in report["results"])


@pytest.mark.parametrize("road", ["plane", "heightfield"])
def test_the_mujoco_car_drives_as_commanded(peers: SimpleNamespace, road: str) -> None:
    """It accelerates with the commanded force over its mass, less what its wheels' inertia takes."""
    pytest.importorskip("mujoco")
    peer = peers.mujoco_peer(road, 1.0 / 240.0)
    peer.reset()
    peer.advance(480)
    np.testing.assert_allclose(peer.speeds(), peers.START.start_speed + 2.0 * peers.ACCEL, atol=0.1)


def test_a_vehicle_step_is_counted_in_simulated_time(peers: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that takes two steps of 1/15 s in each second makes 12 cars · 8 vehicle-steps per second."""
    clock = [0.0]

    def advance(steps: int) -> None:
        clock[0] += 0.5 * steps

    monkeypatch.setattr(peers.time, "process_time", lambda: clock[0])
    peer = peers.Peer(
        model="slow",
        road="none",
        step_s=1.0 / 15.0,
        reset=lambda: None,
        advance=advance,
        speeds=lambda: peers.START.start_speed + 2.0 * peers.ACCEL,
    )
    assert peer.rate(1.0) == pytest.approx(96.0)


def test_cars_that_do_not_drive_are_no_figure(peers: SimpleNamespace) -> None:
    peer = peers.Peer(
        model="stuck",
        road="none",
        step_s=0.5,
        reset=lambda: None,
        advance=lambda steps: None,
        speeds=lambda: np.zeros(12),
    )
    with pytest.raises(RuntimeError, match="stuck: speeds are off"):
        peer.rate(1e-6)
