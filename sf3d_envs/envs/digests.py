"""Identity of a run: hashes of scenario, initial state, terrain and routes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .torch_env import TorchEnv


def run_digests(env: TorchEnv) -> dict[str, Any]:
    """SHA-256 digests of an environment right after a reset.

    Returns:
        ``scenario``, ``terrain`` and ``initial_state``: one hex digest per world; ``route``: one for the route table.
        ``initial_state`` covers poses, velocities, wheel speeds and steering angles as they are now.
    """
    sim = env.sim
    terrain = [variant.digest for variant in sim.bank.variants]
    scenarios = env._episodes.scenario.to_host(env._episodes.seed.numpy())
    shape = (env.num_worlds, sim.num_vehicles, -1)
    state = np.concatenate(
        [
            array.numpy().reshape(shape).astype("<f4")
            for array in (sim.body_q, sim.body_qd, sim.wheel_spin, sim.steer_angle)
        ],
        axis=-1,
    )
    return {
        "scenario": [scenario.digest for scenario in scenarios],
        "terrain": [terrain[index] for index in sim.world_variant.numpy()],
        "initial_state": [hashlib.sha256(world.tobytes()).hexdigest() for world in state],
        "route": env.routes.digest,
    }
