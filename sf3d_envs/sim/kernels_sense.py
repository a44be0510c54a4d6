"""Sums and lists of contact impulses, kept only where somebody asked for contact sensors.

The arrays belong to :class:`~sf3d_envs.sim.arrays.VehicleArrays` and have no elements where nobody did. Impulses are
those on side A of a contact; side B takes the opposite.
"""

import warp as wp

from .arrays import VehicleArrays

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

VEHICLE = wp.constant(0)
ROAD = wp.constant(1)


@wp.func
def senses_contacts(s: VehicleArrays) -> bool:
    """Whether contact impulses are summed up."""
    return s.contact_impulse.shape[0] > 0


@wp.func
def clear_contact_sums(s: VehicleArrays, w: int, v: int):
    """No contact of a vehicle, and none in its world's list."""
    if senses_contacts(s):
        for k in range(s.contact_impulse.shape[2]):
            s.contact_impulse[w, v, k] = wp.vec3()
            s.contact_count[w, v, k] = 0
        s.contact_elapsed[w] = 0.0
        s.raw_count[w] = 0


@wp.kernel
def begin_contacts(s: VehicleArrays, world_begin: int):
    """Thread per world: a step call begins; what the last one summed up is gone."""
    w = wp.tid() + world_begin
    for v in range(s.params_index.shape[1]):
        clear_contact_sums(s, w, v)


@wp.func
def begin_substep(s: VehicleArrays, w: int):
    """No contact in this substep so far."""
    for v in range(s.params_index.shape[1]):
        for k in range(s.contact_now.shape[2]):
            s.contact_now[w, v, k] = 0


@wp.func
def add_point(
    s: VehicleArrays,
    w: int,
    a: int,
    b: int,
    position: wp.vec3,
    normal: wp.vec3,
    impulse: wp.vec3,
    separation: float,
):
    """Add a contact point of vehicle ``a`` with vehicle ``b``, or with the road for ``b < 0``."""
    source = wp.where(b < 0, ROAD, VEHICLE)
    s.contact_impulse[w, a, source] = s.contact_impulse[w, a, source] + impulse
    s.contact_now[w, a, source] = s.contact_now[w, a, source] + 1
    if b >= 0:
        s.contact_impulse[w, b, VEHICLE] = s.contact_impulse[w, b, VEHICLE] - impulse
        s.contact_now[w, b, VEHICLE] = s.contact_now[w, b, VEHICLE] + 1
    place = s.raw_count[w]
    s.raw_count[w] = place + 1  # what does not fit is counted: the next read raises
    if place < s.raw_points.shape[1]:
        for k in range(3):
            s.raw_points[w, place, k] = position[k]
            s.raw_points[w, place, 3 + k] = normal[k]
            s.raw_points[w, place, 6 + k] = impulse[k]
        s.raw_points[w, place, 9] = separation
        s.raw_pairs[w, place, 0] = VEHICLE
        s.raw_pairs[w, place, 1] = w
        s.raw_pairs[w, place, 2] = a
        s.raw_pairs[w, place, 3] = source
        s.raw_pairs[w, place, 4] = w
        s.raw_pairs[w, place, 5] = wp.max(b, -1)


@wp.func
def finish_substep(s: VehicleArrays, w: int):
    """Contact counts are the largest of the substeps."""
    for v in range(s.params_index.shape[1]):
        for k in range(s.contact_now.shape[2]):
            s.contact_count[w, v, k] = wp.max(s.contact_count[w, v, k], s.contact_now[w, v, k])
