"""The CPU's launch shape: one thread takes a world through all substeps of a control step.

A CPU launch runs on one thread, so the fewer launches the better. The functions are those of the CUDA shape in
``kernels_split``, called in the same order per world; on one device the two agree bit for bit.
"""

import warp as wp

from ..terrain.kernels import Terrain
from .arrays import VehicleArrays
from .kernels_contact import ContactArrays, solve_contacts
from .kernels_vehicle import finish_control_step, integrate_vehicle

# Inlined as a whole: a call that is left standing copies the structs of array descriptors, a sixth of the time.
wp.set_module_options(
    {
        "enable_backward": False,
        "fuse_fp": False,
        "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=100000",
    }
)


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
    for k in range(substeps):
        for v in range(vehicles):
            integrate_vehicle(s, terrain, gravity, w, v, dt, k == substeps - 1)
        solve_contacts(s, terrain, contacts, w, 1.0 / dt)
    for v in range(vehicles):
        finish_control_step(s, w, v, float(substeps) * dt)
