"""When an episode ends, and the limits that decide an event."""

from __future__ import annotations

import math
from dataclasses import dataclass

CONTROL_HZ = 60
"""Control steps per second (paper, sec. 5)."""

MAX_HORIZON_S = 86_400.0
"""Longest episode [s]: a day."""

RULES = ("training", "scoring")


@dataclass(frozen=True, kw_only=True)
class TaskConfig:
    """Horizon and event limits.

    Attributes:
        horizon_s: Episode length [s] (paper: 66 s).
        rules: ``"training"``: an event terminates its row, a fault resets the world. ``"scoring"``: rows drive on
            after an event, a fault freezes the world.
        collision_margin: Growth of each footprint, per side [m].
        upright_limit: A body up-axis with a smaller z component has overturned.

    Raises:
        ValueError: If a value is out of range.
    """

    horizon_s: float = 66.0
    rules: str = "training"
    collision_margin: float = 0.05
    upright_limit: float = 0.2

    def __post_init__(self) -> None:
        """Validate."""
        steps = self.horizon_s * CONTROL_HZ
        if not 0.0 < self.horizon_s <= MAX_HORIZON_S or steps < 1 - 1e-6 or abs(steps - round(steps)) > 1e-6:
            raise ValueError(
                f"horizon_s must be a whole number >= 1 of control steps of 1/{CONTROL_HZ} s, at most "
                f"{MAX_HORIZON_S:g} s, got {self.horizon_s!r}"
            )
        if self.rules not in RULES:
            raise ValueError(f"rules must be one of {RULES}, got {self.rules!r}")
        if not (math.isfinite(self.collision_margin) and self.collision_margin >= 0.0):
            raise ValueError(f"collision_margin must be finite and >= 0 m, got {self.collision_margin!r}")
        if not -1.0 <= self.upright_limit < 1.0:
            raise ValueError(f"upright_limit must be in [-1, 1), got {self.upright_limit!r}")

    @property
    def horizon_steps(self) -> int:
        """Episode length [control steps]: 3,960 for 66 s."""
        return round(self.horizon_s * CONTROL_HZ)
