"""Command modes and external wrenches against the float64 reference, and against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..sim.commands import CommandMode
from ..terrain.variants import TerrainVariant
from .agreement import BOUNDS, GRADE, SECONDS, draw_growth, road, state_differences
from .check import Record
from .fleet import CONTROL, Array, Fleet, reference_road
from .reference.commands64 import MODES, Commanded64


@dataclass(frozen=True)
class Case:
    """A road, a start speed [m/s], a mode, and the command as a function of time [s] by `Commanded64`'s names."""

    variant: TerrainVariant
    speed: float
    mode: str
    command: Callable[[float], dict[str, Any]] = field(default=lambda t: {})


def _vectored(t: float) -> dict[str, Any]:
    shift = 60.0 * np.sin(2.0 * t)
    return {"drive": [40.0 - shift, 40.0 + shift, 60.0 - shift, 60.0 + shift], "target": 0.03 * np.sin(1.3 * t)}


CASES = {
    "pedals": Case(
        road(), 10.0, "pedals", lambda t: {"pedal": [0.3 * (t < 4), 0.25 * (t > 5)], "steer": 0.1 * np.sin(t)}
    ),
    "pedals, μ 0.18": Case(road(friction=0.18), 12.0, "pedals", lambda t: {"pedal": [0.0, 0.6 * (t > 1)]}),
    "torque vectoring": Case(road(), 10.0, "wheel torque", _vectored),
    "wheel brakes on a grade": Case(
        road(GRADE), 9.0, "wheel torque", lambda t: {"hold": [120.0, 120.0, 80.0, 80.0], "target": 0.01}
    ),
    "reverse": Case(road(), 0.0, "wheel torque", lambda t: {"drive": [-80.0] * 4, "target": 0.05}),
    "steering by gains": Case(
        road(), 12.0, "steer pd", lambda t: {"gains": [90.0, 12.0], "target": 0.05 * (t % 4 < 2) - 0.02, "accel": 0.4}
    ),
    "side wind": Case(
        road(friction=0.5), 14.0, "driver", lambda t: {"push": [0, 900.0 * (2 < t < 4), 0, 0, 0, 300.0 * (2 < t < 4)]}
    ),
}


def differences(cases: list[Case], seconds: float) -> Array:
    """Differences of the five states of BOUNDS at every control step, [steps, 5, cases]."""
    variants, speed = [case.variant for case in cases], np.array([case.speed for case in cases])
    fleet = Fleet(variants, speed=speed)
    exact = Commanded64.start(reference_road(variants), speed=speed, count=len(cases))
    exact.order(mode=np.array([case.mode for case in cases], dtype=object))
    state, rows = fleet.sim.state, []
    modes = [MODES.index(case.mode) for case in cases]
    assert [CommandMode(k).name.lower().replace("_", " ") for k in range(4)] == list(MODES)
    for step in range(round(seconds / CONTROL)):
        asked = [case.command(step * CONTROL) for case in cases]
        value = {
            name: np.array([np.broadcast_to(item.get(name, 0.0), shape) for item in asked], dtype=np.float32)
            for name, shape in (
                *(("accel", ()), ("steer", ()), ("pedal", (2,)), ("drive", (4,)), ("hold", (4,))),
                *(("target", ()), ("gains", (2,)), ("push", (6,))),
            )
        }
        pedals = np.concatenate([value["pedal"], value["steer"][:, None]], axis=-1)
        command = np.stack([value["accel"], value["steer"]], axis=-1)
        state.command_mode[:, 0] = torch.tensor(modes, dtype=torch.int8)
        for view, array in (
            (state.command, command),
            (state.pedals, pedals),
            (state.drive_torque, value["drive"]),
            (state.brake_torque, value["hold"]),
            (state.steer_target, value["target"]),
            (state.steer_gains, value["gains"]),
            (state.wrench_force, value["push"][:, :3]),
            (state.wrench_torque, value["push"][:, 3:]),
        ):
            view[:, 0] = torch.from_numpy(np.ascontiguousarray(array))
        fleet.sim.control_step()
        wide = {name: array.astype(np.float64) for name, array in value.items()}
        exact.order(**{name: wide[name] for name in ("pedal", "drive", "hold", "target", "gains", "push")})
        exact.control_step(wide["accel"], wide["steer"])
        rows.append(state_differences(fleet, exact))
    fleet.close()
    return np.array(rows)


def run(record: Record) -> None:
    """Run all cases in both models side by side."""
    rows = differences(list(CASES.values()), SECONDS)
    worst = rows.max(axis=0)
    for k, name in enumerate(CASES):
        for row, (state, (bound, unit)) in enumerate(BOUNDS.items()):
            record.at_most(
                f"{name}: {state}",
                worst[row, k],
                bound,
                unit,
                states=f"Largest difference of {state} in {SECONDS:.0f} s.",
                source="independent float64 model of the command modes",
                plot="commands",
            )
    title = "command modes: float32 against float64"
    draw_growth(record, "commands", rows, CASES, title, "Growth of the position difference under each kind of command.")
