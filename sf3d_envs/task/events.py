"""Event codes, shared by training, evaluation and the infos."""

from __future__ import annotations

from enum import IntEnum


class Event(IntEnum):
    """What went wrong, in the order of precedence of ties (paper, appendix E)."""

    NONE = 0
    FAULT = 1
    """Overturned, out of the map, below the terrain or non-finite."""
    COLLISION = 2
    """Footprints, grown by the margin, intersect."""
    OFF_ROAD = 3
    """Centre outside the pavement."""
    INCURSION = 4
    """Centre in the closed lane, downstream of the closure's start."""


EVENT_NAMES: dict[int, str] = {int(event): event.name.lower() for event in Event}
"""Event code to the name used in tables: ``none``, ``fault``, ``collision``, ``off_road``, ``incursion``."""
