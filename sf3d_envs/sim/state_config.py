"""What of the tensor state is opted in at construction."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RAW_CONTACTS = 100_000
"""Most contact points kept per world: a larger number is a slip."""


@dataclass(frozen=True, kw_only=True)
class StateConfig:
    """Quantities that cost something, fixed at construction; what is off is neither computed nor allocated.

    Attributes:
        accelerations: Whether :meth:`~sf3d_envs.sim.state.SimState.accelerations` may be read.
        dynamics: Whether :meth:`~sf3d_envs.sim.state.SimState.dynamics` may be read.
        contacts: Whether contact sensors may be made.
        raw_contacts: Contact points kept per world and step; 0 keeps none. Contact sensors are on with it.
    """

    accelerations: bool = False
    dynamics: bool = False
    contacts: bool = False
    raw_contacts: int = 0

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            TypeError: If a switch is no bool or the capacity no int.
            ValueError: If the capacity is out of range.
        """
        for name in ("accelerations", "dynamics", "contacts"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        count = self.raw_contacts
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"raw_contacts must be an int in [0, {MAX_RAW_CONTACTS}], got {count!r}")
        if not 0 <= count <= MAX_RAW_CONTACTS:
            raise ValueError(f"raw_contacts must be in [0, {MAX_RAW_CONTACTS}], got {count}")

    @property
    def senses_contacts(self) -> bool:
        """Whether contact impulses are summed up."""
        return self.contacts or self.raw_contacts > 0
