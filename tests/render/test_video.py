from __future__ import annotations

import sys

import numpy as np
import pytest

from sf3d_envs.render.video import write_video


def frames(count: int, height: int = 36, width: int = 64):
    for number in range(count):
        picture = np.zeros((height, width, 3), dtype=np.uint8)
        picture[:, : 4 * (number + 1)] = (220, 40, 40)
        yield picture


@pytest.fixture
def ffmpeg():
    return pytest.importorskip("imageio_ffmpeg", reason="the video extra is not installed")


def test_video_is_readable_with_every_frame(ffmpeg, tmp_path):
    path = tmp_path / "run.mp4"
    assert write_video(frames(12), path, fps=10) == 12
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert count == 12
    assert seconds == pytest.approx(1.2, abs=0.05)
    reader = ffmpeg.read_frames(str(path))
    meta = next(reader)
    assert meta["size"] == (64, 36)
    first = np.frombuffer(next(reader), dtype=np.uint8).reshape(36, 64, 3)
    assert first[18, 1, 0] > 150 > first[18, 40, 0]
    reader.close()
    assert [item.name for item in tmp_path.iterdir()] == ["run.mp4"]


def test_odd_sizes_are_padded(ffmpeg, tmp_path):
    path = tmp_path / "odd.mp4"
    write_video(frames(3, height=35, width=63), path, fps=10)
    assert next(ffmpeg.read_frames(str(path)))["size"] == (64, 36)


def test_failing_frames_leave_nothing_behind_and_keep_an_old_file(ffmpeg, tmp_path):
    path = tmp_path / "run.mp4"
    path.write_bytes(b"old")

    def broken():
        yield from frames(2)
        raise RuntimeError("the world ended")

    with pytest.raises(RuntimeError, match="the world ended"):
        write_video(broken(), path, fps=10)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "pictures, text",
    [
        ([], "frames is empty"),
        ([*frames(2), *frames(1, height=40)], r"frame 2 has shape \[40, 64, 3\], the first frame has \[36, 64, 3\]"),
        ([np.zeros((36, 64, 3))], "frame 0 must be uint8"),
        ([np.zeros((36, 64), np.uint8)], "frame 0 must be uint8"),
    ],
)
def test_bad_frames_are_refused(ffmpeg, tmp_path, pictures, text):
    with pytest.raises(ValueError, match=text):
        write_video(pictures, tmp_path / "run.mp4", fps=10)
    assert not list(tmp_path.iterdir())


def test_bad_paths_and_rates_are_refused(ffmpeg, tmp_path):
    with pytest.raises(NotADirectoryError, match="there is no folder"):
        write_video(frames(1), tmp_path / "nowhere" / "run.mp4", fps=10)
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_video(frames(1), tmp_path / "folder.mp4", fps=10)
    with pytest.raises(ValueError, match=r"must end in \.mp4"):
        write_video(frames(1), tmp_path / "run.gif", fps=10)
    with pytest.raises(ValueError, match="fps must be positive"):
        write_video(frames(1), tmp_path / "run.mp4", fps=0)


def test_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r'pip install "sf3d-envs\[video\]"'):
        write_video(frames(1), tmp_path / "run.mp4", fps=10)
