"""The groups of checks: names, titles and the modules that run them. Importing this table loads no physics."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from .check import Record


@dataclass(frozen=True)
class Group:
    """A group of checks.

    Attributes:
        name: Name for `--only`.
        title: Heading of the report.
        about: One sentence: how the values are measured.
        module: Module of this package whose `run(record)` does it.
        full_only: Whether it runs with `--full` alone.
    """

    name: str
    title: str
    about: str
    module: str
    full_only: bool = False

    def run(self, record: Record) -> None:
        """Measure, and put checks and plots into a record."""
        importlib.import_module(f"{__package__}.{self.module}").run(record)


GROUPS: tuple[Group, ...] = (
    Group(
        "suspension",
        "Suspension: rest and damped modes",
        "A parked car, and cars released 2 cm too high or 0.02 rad tilted, sampled at 240 Hz.",
        "suspension",
    ),
    Group(
        "straight",
        "Launch and braking",
        "Straight driving on planes of one friction coefficient, and onto patches; 60 Hz commands, 240 Hz physics.",
        "straight",
    ),
    Group("slopes", "Slopes", "Cars that roll freely, hold their brakes or stand on inclined planes.", "slopes"),
    Group(
        "wheel",
        "Wheel update and friction circle",
        "One substep from thousands of random states of motion, read back through the simulator's state.",
        "wheel",
    ),
    Group(
        "agreement",
        "State by state against float64",
        "The same manoeuvres in the simulator (float32) and in an independent float64 model, 10 s, compared at 60 Hz.",
        "agreement",
    ),
    Group(
        "commands",
        "Command modes and external wrench against float64",
        "Pedals, wheel torques, steering by gains and a side wind in the simulator and in the float64 model, 10 s.",
        "commands",
    ),
    Group(
        "timestep",
        "Time-step convergence",
        "The same manoeuvres at 120, 240, 480 and 960 Hz, compared with 3,840 Hz.",
        "timestep",
    ),
    Group(
        "circle",
        "Steady-state circle (ISO 4138) and lateral limit",
        "A driver holds a 60 m circle at constant speeds; ramped steering finds the limit.",
        "circle",
    ),
    Group(
        "step-steer",
        "Step steer (ISO 7401)",
        "A step of the steering angle at constant speed, against the linear bicycle model.",
        "step_steer",
    ),
    Group(
        "lane-change",
        "Double lane change (ISO 3888-1)",
        "A preview path follower drives between the standard's cone lanes at rising entry speeds.",
        "lane_change",
    ),
    Group(
        "contact",
        "Rigid contact",
        "Boxes that meet in free flight, on the road, on their roof, at a terrain step, and twelve in a pile.",
        "contact",
    ),
    Group(
        "roads",
        "Every condition reaches wheels, preview and chassis of its own worlds",
        "One simulator with the variants of all conditions of the suite, one world each.",
        "roads",
    ),
    Group(
        "bits",
        "Bitwise promises",
        "Worlds of twelve colliding vehicles, compared byte by byte.",
        "bits",
    ),
    Group(
        "solvers",
        "Two solver paths",
        "The fused solver against Newton's XPBD with the same force model.",
        "solvers",
        full_only=True,
    ),
)


def select(names: Sequence[str] | None, full: bool) -> tuple[Group, ...]:
    """Groups to run, in the report's order.

    Raises:
        ValueError: If a name is unknown, or none is given.
    """
    known = {group.name: group for group in GROUPS}
    if names is None:
        return tuple(group for group in GROUPS if full or not group.full_only)
    if not names:
        raise ValueError(f"groups is empty; known: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ValueError(f"group {name!r} is unknown; known: {', '.join(known)}")
        if known[name].full_only and not full:
            raise ValueError(f"group {name!r} runs with --full (full=True) only")
    return tuple(group for group in GROUPS if group.name in names)
