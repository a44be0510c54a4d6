"""Rigid contact of chassis with chassis and road: XPBD with Gauss-Seidel in a fixed order.

Contacts are found once per substep at the predicted poses, in the order pairs i < j, then road corners. Corrections
go into pose and velocity together (v += Δx/h), so a contact-free vehicle keeps its bits and far from the origin no
precision is lost to (x - x_prev)/h. The scheme follows Macklin et al. 2016 and Müller et al. 2020; the last pass is the
restitution-0 velocity solve, which takes back speed that penetration recovery would add.
"""

import warp as wp

from ..terrain.kernels import Terrain, facet_normal, surface_friction, terrain_bulge, terrain_facet
from .arrays import VehicleArrays
from .kernels_box import collide_boxes
from .kernels_sense import add_point, begin_substep, finish_substep, senses_contacts
from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ITERATIONS = wp.constant(8)


@wp.struct
class Contact:
    """One contact point; ``b < 0`` is the road and then ``point_b`` is fixed in the world."""

    a: int
    b: int
    point_a: wp.vec3
    point_b: wp.vec3
    normal: wp.vec3
    friction: float
    approach: float
    separation: float


@wp.struct
class ContactArrays:
    """Contact points of each world, their multipliers (normal, tangential) and bookkeeping.

    ``impulse`` is what each point gave to its vehicle ``a`` [N·s]; without elements where nobody asked for it.
    """

    points: wp.array2d(dtype=Contact)
    multiplier: wp.array2d(dtype=wp.vec2)
    impulse: wp.array2d(dtype=wp.vec3)
    count: wp.array(dtype=int)
    overflow: wp.array(dtype=wp.int8)


@wp.func
def inverse_inertia_times(q: wp.transform, car: VehicleData, v: wp.vec3) -> wp.vec3:
    """World-frame inverse inertia applied to a vector."""
    r = wp.transform_get_rotation(q)
    return wp.quat_rotate(r, wp.cw_mul(car.inv_inertia, wp.quat_rotate_inv(r, v)))


@wp.func
def inverse_mass_along(q: wp.transform, car: VehicleData, arm: wp.vec3, axis: wp.vec3) -> float:
    """Generalized inverse mass of a point at ``arm`` along ``axis`` [1/kg]."""
    lever = wp.cross(arm, axis)
    return car.inv_mass + wp.dot(lever, inverse_inertia_times(q, car, lever))


@wp.func
def point_velocity(qd: wp.spatial_vector, arm: wp.vec3) -> wp.vec3:
    """Velocity of a body point at ``arm`` from the centre of mass."""
    return wp.spatial_top(qd) + wp.cross(wp.spatial_bottom(qd), arm)


@wp.func
def move_body(s: VehicleArrays, body: int, car: VehicleData, arm: wp.vec3, push: wp.vec3, inv_dt: float):
    """Apply a positional impulse [kg·m] at ``arm`` to pose and velocity."""
    q = s.body_q[body]
    qd = s.body_qd[body]
    r = wp.transform_get_rotation(q)
    shift = push * car.inv_mass
    turn = inverse_inertia_times(q, car, wp.cross(arm, push))
    r = wp.normalize(r + wp.quat(turn, 0.0) * r * 0.5)
    s.body_q[body] = wp.transform(wp.transform_get_translation(q) + shift, r)
    s.body_qd[body] = qd + wp.spatial_vector(shift, turn) * inv_dt


@wp.func
def kick_body(s: VehicleArrays, body: int, car: VehicleData, arm: wp.vec3, impulse: wp.vec3):
    """Apply an impulse [N·s] at ``arm`` to the velocity."""
    turn = inverse_inertia_times(s.body_q[body], car, wp.cross(arm, impulse))
    s.body_qd[body] = s.body_qd[body] + wp.spatial_vector(impulse * car.inv_mass, turn)


@wp.func
def add_contact(c: ContactArrays, w: int, count: int, contact: Contact) -> int:
    """Append a contact; a full buffer sets the world's overflow flag."""
    if count >= c.points.shape[1]:
        c.overflow[w] = wp.int8(1)
        return count
    c.points[w, count] = contact
    c.multiplier[w, count] = wp.vec2(0.0, 0.0)
    if c.impulse.shape[0] > 0:
        c.impulse[w, count] = wp.vec3()
    return count + 1


@wp.func
def collect_pair(s: VehicleArrays, c: ContactArrays, w: int, i: int, j: int, count: int) -> int:
    """Contacts of the boxes of vehicles i < j."""
    vehicles = s.params_index.shape[1]
    qa = s.body_q[w * vehicles + i]
    qb = s.body_q[w * vehicles + j]
    car_a = s.params[s.params_index[w, i]]
    car_b = s.params[s.params_index[w, j]]
    pa = wp.transform_get_translation(qa)
    pb = wp.transform_get_translation(qb)
    ra = wp.quat_to_matrix(wp.transform_get_rotation(qa))
    rb = wp.quat_to_matrix(wp.transform_get_rotation(qb))
    manifold = collide_boxes(pa, ra, car_a.half_extent, pb, rb, car_b.half_extent)
    normal = manifold.normal
    for k in range(manifold.count):
        if manifold.separation[k] < 0.0:
            contact = Contact()
            # arms from each centre: differences of world positions lose precision far from the origin
            middle = wp.vec3(manifold.points[k, 0], manifold.points[k, 1], manifold.points[k, 2])
            arm_a = middle - 0.5 * manifold.separation[k] * normal
            arm_b = middle + 0.5 * manifold.separation[k] * normal - (pb - pa)
            contact.a = i
            contact.b = j
            contact.normal = normal
            contact.point_a = wp.transpose(ra) * arm_a
            contact.point_b = wp.transpose(rb) * arm_b
            contact.separation = manifold.separation[k]
            contact.friction = 0.5 * (car_a.chassis_friction + car_b.chassis_friction)
            contact.approach = wp.dot(
                normal,
                point_velocity(s.body_qd[w * vehicles + j], arm_b) - point_velocity(s.body_qd[w * vehicles + i], arm_a),
            )
            count = add_contact(c, w, count, contact)
    return count


@wp.func
def collect_road(s: VehicleArrays, terrain: Terrain, c: ContactArrays, w: int, i: int, count: int) -> int:
    """Contacts of the box corners of vehicle i with the road."""
    body = w * s.params_index.shape[1] + i
    q = s.body_q[body]
    car = s.params[s.params_index[w, i]]
    grid = terrain.grids[terrain.world_variant[w]]
    p = wp.transform_get_translation(q)
    r = wp.quat_to_matrix(wp.transform_get_rotation(q))
    for k in range(int(8)):
        corner = wp.vec3(
            wp.where((k & 1) == 0, car.half_extent[0], -car.half_extent[0]),
            wp.where((k & 2) == 0, car.half_extent[1], -car.half_extent[1]),
            wp.where((k & 4) == 0, car.half_extent[2], -car.half_extent[2]),
        )
        arm = r * corner
        point = p + arm
        facet = terrain_facet(terrain, grid, point[0], point[1])
        if point[2] < facet[0]:
            contact = Contact()
            up = facet_normal(facet)
            contact.a = i
            contact.b = -1
            contact.normal = -up
            contact.point_a = corner
            contact.point_b = point + up * ((facet[0] - point[2]) * up[2])
            contact.separation = (point[2] - facet[0]) * up[2]
            contact.friction = car.chassis_friction * surface_friction(terrain, grid, point[0], point[1])
            contact.approach = wp.dot(up, point_velocity(s.body_qd[body], arm))
            count = add_contact(c, w, count, contact)
    return count


@wp.func
def note_impulse(c: ContactArrays, w: int, k: int, impulse: wp.vec3):
    """Add to what a contact gave to its vehicle ``a``, where somebody asked for it."""
    if c.impulse.shape[0] > 0:
        c.impulse[w, k] = c.impulse[w, k] + impulse


@wp.func
def solve_position(s: VehicleArrays, c: ContactArrays, w: int, k: int, inv_dt: float):
    """One Gauss-Seidel visit of a contact: push out along the normal, then hold the tangent within Coulomb's cone."""
    vehicles = s.params_index.shape[1]
    contact = c.points[w, k]
    lam = c.multiplier[w, k]
    a = w * vehicles + contact.a
    b = w * vehicles + contact.b
    car_a = s.params[s.params_index[w, contact.a]]
    car_b = car_a
    qa = s.body_q[a]
    arm_a = wp.quat_rotate(wp.transform_get_rotation(qa), contact.point_a)
    point_a = wp.transform_get_translation(qa) + arm_a
    point_b = contact.point_b
    arm_b = wp.vec3()
    weight = inverse_mass_along(qa, car_a, arm_a, contact.normal)
    if contact.b >= 0:
        car_b = s.params[s.params_index[w, contact.b]]
        qb = s.body_q[b]
        arm_b = wp.quat_rotate(wp.transform_get_rotation(qb), contact.point_b)
        point_b = wp.transform_get_translation(qb) + arm_b
        weight += inverse_mass_along(qb, car_b, arm_b, contact.normal)

    separation = wp.dot(contact.normal, point_b - point_a)
    change = wp.max(-separation / weight, -lam[0])
    if change != 0.0:
        push = change * contact.normal
        note_impulse(c, w, k, -inv_dt * push)
        move_body(s, a, car_a, arm_a, -push, inv_dt)
        if contact.b >= 0:
            move_body(s, b, car_b, arm_b, push, inv_dt)
    normal_multiplier = lam[0] + change

    budget = contact.friction * normal_multiplier - lam[1]
    tangential = lam[1]
    if budget > 0.0:
        qa = s.body_q[a]
        arm_a = wp.quat_rotate(wp.transform_get_rotation(qa), contact.point_a)
        slide = (
            wp.transform_get_translation(qa) + arm_a - wp.transform_point(s.previous_q[w, contact.a], contact.point_a)
        )
        if contact.b >= 0:
            qb = s.body_q[b]
            arm_b = wp.quat_rotate(wp.transform_get_rotation(qb), contact.point_b)
            slide -= (
                wp.transform_get_translation(qb)
                + arm_b
                - wp.transform_point(s.previous_q[w, contact.b], contact.point_b)
            )
        slide -= wp.dot(slide, contact.normal) * contact.normal
        length = wp.length(slide)
        if length > 1.0e-7:
            axis = slide / length
            weight = inverse_mass_along(qa, car_a, arm_a, axis)
            if contact.b >= 0:
                weight += inverse_mass_along(s.body_q[b], car_b, arm_b, axis)
            amount = wp.min(length / weight, budget)
            note_impulse(c, w, k, -(inv_dt * amount) * axis)
            move_body(s, a, car_a, arm_a, -amount * axis, inv_dt)
            if contact.b >= 0:
                move_body(s, b, car_b, arm_b, amount * axis, inv_dt)
            tangential += amount
    c.multiplier[w, k] = wp.vec2(normal_multiplier, tangential)


@wp.func
def remove_rebound(s: VehicleArrays, c: ContactArrays, w: int, k: int):
    """Restitution 0: bodies leave a contact no faster than they were already separating before it."""
    if c.multiplier[w, k][0] <= 0.0:
        return
    vehicles = s.params_index.shape[1]
    contact = c.points[w, k]
    a = w * vehicles + contact.a
    b = w * vehicles + contact.b
    car_a = s.params[s.params_index[w, contact.a]]
    car_b = car_a
    qa = s.body_q[a]
    arm_a = wp.quat_rotate(wp.transform_get_rotation(qa), contact.point_a)
    rate = -wp.dot(contact.normal, point_velocity(s.body_qd[a], arm_a))
    weight = inverse_mass_along(qa, car_a, arm_a, contact.normal)
    arm_b = wp.vec3()
    if contact.b >= 0:
        car_b = s.params[s.params_index[w, contact.b]]
        qb = s.body_q[b]
        arm_b = wp.quat_rotate(wp.transform_get_rotation(qb), contact.point_b)
        rate += wp.dot(contact.normal, point_velocity(s.body_qd[b], arm_b))
        weight += inverse_mass_along(qb, car_b, arm_b, contact.normal)
    excess = rate - wp.max(contact.approach, 0.0)
    if excess > 0.0:
        impulse = (excess / weight) * contact.normal
        note_impulse(c, w, k, impulse)
        kick_body(s, a, car_a, arm_a, impulse)
        if contact.b >= 0:
            kick_body(s, b, car_b, arm_b, -impulse)


@wp.func
def may_touch(s: VehicleArrays, w: int, i: int, j: int) -> bool:
    """Bounding test of a pair."""
    vehicles = s.params_index.shape[1]
    apart = wp.transform_get_translation(s.body_q[w * vehicles + j]) - wp.transform_get_translation(
        s.body_q[w * vehicles + i]
    )
    reach = s.params[s.params_index[w, i]].bounding_radius + s.params[s.params_index[w, j]].bounding_radius
    return wp.dot(apart, apart) < reach * reach


@wp.func
def may_scrape(s: VehicleArrays, terrain: Terrain, w: int, i: int) -> bool:
    """Whether the lowest box corner of vehicle i can reach the road, from the facet plane below the centre."""
    q = s.body_q[w * s.params_index.shape[1] + i]
    half = s.params[s.params_index[w, i]].half_extent
    grid = terrain.grids[terrain.world_variant[w]]
    p = wp.transform_get_translation(q)
    facet = terrain_facet(terrain, grid, p[0], p[1])
    drop = wp.transpose(wp.quat_to_matrix(wp.transform_get_rotation(q))) * wp.vec3(-facet[1], -facet[2], 1.0)
    lowest = p[2] - facet[0] - wp.dot(half, wp.vec3(wp.abs(drop[0]), wp.abs(drop[1]), wp.abs(drop[2])))
    return lowest < terrain_bulge(terrain, grid, p[0], p[1])


@wp.func
def report_contacts(s: VehicleArrays, c: ContactArrays, w: int, count: int):
    """Add the impulses of one substep to the sums and the list, in the order of the contacts."""
    vehicles = s.params_index.shape[1]
    begin_substep(s, w)
    for k in range(count):
        impulse = c.impulse[w, k]
        if wp.dot(impulse, impulse) > 0.0:
            contact = c.points[w, k]
            position = wp.transform_point(s.body_q[w * vehicles + contact.a], contact.point_a)
            add_point(s, w, contact.a, contact.b, position, -contact.normal, impulse, contact.separation)
    finish_substep(s, w)


@wp.func
def solve_contacts(s: VehicleArrays, terrain: Terrain, c: ContactArrays, w: int, inv_dt: float):
    """All contacts of one world for one substep."""
    vehicles = s.params_index.shape[1]
    count = int(0)
    for i in range(vehicles):
        for j in range(i + 1, vehicles):
            if may_touch(s, w, i, j):
                count = collect_pair(s, c, w, i, j, count)
    for i in range(vehicles):
        if may_scrape(s, terrain, w, i):
            count = collect_road(s, terrain, c, w, i, count)
    c.count[w] = count
    if senses_contacts(s):
        s.contact_elapsed[w] = s.contact_elapsed[w] + 1.0 / inv_dt
    if count == 0:
        return
    for _i in range(int(ITERATIONS)):
        for k in range(count):
            solve_position(s, c, w, k, inv_dt)
    for _i in range(int(2)):
        for k in range(count):
            remove_rebound(s, c, w, k)
    if senses_contacts(s):
        report_contacts(s, c, w, count)
