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
        if str(value.device) != str(device):
            raise ValueError(f"{name} is on {value.device}, the simulator on {device}; nothing is moved silently")
        value = value.detach().cpu().numpy()
    return host_indices(name, value, count, once=once)


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
        self._record = torch.zeros(2, dtype=torch.float64, device=device)

    def note(self, bad: torch.Tensor, value: torch.Tensor, text: str) -> torch.Tensor:
        """Raise or record a refusal.

        Args:
            bad: Whether something is wrong, bool, no dimensions.
            value: The offending number, no dimensions.
            text: The error, with ``{}`` for the number.

        Returns:
            Whether all is well, bool, no dimensions.

        Raises:
            ValueError: If something is wrong and nothing is deferred.
        """
        if not self.deferred:
            if bool(bad):
                raise ValueError(text.format(_number(float(value))))
            return ~bad
        import torch

        if text not in self._texts:
            self._texts.append(text)
        code = self._texts.index(text) + 1
        now = torch.stack([torch.full_like(value, code, dtype=torch.float64), value.double()])
        self._record.copy_(torch.where(bad & (self._record[0] == 0), now, self._record))
        return ~bad

    def check(self) -> None:
        """Wait for the device and raise the first refusal since the last look.

        Raises:
            ValueError: If a call was refused.
        """
        if not self.deferred:
            return
        code, value = self._record.tolist()
        if code:
            self._record.zero_()
            raise ValueError(self._texts[int(code) - 1].format(_number(value)) + " (an earlier call; it wrote nothing)")


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
    columns = None if vehicles is None else host_indices("vehicles", vehicles, shape[1], once=True)
    if columns is not None and isinstance(vehicles, torch.Tensor):
        raise TypeError("vehicles must be None, an int or ints, got a tensor")
    chosen = None if columns is None else torch.from_numpy(columns.astype(np.int64)).to(device)
    width = shape[1] if columns is None else len(columns)
    if worlds is None:
        return Choice(shape[0], None, None, chosen, width, None)
    if isinstance(worlds, torch.Tensor):
        if worlds.device != device:
            raise ValueError(f"worlds is on {worlds.device}, the simulator on {device}; nothing is moved silently")
        if worlds.layout != torch.strided:
            raise TypeError(f"worlds must be a dense tensor, got layout {worlds.layout}")
        if refusals.deferred and worlds.dim() == 1:
            return _choose_on_device(worlds, shape, chosen, width, refusals)
        worlds = worlds.detach().cpu().numpy()
    mask = np.asarray(worlds) if not isinstance(worlds, (int, range)) else None
    if mask is not None and mask.dtype == bool and mask.ndim == 1:
        host_indices("worlds", mask, shape[0])
        return Choice(shape[0], None, torch.from_numpy(mask.copy()).to(device), chosen, width, None)
    index = host_indices("worlds", worlds, shape[0], once=True)
    return Choice(len(index), torch.from_numpy(index.astype(np.int64)).to(device), None, chosen, width, None)


def _choose_on_device(
    worlds: torch.Tensor, shape: tuple[int, int], vehicles: torch.Tensor | None, width: int, refusals: Refusals
) -> Choice:
    """A tensor's choice, its contents checked by the device."""
    import torch

    count = shape[0]
    if worlds.dtype == torch.bool:
        if worlds.shape != (count,):
            raise ValueError(f"worlds as a mask must be bool of shape ({count},), got shape {tuple(worlds.shape)}")
        return Choice(count, None, worlds, vehicles, width, None)
    if worlds.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"worlds must be an int32 or int64 index tensor or a bool mask, got {worlds.dtype}")
    index = worlds.long()
    outside = (index < 0) | (index >= count)
    first = torch.where(outside, index, 0).sum() if len(index) == 0 else index[outside.int().argmax()]
    inside = refusals.note(outside.any(), first, f"worlds must lie in [0, {count - 1}], got {{}}")
    safe = index.clamp(0, count - 1)
    times = torch.zeros(count, dtype=torch.int64, device=index.device).index_add_(0, safe, torch.ones_like(safe))
    once = refusals.note((times > 1).any() & inside, times.argmax(), "worlds must name each once, got {} several times")
    return Choice(len(index), safe, None, vehicles, width, inside & once)


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
    flat = value.broadcast_to(wrong.shape).reshape(-1)
    return refusals.note(wrong.any(), flat[wrong.reshape(-1).int().argmax()], f"{name} must be {said}, got {{}}")
