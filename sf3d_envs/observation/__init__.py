"""What a driver sees: the channel table, the kernel that writes it, and the view that agents read."""

from __future__ import annotations

from .spec import OBSERVATION, PREVIEW, Channel, ObservationSpec, observation_docs

__all__ = ["OBSERVATION", "PREVIEW", "Channel", "ObservationSpec", "observation_docs"]
