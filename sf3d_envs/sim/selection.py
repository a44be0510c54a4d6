"""Which worlds and vehicles a call means, and the checks of the tensors it is given.

What the host knows (ints, lists, arrays, and every tensor of a CPU simulator) is checked at once. On a GPU the contents
of a tensor are checked by the device, without waiting: a call with a bad tensor writes nothing and leaves a
:class:`Refusals` record, which the next synchronizing call raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Worlds = Any
"""None = all, an int, ints (list, tuple, range, NumPy), an index tensor [n], or a bool mask [E] in one of these."""
Vehicles = int | Sequence[int] | None
"""None = all, an int or ints."""


def host_indices(name: str, value: Worlds, count: int, *, once: bool = False) -> np.ndarray:
    """Indices that a choice means, int32.

    Args:
        name: Name of the argument.
        value: The choice; tensors must be on the host.
        count: Number of things to choose from.
        once: Whether each may be named only once.

    Raises:
        TypeError: If it is no choice.
        ValueError: If an index is out of range, or comes twice where each may come once.
    """
    if value is None:
        return np.arange(count, dtype=np.int32)
    wrong = TypeError(f"{name} must be None, an int, ints [n] or a bool mask [{count}], got {value!r}")
    try:
        index = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        raise wrong from None
    if index.dtype == bool and index.ndim == 1:
        if index.shape != (count,):
            raise ValueError(f"{name} as a mask must be bool of shape ({count},), got shape {index.shape}")
        return np.flatnonzero(index).astype(np.int32)
    if index.size == 0 and index.ndim == 1:
        return np.empty(0, dtype=np.int32)
    if index.ndim > 1 or not np.issubdtype(index.dtype, np.integer):
        raise wrong
    if isinstance(value, (list, tuple)) and any(isinstance(item, (bool, np.bool_)) for item in value):
        raise wrong  # NumPy reads True among ints as 1
    index = np.atleast_1d(index)
    bad = index[(index < 0) | (index >= count)]
    if bad.size:
        raise ValueError(f"{name} must lie in [0, {count - 1}], got {bad[0]}")
    if once and np.unique(index).size != index.size:
        values, times = np.unique(index, return_counts=True)
        raise ValueError(f"{name} must name each once, got {values[times.argmax()]} {times.max()} times")
    return index.astype(np.int32)


def host_choice(name: str, value: Worlds, count: int, device: Any, *, once: bool = False) -> np.ndarray:
    """As :func:`host_indices`, for tensors on the simulator's device too; waits for it.

    Raises:
        TypeError: If it is no choice.
        ValueError: As :func:`host_indices`, or if a tensor is on another device.
    """
    if hasattr(value, "detach"):  # a tensor; physics alone does without torch
        check_index_tensor(name, value, count, device)
        value = value.cpu().numpy()
    return host_indices(name, value, count, once=once)


def check_index_tensor(name: str, value: torch.Tensor, count: int, device: Any) -> None:
    """Refuse a tensor that cannot be a choice, by what the host knows of it.

    Raises:
        TypeError: If it is neither a dense index tensor nor a mask.
        ValueError: If it is on another device, or a mask of another length.
    """
    import torch

    if str(value.device) != str(device):
        raise ValueError(f"{name} is on {value.device}, the simulator on {device}; nothing is moved silently")
    wanted = f"{name} must be a dense int32 or int64 index tensor [n] or a bool mask [{count}]"
    if value.layout != torch.strided:
        raise TypeError(f"{wanted}, got layout {value.layout}")
    is_mask = value.dtype == torch.bool
    if not (is_mask or value.dtype in (torch.int32, torch.int64)) or value.dim() > 1 or (is_mask and value.dim() == 0):
        raise TypeError(f"{wanted}, got {value.dtype} of shape {tuple(value.shape)}")
    if is_mask and value.shape != (count,):
        raise ValueError(f"{name} as a mask must be bool of shape ({count},), got shape {tuple(value.shape)}")


def to_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """A host array on a device; pinned on the way, since a copy of pageable memory waits for the device."""
    import torch

    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


RECORDED = 12
"""Numbers that a refusal may name."""


class Refusals:
    """What calls were refused by the device: the first one since the last look.

    Args:
        device: Torch device of the simulator.
        deferred: Whether contents of tensors are checked by the device; None = on a GPU.
    """

    def __init__(self, device: torch.device, deferred: bool | None = None):
        import torch

        self.deferred = device.type != "cpu" if deferred is None else deferred
        self.device = device
        self._texts: list[str] = []
        self._record = torch.zeros(1 + RECORDED, dtype=torch.float64, device=device)
        self._constants: dict[tuple[float, ...], torch.Tensor] = {}

    def constant(self, *numbers: float) -> torch.Tensor:
        """Float32 numbers on the device, copied there once."""
        if numbers not in self._constants:
            self._constants[numbers] = to_device(np.array(numbers, dtype=np.float32), self.device)
        return self._constants[numbers]

    def note(self, bad: torch.Tensor, value: torch.Tensor, text: str) -> torch.Tensor:
        """Raise or record a refusal.

        Args:
            bad: Whether something is wrong, bool, no dimensions.
            value: The offending number or numbers, at most 12.
            text: The error, with a ``{}`` for each number.

        Returns:
            Whether all is well, bool, no dimensions.

        Raises:
            ValueError: If something is wrong and nothing is deferred.
        """
        if not self.deferred:
            if bool(bad):
                raise ValueError(text.format(*map(_number, value.reshape(-1).tolist())))
            return ~bad
        import torch

        if text not in self._texts:
            self._texts.append(text)
        now = torch.zeros_like(self._record)
        now[:1].fill_(self._texts.index(text) + 1)
        now[1 : 1 + value.numel()] = value.reshape(-1)
        self._record.copy_(torch.where(bad & (self._record[0] == 0), now, self._record))
        return ~bad

    def check(self) -> None:
        """Wait for the device and raise the first refusal since the last look.

        Raises:
            ValueError: If a call was refused.
        """
        if not self.deferred:
            return
        code, *numbers = self._record.tolist()
        if code:
            self._record.zero_()
            text = self._texts[int(code) - 1].format(*map(_number, numbers))
            raise ValueError(f"{text} (an earlier call; it wrote nothing)")


def _number(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:g}"


@dataclass(frozen=True)
class Choice:
    """Chosen worlds and vehicles on the device.

    Attributes:
        rows: Rows that a value has: n for n worlds by index, else E.
        index: Chosen worlds, int64 [n]; None with a mask, or for all worlds.
        mask: Chosen worlds, bool [E]; None otherwise.
        vehicles: Chosen vehicles, int64 [m]; None for all.
        columns: Number of chosen vehicles m.
        allowed: False on the device if the choice was refused; None if it was checked already.
    """

    rows: int
    index: torch.Tensor | None
    mask: torch.Tensor | None
    vehicles: torch.Tensor | None
    columns: int
    allowed: torch.Tensor | None

    @property
    def everything(self) -> bool:
        """Whether all vehicles of all worlds are chosen."""
        return self.index is None and self.mask is None and self.vehicles is None

    def write(self, target: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor | None) -> None:
        """Write a value [rows, m, ...] into the chosen rows of a target [E, V, ...].

        Args:
            target: Tensor over the simulator's memory.
            value: What to write, broadcast to its shape.
            allowed: False on the device to write nothing; None = allowed.
        """
        import torch

        if self.everything and allowed is None:
            target.copy_(value)
            return
        tail = target.shape[2:]
        value = value.expand(self.rows, self.columns, *tail)
        vehicles = slice(None) if self.vehicles is None else self.vehicles
        if self.index is not None:
            where: Any = (self.index, vehicles) if self.vehicles is None else (self.index[:, None], self.vehicles)
            now = value if allowed is None else torch.where(allowed, value, target[where])
            target[where] = now
            return
        keep = torch.ones((), dtype=torch.bool, device=target.device) if allowed is None else allowed
        if self.mask is not None:
            keep = keep & self.mask.reshape(-1, *[1] * (target.dim() - 1))
        target[:, vehicles] = torch.where(keep, value, target[:, vehicles])

    def marks(self, shape: tuple[int, int], allowed: torch.Tensor | None, device: torch.device) -> torch.Tensor:
        """The chosen vehicles as a bool mask [E, V]."""
        import torch

        marks = torch.zeros(shape, dtype=torch.bool, device=device)
        self.write(marks, torch.ones((), dtype=torch.bool, device=device), allowed)
        return marks


def choose(worlds: Worlds, vehicles: Vehicles, shape: tuple[int, int], refusals: Refusals) -> Choice:
    """Resolve a choice of worlds and vehicles of [E, V].

    Raises:
        TypeError: If it is no choice.
        ValueError: If something is out of range, comes twice, or a tensor is on another device.
    """
    import torch

    device = refusals.device
    columns = None
    if vehicles is not None:
        if isinstance(vehicles, torch.Tensor) or np.asarray(vehicles).dtype == bool:
            raise TypeError(f"vehicles must be None, an int or ints, got {vehicles!r}")
        columns = host_indices("vehicles", vehicles, shape[1], once=True)
    chosen = None if columns is None else to_device(columns.astype(np.int64), device)
    width = shape[1] if columns is None else len(columns)
    if worlds is None:
        return Choice(shape[0], None, None, chosen, width, None)
    if isinstance(worlds, torch.Tensor):
        check_index_tensor("worlds", worlds, shape[0], device)
        if refusals.deferred:
            return _choose_on_device(worlds, shape[0], chosen, width, refusals)
        worlds = worlds.cpu().numpy()
    mask = np.asarray(worlds) if not isinstance(worlds, (int, range)) else None
    if mask is not None and mask.dtype == bool and mask.ndim == 1:
        host_indices("worlds", mask, shape[0])
        return Choice(shape[0], None, to_device(mask.copy(), device), chosen, width, None)
    index = host_indices("worlds", worlds, shape[0], once=True)
    return Choice(len(index), to_device(index.astype(np.int64), device), None, chosen, width, None)


def _choose_on_device(
    worlds: torch.Tensor, count: int, vehicles: torch.Tensor | None, width: int, refusals: Refusals
) -> Choice:
    """A tensor's choice, its contents checked by the device."""
    import torch

    if worlds.dtype == torch.bool:
        return Choice(count, None, worlds, vehicles, width, None)
    index = worlds.long().reshape(-1)
    if len(index) == 0:
        return Choice(0, index, None, vehicles, width, None)
    outside = (index < 0) | (index >= count)
    text = f"worlds must lie in [0, {count - 1}], got {{}}"
    inside = refusals.note(outside.any(), first_of(index, outside), text)
    safe = index.clamp(0, count - 1)
    times = torch.zeros(count, dtype=torch.int64, device=index.device).index_add_(0, safe, torch.ones_like(safe))
    once = refusals.note((times > 1).any() & inside, times.argmax(), "worlds must name each once, got {} several times")
    return Choice(len(index), safe, None, vehicles, width, inside & once)


def first_of(value: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """The first marked number. Indexing by a tensor without dimensions would wait for the device; ``take`` does not."""
    return value.reshape(-1).take(marks.reshape(-1).int().argmax())


def check_value(name: str, value: Any, choice: Choice, tail: tuple[int, ...], refusals: Refusals) -> torch.Tensor:
    """A float32 tensor on the device that broadcasts to [rows, m, *tail].

    Raises:
        TypeError: If it is no dense float32 tensor.
        ValueError: If it is on another device, not contiguous, or of another shape.
    """
    import torch

    shape = (choice.rows, choice.columns, *tail)
    wanted = f"a contiguous float32 tensor on {refusals.device} that broadcasts to {shape}"
    if not isinstance(value, torch.Tensor):
        hint = "; torch.as_tensor(value, dtype=torch.float32) makes one"
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}{hint}")
    if value.device != refusals.device:
        raise ValueError(f"{name} must be {wanted}, got one on {value.device}; nothing is moved silently")
    if value.dtype != torch.float32:
        raise TypeError(f"{name} must be {wanted}, got {value.dtype}")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be {wanted}, got layout {value.layout}")
    if not value.is_contiguous():
        raise ValueError(f"{name} must be {wanted}, got strides {value.stride()}; value.contiguous() makes one")
    try:
        fits = torch.broadcast_shapes(value.shape, shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"{name} must be {wanted}, got shape {tuple(value.shape)}")
    return value.detach()


def check_range(
    name: str, value: torch.Tensor, refusals: Refusals, low: Any = None, high: Any = None, said: str = "finite"
) -> torch.Tensor:
    """Whether all numbers are finite and within limits; a bool without dimensions.

    Raises:
        ValueError: If one is not, where nothing is deferred.
    """
    import torch

    wrong = ~torch.isfinite(value)
    if low is not None:
        wrong = wrong | (value < low)
    if high is not None:
        wrong = wrong | (value > high)
    if value.numel() == 0:
        return torch.ones((), dtype=torch.bool, device=value.device)
    first = first_of(value.broadcast_to(wrong.shape), wrong)
    return refusals.note(wrong.any(), first, f"{name} must be {said}, got {{}}")
