from __future__ import annotations

import socket
import sys
import urllib.request

import numpy as np
import pytest
from render.worlds import CARS, poses, road

from sf3d_envs.render.viewer import BrowserViewer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r'pip install "sf3d-envs\[viewer\]"'):
        BrowserViewer(road(), CARS)


def test_viewer_serves_takes_poses_and_records(tmp_path):
    pytest.importorskip("viser", reason="the viewer extra is not installed")
    variant, record = road("mu018"), tmp_path / "run.viser"
    viewer = BrowserViewer(variant, CARS, ego=2, port=free_port(), record=record)
    try:
        for step in range(3):
            viewer.update(poses(variant, shift=float(step)), wheel_angle=np.full((12, 4), 0.9), steer=np.zeros(12))
        assert viewer.scene.state.body_q.numpy()[0, 0] == pytest.approx(62.0)
        with urllib.request.urlopen(viewer.url, timeout=10) as page:
            assert page.status == 200
        with pytest.raises(ValueError, match=r"body_q must have shape \[12, 7\]"):
            viewer.update(np.zeros((3, 7)))
    finally:
        viewer.close()
        viewer.close()
    assert record.stat().st_size > 1000
    with pytest.raises(RuntimeError, match="viewer is closed"):
        viewer.update(poses(variant))


def test_bad_arguments_are_named(tmp_path):
    pytest.importorskip("viser", reason="the viewer extra is not installed")
    with pytest.raises(ValueError, match="port must be in"):
        BrowserViewer(road(), CARS, port=0)
    with pytest.raises(ValueError, match="frame_time must be positive"):
        BrowserViewer(road(), CARS, frame_time=0.0)
    with pytest.raises(NotADirectoryError, match="its folder does not exist"):
        BrowserViewer(road(), CARS, record=tmp_path / "nowhere" / "run.viser")
