"""The vehicles' device memory as kernels see it."""

import warp as wp

from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class VehicleArrays:
    """State, command and readings of all vehicles; [W·V] for Newton's arrays, [W, V] for ours, [W, V, 4] per wheel."""

    body_q: wp.array(dtype=wp.transform)
    body_qd: wp.array(dtype=wp.spatial_vector)
    position_residual: wp.array2d(dtype=wp.vec3)
    wheel_spin: wp.array2d(dtype=wp.vec4)
    wheel_angle: wp.array2d(dtype=wp.vec4)
    steer_angle: wp.array2d(dtype=float)
    steer_rate: wp.array2d(dtype=float)
    command_mode: wp.array2d(dtype=wp.int8)
    command: wp.array2d(dtype=wp.vec2)
    pedals: wp.array2d(dtype=wp.vec3)
    drive_torque: wp.array2d(dtype=wp.vec4)
    brake_torque: wp.array2d(dtype=wp.vec4)
    steer_target: wp.array2d(dtype=float)
    steer_gains: wp.array2d(dtype=wp.vec2)
    wrench_force: wp.array2d(dtype=wp.vec3)
    wrench_torque: wp.array2d(dtype=wp.vec3)
    wheel_load: wp.array2d(dtype=wp.vec4)
    wheel_friction: wp.array2d(dtype=wp.vec4)
    wheel_compression: wp.array2d(dtype=wp.vec4)
    compression_rate: wp.array3d(dtype=float)
    tire_force: wp.array3d(dtype=wp.vec2)
    tire_slip: wp.array3d(dtype=wp.vec2)
    contact_point: wp.array3d(dtype=wp.vec3)
    contact_normal: wp.array3d(dtype=wp.vec3)
    forward_speed: wp.array2d(dtype=float)
    forward_accel: wp.array2d(dtype=float)
    nonfinite: wp.array2d(dtype=wp.int8)
    home_q: wp.array2d(dtype=wp.transform)
    previous_q: wp.array2d(dtype=wp.transform)
    velocity_before: wp.array2d(dtype=wp.spatial_vector)
    velocity_elapsed: wp.array2d(dtype=float)
    contact_impulse: wp.array3d(dtype=wp.vec3)
    contact_count: wp.array3d(dtype=int)
    contact_now: wp.array3d(dtype=int)
    contact_elapsed: wp.array(dtype=float)
    raw_points: wp.array3d(dtype=float)
    raw_pairs: wp.array3d(dtype=int)
    raw_count: wp.array(dtype=int)
    params: wp.array(dtype=VehicleData)
    params_index: wp.array2d(dtype=int)


OPTIONAL = (
    "velocity_before",
    "velocity_elapsed",
    "contact_impulse",
    "contact_count",
    "contact_now",
    "contact_elapsed",
    "raw_points",
    "raw_pairs",
    "raw_count",
)
"""Arrays of what is opted in, without elements where it is not; a placement clears them, and save leaves them out."""

CARRIED = tuple(name for name in VehicleArrays.vars if name not in ("params", "params_index", *OPTIONAL))
"""Arrays that a world carries from step to step."""

SOURCES = ("vehicle", "road", "wall")
"""What a chassis may touch, as contact sums are indexed; there are no walls on the lane-closure road."""


def vehicle_arrays(
    worlds: int,
    vehicles: int,
    device: wp.Device,
    *,
    accelerations: bool = False,
    contacts: bool = False,
    raw_contacts: int = 0,
) -> tuple[VehicleArrays, wp.array]:
    """Zeroed arrays of W x V vehicles, all but the parameters, and the memory of poses and velocities, [W·V, 13].

    These two share one buffer, so that a root state is one view.

    Args:
        worlds: W.
        vehicles: V.
        device: Where.
        accelerations: Whether velocities before a step are kept.
        contacts: Whether contact impulses are summed up.
        raw_contacts: Contact points kept per world.
    """
    optional = dict.fromkeys(OPTIONAL, 0)
    if accelerations:
        optional |= {"velocity_before": (worlds, vehicles), "velocity_elapsed": (worlds, vehicles)}
    if contacts:
        per_source = (worlds, vehicles, len(SOURCES))
        optional |= dict.fromkeys(("contact_impulse", "contact_count", "contact_now"), per_source)
        optional |= {"contact_elapsed": worlds, "raw_count": worlds}
        optional |= {"raw_points": (worlds, raw_contacts, 10), "raw_pairs": (worlds, raw_contacts, 6)}
    root = wp.zeros((worlds * vehicles, 13), dtype=float, device=device)
    arrays = VehicleArrays()
    for name, field in VehicleArrays.vars.items():
        kind = field.type
        if name in ("body_q", "body_qd"):
            offset = 0 if name == "body_q" else 28
            array = wp.array(
                ptr=root.ptr + offset, dtype=kind.dtype, shape=(root.shape[0],), strides=(52,), device=device
            )
            array._ref = root  # keeps the memory
        elif name.startswith("params"):
            continue
        elif name in optional:
            shape = optional[name] or (0,) * kind.ndim
            array = wp.zeros(shape, dtype=kind.dtype, device=device)
        else:
            shape = (worlds, vehicles, 4)[: kind.ndim]
            array = wp.zeros(shape, dtype=kind.dtype, device=device)
        setattr(arrays, name, array)
    return arrays, root
