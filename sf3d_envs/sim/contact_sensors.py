"""What chassis touch: sensors over the summed contact impulses, and the list of contact points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import warp as wp

from .arrays import SOURCES
from .selection import Vehicles, host_indices

if TYPE_CHECKING:
    import torch

    from .simulator import Simulator


class ContactSensor:
    """Contacts of chosen vehicles over the last step call, all worlds; every read is a new tensor on the device.

    A step call is one ``control_step(count)`` or one environment step; impulses are summed over all its substeps,
    tangential parts included, and are those on the vehicle: on A by B they are the opposite of on B by A. Worlds that
    were reset or restored since report nothing. Wheels are raycasts, not contacts: what they feel is
    ``state.tire_force`` and ``state.wheel_load``.

    All sensors of a simulator read the same sums. Every read raises RuntimeError after the simulator was closed.

    Args:
        sim: A simulator with ``StateConfig(contacts=True)``.
        vehicles: Vehicles that the sensor covers, n of them: None = all, an int or ints.
        name: A name of your own.

    Attributes:
        name: As given.
        vehicles: The covered vehicles, in order.
    """

    def __init__(self, sim: Simulator, vehicles: Vehicles = None, name: str | None = None):
        if not sim.state_config.senses_contacts:
            raise RuntimeError(
                "contacts were not opted in: make the simulator or environment with state=StateConfig(contacts=True)"
            )
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string or None, got {name!r}")
        chosen = host_indices("vehicles", vehicles, sim.num_vehicles, once=True)
        if chosen.size == 0:
            raise ValueError("vehicles is empty; a sensor needs at least one vehicle, or None for all")
        self._sim, self.name = sim, name
        self.vehicles = tuple(int(v) for v in chosen)
        self._where = slice(None) if vehicles is None else list(self.vehicles)

    @property
    def contact_count(self) -> torch.Tensor:
        """Contact points that carried an impulse, the most in any substep of the step call, int32 [E, n]."""
        return self._sums("contact_count").sum(dim=-1, dtype=self._sums("contact_count").dtype)

    @property
    def in_contact(self) -> torch.Tensor:
        """Whether a vehicle touched anything, bool [E, n]."""
        return (self._sums("contact_count") > 0).any(dim=-1)

    @property
    def net_impulse(self) -> torch.Tensor:
        """Impulse on a vehicle [N·s], world frame, [E, n, 3]."""
        vehicle, road, wall = self._sums("contact_impulse").unbind(dim=2)  # two additions are quicker than a sum over 3
        return vehicle + road + wall

    @property
    def net_force(self) -> torch.Tensor:
        """Mean force on a vehicle [N]: impulse by elapsed time, world frame, [E, n, 3]; 0 where no time elapsed."""
        return self._by_time(self.net_impulse)

    def count_from(self, source: str) -> torch.Tensor:
        """As :attr:`contact_count`, from "vehicle", "road" or "wall" alone, int32 [E, n].

        Raises:
            ValueError: If the source is unknown.
        """
        return self._sums("contact_count")[..., _source(source)].clone()

    def impulse_from(self, source: str) -> torch.Tensor:
        """As :attr:`net_impulse`, from one source, [E, n, 3].

        Raises:
            ValueError: If the source is unknown.
        """
        return self._sums("contact_impulse")[:, :, _source(source)].clone()

    def force_from(self, source: str) -> torch.Tensor:
        """As :attr:`net_force`, from one source, [E, n, 3].

        Raises:
            ValueError: If the source is unknown.
        """
        return self._by_time(self.impulse_from(source))

    @property
    def elapsed(self) -> torch.Tensor:
        """Time that the sums cover [s], [E]; 0 in worlds that were frozen, reset or restored."""
        return self._tensors["contact_elapsed"].clone()

    def _by_time(self, impulse: torch.Tensor) -> torch.Tensor:
        elapsed = self._tensors["contact_elapsed"].reshape(-1, 1, 1)
        return impulse / elapsed.clamp(min=1e-9)  # no time, no impulse

    def _sums(self, name: str) -> torch.Tensor:
        return self._tensors[name][:, self._where]

    @property
    def _tensors(self) -> dict[str, torch.Tensor]:
        self._sim._require_open("reading a contact sensor")
        return self._kept

    @cached_property
    def _kept(self) -> dict[str, torch.Tensor]:
        names = ("contact_impulse", "contact_count", "contact_elapsed")
        return {name: wp.to_torch(getattr(self._sim.arrays, name)) for name in names}


def _source(source: str) -> int:
    if source not in SOURCES:
        raise ValueError(f"source must be one of {', '.join(map(repr, SOURCES))}, got {source!r}")
    return SOURCES.index(source)


@dataclass(frozen=True)
class RawContacts:
    """Contact points of the last step call, world by world, in the order of substeps; tensors over the memory itself.

    Only points that carried an impulse are listed; those of world w are the first ``count[w]`` rows.

    Attributes:
        points: Position [m], unit normal, impulse [N·s] and separation [m], world frame, [E, N, 10]. Normal and impulse
            are those on side A; the separation is that at the start of the substep's solve, negative when they overlap.
        pairs: [kind, world, vehicle] of side A, then of side B, int32 [E, N, 6]; kinds: 0 vehicle, 1 road, 2 wall;
            vehicle -1 for what is none. A is always a vehicle, and of two the one with the lower number.
        count: Points of each world, int32 [E].
    """

    points: torch.Tensor
    pairs: torch.Tensor
    count: torch.Tensor

    def packed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Pairs [P, 6] and points [P, 10] of all worlds under each other; waits for the device."""
        import torch

        rows = torch.arange(self.points.shape[1], device=self.count.device) < self.count[:, None]
        return self.pairs[rows], self.points[rows]


class Contacts:
    """Reading contacts, mixed into :class:`~sf3d_envs.sim.state.SimState`."""

    _sim: Simulator
    _raw: RawContacts | None = None

    def contact_sensor(self, vehicles: Vehicles = None, name: str | None = None) -> ContactSensor:
        """A sensor of what vehicles touch; any number of them may be made, at any time.

        Args:
            vehicles: None = all, an int or ints.
            name: A name of your own.

        Raises:
            RuntimeError: If contacts were not opted in, or the simulator is closed.
            TypeError, ValueError: If ``vehicles`` is no choice of vehicles.
        """
        self._sim._require_open("state.contact_sensor()")
        return ContactSensor(self._sim, vehicles, name)

    def raw_contacts(self) -> RawContacts:
        """The contact points of the last step call; waits for the device to see whether they all fitted.

        Raises:
            RuntimeError: If raw contacts were not opted in, the simulator is closed, or a world had more points than
                its capacity.
        """
        sim = self._sim
        sim._require_open("state.raw_contacts()")
        capacity = sim.state_config.raw_contacts
        if capacity == 0:
            raise RuntimeError(
                "raw contacts were not opted in: make the simulator or environment with "
                "state=StateConfig(raw_contacts=N), N points per world and step"
            )
        if self._raw is None:
            arrays = (sim.arrays.raw_points, sim.arrays.raw_pairs, sim.arrays.raw_count)
            self._raw = RawContacts(*map(wp.to_torch, arrays))
        most = int(self._raw.count.max())
        if most > capacity:
            worlds = (self._raw.count > capacity).nonzero().flatten().tolist()
            shown = ", ".join(map(str, worlds[:5])) + (" ..." if len(worlds) > 5 else "")
            raise RuntimeError(
                f"more contact points than raw_contacts={capacity} keeps, at most {most}, in world {shown}; make the "
                f"simulator with state=StateConfig(raw_contacts={max(most, 2 * capacity)}) or step less at once"
            )
        return self._raw
