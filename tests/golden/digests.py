"""Digests of what the `-v0` environments compute; `python tests/golden/digests.py` writes them anew.

Commands and actions are integers from a hash times powers of two, so that nothing but the product decides the bits.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
import warp as wp

from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.registry import load_suite
from sf3d_envs.scenario.lane_closure import sample_lane_closures
from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

FILE = Path(__file__).with_name("digests.json")
SEED0 = 100_000
wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def transcendental(x: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    y[0, i] = wp.sin(x[i])
    y[1, i] = wp.cos(x[i])
    y[2, i] = wp.atan2(x[i], 1.5)
    y[3, i] = wp.asin(0.1 * x[i])


def digest(*arrays: np.ndarray) -> str:
    """SHA-256 (hex) over the bytes of arrays."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def library() -> str:
    """Fingerprint of the C library's sin, cos, atan2 and asin, which observations and IDM use; the physics does not."""
    x = wp.array(np.linspace(-9.9, 9.9, 4001, dtype=np.float32), dtype=float, device="cpu")
    y = wp.zeros((4, 4001), dtype=float, device="cpu")
    wp.launch(transcendental, dim=4001, inputs=[x, y], device="cpu")
    return digest(y.numpy())


def hashed(step: int, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Values in [low, high] on a grid of 256 steps, from a multiplicative hash of position and step."""
    index = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape) + np.uint64(1_000_003 * step + 1)
    byte = (index * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)
    return (low + (high - low) * byte.astype(np.float32) / np.float32(256.0)).astype(np.float32)


def scenarios() -> str:
    """Start states and driver presets of the first 64 benchmark worlds."""
    drawn = sample_lane_closures(range(SEED0, SEED0 + 64))
    names = ("start_x", "start_y", "start_speed", "headway", "min_gap", "accel_max", "comfort_decel")
    return digest(*(np.array([getattr(item, name) for item in drawn], dtype=np.float32) for name in names))


def physics() -> list[str]:
    """State of 21 worlds, one per condition, after 1, 4 and 8 s of commands that end in a heap."""
    suite = load_suite("ucx-conditions-1")
    worlds = len(suite.conditions)
    sim = Simulator(worlds, [lane_closure_terrain(item) for item in suite.conditions], range(worlds))
    drawn = sample_lane_closures(range(SEED0, SEED0 + worlds))
    position = np.zeros((worlds, 12, 3))
    position[..., 0] = [item.start_x for item in drawn]
    position[..., 1] = [item.start_y for item in drawn]
    position[..., 2] = sim.vehicles[0].rest_height
    sim.place(np.ones(worlds, dtype=bool), position, 0.0, np.array([item.start_speed for item in drawn]))
    found = []
    for second in range(8):
        commands = np.stack(
            [hashed(second, (worlds, 12), -6.0, 5.0), hashed(100 + second, (worlds, 12), -0.3, 0.3)], axis=-1
        )
        sim.command.assign(commands)
        sim.control_step(60)
        if second in (0, 3, 7):
            found.append(digest(*(getattr(sim, name).numpy() for name in ("body_q", "body_qd", "wheel_spin"))))
    sim.close()
    return found


def environment(control: str) -> list[str]:
    """Observation, reward, flags and state over 60 decisions in every condition, with resets."""
    env = TorchEnv(
        21, condition=[item.slug for item in load_suite("ucx-conditions-1").conditions], control=control, preview=True
    )
    env.reset(seed=7)
    found = []
    for decision in range(60):
        shape = (21, env.num_rows)
        action = np.stack([hashed(decision, shape, -2.0, 4.0), hashed(500 + decision, shape, -0.25, 0.25)], axis=-1)
        outputs = env.step(torch.from_numpy(action))
        if decision in (9, 29, 59):
            found.append(digest(*(item.numpy() for item in outputs[:4]), env.view.body_q.numpy()))
    env.close()
    return found


def compute() -> dict[str, str | list[str]]:
    """All digests."""
    return {
        "library": library(),
        "scenarios": scenarios(),
        "physics": physics(),
        "environment, all": environment("all"),
        "environment, ego": environment("ego"),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(compute(), indent=1) + "\n")
