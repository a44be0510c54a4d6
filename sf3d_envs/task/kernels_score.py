"""What follows the physics of a control step: routes, events, reward, and the end of a world, in one launch."""

import warp as wp

from ..observation.geometry import VehicleGeometry
from ..scenario.kernels import project_world
from ..terrain.kernels import Terrain
from .kernels import TaskRules, TaskState, stop_finished_world, update_world_events
from .kernels_errors import ErrorLog
from .reward import RewardWeights, add_world_reward

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class ScoreInputs:
    """What the rules read of W worlds with V vehicles, R routes of at most N samples."""

    body_q: wp.array(dtype=wp.transform)  # [W*V]
    body_qd: wp.array(dtype=wp.spatial_vector)  # [W*V]
    nonfinite: wp.array2d(dtype=wp.int8)  # [W, V]
    collecting: wp.array2d(dtype=wp.int8)  # [W, V] the vehicle collects reward
    geometry: wp.array(dtype=VehicleGeometry)  # [V]
    own_route: wp.array(dtype=int)  # [V]
    route_points: wp.array2d(dtype=wp.vec4)  # [R, N] x, y, cosine and sine of the heading
    route_count: wp.array(dtype=int)  # [R]
    route_reach: wp.array(dtype=float)  # [R]
    terrain: Terrain
    rules: TaskRules
    weights: RewardWeights
    num_vehicles: int
    num_routes: int
    stop_at_event: int  # 1: a vehicle collects nothing after the step of its first event
    horizon: int  # control steps
    dt: float  # of a control step [s]


@wp.kernel
def score_control_step(
    inputs: ScoreInputs,
    rewarded: int,
    route_index: wp.array3d(dtype=int),
    task: TaskState,
    reward_terms: wp.array3d(dtype=float),
    overflow: wp.array(dtype=wp.int8),
    errors: ErrorLog,
    stepping: wp.array(dtype=wp.int8),
    world_begin: int,
):
    """Thread per world: project, judge, reward if ``rewarded``, and stop worlds at a fault or the horizon.

    ``route_index`` [W, V, R], ``reward_terms`` [W, V, 5], ``overflow`` [W] (more contacts than the buffer holds) and
    ``stepping`` [W] are read and written; a frozen world is left as it is.
    """
    w = wp.tid() + world_begin
    if stepping[w] == wp.int8(0):
        return
    project_world(
        inputs.body_q,
        inputs.num_vehicles,
        inputs.num_routes,
        inputs.route_points,
        inputs.route_count,
        inputs.route_reach,
        route_index,
        w,
    )
    update_world_events(
        inputs.body_q,
        inputs.body_qd,
        inputs.nonfinite,
        inputs.geometry,
        inputs.rules,
        inputs.terrain,
        task,
        inputs.num_vehicles,
        w,
    )
    if rewarded != 0:
        add_world_reward(
            inputs.body_q,
            inputs.body_qd,
            inputs.collecting,
            inputs.own_route,
            inputs.route_points,
            route_index,
            task,
            inputs.weights,
            inputs.stop_at_event,
            inputs.dt,
            reward_terms,
            inputs.num_vehicles,
            w,
        )
    stop_finished_world(task, inputs.nonfinite, overflow, errors, stepping, inputs.horizon, w)
