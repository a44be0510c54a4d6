"""Video files: frames to an mp4 (H.264), complete or not there at all."""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


def write_video(frames: Iterable[np.ndarray], path: str | os.PathLike[str], fps: float) -> int:
    """Write frames to an mp4 file. It is written under a temporary name beside ``path`` and renamed when complete.

    Odd widths and heights are padded by one repeated line, which H.264 needs.

    Args:
        frames: uint8 pictures, shape [H, W, 3], all of one shape; taken one at a time.
        path: File to write, ending in ``.mp4``; an existing file is replaced.
        fps: Frames per second.

    Returns:
        Number of frames written.

    Raises:
        ImportError: If the video extra is not installed.
        ValueError: If there are no frames, a frame is not uint8 [H, W, 3], frames differ in shape, ``fps`` is not
            positive, or ``path`` has another ending.
        OSError: If ``path`` can't be written; the message names it.
    """
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise ValueError(f"path must end in .mp4, got {str(target)!r}")
    if not (math.isfinite(fps) and fps > 0.0):
        raise ValueError(f"fps must be positive and finite, got {fps!r}")
    ffmpeg = _ffmpeg()
    _check_writable(target)
    pictures = iter(frames)
    first = next(pictures, None)
    if first is None:
        raise ValueError(f"frames is empty: there is nothing to write to {str(target)!r}")
    first = _checked(first, None, 0)
    shape = first.shape
    height, width = shape[0] + shape[0] % 2, shape[1] + shape[1] % 2
    pad = ((0, height - shape[0]), (0, width - shape[1]), (0, 0))
    count = 0
    with _temporary(target) as temporary:
        writer = ffmpeg.write_frames(str(temporary), (width, height), fps=fps, quality=7, macro_block_size=2)
        writer.send(None)
        try:
            picture: np.ndarray | None = first
            while picture is not None:
                writer.send(np.ascontiguousarray(np.pad(picture, pad, mode="edge")))
                count += 1
                after = next(pictures, None)
                picture = None if after is None else _checked(after, shape, count)
        finally:
            writer.close()
        if _frames_in(ffmpeg, temporary) != count:
            raise OSError(f"{str(target)!r} could not be written completely; is the disk full?")
    return count


def _frames_in(ffmpeg: Any, path: Path) -> int:
    """Frames that can be read back; 0 if the file is no video. ffmpeg's own failure is not reported to its caller."""
    try:
        return ffmpeg.count_frames_and_secs(str(path))[0]
    except (OSError, RuntimeError):
        return 0


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise ImportError(
            'writing a video needs imageio-ffmpeg, which is not installed: pip install "sf3d-envs[video]"'
        ) from error
    return imageio_ffmpeg


def _check_writable(target: Path) -> None:
    folder = target.absolute().parent
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; give the name of an mp4 file")
    if not folder.is_dir():
        raise NotADirectoryError(f"can't write {str(target)!r}: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"can't write {str(target)!r}: no permission to write in {str(folder)!r}")


def _checked(frame: np.ndarray, shape: tuple[int, ...] | None, index: int) -> np.ndarray:
    picture = np.asarray(frame)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(
            f"frame {index} must be uint8 of shape [height, width, 3], got {picture.dtype} {list(picture.shape)}"
        )
    if shape is not None and picture.shape != shape:
        raise ValueError(f"frame {index} has shape {list(picture.shape)}, the first frame has {list(shape)}")
    return picture


@contextmanager
def _temporary(target: Path) -> Generator[Path, None, None]:
    """A name beside ``target`` that replaces it if the body succeeds and vanishes if not."""
    temporary = target.absolute().with_name(f".{target.stem}.{os.getpid()}.part.mp4")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
