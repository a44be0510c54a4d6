"""The lane-closure task: events, passage, merge, reward and the end of an episode."""

from __future__ import annotations

from .events import EVENT_NAMES, Event
from .termination import TaskConfig

__all__ = ["EVENT_NAMES", "Event", "TaskConfig"]
