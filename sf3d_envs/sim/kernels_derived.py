"""Quantities computed from the state when somebody reads them: accelerations, mass matrix, generalized forces."""

import warp as wp

from ..terrain.kernels import Terrain
from .arrays import VehicleArrays
from .kernels_command import actuate
from .kernels_vehicle import external_wrench, wheel_forces

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

Matrix6 = wp.types.matrix(shape=(6, 6), dtype=float)


@wp.kernel
def remember_velocities(s: VehicleArrays, stepping: wp.array(dtype=wp.int8), dt: float, world_begin: int):
    """Thread per vehicle: velocities at the start of a control step, which lasts ``dt`` unless the world is frozen."""
    w, v = wp.tid()
    w = w + world_begin
    s.velocity_before[w, v] = s.body_qd[w * s.params_index.shape[1] + v]
    s.velocity_elapsed[w, v] = wp.where(stepping[w] != wp.int8(0), dt, 0.0)


@wp.kernel
def mean_accelerations(s: VehicleArrays, out: wp.array2d(dtype=wp.spatial_vector)):
    """Thread per vehicle: change of velocity over the last control step by its length; 0 where there was none."""
    w, v = wp.tid()
    change = wp.spatial_vector()
    if s.velocity_elapsed[w, v] > 0.0:
        change = (s.body_qd[w * s.params_index.shape[1] + v] - s.velocity_before[w, v]) / s.velocity_elapsed[w, v]
    out[w, v] = change


@wp.struct
class DynamicsArrays:
    """Terms of the equations of motion at the centre of mass, world frame, linear first, [W, V]."""

    mass_matrix: wp.array2d(dtype=Matrix6)
    gravity: wp.array2d(dtype=wp.spatial_vector)
    gyroscopic: wp.array2d(dtype=wp.spatial_vector)
    tire: wp.array2d(dtype=wp.spatial_vector)
    drag: wp.array2d(dtype=wp.spatial_vector)
    external: wp.array2d(dtype=wp.spatial_vector)


@wp.kernel
def equations_of_motion(
    s: VehicleArrays, terrain: Terrain, gravity: wp.array(dtype=wp.vec3), dt: float, out: DynamicsArrays
):
    """Thread per vehicle: mass matrix and forces that the next substep of ``dt`` would begin with; nothing is moved."""
    w, v = wp.tid()
    body = w * s.params_index.shape[1] + v
    car = s.params[s.params_index[w, v]]
    grid = terrain.grids[terrain.world_variant[w]]
    q = s.body_q[body]
    qd = s.body_qd[body]
    velocity = wp.spatial_top(qd)
    omega = wp.spatial_bottom(qd)
    axes = wp.quat_to_matrix(wp.transform_get_rotation(q))
    inertia = axes * wp.diag(car.inertia) * wp.transpose(axes)
    act = actuate(s, car, w, v, wp.length(velocity), dt)
    wheels = wheel_forces(terrain, grid, car, q, qd, s.wheel_spin[w, v], act.steer, act.drive, act.brake, dt)

    mass = Matrix6()
    for i in range(3):
        mass[i, i] = car.mass
        for j in range(3):
            mass[3 + i, 3 + j] = inertia[i, j]
    out.mass_matrix[w, v] = mass
    out.gravity[w, v] = wp.spatial_vector(car.mass * gravity[w], wp.vec3())
    out.gyroscopic[w, v] = wp.spatial_vector(wp.vec3(), -wp.cross(omega, inertia * omega))
    out.tire[w, v] = wp.spatial_vector(wheels.force, wheels.torque)
    out.drag[w, v] = wp.spatial_vector(-car.drag * wp.length(velocity) * velocity, wp.vec3())
    out.external[w, v] = external_wrench(s, w, v)
