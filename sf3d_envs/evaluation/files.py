"""Files that are absent, old or complete, whenever the process ends."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

PARTIAL = ".partial"
"""Suffix of files under way, and the folder of those that take long."""


class FolderInUse(OSError):
    """Another process is writing to the folder."""


def write_bytes(path: Path, data: bytes) -> str:
    """Write a file so that it is either absent, old or complete.

    Args:
        path: Target; its folder exists.
        data: Content.

    Returns:
        SHA-256 of the content, hexadecimal.

    Raises:
        OSError: If the target is a folder, a device or another thing that is no regular file, or cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} is no regular file")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PARTIAL, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return hashlib.sha256(data).hexdigest()


def write_json(path: Path, value: Any) -> str:
    """Write JSON atomically, keys sorted; returns its SHA-256."""
    return write_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as a Parquet file (zstd); equal frames give equal bytes."""
    buffer = io.BytesIO()
    frame.rechunk().write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue()


def write_parquet(path: Path, frame: pl.DataFrame) -> str:
    """Write a frame atomically, as `parquet_bytes`. Returns its SHA-256."""
    return write_bytes(path, parquet_bytes(frame))


def move_file(source: Path, target: Path) -> str:
    """Move a complete file of the same file system to its place, durably; returns its SHA-256."""
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    os.replace(source, target)
    return digest


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: str | Path, argument: str) -> Path:
    """Make sure that a file can be written, before anything is computed; leaves nothing behind.

    Args:
        path: File that exists or can be made, its folders too.
        argument: Name used in the error.

    Returns:
        The path.

    Raises:
        ValueError: If it is a folder, a device or another thing that is no regular file, or its folder takes no file.
    """
    file = Path(path)
    if not file.name or file.is_dir():
        raise ValueError(f"{argument} is {str(path)!r}, a folder; give a file name")
    if file.exists() and not file.is_file():
        raise ValueError(f"{argument} is {str(path)!r}, which is no regular file; give a file name")
    try:
        check_writable(file.parent, argument)
    except ValueError as error:
        raise ValueError(f"{argument} is {str(path)!r}: {error}") from None
    return file


def check_writable(path: str | Path, argument: str = "--out") -> Path:
    """Make sure files can be written below `path`, before anything is computed; leaves nothing behind.

    Args:
        path: Folder that exists or can be made.
        argument: Name used in the error.

    Returns:
        The path.

    Raises:
        ValueError: If it is a file, or neither it nor its nearest existing parent takes a new file.
    """
    folder = Path(path)
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ValueError(
            f"{argument} is {str(path)!r}, but {str(nearest)!r} is not a folder; give a folder that is new or writable"
        )
    try:
        with tempfile.NamedTemporaryFile(prefix=".sf3d-", suffix=PARTIAL, dir=nearest):
            pass
    except OSError as error:
        raise ValueError(
            f"{argument} is {str(path)!r}, but {str(nearest)!r} cannot be written ({error.strerror}); "
            f"give a writable folder"
        ) from error
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; the system lets go when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no lock on folders.
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUse(f"another process is writing to {str(folder)!r}; wait for it or end it") from error
        except OSError:
            pass  # A file system without locks.
        yield
    finally:
        os.close(handle)
