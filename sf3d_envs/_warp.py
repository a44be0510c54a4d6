"""Warp start-up: devices, quiet logs, and an announced first compile."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import threading
import time
from functools import cache

import warp as wp

ANNOUNCE_AFTER_S = 1.5

_loading = threading.Lock()
"""Threads that make their first environments together compile once."""

STEP_MODULES = (
    "sf3d_envs.sim.kernels_place",
    "sf3d_envs.sim.kernels_fused",
    "sf3d_envs.scenario.kernels",
    "sf3d_envs.scenario.lane_closure",
    "sf3d_envs.task.kernels",
    "sf3d_envs.task.kernels_score",
    "sf3d_envs.task.reward",
    "sf3d_envs.observation.kernels",
    "sf3d_envs.envs.kernels",
    "sf3d_envs.agents.idm",
    "sf3d_envs.agents.random_agent",
)


def get_device(device: str | wp.Device) -> wp.Device:
    """Resolve a device name.

    Raises:
        TypeError: If ``device`` is neither a string nor a Warp device.
        ValueError: If there is no such device; the message lists those there are.
    """
    quiet_init()
    if isinstance(device, wp.Device):
        return device
    if not isinstance(device, str):
        raise TypeError(f"device must be a string such as 'cpu' or 'cuda:0', got {device!r}")
    try:
        return wp.get_device(device)
    except (ValueError, RuntimeError):
        known = ", ".join(repr(item.alias) for item in wp.get_devices())
        raise ValueError(f"device {device!r} is not available; available: {known}") from None


def quiet_init() -> None:
    """Initialize Warp without its banner and without the warning that a machine has no GPU.

    The warning is written by native code, so the file descriptor is caught for the moment of the first initialization;
    anything else that was written is passed on. ``SF3D_VERBOSE=1`` leaves Warp as talkative as it is.
    """
    if "SF3D_VERBOSE" in os.environ or wp.config.log_level >= wp.LOG_WARNING:
        wp.init()
        return
    wp.config.log_level = wp.LOG_WARNING
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            wp.init()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            for line in caught.read().decode(errors="replace").splitlines():
                if "NVIDIA CUDA driver" not in line:
                    print(line, file=sys.stderr)


def load_kernels(device: str | wp.Device = "cpu", *, progress: bool = True) -> None:
    """Compile or load every kernel of the stepping path; a first compile is announced on stderr.

    Compiled code lands in Warp's kernel cache, so the cost is paid once per source state and machine.

    Args:
        device: Device to compile for.
        progress: Whether to print progress lines.
    """
    alias = get_device(device).alias
    with _loading:
        _load_once(alias, progress)


@cache
def _load_once(device: str, progress: bool) -> None:
    def announce() -> None:
        print(
            f"sf3d: loading kernels for {device}; the first time compiles them, about 30 s, cached afterwards ...",
            file=sys.stderr,
            flush=True,
        )

    # Whether Warp's cache holds a module is known only by how long loading takes.
    word = threading.Timer(ANNOUNCE_AFTER_S, announce)
    word.daemon = True
    if progress:
        word.start()
    try:
        for count, name in enumerate(STEP_MODULES, 1):
            module = importlib.import_module(name)
            begin = time.perf_counter()
            wp.load_module(module, device=device)
            elapsed = time.perf_counter() - begin
            if progress and elapsed > ANNOUNCE_AFTER_S:
                print(f"sf3d:   [{count}/{len(STEP_MODULES)}] {name}: {elapsed:.0f} s", file=sys.stderr, flush=True)
    finally:
        word.cancel()


def warmup(device: str | wp.Device = "cpu", *, render: bool = False, progress: bool = True) -> float:
    """Compile every kernel ahead of use, optionally the camera's too; returns seconds."""
    start = time.perf_counter()
    load_kernels(device, progress=progress)
    from .envs.torch_env import TorchEnv

    env = TorchEnv(1, device=device, render_mode="rgb_array" if render else None)
    env.reset(seed=0)
    if render:
        env.render()
    env.close()
    return time.perf_counter() - start
