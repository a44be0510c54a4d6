"""Checks of single numbers that people give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def finite_number(name: str, value: Any) -> float:
    """The value as a float.

    Args:
        name: What it is, for the message.
        value: What was given.

    Raises:
        TypeError: If it is no real number (a bool is none).
        ValueError: If it is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {str(value)[:40]}")
    return number
