"""Cost of the tensor state: what reading it every control step adds to a step, against a loop that reads nothing.

All variants run in one process, stretch by stretch in turn, from the same placed vehicles; a figure is the median over
rounds of (variant / plain of the same round) - 1, in processor time of the whole process, which other load on the
machine disturbs least. Vehicle-steps/s are medians by wall time.

Run: python benchmarks/state.py [--worlds 256] [--threads 1] [--rounds 15] [--markdown]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sf3d_envs import Simulator, load_condition
from sf3d_envs.scenario.lane_closure import sample_lane_closure
from sf3d_envs.sim.state import StateConfig, views
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

STEPS = 60
SEED0 = 100_000
EVERYTHING = StateConfig(accelerations=True, dynamics=True, contacts=True, raw_contacts=64)
Read = Callable[[], Any]


def nothing(sim: Simulator) -> Read:
    """Read nothing."""
    return lambda: None


def every_view(sim: Simulator) -> Read:
    """Take every view of the table."""
    return lambda: [getattr(sim.state, name) for name in NAMES]


def accelerations(sim: Simulator) -> Read:
    """Compute the accelerations."""
    return sim.state.accelerations


def dynamics(sim: Simulator) -> Read:
    """Compute mass matrix and generalized forces."""
    return sim.state.dynamics


def sensor(sim: Simulator) -> Read:
    """Read a contact sensor over all vehicles."""
    found = sim.state.contact_sensor()
    return lambda: (found.in_contact, found.net_force)


def snapshot(sim: Simulator) -> Read:
    """Copy every view to the host."""
    return sim.snapshot


NAMES = tuple(views())
VARIANTS: tuple[tuple[str, StateConfig, Callable[[Simulator], Read]], ...] = (
    ("plain", StateConfig(), nothing),
    ("plain again", StateConfig(), nothing),
    (f"all {len(NAMES)} views read", StateConfig(), every_view),
    ("snapshot to the host", StateConfig(), snapshot),
    ("accelerations opted in, not read", StateConfig(accelerations=True), nothing),
    ("accelerations read", StateConfig(accelerations=True), accelerations),
    ("dynamics opted in, not read", StateConfig(dynamics=True), nothing),
    ("dynamics read", StateConfig(dynamics=True), dynamics),
    ("contacts opted in, not read", StateConfig(contacts=True, raw_contacts=64), nothing),
    ("contact sensor read", StateConfig(contacts=True, raw_contacts=64), sensor),
    ("everything opted in, not read", EVERYTHING, nothing),
)


class Workload:
    """One simulator in lane-closure traffic under mild commands.

    Args:
        worlds: Number of worlds.
        threads: CPU threads.
        device: Device.
        config: What is opted in.
        read: What is read after every control step.
    """

    def __init__(self, worlds: int, threads: int, device: str, config: StateConfig, read: Callable[[Simulator], Read]):
        road = lane_closure_terrain(load_condition("reference"))
        self.sim = Simulator(worlds, [road], device=device, threads=threads, state=config)
        self.read = read(self.sim)
        scenarios = [sample_lane_closure(SEED0 + w) for w in range(worlds)]
        self.position = np.zeros((worlds, self.sim.num_vehicles, 3))
        self.position[..., 0] = [s.start_x for s in scenarios]
        self.position[..., 1] = [s.start_y for s in scenarios]
        self.position[..., 2] = self.sim.vehicles[0].rest_height
        self.speed = np.array([s.start_speed for s in scenarios])
        phase = torch.linspace(0.0, 2.0 * torch.pi, self.sim.num_vehicles + 1)[:-1]
        self.command = torch.stack([phase.cos(), 0.02 * phase.sin()], dim=-1).to(self.sim.state.command.device)

    def stretch(self) -> tuple[float, float]:
        """Processor and wall time of one stretch [s]."""
        sim = self.sim
        sim.place(np.ones(sim.num_worlds, dtype=bool), self.position, 0.0, self.speed)
        sim.state.command.copy_(self.command.expand_as(sim.state.command))
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            sim.control_step()
            self.read()
        if not sim.device.is_cpu:
            torch.cuda.synchronize()
        return time.process_time() - processor, time.perf_counter() - wall


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()

    loads = [Workload(options.worlds, options.threads, options.device, *variant[1:]) for variant in VARIANTS]
    for load in loads:
        load.stretch()
    rounds = [[load.stretch() for load in loads] for _ in range(options.rounds)]
    steps = options.worlds * loads[0].sim.num_vehicles * STEPS
    print(f"{options.worlds} worlds, {options.threads} threads, {options.rounds} rounds of {STEPS} control steps")
    if options.markdown:
        print("| variant | cost of a step | vehicle-steps/s |\n|---|---|---|")
    for k, (name, _, _) in enumerate(VARIANTS):
        cost = statistics.median(row[k][0] / row[0][0] for row in rounds) - 1.0
        rate = steps / statistics.median(row[k][1] for row in rounds)
        cells = (name, f"{cost:+.1%}", f"{rate / 1e3:,.0f}k")
        print("| {} | {} | {} |".format(*cells) if options.markdown else "{:36s} {:>8s} {:>10s}".format(*cells))


if __name__ == "__main__":
    main()
