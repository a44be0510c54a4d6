"""Kernels of domain randomization: draws at reset, delayed commands, noisy observations."""

import warp as wp

from ..observation.spec import CLIP
from ..random import Domain, philox_block, uniform_int
from ..sim.vehicle import GRAVITY, VehicleData
from ..task.kernels import TaskState
from .kernels import ROW_WRITE, RowArrays

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

RANDOMIZATION_DOMAIN = wp.constant(wp.uint32(int(Domain.RANDOMIZATION)))
NOISE_DOMAIN = wp.constant(wp.uint32(int(Domain.NOISE)))

STEPS_OF_A_RANGE = 1024
"""A factor takes one of so many + 1 evenly spaced values of its range."""

NOISE_BLOCKS_PER_STEP = 64
"""Philox blocks of four channels set aside for one control step of one vehicle."""

RANGE_STEPS = wp.constant(STEPS_OF_A_RANGE)
RANGE_STEP = wp.constant(1.0 / STEPS_OF_A_RANGE)
BLOCKS_PER_STEP = wp.constant(wp.uint32(NOISE_BLOCKS_PER_STEP))
LIMIT = wp.constant(CLIP)
STANDARD_GRAVITY = wp.constant(GRAVITY)


@wp.struct
class RandomizationArrays:
    """Drawn values of W worlds, of their running episode and of the one before.

    Factors are (mass, grip, cornering stiffness, longitudinal stiffness); delays are control steps.
    """

    factor: wp.array2d(dtype=float)  # [W, 4]
    delay: wp.array(dtype=int)  # [W]
    last_factor: wp.array2d(dtype=float)  # [W, 4]
    last_delay: wp.array(dtype=int)  # [W]


@wp.func
def uniform_factor(u: wp.uint32, low: float, high: float) -> float:
    """Value in [low, high] from one random word: low + (high - low) n/1024, n uniform in 0 ... 1024."""
    position = float(uniform_int(u, 0, RANGE_STEPS)) * RANGE_STEP
    return wp.min(low + (high - low) * position, high)


@wp.func
def rest_compression(mass: float, car: VehicleData) -> float:
    """Compression of a leg at rest on level ground [m], δ of m·g/4 = kδ + 4k·max(0, δ - 0.8·l0)."""
    load = 0.25 * mass * STANDARD_GRAVITY
    knee = 0.8 * car.rest_length
    linear = load / car.stiffness
    if linear <= knee:
        return linear
    return knee + (load - car.stiffness * knee) / (5.0 * car.stiffness)


@wp.func
def scaled_vehicle(car: VehicleData, mass: float, grip: float, cornering: float, longitudinal: float) -> VehicleData:
    """A vehicle with some parameters times factors and everything derived from them; equal bits if all are 1.

    The inertia grows with the mass, as if its distribution stayed the same.
    """
    result = car
    result.mass = car.mass * mass
    result.inv_mass = car.inv_mass / mass
    result.inertia = car.inertia * mass
    result.inv_inertia = car.inv_inertia / mass
    result.inv_throttle_accel = car.inv_throttle_accel * mass
    result.rest_height = car.rest_height + (rest_compression(car.mass, car) - rest_compression(car.mass * mass, car))
    result.grip = car.grip * grip
    result.cornering_front = car.cornering_front * cornering
    result.cornering_rear = car.cornering_rear * cornering
    result.longitudinal = car.longitudinal * longitudinal
    return result


@wp.kernel
def draw_randomization(
    mask: wp.array(dtype=wp.bool),
    seed: wp.array(dtype=wp.uint64),
    low: wp.vec4,
    high: wp.vec4,
    delay_low: int,
    delay_high: int,
    draws: RandomizationArrays,
    base: wp.array(dtype=VehicleData),
    params: wp.array(dtype=VehicleData),
    requested: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Thread per world: draw the values of masked worlds from their scenario seeds and rewrite their vehicles.

    ``base`` [K] are the vehicles as given, ``params`` [W·K] those of the worlds; both are empty if no vehicle
    parameter varies. ``requested`` [W, V] is cleared; it is empty without a delay.
    """
    w = wp.tid() + world_begin
    if not mask[w]:
        return
    words = philox_block(seed[w], wp.uint32(0), wp.uint32(0), RANDOMIZATION_DOMAIN)
    for k in range(4):
        draws.last_factor[w, k] = draws.factor[w, k]
        draws.factor[w, k] = uniform_factor(words[k], low[k], high[k])
    words = philox_block(seed[w], wp.uint32(1), wp.uint32(0), RANDOMIZATION_DOMAIN)
    draws.last_delay[w] = draws.delay[w]
    draws.delay[w] = uniform_int(words[0], delay_low, delay_high)
    kinds = base.shape[0]
    for kind in range(kinds):
        params[w * kinds + kind] = scaled_vehicle(
            base[kind], draws.factor[w, 0], draws.factor[w, 1], draws.factor[w, 2], draws.factor[w, 3]
        )
    for v in range(requested.shape[1]):
        requested[w, v] = wp.vec2(0.0, 0.0)


@wp.kernel
def delay_commands(
    requested: wp.array2d(dtype=wp.vec2),
    history: wp.array3d(dtype=wp.vec2),
    delay: wp.array(dtype=int),
    rows: RowArrays,
    task: TaskState,
    stepping: wp.array(dtype=wp.int8),
    stop_at_event: int,
    command: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Thread per world, each control step: controlled vehicles get the request of ``delay`` control steps ago.

    (0, 0) until the first one arrives. ``history`` [W, V, longest delay + 1] is a ring over the world's own control
    steps, so a reset needs no clearing. What the environment decides, traffic and the full brake after an event, is
    not delayed.
    """
    w = wp.tid() + world_begin
    if stepping[w] == wp.int8(0):
        return
    step = task.step[w]
    past = step - delay[w]
    length = history.shape[2]
    for v in range(command.shape[1]):
        wanted = requested[w, v]
        if rows.row_of_vehicle[v] >= 0:
            history[w, v, step % length] = wanted
            if stop_at_event == 0 or task.valid[w, v] != wp.int8(0):
                wanted = wp.vec2(0.0, 0.0)
                if past >= 0:
                    wanted = history[w, v, past % length]
        command[w, v] = wanted


@wp.func
def unit_normals(words: wp.vec4ui) -> wp.vec4:
    """Four standard normal numbers from four random words (Box and Muller 1958), each at most 5.9 in size."""
    normals = wp.vec4()
    for pair in range(2):
        u = (float(words[2 * pair] >> wp.uint32(8)) + 0.5) * 5.9604645e-8
        angle = float(words[2 * pair + 1] >> wp.uint32(8)) * 3.7450704e-7
        radius = wp.sqrt(-2.0 * wp.log(u))
        normals[2 * pair] = radius * wp.cos(angle)
        normals[2 * pair + 1] = radius * wp.sin(angle)
    return normals


@wp.kernel
def add_noise(
    deviation: wp.array(dtype=float),
    gate: wp.array(dtype=int),
    rows: RowArrays,
    task: TaskState,
    seed: wp.array(dtype=wp.uint64),
    obs: wp.array3d(dtype=float),
    world_begin: int,
):
    """Thread per row: add noise to the rows just written.

    ``deviation`` [D, padded to a multiple of 4] is the standard deviation of a channel, 0 = exact; ``gate`` [the same]
    is a channel that must not be 0 for the channel to mean something, -1 = none. The numbers are addressed by scenario
    seed, control step, vehicle and channel. A reading at the end of its range stays there.
    """
    w, r = wp.tid()
    w = w + world_begin
    if rows.code[w, r] != ROW_WRITE:
        return
    vehicle = wp.uint32(rows.vehicle[r])
    first = wp.uint32(task.step[w]) * BLOCKS_PER_STEP
    for block in range(deviation.shape[0] // 4):
        wanted = bool(False)
        for k in range(4):
            channel = 4 * block + k
            if deviation[channel] > 0.0:
                if gate[channel] < 0:
                    wanted = True
                elif obs[w, r, gate[channel]] != 0.0:
                    wanted = True
        if wanted:
            normals = unit_normals(philox_block(seed[w], first + wp.uint32(block), vehicle, NOISE_DOMAIN))
            for k in range(4):
                channel = 4 * block + k
                noisy = deviation[channel] > 0.0
                if noisy and gate[channel] >= 0:
                    noisy = obs[w, r, gate[channel]] != 0.0
                if noisy and wp.abs(obs[w, r, channel]) < LIMIT:
                    obs[w, r, channel] = wp.clamp(obs[w, r, channel] + deviation[channel] * normals[k], -LIMIT, LIMIT)
