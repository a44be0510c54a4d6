"""CUDA's launch shape: a thread per vehicle for forces, then a thread per world for contacts, substep by substep."""

import warp as wp

from ..terrain.kernels import Terrain
from .arrays import VehicleArrays
from .kernels_contact import ContactArrays, solve_contacts
from .kernels_vehicle import finish_control_step, integrate_vehicle

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def advance_vehicles(
    s: VehicleArrays,
    terrain: Terrain,
    gravity: wp.array(dtype=wp.vec3),
    stepping: wp.array(dtype=wp.int8),
    dt: float,
    last: int,
    world_begin: int,
):
    """Thread per vehicle: forces and predicted pose of one substep; ``last`` is 1 in that which is read."""
    w, v = wp.tid()
    w = w + world_begin
    if stepping[w] != wp.int8(0):
        integrate_vehicle(s, terrain, gravity, w, v, dt, last == 1)


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
