"""Launch shapes of the physics step.

A CPU launch runs on one thread, so there one thread takes a world through all substeps; on CUDA a thread per vehicle
computes forces and a thread per world the contacts. Both call the same functions in the same order per world and agree
bit for bit on one device.
"""

import warp as wp

from ..terrain.kernels import Terrain
from .kernels_contact import ContactArrays, solve_contacts
from .kernels_vehicle import VehicleArrays, finish_control_step, forward_speed, integrate_vehicle

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def advance_worlds(
    s: VehicleArrays,
    terrain: Terrain,
    contacts: ContactArrays,
    gravity: wp.array(dtype=wp.vec3),
    stepping: wp.array(dtype=wp.int8),
    substeps: int,
    dt: float,
    world_begin: int,
):
    """Thread per world: substeps of forces, contacts and readings for all its vehicles."""
    w = wp.tid() + world_begin
    if stepping[w] == wp.int8(0):
        return
    vehicles = s.params_index.shape[1]
    for _k in range(substeps):
        for v in range(vehicles):
            integrate_vehicle(s, terrain, gravity, w, v, dt)
        solve_contacts(s, terrain, contacts, w, 1.0 / dt)
    for v in range(vehicles):
        finish_control_step(s, w, v, float(substeps) * dt)


@wp.kernel
def advance_vehicles(
    s: VehicleArrays,
    terrain: Terrain,
    gravity: wp.array(dtype=wp.vec3),
    stepping: wp.array(dtype=wp.int8),
    dt: float,
    world_begin: int,
):
    """Thread per vehicle: forces and predicted pose of one substep."""
    w, v = wp.tid()
    w = w + world_begin
    if stepping[w] != wp.int8(0):
        integrate_vehicle(s, terrain, gravity, w, v, dt)


@wp.kernel
def resolve_contacts(
    s: VehicleArrays,
    terrain: Terrain,
    contacts: ContactArrays,
    stepping: wp.array(dtype=wp.int8),
    dt: float,
    world_begin: int,
):
    """Thread per world: contacts of one substep."""
    w = wp.tid() + world_begin
    if stepping[w] != wp.int8(0):
        solve_contacts(s, terrain, contacts, w, 1.0 / dt)


@wp.kernel
def finish_control_steps(s: VehicleArrays, stepping: wp.array(dtype=wp.int8), elapsed: float, world_begin: int):
    """Thread per vehicle: readings of the control step."""
    w, v = wp.tid()
    w = w + world_begin
    if stepping[w] != wp.int8(0):
        finish_control_step(s, w, v, elapsed)


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
    s.command[w, v] = wp.vec2(0.0, 0.0)
    s.wheel_load[w, v] = wp.vec4()
    s.wheel_friction[w, v] = wp.vec4()
    s.wheel_compression[w, v] = wp.vec4()
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
