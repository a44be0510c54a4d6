"""Domain randomization: what varies from world to world beside the scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..observation.spec import CLIP, ObservationSpec
from ..random import Domain, IntegerLike, philox4x32, unsigned_integers
from ..sim.vehicle import VehicleParams
from .kernels_randomization import STEPS_OF_A_RANGE

MAX_DELAY = 60
"""Longest action delay [control steps]: one second."""

MAX_GRIP = 1.03
"""Largest grip factor: with more, the benchmark's μ 0.08 patch would be long enough to stop on (the braking probe)."""

FACTOR_LIMITS = {
    "mass": (0.5, 2.0),
    "grip": (0.1, MAX_GRIP),
    "cornering_stiffness": (0.5, 2.0),
    "longitudinal_stiffness": (0.5, 2.0),
}
"""Factors that a range may reach: more than cars differ by; a mass in kg is refused as the slip it is."""

EXACT_CHANNELS = frozenset(
    {
        "ego.previous_acceleration",
        "ego.previous_steering",
        "ego.desired_speed",
        "ego.valid",
        "route.owes_merge",
    }
)
"""Channels that carry no noise, beside ``traffic.<k>.present`` and the planner block: flags and what a policy knows."""


@dataclass(frozen=True, kw_only=True)
class DomainRandomization:
    """What is drawn anew for each world at each of its resets; None = not randomized.

    A world's twelve vehicles share its values. They follow from the scenario seed alone, like the scenario: the same
    seed gives the same values in any batch, and fields are drawn independently, so that switching one off leaves the
    others as they are. :meth:`draw` tells them for a seed; an environment shows them in ``env.randomization`` and in
    the infos ``randomization/<field>``.

    Ranges are (low, high), both ends included and uniform in between; low = high fixes a value.

    Attributes:
        mass: Factor on the mass [-], within [0.5, 2]. Moments of inertia, the throttle mapping and the ride height
            follow, as for a :class:`~sf3d_envs.VehicleParams` of that mass and inertia.
        grip: Factor on the vehicle's friction factor μ_vehicle (``VehicleParams.grip``) [-], within [0.1, 1.03].
        cornering_stiffness: Factor on the cornering stiffness of all wheels [-], within [0.5, 2]; the balance between
            the axles stays.
        longitudinal_stiffness: Factor on the longitudinal tyre stiffness [-], within [0.5, 2].
        action_delay: Control steps of 1/60 s between a request and its effect, ints within [0, 60]. Vehicles coast
            straight on (command 0) until the first request arrives. Traffic and the full brake after an event act at
            once; the observation's previous action is the requested one.
        observation_noise: Standard deviation of Gaussian noise in scaled observation units (a channel's value divided
            by its scale), within [0, 10]: one number for all channels, or a mapping of block ("ego", "route",
            "traffic", "preview") or channel names to numbers, where a channel's own entry wins over its block's.
            Independent for each channel, row and decision, and never in flags (valid, present, owes_merge), empty
            slots, distances that are not owed, planner channels, desired speed, the previous action or inactive rows.
            A reading at the end of its range stays there. Traffic agents, user functions and ``view`` see exact values.

    Raises:
        TypeError: If a field has the wrong type.
        ValueError: If a value is not finite or out of range, a range is reversed or a name is unknown.

    Example:
        >>> ranges = DomainRandomization(mass=(0.9, 1.2), grip=(0.8, 1.0), action_delay=(0, 3))
        >>> {name: values.tolist() for name, values in ranges.draw([7]).items()}["action_delay"]
        [1]
    """

    mass: Sequence[float] | None = None
    grip: Sequence[float] | None = None
    cornering_stiffness: Sequence[float] | None = None
    longitudinal_stiffness: Sequence[float] | None = None
    action_delay: Sequence[int] | None = None
    observation_noise: float | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Check every field; ranges become tuples."""
        for name, limits in FACTOR_LIMITS.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _range(name, getattr(self, name), limits, "factors", _number))
        if self.action_delay is not None:
            delay = _range("action_delay", self.action_delay, (0, MAX_DELAY), "control steps", _whole)
            object.__setattr__(self, "action_delay", delay)
        noise = self.observation_noise
        if isinstance(noise, Mapping):
            checked = {str(name): _deviation(f"observation_noise[{name!r}]", value) for name, value in noise.items()}
            object.__setattr__(self, "observation_noise", checked)
        elif noise is not None:
            object.__setattr__(self, "observation_noise", _deviation("observation_noise", noise))
        self.deviations(ObservationSpec(preview=True))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DomainRandomization:
        """Build from a mapping of field names, such as JSON holds.

        Raises:
            ValueError: If a key is no field; the message lists the fields.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"randomization has no field {name!r}{_hint(str(name), known)}")
        return cls(**values)

    @property
    def varies_vehicles(self) -> bool:
        """Whether a vehicle parameter is drawn."""
        return any(getattr(self, name) is not None for name in FACTOR_LIMITS)

    @property
    def varies(self) -> bool:
        """Whether anything is drawn at all."""
        noisy = bool(self.deviations(ObservationSpec(preview=True)).any())
        return self.varies_vehicles or self.action_delay is not None or noisy

    def check_vehicles(self, vehicles: Iterable[VehicleParams]) -> None:
        """Check that the vehicles can carry the drawn masses.

        Raises:
            ValueError: If a vehicle's springs cannot; the message says why.
        """
        for car in dict.fromkeys(vehicles):
            for factor in self.mass or ():
                try:
                    dataclasses.replace(car, mass=factor * car.mass)
                except ValueError as error:
                    raise ValueError(f"randomization.mass {self.mass} does not suit the vehicle: {error}") from None

    def deviations(self, spec: ObservationSpec) -> np.ndarray:
        """Standard deviation of the noise of each channel, float32 [D].

        Raises:
            ValueError: If ``observation_noise`` names a block or channel that the observation lacks, or an exact one.
        """
        found = np.zeros(spec.size, dtype=np.float32)
        noisy = np.array([not _is_exact(channel.name) for channel in spec.channels])
        noise = self.observation_noise
        if noise is None:
            return found
        if not isinstance(noise, Mapping):
            found[noisy] = noise
            return found
        blocks = list(dict.fromkeys(channel.block for channel in spec.channels))
        for name in sorted(noise, key=lambda key: key not in blocks):
            if name not in blocks and name not in spec.names:
                raise ValueError(f"observation_noise names {name!r}{_hint(name, [*blocks, *spec.names])}")
            chosen = np.array([name in (channel.name, channel.block) for channel in spec.channels]) & noisy
            if not chosen.any():
                raise ValueError(f"observation_noise names {name!r}, which is exact: a flag or what the policy knows")
            found[chosen] = noise[name]
        return found

    def draw(self, scenario_seed: IntegerLike) -> dict[str, np.ndarray]:
        """Values of given scenario seeds, the same bits that an environment draws.

        Args:
            scenario_seed: Seeds in [0, 2**64), shape [W].

        Returns:
            Per randomized field but the noise: float32 factors or int32 control steps, shape [W].
        """
        seeds = np.atleast_1d(unsigned_integers("scenario_seed", scenario_seed, 64))
        factors = philox4x32(seeds, 0, 0, Domain.RANDOMIZATION).astype(np.uint64)
        found = {}
        for k, name in enumerate(FACTOR_LIMITS):
            if getattr(self, name) is not None:
                low, high = (np.float32(end) for end in getattr(self, name))
                position = (factors[:, k] * np.uint64(STEPS_OF_A_RANGE + 1)) >> np.uint64(32)
                position = position.astype(np.float32) * np.float32(1.0 / STEPS_OF_A_RANGE)
                found[name] = np.minimum(low + (high - low) * position, high)
        if self.action_delay is not None:
            low, high = self.action_delay
            word = philox4x32(seeds, 1, 0, Domain.RANDOMIZATION)[:, 0].astype(np.uint64)
            found["action_delay"] = (low + ((word * np.uint64(high - low + 1)) >> np.uint64(32))).astype(np.int32)
        return found


def _is_exact(channel: str) -> bool:
    return channel in EXACT_CHANNELS or channel.endswith(".present") or channel.startswith("planner.")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must hold numbers, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must hold ints (control steps of 1/60 s), got {value!r}")
    return int(value)


def _range(name: str, value: Any, limits: tuple, what: str, convert: Any) -> tuple:
    allowed = f"(low, high) {what} within [{limits[0]}, {limits[1]}]"
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    low, high = (convert(name, item) for item in value)
    if low > high:
        raise ValueError(f"{name} must be {allowed}, low <= high, got {value!r}")
    if low < limits[0] or high > limits[1]:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return low, high


def _deviation(name: str, value: object) -> float:
    number = _number(name, value)
    if not 0.0 <= number <= CLIP:
        raise ValueError(f"{name} must be a standard deviation in [0, {CLIP:g}] scaled units, got {value!r}")
    return number


def _hint(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} Known: {', '.join(known[:40])}"
