"""Friction patches: closed discs and rotated rectangles with their own surface friction."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ..numbers import finite_number


def _require_patch(patch: Disc | Rectangle, *sizes: str) -> None:
    """Raise ValueError unless all numbers are finite, the named sizes are above 0 and the friction is at least 0."""
    kind = type(patch).__name__.lower()
    for field in fields(patch):
        finite_number(f"{kind} {field.name}", getattr(patch, field.name))
    for name in sizes:
        if getattr(patch, name) <= 0.0:
            raise ValueError(f"{kind} {name} must be above 0 m, got {getattr(patch, name)}")
    if patch.friction < 0.0:
        raise ValueError(f"{kind} friction must be at least 0, got {patch.friction}")


@dataclass(frozen=True, kw_only=True)
class Disc:
    """A disc; its rim belongs to it.

    Attributes:
        x: Centre x [m].
        y: Centre y [m].
        radius: Radius [m], above 0.
        friction: Surface friction coefficient [-], at least 0.

    Raises:
        ValueError: A number is out of range or not finite; the text names it.
    """

    x: float
    y: float
    radius: float
    friction: float

    def __post_init__(self) -> None:
        """Refuse empty or non-finite discs."""
        _require_patch(self, "radius")

    def contains(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether points x, y [m] lie in the disc; bool of the broadcast shape."""
        dx, dy = np.asarray(x, dtype=np.float64) - self.x, np.asarray(y, dtype=np.float64) - self.y
        return dx * dx + dy * dy <= self.radius * self.radius


@dataclass(frozen=True, kw_only=True)
class Rectangle:
    """A rotated rectangle; its edges belong to it.

    Attributes:
        x: Centre x [m].
        y: Centre y [m].
        length: Size along the local x axis [m], above 0.
        width: Size along the local y axis [m], above 0.
        yaw: Angle from world x to local x, counter-clockwise [rad].
        friction: Surface friction coefficient [-], at least 0.

    Raises:
        ValueError: A number is out of range or not finite; the text names it.
    """

    x: float
    y: float
    length: float
    width: float
    yaw: float = 0.0
    friction: float

    def __post_init__(self) -> None:
        """Refuse empty or non-finite rectangles."""
        _require_patch(self, "length", "width")

    def contains(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether points x, y [m] lie in the rectangle; bool of the broadcast shape."""
        dx, dy = np.asarray(x, dtype=np.float64) - self.x, np.asarray(y, dtype=np.float64) - self.y
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        along, across = dx * cos + dy * sin, dy * cos - dx * sin
        return (np.abs(along) <= 0.5 * self.length) & (np.abs(across) <= 0.5 * self.width)
