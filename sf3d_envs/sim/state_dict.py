"""Saved worlds as a dictionary of tensors, and back, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import warp as wp

from .arrays import CARRIED, VehicleArrays
from .saved import PER_WORLD, SavedState, carried_dtype, rows_of
from .vehicle import VehicleData, VehicleParams

NATIVE = {int: wp.int32, float: wp.float32}
"""Warp's names of the Python types that kernels are annotated with."""


def _as_tensor(array: wp.array) -> torch.Tensor:
    """A dense array as a torch tensor; parameter structs, which torch does not know, as 32-bit words."""
    if array.dtype is VehicleData:
        return rows_of(array, array.shape[0])
    return wp.to_torch(array)


def to_state_dict(saved: SavedState) -> dict[str, Any]:
    """See :meth:`~sf3d_envs.sim.saved.SavedState.state_dict`."""
    vehicles = [vars(car).copy() for car in saved.vehicles]
    fit = {"solver": saved.solver, "roads": list(saved.roads), "vehicles": vehicles}
    return {**{name: _as_tensor(array) for name, array in saved.arrays.items()}, "fit": fit}


def from_state_dict(state: Mapping[str, Any]) -> SavedState:
    """See :meth:`~sf3d_envs.sim.saved.SavedState.from_state_dict`."""
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a dictionary as state_dict() returns it, got {type(state).__name__}")
    fit = state.get("fit")
    if not isinstance(fit, Mapping) or set(fit) != {"solver", "roads", "vehicles"}:
        raise ValueError("state has no 'fit' with solver, roads and vehicles; state_dict() makes one")
    vehicles = tuple(VehicleParams.from_dict(dict(values)) for values in fit["vehicles"])
    known = (*CARRIED, *PER_WORLD)
    names = [name for name in state if name != "fit"]
    if missing := [name for name in known if name not in names]:
        raise ValueError(f"state lacks {missing[0]!r}; it must hold {', '.join(known)}")
    if unknown := [name for name in names if name not in (*known, "params")]:
        raise ValueError(f"state holds {unknown[0]!r}, which is no array of a saved state")
    arrays, worlds = {}, None
    for name in names:
        tensor = state[name]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"state[{name!r}] must be a tensor, got {type(tensor).__name__}")
        worlds = tensor.shape[0] if worlds is None and tensor.dim() else worlds
        arrays[name] = _array_of(name, tensor.detach().clone().contiguous(), worlds, len(vehicles))
    return SavedState(arrays, vehicles, tuple(fit["roads"]), fit["solver"])


def _array_of(name: str, tensor: torch.Tensor, worlds: int | None, vehicles: int) -> wp.array:
    """The Warp array of a saved tensor.

    Raises:
        ValueError: If its dtype or shape is not that of the array.
    """
    kind = carried_dtype(name)
    kind = NATIVE.get(kind, kind)
    if name == "params":
        words = wp.types.type_size_in_bytes(kind) // 4
        if tensor.dtype != torch.int32 or tensor.dim() != 2 or tensor.shape[0] != worlds or tensor.shape[1] % words:
            raise ValueError(
                f"state['params'] must be int32 [{worlds}, n·{words}], got {tensor.dtype} {list(tensor.shape)}"
            )
        shape = (tensor.shape[0], tensor.shape[1] // words)
        array = wp.array(ptr=tensor.data_ptr(), dtype=kind, shape=shape, device=wp.device_from_torch(tensor.device))
        array._ref = tensor
        return array
    dims = 0 if name in PER_WORLD else max(VehicleArrays.vars[name].type.ndim, 2) - 1
    tail = (vehicles, 4)[:dims]
    inner = tuple(getattr(kind, "_shape_", ()))
    scalar = wp.dtype_to_torch(getattr(kind, "_wp_scalar_type_", kind))
    wanted = (worlds, *tail, *inner)
    if tensor.dtype != scalar or tuple(tensor.shape) != wanted:
        raise ValueError(f"state[{name!r}] must be {scalar} {list(wanted)}, got {tensor.dtype} {list(tensor.shape)}")
    return wp.from_torch(tensor, dtype=kind)
