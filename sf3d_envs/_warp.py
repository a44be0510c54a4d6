"""Warp start-up: devices, quiet logs, and an announced first compile."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType

import warp as wp

from .launches import usable_threads

ANNOUNCE_AFTER_S = 1.5
ANNOUNCE_EVERY_S = 10.0

_loading = threading.Lock()
"""Threads that make their first environments together compile once."""


def _renew_lock() -> None:
    """In a forked child no thread is left that could release the parent's lock."""
    global _loading  # noqa: PLW0603
    _loading = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

STEP_MODULES = (
    "sf3d_envs.sim.kernels_place",
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
PHYSICS_MODULES = {True: "sf3d_envs.sim.kernels_fused", False: "sf3d_envs.sim.kernels_split"}
"""Module of the physics step by whether the device is a CPU; the longest to compile, so it starts first."""
LOGGING_MODULES = ("sf3d_envs.evaluation.kernels_safety", "sf3d_envs.evaluation.kernels_trajectory")
STATE_MODULES = ("sf3d_envs.sim.kernels_write", "sf3d_envs.sim.kernels_derived")
RANDOMIZATION_MODULES = ("sf3d_envs.envs.kernels_randomization",)


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


def load_kernels(device: str | wp.Device = "cpu", *, progress: bool = True, extra: Sequence[str] = ()) -> None:
    """Compile or load every kernel of the stepping path; a first compile is announced on stderr.

    Compiled code lands in Warp's kernel cache, so the cost is paid once per source state and machine.

    Args:
        device: Device to compile for.
        progress: Whether to print progress lines.
        extra: Further modules with kernels.
    """
    device = get_device(device)
    with _loading:
        _load_once(device.alias, (PHYSICS_MODULES[device.is_cpu], *STEP_MODULES, *extra), progress)


def load_state_kernels(device: str | wp.Device) -> None:
    """Compile or load the kernels that setters and computed readings of the state need, at their first use."""
    device = get_device(device)
    with _loading:
        _load_once(device.alias, STATE_MODULES, True)


def load_module(module: ModuleType, device: str | wp.Device) -> None:
    """Load one module's kernels, one thread at a time."""
    with _loading:
        wp.load_module(module, device=device)


@cache
def _load_once(device: str, names: Sequence[str], progress: bool) -> None:
    modules = []
    for name in names:
        importlib.import_module(name)
        modules.append(wp.get_module(name))
    with announced(f"kernels for {device}; the first time compiles them, about half a minute", progress):
        wp.force_load(device, modules, max_workers=min(usable_threads(), len(modules)))


@contextmanager
def announced(what: str, progress: bool) -> Iterator[None]:
    """Say on stderr what the block takes so long over, and that it still does; a quick block says nothing.

    Whether Warp's cache holds a module is known only by how long loading takes.
    """
    started = time.perf_counter()
    done = threading.Event()

    def speak() -> None:
        if done.wait(ANNOUNCE_AFTER_S):
            return
        print(f"sf3d: loading {what}, cached afterwards ...", file=sys.stderr, flush=True)
        while not done.wait(ANNOUNCE_EVERY_S):
            print(f"sf3d:   {time.perf_counter() - started:.0f} s ...", file=sys.stderr, flush=True)

    voice = threading.Thread(target=speak, daemon=True)
    if progress:
        voice.start()
    try:
        yield
    finally:
        done.set()


def warmup(device: str | wp.Device = "cpu", *, render: bool = False, progress: bool = True) -> float:
    """Compile every kernel ahead of use, optionally the camera's too; returns seconds."""
    start = time.perf_counter()
    load_kernels(device, progress=progress, extra=(*RANDOMIZATION_MODULES, *LOGGING_MODULES, *STATE_MODULES))
    from .envs.torch_env import TorchEnv

    env = TorchEnv(1, device=device, render_mode="rgb_array" if render else None)
    env.reset(seed=0)
    if render:
        env.render()
    env.close()
    return time.perf_counter() - start
