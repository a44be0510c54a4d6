"""Allocation of the row arrays."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from ..task.kernels_errors import ErrorLog
from ..task.reward import REWARD_TERMS
from .kernels import RowArrays


def allocate_rows(
    num_worlds: int, controlled: Sequence[int], num_vehicles: int, errors: ErrorLog, device: wp.Device
) -> RowArrays:
    """Rows of the controlled vehicles of W worlds, all inactive until the first reset."""
    rows = RowArrays()
    shape = (num_worlds, len(controlled))
    rows.vehicle = wp.array(list(controlled), dtype=int, device=device)
    order = {vehicle: row for row, vehicle in enumerate(controlled)}
    rows.row_of_vehicle = wp.array([order.get(v, -1) for v in range(num_vehicles)], dtype=int, device=device)
    for name in (
        "active",
        "terminated",
        "truncated",
        "passage",
        "episode_start",
        "ended",
        "user_terminated",
        "final_passage",
    ):
        setattr(rows, name, wp.zeros(shape, dtype=wp.bool, device=device))
    for name in ("event", "code", "final_event"):
        setattr(rows, name, wp.zeros(shape, dtype=wp.int8, device=device))
    rows.reward = wp.zeros(shape, dtype=float, device=device)
    rows.terms = wp.zeros((*shape, len(REWARD_TERMS)), dtype=float, device=device)
    rows.collecting = wp.zeros((num_worlds, num_vehicles), dtype=wp.int8, device=device)
    rows.final_seed = wp.zeros(num_worlds, dtype=wp.uint64, device=device)
    rows.world_done = wp.zeros(num_worlds, dtype=wp.bool, device=device)
    rows.holding = wp.zeros(num_worlds, dtype=wp.int8, device=device)
    rows.errors = errors
    return rows
