"""Host copies of the state that know when they are out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator


class StaleSnapshotError(RuntimeError):
    """A snapshot was read after the simulator had moved on."""


class Snapshot:
    """A copy of every view of the state in host memory, under the same names.

    It is stale after the next step, reset, restore or set, and then refuses to be read until :meth:`refresh`, unless
    it is not strict.

    Args:
        sim: The simulator.
        strict: Whether reading a stale snapshot raises.

    Attributes:
        strict: As given; may be changed.
        generation: The state's generation that the copy shows.
    """

    def __init__(self, sim: Simulator, strict: bool = True):
        if not isinstance(strict, bool):
            raise TypeError(f"strict must be True or False, got {strict!r}")
        self._sim = sim
        self._copies: dict[str, torch.Tensor] = {}
        self.strict, self.generation = strict, -1
        self.refresh()

    def __setattr__(self, name: str, value: object) -> None:
        """Set :attr:`strict`; the copies cannot be replaced.

        Raises:
            AttributeError: For any other name.
        """
        if not name.startswith("_") and name not in ("strict", "generation"):
            raise AttributeError(f"snapshot.{name} can't be replaced: a snapshot is for reading")
        super().__setattr__(name, value)

    @property
    def is_stale(self) -> bool:
        """Whether the simulator has moved on, or is closed."""
        return self._sim._freed or self._sim.dynamics.generation != self.generation

    def refresh(self) -> Snapshot:
        """Copy the present state; waits for the device.

        Raises:
            RuntimeError: After the simulator was closed.
        """
        from .state import views

        state = self._sim.state
        state.check()
        for name in views():
            live = getattr(state, name)
            if name in self._copies:
                self._copies[name].copy_(live)
            else:
                self._copies[name] = live.detach().cpu().clone()
        self.generation = state.generation
        return self

    def __dir__(self) -> list[str]:
        """Methods and the names of the views."""
        return [*super().__dir__(), *self._copies]

    def __getattr__(self, name: str) -> torch.Tensor:
        """A copied tensor.

        Raises:
            StaleSnapshotError: If the snapshot is stale and strict.
            AttributeError: If there is no view of that name.
        """
        copies = self.__dict__.get("_copies", {})
        if name not in copies:
            raise AttributeError(f"a snapshot has no {name!r}; it holds {', '.join(copies)}")
        if self.strict and self.is_stale:
            if self._sim._freed:
                raise StaleSnapshotError(f"snapshot.{name}: the simulator is closed; read it with strict=False")
            raise StaleSnapshotError(
                f"snapshot.{name} shows generation {self.generation}, the state is at "
                f"{self._sim.dynamics.generation}: call refresh(), or take it with strict=False"
            )
        return copies[name]
