"""Parts of the scoring kernel as kernels of their own, so that a test can exercise one at a time; thread per world."""

import warp as wp

from sf3d_envs.observation.geometry import VehicleGeometry
from sf3d_envs.scenario.kernels import project_world
from sf3d_envs.task.kernels import TaskRules, TaskState, stop_finished_world, update_world_events
from sf3d_envs.task.kernels_errors import ErrorLog
from sf3d_envs.task.reward import RewardWeights, add_world_reward
from sf3d_envs.terrain.kernels import Terrain

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def project_to_routes(
    body_q: wp.array(dtype=wp.transform),
    num_vehicles: int,
    num_routes: int,
    points: wp.array2d(dtype=wp.vec4),
    count: wp.array(dtype=int),
    reach: wp.array(dtype=float),
    stepping: wp.array(dtype=wp.int8),
    route_index: wp.array3d(dtype=int),
    world_begin: int,
):
    w = wp.tid() + world_begin
    if stepping[w] != wp.int8(0):
        project_world(body_q, num_vehicles, num_routes, points, count, reach, route_index, w)


@wp.kernel
def update_events(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    nonfinite: wp.array2d(dtype=wp.int8),
    stepping: wp.array(dtype=wp.int8),
    geometry: wp.array(dtype=VehicleGeometry),
    rules: TaskRules,
    terrain: Terrain,
    task: TaskState,
    num_vehicles: int,
    world_begin: int,
):
    w = wp.tid() + world_begin
    if stepping[w] != wp.int8(0):
        update_world_events(body_q, body_qd, nonfinite, geometry, rules, terrain, task, num_vehicles, w)


@wp.kernel
def accumulate_reward(
    body_q: wp.array(dtype=wp.transform),
    body_qd: wp.array(dtype=wp.spatial_vector),
    stepping: wp.array(dtype=wp.int8),
    active: wp.array2d(dtype=wp.int8),
    own_route: wp.array(dtype=int),
    route_points: wp.array2d(dtype=wp.vec4),
    route_index: wp.array3d(dtype=int),
    task: TaskState,
    weights: RewardWeights,
    stop_at_event: int,
    dt: float,
    reward_terms: wp.array3d(dtype=float),
    num_vehicles: int,
    world_begin: int,
):
    w = wp.tid() + world_begin
    if stepping[w] != wp.int8(0):
        add_world_reward(
            body_q,
            body_qd,
            active,
            own_route,
            route_points,
            route_index,
            task,
            weights,
            stop_at_event,
            dt,
            reward_terms,
            num_vehicles,
            w,
        )


@wp.kernel
def freeze_finished(
    task: TaskState,
    nonfinite: wp.array2d(dtype=wp.int8),
    overflow: wp.array(dtype=wp.int8),
    errors: ErrorLog,
    stepping: wp.array(dtype=wp.int8),
    horizon: int,
    world_begin: int,
):
    w = wp.tid() + world_begin
    if stepping[w] != wp.int8(0):
        stop_finished_world(task, nonfinite, overflow, errors, stepping, horizon, w)
