"""Colours of the pictures, as sRGB bytes: surfaces, friction scale, vehicles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Color = tuple[int, int, int]

ASPHALT: Color = (84, 86, 90)
SHOULDER: Color = (138, 128, 108)
GRASS: Color = (104, 124, 78)
PAINT: Color = (232, 232, 226)
CLOSED_LANE: Color = (150, 66, 54)
CLOSED_HATCH: Color = (222, 178, 66)
SKY_HORIZON: Color = (206, 220, 232)
SKY_ZENITH: Color = (112, 156, 206)
TIRE: Color = (26, 27, 30)
HUB: Color = (176, 180, 186)
GLASS: Color = (34, 42, 54)
HEADLIGHT: Color = (250, 246, 226)
TAILLIGHT: Color = (196, 24, 28)
EGO: Color = (255, 208, 0)

MERGING: tuple[Color, ...] = ((206, 32, 41), (242, 112, 32), (226, 74, 132), (140, 62, 30), (250, 154, 104))
FOLLOWING: tuple[Color, ...] = (
    (30, 98, 214),
    (18, 150, 132),
    (112, 78, 206),
    (52, 168, 232),
    (34, 110, 60),
    (196, 206, 216),
    (34, 48, 116),
)

_FRICTION_STOPS: tuple[tuple[float, Color], ...] = (
    (0.05, (240, 250, 255)),
    (0.12, (166, 222, 250)),
    (0.25, (88, 178, 236)),
    (0.50, (52, 120, 190)),
    (0.70, (62, 94, 140)),
    (1.00, ASPHALT),
)


def friction_color(friction: float) -> Color:
    """Colour of a surface by its friction coefficient: asphalt grey at 1 through blue to near white at 0.05.

    Interpolated linearly in log friction; values outside [0.05, 1] take the colour of the nearer end.
    """
    logs = [math.log(value) for value, _ in _FRICTION_STOPS]
    at = math.log(max(friction, _FRICTION_STOPS[0][0]))
    stops = np.array([color for _, color in _FRICTION_STOPS], dtype=np.float64)
    red, green, blue = (int(round(float(np.interp(at, logs, stops[:, channel])))) for channel in range(3))
    return red, green, blue


def vehicle_colors(num_vehicles: int, merging: Sequence[int], ego: int | None) -> list[Color]:
    """One colour per vehicle: warm tones for merging vehicles, cool ones for the others, yellow for the ego."""
    warm = cool = 0
    colors: list[Color] = []
    merging_set = set(merging)
    for vehicle in range(num_vehicles):
        if vehicle in merging_set:
            colors.append(MERGING[warm % len(MERGING)])
            warm += 1
        else:
            colors.append(FOLLOWING[cool % len(FOLLOWING)])
            cool += 1
        if vehicle == ego:
            colors[-1] = EGO
    return colors


def unit(color: Color) -> tuple[float, float, float]:
    """Colour bytes as sRGB values in [0, 1], as Newton takes them."""
    return color[0] / 255.0, color[1] / 255.0, color[2] / 255.0
