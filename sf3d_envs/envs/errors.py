"""What went wrong: which world, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..sim.dynamics import CONTROL_HZ
from ..task.kernels_errors import ErrorLog

REASONS = {
    "action": "a non-finite action was replaced by zero",
    "traffic": "a non-finite traffic command was replaced by zero",
    "reward": "a non-finite user reward was replaced by zero",
    "state": "the state turned non-finite; the vehicle was put back to its start and the world had a fault",
    "contacts": "more contacts than the buffer holds; some were left out",
}
"""Reasons of an error and what they mean, in the order of the device's log."""


@dataclass(frozen=True, kw_only=True)
class WorldError:
    """The first error of one kind in an episode of a world.

    Attributes:
        world: Index of the world.
        reason: "action", "traffic", "reward", "state" or "contacts"; see :data:`REASONS`.
        vehicle: The vehicle (0-11), the lowest if it struck several at once; None if it concerns the world as a whole.
        row: Row of that vehicle in the world's actions and rewards; None if it has none.
        step: Control step of the episode in which it happened, from 1.
        decision: Decision of the episode in which it happened, from 1.
        time_s: Simulated time at the end of that control step [s].
        scenario_seed: Scenario of the episode; ``options={"scenario_seed": ...}`` runs it again.
        running: Whether the episode still runs; False for one that the world's reset has ended.
        episodes: Episodes of this world that had this error, since construction.
    """

    world: int
    reason: str
    vehicle: int | None
    row: int | None
    step: int
    decision: int
    time_s: float
    scenario_seed: int
    running: bool
    episodes: int

    def __str__(self) -> str:
        """One line for people."""
        who = "" if self.vehicle is None else f", vehicle {self.vehicle}"
        when = f"{self.time_s:.3f} s (control step {self.step}, decision {self.decision})"
        return f"world {self.world}{who}, scenario {self.scenario_seed}, {when}: {REASONS[self.reason]}"


def read_errors(
    log: ErrorLog, controlled: Sequence[int], steps_per_decision: int, *, past: bool = False
) -> list[WorldError]:
    """Copy the log to the host, sorted by world, then time.

    Args:
        log: The device's log.
        controlled: Vehicle of each row.
        steps_per_decision: Control steps of a decision.
        past: Also the last error of each kind of a world whose running episode has none.
    """
    arrays = {name: getattr(log, name).numpy() for name in ("episode", "seed", "step", "vehicle", "episodes")}
    running = log.running.numpy()
    reasons, found = list(REASONS), []
    for world, kind in np.argwhere(arrays["episode"] > 0):
        at = (world, kind)
        current = bool(arrays["episode"][at] == running[world])
        if not current and not past:
            continue
        step, vehicle = int(arrays["step"][at]), int(arrays["vehicle"][at])
        found.append(
            WorldError(
                world=int(world),
                reason=reasons[kind],
                vehicle=None if vehicle < 0 else vehicle,
                row=controlled.index(vehicle) if vehicle in controlled else None,
                step=step,
                decision=(step - 1) // steps_per_decision + 1,
                time_s=step / CONTROL_HZ,
                scenario_seed=int(arrays["seed"][at]),
                running=current,
                episodes=int(arrays["episodes"][at]),
            )
        )
    return sorted(found, key=lambda error: (error.world, not error.running, error.step))
