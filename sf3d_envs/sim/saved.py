"""Saving worlds of a simulator and putting them back: continuing a restored world equals never having stopped.

What a world carries from one control step to the next is all in arrays: the vehicles' state, commands and readings
(every array of ``VehicleArrays`` but the parameters), its road, gravity, ``stepping`` and overflow flag, and its
parameters where each world has its own. Contact points are found anew in every substep, on both solver paths, and are
not carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from .._warp import get_device
from .arrays import CARRIED, OPTIONAL, VehicleArrays
from .selection import Worlds, host_choice
from .vehicle import VehicleParams

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator

PER_WORLD = ("world_variant", "stepping", "gravity", "overflow")
"""What a saved state holds beside the vehicles' arrays, one row per world."""

FLAT = ("body_q", "body_qd", "params")
"""Arrays that have worlds and vehicles in one dimension, world-major."""


@dataclass(frozen=True, eq=False)
class SavedState:
    """N worlds as :meth:`~sf3d_envs.sim.simulator.Simulator.save` found them; a copy that no later step changes.

    It pickles, through host memory; unpickled it is on the CPU.

    Attributes:
        arrays: What the worlds carry, by the simulator's names, Warp arrays [N, ...]: ``body_q``, ``body_qd`` and all
            other vehicle arrays [N, V]; ``world_variant`` int, ``stepping`` int8, ``gravity`` vec3 [m/s²] and
            ``overflow`` int8, [N]; and ``params`` [N, K], K distinct vehicles, with parameters per world.
        vehicles: Parameters of the V vehicles of a world, as the simulator was built with.
        roads: Digests of the terrain bank's variants, in order.
        solver: Name of the solver.
    """

    arrays: Mapping[str, wp.array]
    vehicles: tuple[VehicleParams, ...]
    roads: tuple[str, ...]
    solver: str

    @property
    def num_worlds(self) -> int:
        """Number of saved worlds N."""
        return self.arrays["stepping"].shape[0]

    @property
    def device(self) -> wp.Device:
        """Device of the arrays."""
        device = self.arrays["stepping"].device
        assert device is not None
        return device

    def to(self, device: str | wp.Device) -> SavedState:
        """The same worlds on a device; itself if they are there.

        Raises:
            TypeError: If ``device`` is neither a string nor a Warp device.
            ValueError: If there is no such device.
        """
        device = get_device(device)
        if device == self.device:
            return self
        return replace(self, arrays={name: array.to(device) for name, array in self.arrays.items()})

    def state_dict(self) -> dict[str, Any]:
        """The worlds as tensors by name, and under ``"fit"`` what a simulator must agree in, as plain values.

        The tensors share the memory of :attr:`arrays`; ``torch.save`` writes the dictionary, and ``torch.load`` reads
        it with ``weights_only=True``.
        """
        from .state_dict import to_state_dict

        return to_state_dict(self)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> SavedState:
        """Worlds from :meth:`state_dict`, a copy of the tensors, on their device.

        Raises:
            TypeError: If it is no dictionary of tensors.
            ValueError: If a name is missing or unknown, or a tensor has the wrong dtype or shape.
        """
        from .state_dict import from_state_dict

        return from_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        """Fields, with the arrays on the host as NumPy arrays."""
        return {**vars(self), "arrays": {name: array.numpy() for name, array in self.arrays.items()}}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Rebuild the arrays on the CPU."""
        arrays = {n: wp.array(a, dtype=carried_dtype(n), device="cpu") for n, a in fields["arrays"].items()}
        self.__dict__.update(fields, arrays=arrays)


def save_worlds(sim: Simulator, worlds: Worlds) -> SavedState:
    """Copies of chosen worlds of an open simulator; see :meth:`~sf3d_envs.sim.simulator.Simulator.save`."""
    _raise_pending(sim)
    index = host_choice("worlds", worlds, sim.num_worlds, sim.device, once=True)
    if index.size == 0:
        raise ValueError("worlds is empty; save at least one world, or None for all")
    carried = _carried(sim)
    arrays = {
        name: wp.empty((index.size, *_row_shape(name, array, sim.num_worlds)), dtype=array.dtype, device=sim.device)
        for name, array in carried.items()
    }
    _copy(sim, carried, index, sim.num_worlds, arrays, np.arange(index.size), index.size)
    return SavedState(arrays, sim.vehicles, _roads(sim), sim.solver_name)


def restore_worlds(sim: Simulator, saved: SavedState, worlds: Worlds, source: Worlds) -> None:
    """Overwrite chosen worlds of an open simulator; see :meth:`~sf3d_envs.sim.simulator.Simulator.restore`."""
    if not isinstance(saved, SavedState):
        raise TypeError(f"saved must be a SavedState, as save() returns it, got {type(saved).__name__}")
    _raise_pending(sim)
    carried = _carried(sim)
    _check_fit(sim, saved, carried)
    target = host_choice("worlds", worlds, sim.num_worlds, sim.device, once=True)
    origin = host_choice("source", source, saved.num_worlds, sim.device)
    if source is not None and np.ndim(source) == 0:
        origin = np.repeat(origin, target.size)
    if origin.size != target.size:
        raise ValueError(
            f"{target.size} worlds cannot be restored from {origin.size} saved ones: worlds and source must name "
            f"equally many (saved holds {saved.num_worlds}, the simulator {sim.num_worlds}), or source one index"
        )
    if target.size:
        _copy(sim, saved.arrays, origin, saved.num_worlds, carried, target, sim.num_worlds)
        _clear_optional(sim, target)


def _raise_pending(sim: Simulator) -> None:
    """Raise what the device refused before: a call that waits for it says so."""
    if sim._state is not None:
        sim._state.check()


def _clear_optional(sim: Simulator, worlds: np.ndarray) -> None:
    """Restored worlds have taken no step: no contact sums, no acceleration."""
    import torch

    with wp.ScopedStream(sim.shards.torch_stream(), sync_exit=True):
        rows = torch.from_numpy(worlds.astype(np.int64)).to(wp.device_to_torch(sim.device))
        for name in OPTIONAL:
            array = getattr(sim.arrays, name)
            if array.shape[0]:
                wp.to_torch(array)[rows] = 0


def _carried(sim: Simulator) -> dict[str, wp.array]:
    """Live arrays of everything that worlds carry from step to step, W rows each or a multiple of W."""
    found = {name: getattr(sim.arrays, name) for name in CARRIED}
    found["world_variant"], found["stepping"] = sim.world_variant, sim.stepping
    found["gravity"] = sim.dynamics.gravity[: sim.num_worlds]  # the last entry belongs to no world
    found["overflow"] = sim.dynamics.rigid_contacts.overflow
    if sim.dynamics.params_per_world:
        found["params"] = sim.arrays.params
    return found


def carried_dtype(name: str) -> Any:
    """Warp type of the elements of a carried array."""
    if name in VehicleArrays.vars:
        return VehicleArrays.vars[name].type.dtype
    return {"world_variant": int, "gravity": wp.vec3}.get(name, wp.int8)


def _row_shape(name: str, array: wp.array, worlds: int) -> tuple[int, ...]:
    """Shape of one world's part of an array."""
    return (array.shape[0] // worlds,) if name in FLAT else array.shape[1:]


def _roads(sim: Simulator) -> tuple[str, ...]:
    return tuple(variant.digest for variant in sim.bank.variants)


def _check_fit(sim: Simulator, saved: SavedState, carried: Mapping[str, wp.array]) -> None:
    """Refuse worlds of another kind of simulator.

    Raises:
        ValueError: Naming what differs.
    """
    if saved.device != sim.device:
        raise ValueError(
            f"saved is on {saved.device.alias}, the simulator on {sim.device.alias}; "
            f"saved.to({sim.device.alias!r}) copies it there"
        )
    if saved.solver != sim.solver_name:
        raise ValueError(f"saved is of solver {saved.solver!r}, the simulator has {sim.solver_name!r}")
    if len(saved.vehicles) != sim.num_vehicles:
        raise ValueError(f"saved has {len(saved.vehicles)} vehicles per world, the simulator {sim.num_vehicles}")
    for number, (theirs, ours) in enumerate(zip(saved.vehicles, sim.vehicles, strict=True)):
        if theirs != ours:
            name = next(name for name in vars(ours) if getattr(theirs, name) != getattr(ours, name))
            raise ValueError(
                f"saved has {name} {getattr(theirs, name)!r} for vehicle {number}, the simulator "
                f"{getattr(ours, name)!r}; all parameters must agree"
            )
    if ("params" in saved.arrays) != ("params" in carried):
        has = {True: "vehicle parameters per world", False: "vehicle parameters shared by all worlds"}
        raise ValueError(
            f"saved has {has['params' in saved.arrays]}, the simulator {has['params' in carried]}; params_per_world "
            f"must agree"
        )
    variant = saved.arrays["world_variant"].numpy()
    if variant.min() < 0 or variant.max() >= len(saved.roads):
        raise ValueError(
            f"saved has world_variant {variant.min()} to {variant.max()}; it must lie in [0, {len(saved.roads) - 1}]"
        )
    roads = _roads(sim)
    if len(saved.roads) != len(roads):
        raise ValueError(f"saved is of a bank of {len(saved.roads)} terrain variants, the simulator has {len(roads)}")
    for number, (theirs, ours) in enumerate(zip(saved.roads, roads, strict=True)):
        if theirs != ours:
            raise ValueError(
                f"saved has another road than the simulator as terrain variant {number} "
                f"({sim.bank.variants[number].name!r}); heights, patches and base friction must agree"
            )


def _copy(
    sim: Simulator,
    source: Mapping[str, wp.array],
    source_row: np.ndarray,
    source_count: int,
    target: Mapping[str, wp.array],
    target_row: np.ndarray,
    target_count: int,
) -> None:
    """Copy worlds between equal sets of arrays, on the device and in the order of the simulator's steps."""
    import torch  # physics alone does without

    with wp.ScopedStream(sim.shards.torch_stream(), sync_exit=True):
        device = wp.device_to_torch(sim.device)
        read, write = (torch.from_numpy(rows.astype(np.int64)).to(device) for rows in (source_row, target_row))
        for name, array in target.items():
            rows = rows_of(array, target_count)
            rows[write] = rows_of(source[name], source_count)[read].reshape(-1, *rows.shape[1:])


def rows_of(array: wp.array, count: int) -> torch.Tensor:
    """View of an array's memory as integers [count, ...], whatever they stand for: a copy then keeps every bit."""
    item = wp.types.type_size_in_bytes(array.dtype)
    if array.is_contiguous:
        size = array.size * item // count
        word, width = (wp.int32, 4) if size % 4 == 0 else (wp.uint8, 1)
        shape, strides = (count, size // width), None
    else:  # poses and velocities: [count * each] with a stride
        each, stride = array.shape[0] // count, array.strides[0]
        word, shape, strides = wp.int32, (count, each, item // 4), (each * stride, stride, 4)
    view: Any = wp.array(ptr=array.ptr, dtype=word, shape=shape, strides=strides, device=array.device)  # pyright: ignore
    return wp.to_torch(view)
