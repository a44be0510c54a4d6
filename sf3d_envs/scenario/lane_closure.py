"""The lane-closure scenario: twelve vehicles upstream of x = 40 m, drawn from the scenario seed alone.

Samples are integers of 2**-10 units (metres, m/s, seconds, m/s^2), so their float32 values are exact and digests agree
on every device. The distribution is ours where the paper is silent (it gives the stream speed's range and the roles).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import warp as wp

from sf3d_envs.launches import outside_captures
from sf3d_envs.random import Domain, IntegerLike, philox_block, uniform_int, unsigned_integers
from sf3d_envs.terrain.lane_closure import ROAD

from .kernels import ScenarioArrays

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


class Lane(IntEnum):
    """Lane a vehicle starts in; also the index of the route it follows."""

    OPEN = 0
    CLOSING = 1


NUM_CLOSING = 5
NUM_OPEN = 7
NUM_VEHICLES = NUM_CLOSING + NUM_OPEN
DESIRED_SPEED = 17.0
"""Speed every controller aims at [m/s] (paper, sec. 4.2)."""

OWN_ROUTE = (int(Lane.CLOSING),) * NUM_CLOSING + (int(Lane.OPEN),) * NUM_OPEN
"""Route of each vehicle: 0-4 merge, 5-11 follow the open lane, each lane front to back."""

UNIT = 2.0**-10
"""Quantum of every sampled length, speed, time and acceleration."""

_SCENARIO = wp.constant(wp.uint32(int(Domain.SCENARIO)))
_NUM_CLOSING = wp.constant(NUM_CLOSING)
_NUM_VEHICLES = wp.constant(NUM_VEHICLES)
_UNIT = wp.constant(UNIT)
_LENGTH = wp.constant(4352)  # footprint length 4.25 m (paper, sec. 5)
_OPEN_Y = wp.constant(ROAD.open_lane_y)
_CLOSING_Y = wp.constant(ROAD.closing_lane_y)


@wp.func
def from_units(units: int) -> float:
    """Value of an integer number of 2**-10 units, exact below 2**14."""
    return float(units) * _UNIT


@wp.kernel
def sample_scenarios(
    seed: wp.array(dtype=wp.uint64), reset_mask: wp.array(dtype=wp.bool), scenarios: ScenarioArrays, world_begin: int
):
    """Draw the scenario of every masked world from its seed.

    Dim W. Shapes: seed [W], reset_mask [W]. Block (draw 0, vehicle 0) holds the world's numbers, blocks (1, v) and
    (2, v) vehicle v's; all ranges are closed and in 2**-10 units. Positions go front to back: x -= gap + length with
    gap = U(4, 14) m + 0.8 s V.
    """
    world = wp.tid() + world_begin
    if not reset_mask[world]:
        return
    key = seed[world]
    words = philox_block(key, wp.uint32(0), wp.uint32(0), _SCENARIO)
    stream = uniform_int(words[0], 2048, 8192)  # 2 to 8 m/s
    leader = (words[1] >> wp.uint32(31)) == wp.uint32(1)
    closing_x = uniform_int(words[2], 5120, 20480)  # 5 to 20 m
    if leader:
        closing_x = uniform_int(words[2], 30720, 38400)  # 30 to 37.5 m
    open_x = uniform_int(words[3], -40960, 10240)  # -40 to 10 m
    scenarios.stream_speed[world] = from_units(stream)
    scenarios.has_leader[world] = wp.int8(leader)
    x = int(0)
    for vehicle in range(_NUM_VEHICLES):
        motion = philox_block(key, wp.uint32(1), wp.uint32(vehicle), _SCENARIO)
        driver = philox_block(key, wp.uint32(2), wp.uint32(vehicle), _SCENARIO)
        x = x - (uniform_int(motion[0], 4096, 14336) + (4 * stream) // 5 + _LENGTH)
        y = float(_CLOSING_Y)
        speed = stream + uniform_int(motion[1], 0, 3072)  # closing lane: 0 to 3 m/s above the stream
        if vehicle == 0:
            x = closing_x
        if vehicle == _NUM_CLOSING:
            x = open_x
        if vehicle >= _NUM_CLOSING:
            y = float(_OPEN_Y)
            speed = stream + uniform_int(motion[1], -512, 512)  # open lane: within 0.5 m/s of the stream
        scenarios.start_x[world, vehicle] = from_units(x)
        scenarios.start_y[world, vehicle] = y
        scenarios.start_speed[world, vehicle] = from_units(speed)
        scenarios.headway[world, vehicle] = from_units(uniform_int(motion[2], 1024, 1638))  # 1 to 1.6 s
        scenarios.min_gap[world, vehicle] = from_units(uniform_int(motion[3], 1536, 2560))  # 1.5 to 2.5 m
        scenarios.accel_max[world, vehicle] = from_units(uniform_int(driver[0], 1024, 2048))  # 1 to 2 m/s^2
        scenarios.comfort_decel[world, vehicle] = from_units(uniform_int(driver[1], 1536, 3072))  # 1.5 to 3 m/s^2


_VEHICLE_FIELDS = ("start_x", "start_y", "start_speed", "headway", "min_gap", "accel_max", "comfort_decel")


@dataclass(frozen=True, kw_only=True, eq=False)
class LaneClosureScenario:
    """One world's scenario on the host. Arrays have shape [12], float64, exact multiples of 2**-10.

    Attributes:
        seed: Scenario seed.
        stream_speed: Open-lane stream speed [m/s].
        has_leader: Whether a vehicle leads the closing lane close to the merge.
        lane: Starting lane, int8 values of `Lane`.
        start_x: Body-centre x [m].
        start_y: Body-centre y [m].
        start_speed: Forward speed [m/s].
        headway: IDM time headway T [s].
        min_gap: IDM minimum gap s0 [m].
        accel_max: IDM acceleration limit a_max [m/s^2].
        comfort_decel: IDM comfortable deceleration b [m/s^2].
    """

    seed: int
    stream_speed: float
    has_leader: bool
    lane: npt.NDArray[np.int8]
    start_x: npt.NDArray[np.float64]
    start_y: npt.NDArray[np.float64]
    start_speed: npt.NDArray[np.float64]
    headway: npt.NDArray[np.float64]
    min_gap: npt.NDArray[np.float64]
    accel_max: npt.NDArray[np.float64]
    comfort_decel: npt.NDArray[np.float64]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the seed and all values as little-endian integers of 2**-10 units."""
        sha = hashlib.sha256(b"sf3d-lane-closure-scenario-1")
        sha.update(np.array([self.seed], dtype="<u8").tobytes())
        sha.update(np.array([self.stream_speed / UNIT, self.has_leader]).astype("<i4").tobytes())
        sha.update(self.lane.astype("<i4").tobytes())
        for name in _VEHICLE_FIELDS:
            sha.update((getattr(self, name) / UNIT).astype("<i4").tobytes())
        return sha.hexdigest()


class ScenarioBuffers:
    """Scenario memory of W worlds.

    Attributes:
        num_worlds: W.
        arrays: The device arrays, for kernels.
    """

    def __init__(self, num_worlds: int, device: Any = "cpu") -> None:
        """Allocates zeroed arrays.

        Args:
            num_worlds: Number of worlds, at least 1.
            device: Warp device.

        Raises:
            ValueError: ``num_worlds`` is below 1.
        """
        if num_worlds < 1:
            raise ValueError(f"num_worlds must be at least 1, got {num_worlds}")
        self.num_worlds = num_worlds
        self.arrays = ScenarioArrays()
        for name in _VEHICLE_FIELDS:
            setattr(self.arrays, name, wp.zeros((num_worlds, NUM_VEHICLES), dtype=float, device=device))
        self.arrays.stream_speed = wp.zeros(num_worlds, dtype=float, device=device)
        self.arrays.has_leader = wp.zeros(num_worlds, dtype=wp.int8, device=device)

    def to_host(self, seed: IntegerLike) -> list[LaneClosureScenario]:
        """Copy every world's scenario to the host.

        Args:
            seed: The seeds that the worlds were sampled from, shape [W].

        Returns:
            One scenario per world.

        Raises:
            ValueError: The number of seeds is not W, or a seed is out of range.
        """
        seeds = np.atleast_1d(unsigned_integers("seed", seed, 64))
        if seeds.shape != (self.num_worlds,):
            raise ValueError(f"seed must have shape [{self.num_worlds}], got {list(seeds.shape)}")
        table = {name: getattr(self.arrays, name).numpy().astype(np.float64) for name in _VEHICLE_FIELDS}
        stream, leader = self.arrays.stream_speed.numpy(), self.arrays.has_leader.numpy()
        return [
            LaneClosureScenario(
                seed=int(seeds[w]),
                stream_speed=float(stream[w]),
                has_leader=bool(leader[w]),
                lane=np.array(OWN_ROUTE, dtype=np.int8),
                **{name: values[w] for name, values in table.items()},
            )
            for w in range(self.num_worlds)
        ]


@outside_captures
def sample_lane_closures(seeds: Sequence[int] | npt.NDArray[Any]) -> list[LaneClosureScenario]:
    """Scenarios of several seeds, by the sampler kernel on the CPU.

    Args:
        seeds: Scenario seeds in [0, 2**64), at least one.

    Returns:
        One scenario per seed.

    Raises:
        ValueError: There is no seed, or a seed is out of range.
    """
    keys = np.atleast_1d(unsigned_integers("seed", seeds, 64))
    buffers = ScenarioBuffers(len(keys))
    seed = wp.array(keys, dtype=wp.uint64, device="cpu")
    mask = wp.ones(len(keys), dtype=wp.bool, device="cpu")
    wp.launch(sample_scenarios, dim=len(keys), inputs=[seed, mask, buffers.arrays, 0], device="cpu")
    return buffers.to_host(keys)


def sample_lane_closure(seed: int) -> LaneClosureScenario:
    """Scenario of one seed in [0, 2**64), by the sampler kernel on the CPU.

    Raises:
        ValueError: The seed is negative, not an integer, or 2**64 and above.
    """
    return sample_lane_closures([seed])[0]
