"""Putting vehicles somewhere: everything the physics carries from step to step is overwritten."""

import warp as wp

from .arrays import VehicleArrays
from .kernels_sense import clear_contact_sums
from .kernels_vehicle import forward_speed

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def clear_inputs(s: VehicleArrays, w: int, v: int):
    """No command, driver's mode, no wrench."""
    s.command_mode[w, v] = wp.int8(0)
    s.command[w, v] = wp.vec2()
    s.pedals[w, v] = wp.vec3()
    s.drive_torque[w, v] = wp.vec4()
    s.brake_torque[w, v] = wp.vec4()
    s.steer_target[w, v] = 0.0
    s.steer_gains[w, v] = wp.vec2()
    s.wrench_force[w, v] = wp.vec3()
    s.wrench_torque[w, v] = wp.vec3()


@wp.func
def place_vehicle(s: VehicleArrays, w: int, v: int, q: wp.transform, speed: float):
    """Overwrite everything the physics carries from step to step for one vehicle."""
    body = w * s.params_index.shape[1] + v
    car = s.params[s.params_index[w, v]]
    velocity = speed * wp.quat_rotate(wp.transform_get_rotation(q), wp.vec3(1.0, 0.0, 0.0))
    spin = speed / car.radius
    s.body_q[body] = q
    s.body_qd[body] = wp.spatial_vector(velocity, wp.vec3())
    s.position_residual[w, v] = wp.vec3()
    s.wheel_spin[w, v] = wp.vec4(spin, spin, spin, spin)
    s.wheel_angle[w, v] = wp.vec4()
    s.steer_angle[w, v] = 0.0
    s.steer_rate[w, v] = 0.0
    clear_inputs(s, w, v)
    s.wheel_load[w, v] = wp.vec4()
    s.wheel_friction[w, v] = wp.vec4()
    s.wheel_compression[w, v] = wp.vec4()
    for k in range(4):
        s.compression_rate[w, v, k] = 0.0
        s.tire_force[w, v, k] = wp.vec2()
        s.tire_slip[w, v, k] = wp.vec2()
        s.contact_point[w, v, k] = wp.vec3()
        s.contact_normal[w, v, k] = wp.vec3()
    if s.velocity_elapsed.shape[0] > 0:
        s.velocity_elapsed[w, v] = 0.0
    clear_contact_sums(s, w, v)
    s.forward_speed[w, v] = forward_speed(q, s.body_qd[body])
    s.forward_accel[w, v] = 0.0
    s.nonfinite[w, v] = wp.int8(0)
    s.home_q[w, v] = q
    s.previous_q[w, v] = q


@wp.kernel
def place_vehicles(
    mask: wp.array(dtype=wp.bool),
    position: wp.array2d(dtype=wp.vec3),
    rotation: wp.array2d(dtype=wp.quat),
    speed: wp.array2d(dtype=float),
    s: VehicleArrays,
    world_begin: int,
):
    """Thread per vehicle: put the vehicles of masked worlds at a pose, rolling freely at a forward speed."""
    w, v = wp.tid()
    w = w + world_begin
    if not mask[w]:
        return
    place_vehicle(s, w, v, wp.transform(position[w, v], rotation[w, v]), speed[w, v])
