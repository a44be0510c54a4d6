"""What decides the results of an evaluation: versions, code, device kind. No host name, user, path or time."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

_PACKAGES = ("newton", "warp-lang", "torch", "numpy")
_WRITERS = ("polars", "pyarrow", "matplotlib", "pillow")
_NO_RESULT = ("sf3d_envs/cli/", "sf3d_envs/evaluation/report/", "sf3d_envs/render/", "sf3d_envs/benchmark.py")
_SOURCES = ("sf3d_envs", "sf3d_envs.agents", "sf3d_envs.registry")


def _walk(folder: Traversable, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for entry in folder.iterdir():
        name = f"{prefix}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                found |= _walk(entry, name)
        elif entry.name.endswith((".py", ".toml")):
            found[name] = entry.read_bytes()
    return found


@cache
def code_digest() -> str:
    """SHA-256 over the package's Python and TOML files, agents and registry included, command line and pictures not.

    Taken once per process: later edits on disk don't change the code that runs.
    """
    sources: dict[str, bytes] = {}
    for package in _SOURCES:
        sources |= _walk(files(package), package.replace(".", "/"))
    digest = hashlib.sha256()
    for name in sorted(name for name in sources if not name.startswith(_NO_RESULT)):
        digest.update(f"{name}\0{len(sources[name])}\0".encode())
        digest.update(sources[name])
    return digest.hexdigest()


def package_versions() -> dict[str, str]:
    """Installed versions of the packages that take part in a result; `absent` where one is not installed."""
    return _versions(_PACKAGES)


def writer_versions() -> dict[str, str]:
    """Versions of the packages that write files: they decide bytes, not results."""
    return _versions(_WRITERS)


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


def check_device(device: str) -> str:
    """A device name in its normal form, `cpu` or `cuda:N`.

    Raises:
        ValueError: If this machine has no such device.
    """
    from .._warp import get_device

    return str(get_device(device).alias)


def device_name(device: str) -> str:
    """Kind of a device: `cpu`, or the model name of a GPU.

    Raises:
        ValueError: If this machine has no such device.
    """
    from .._warp import get_device

    found = get_device(device)
    return "cpu" if found.is_cpu else found.name


def machine() -> dict[str, Any]:
    """General facts about the machine, for figures that depend on it."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": usable,
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "packages": package_versions(),
    }
