"""Checks of a simulator's arguments: what was given, as what the simulator works with, or a clear error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..terrain.variants import TerrainVariant
from .state_config import StateConfig
from .vehicle import VehicleParams


def positive_int(name: str, value: int, most: int) -> int:
    """An int in [1, most]."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int in [1, {most}], got {value!r}")
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be in [1, {most}], got {value}")
    return int(value)


def check_state_config(state: object) -> StateConfig:
    """A state configuration; None is the plain one."""
    if state is None:
        return StateConfig()
    if not isinstance(state, StateConfig):
        raise TypeError(f"state must be a StateConfig or None, got {state!r}")
    return state


def check_choices(variants: object, fused: object, params_per_world: object) -> None:
    """The roads and switches are of the right type."""
    if not isinstance(variants, Sequence) or isinstance(variants, str):
        raise TypeError(f"variants must be a sequence of TerrainVariant, got {variants!r}")
    for index, item in enumerate(variants):
        if not isinstance(item, TerrainVariant):
            raise TypeError(f"variants[{index}] must be a TerrainVariant, got {item!r}")
    if fused not in (None, True, False):
        raise TypeError(f"fused must be True, False or None, got {fused!r}")
    if params_per_world not in (True, False):
        raise TypeError(f"params_per_world must be True or False, got {params_per_world!r}")


def broadcast(name: str, value: object, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """A value broadcast to a shape."""
    array = np.asarray(value, dtype=dtype)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} of shape {array.shape} does not broadcast to {shape}") from None


def per_vehicle(vehicle: VehicleParams | Sequence[VehicleParams] | None, count: int) -> tuple[VehicleParams, ...]:
    """Parameters of each of the vehicles of a world."""
    if vehicle is None:
        vehicle = VehicleParams()
    if not isinstance(vehicle, (VehicleParams, Sequence)) or isinstance(vehicle, str):
        raise TypeError(f"vehicle must be VehicleParams or a sequence of them, got {vehicle!r}")
    vehicles = (vehicle,) * count if isinstance(vehicle, VehicleParams) else tuple(vehicle)
    for item in vehicles:
        if not isinstance(item, VehicleParams):
            raise TypeError(f"vehicle must be VehicleParams or a sequence of them, got {item!r}")
    if len(vehicles) != count:
        raise ValueError(f"vehicle has {len(vehicles)} entries for num_vehicles={count}")
    return vehicles


def world_variants(world_variant: Sequence[int] | None, worlds: int, variants: int) -> np.ndarray:
    """The variant of each world, int32."""
    if world_variant is None:
        return np.zeros(worlds, dtype=np.int32)
    index = np.asarray(world_variant)
    if index.shape != (worlds,) or not np.issubdtype(index.dtype, np.integer):
        raise ValueError(f"world_variant must be {worlds} integers, got shape {index.shape} of {index.dtype}")
    if index.min() < 0 or index.max() >= variants:
        raise ValueError(f"world_variant must lie in [0, {variants - 1}], got {index.min()} to {index.max()}")
    return index.astype(np.int32)
