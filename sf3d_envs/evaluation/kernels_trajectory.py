"""One row of the trajectory table per vehicle and control step, into a ring on the device."""

import warp as wp

from ..observation.geometry import planar_heading
from ..observation.kernels import pitch_angle, roll_angle
from .measures import TRAJECTORY, index_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

X = wp.constant(index_of("x", TRAJECTORY))
Y = wp.constant(index_of("y", TRAJECTORY))
Z = wp.constant(index_of("z", TRAJECTORY))
YAW = wp.constant(index_of("yaw", TRAJECTORY))
PITCH = wp.constant(index_of("pitch", TRAJECTORY))
ROLL = wp.constant(index_of("roll", TRAJECTORY))
SPEED_LONG = wp.constant(index_of("speed_long", TRAJECTORY))
SPEED_LAT = wp.constant(index_of("speed_lat", TRAJECTORY))
YAW_RATE = wp.constant(index_of("yaw_rate", TRAJECTORY))
ACCEL = wp.constant(index_of("accel", TRAJECTORY))
COMMAND_ACCEL = wp.constant(index_of("command_accel", TRAJECTORY))
COMMAND_STEER = wp.constant(index_of("command_steer", TRAJECTORY))
STEER_ANGLE = wp.constant(index_of("steer_angle", TRAJECTORY))
LOAD = wp.constant(index_of("load_fl", TRAJECTORY))
FRICTION = wp.constant(index_of("friction", TRAJECTORY))
EVENT = wp.constant(index_of("event", TRAJECTORY))
VALID = wp.constant(index_of("valid", TRAJECTORY))
TTC = wp.constant(index_of("ttc", TRAJECTORY))
NEED_RATIO = wp.constant(index_of("need_ratio", TRAJECTORY))


@wp.struct
class TrajectoryInputs:
    """What a row reads of W worlds with V vehicles."""

    body_q: wp.array(dtype=wp.transform)  # [W*V]
    body_qd: wp.array(dtype=wp.spatial_vector)  # [W*V]
    command: wp.array2d(dtype=wp.vec2)  # [W, V]
    forward_accel: wp.array2d(dtype=float)  # [W, V]
    steer_angle: wp.array2d(dtype=float)  # [W, V]
    wheel_load: wp.array2d(dtype=wp.vec4)  # [W, V]
    wheel_friction: wp.array2d(dtype=wp.vec4)  # [W, V]
    valid: wp.array2d(dtype=wp.int8)  # [W, V]
    event: wp.array2d(dtype=wp.int8)  # [W, V]
    step: wp.array(dtype=wp.int32)  # [W]
    seed: wp.array(dtype=wp.uint64)  # [W]
    conflict: wp.array2d(dtype=wp.vec2)  # [W, V] TTC [s] and braking need over capacity
    num_vehicles: int


@wp.struct
class TrajectoryRing:
    """The last S control steps of N recorded worlds with V vehicles."""

    data: wp.array4d(dtype=float)  # [S, N, V, len(TRAJECTORY)]
    step: wp.array2d(dtype=wp.int32)  # [S, N] the world's step count, -1 where the world was not stepped
    seed: wp.array2d(dtype=wp.uint64)  # [S, N] scenario seed
    row: wp.array(dtype=wp.int32)  # [W] place of a world among the N recorded ones, -1 = not recorded
    slot: wp.array2d(dtype=wp.int32)  # [N, V] where the vehicle's next row goes
    last_step: wp.array2d(dtype=wp.int32)  # [N, V] step count at the last look


@wp.kernel
def write_rows(inputs: TrajectoryInputs, ring: TrajectoryRing, world_begin: int):
    """Thread per vehicle: write its row of this control step and move on; a frozen world leaves only a mark."""
    w, v = wp.tid()
    w = w + world_begin
    n = ring.row[w]
    if n < 0:
        return
    slot = ring.slot[n, v]
    ring.slot[n, v] = (slot + 1) % ring.data.shape[0]
    step = inputs.step[w]
    stepped = step != ring.last_step[n, v]
    ring.last_step[n, v] = step
    if v == 0:
        ring.step[slot, n] = wp.where(stepped, step, -1)
        ring.seed[slot, n] = inputs.seed[w]
    if not stepped:
        return

    body = w * inputs.num_vehicles + v
    pose = inputs.body_q[body]
    q = wp.transform_get_rotation(pose)
    heading = planar_heading(q)
    velocity = wp.quat_rotate_inv(q, wp.spatial_top(inputs.body_qd[body]))
    command = inputs.command[w, v]
    load = inputs.wheel_load[w, v]
    friction = inputs.wheel_friction[w, v]
    total = load[0] + load[1] + load[2] + load[3]
    mean = float(0.0)
    if total > 0.0:
        mean = wp.dot(friction, load) / total

    ring.data[slot, n, v, X] = pose[0]
    ring.data[slot, n, v, Y] = pose[1]
    ring.data[slot, n, v, Z] = pose[2]
    ring.data[slot, n, v, YAW] = wp.atan2(heading[1], heading[0])
    ring.data[slot, n, v, PITCH] = pitch_angle(q)
    ring.data[slot, n, v, ROLL] = roll_angle(q)
    ring.data[slot, n, v, SPEED_LONG] = velocity[0]
    ring.data[slot, n, v, SPEED_LAT] = velocity[1]
    ring.data[slot, n, v, YAW_RATE] = wp.quat_rotate_inv(q, wp.spatial_bottom(inputs.body_qd[body]))[2]
    ring.data[slot, n, v, ACCEL] = inputs.forward_accel[w, v]
    ring.data[slot, n, v, COMMAND_ACCEL] = command[0]
    ring.data[slot, n, v, COMMAND_STEER] = command[1]
    ring.data[slot, n, v, STEER_ANGLE] = inputs.steer_angle[w, v]
    for k in range(4):
        ring.data[slot, n, v, LOAD + k] = load[k]
    ring.data[slot, n, v, FRICTION] = mean
    ring.data[slot, n, v, EVENT] = float(inputs.event[w, v])
    ring.data[slot, n, v, VALID] = float(inputs.valid[w, v])
    ring.data[slot, n, v, TTC] = inputs.conflict[w, v][0]
    ring.data[slot, n, v, NEED_RATIO] = inputs.conflict[w, v][1]


@wp.kernel
def restart_rows(mask: wp.array(dtype=wp.bool), ring: TrajectoryRing, world_begin: int):
    """Thread per world: masked worlds count their steps from 0 again."""
    w = wp.tid() + world_begin
    n = ring.row[w]
    if n < 0 or not mask[w]:
        return
    for v in range(ring.slot.shape[1]):
        ring.last_step[n, v] = 0
