"""Kernels of the environment step: action intake, command latch, row bookkeeping and reset masks."""

import warp as wp

from ..random import Domain, episode_scenario_seed, philox_block, uniform_int
from ..scenario.kernels import ScenarioArrays
from ..sim.arrays import VehicleArrays
from ..sim.kernels_place import place_vehicle
from ..task.kernels import TaskState
from ..task.kernels_errors import ACTION, REWARD, TRAFFIC, ErrorLog, note_error, open_episode
from ..terrain.kernels import Terrain, terrain_facet

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TERRAIN_DOMAIN = wp.constant(wp.uint32(int(Domain.TERRAIN)))

ROW_ZERO = wp.constant(wp.int8(0))
ROW_WRITE = wp.constant(wp.int8(1))
ROW_KEEP = wp.constant(wp.int8(2))

RULES_TRAINING = wp.constant(0)
RULES_SCORING = wp.constant(1)


@wp.struct
class EpisodeArrays:
    """Where each world's scenarios come from. All [W]."""

    stream: wp.array(dtype=wp.uint64)
    episode: wp.array(dtype=wp.uint32)
    override: wp.array(dtype=wp.int8)
    seed: wp.array(dtype=wp.uint64)


@wp.struct
class RowArrays:
    """Rows [W, R] of an environment and the state of its worlds [W]."""

    vehicle: wp.array(dtype=int)  # [R]
    row_of_vehicle: wp.array(dtype=int)  # [V], -1 = not controlled
    active: wp.array2d(dtype=wp.bool)
    reward: wp.array2d(dtype=float)
    terminated: wp.array2d(dtype=wp.bool)
    truncated: wp.array2d(dtype=wp.bool)
    event: wp.array2d(dtype=wp.int8)
    passage: wp.array2d(dtype=wp.bool)
    episode_start: wp.array2d(dtype=wp.bool)
    ended: wp.array2d(dtype=wp.bool)  # own flag raised by the step that reset the world (same-step autoreset)
    code: wp.array2d(dtype=wp.int8)  # what the observation kernel does with the row
    terms: wp.array3d(dtype=float)  # [W, R, 5]
    user_terminated: wp.array2d(dtype=wp.bool)
    final_event: wp.array2d(dtype=wp.int8)  # event, passage and scenario seed of worlds that the step has reset
    final_passage: wp.array2d(dtype=wp.bool)
    final_seed: wp.array(dtype=wp.uint64)
    collecting: wp.array2d(dtype=wp.int8)  # [W, V]: the vehicle collects reward
    world_done: wp.array(dtype=wp.bool)
    holding: wp.array(dtype=wp.int8)  # the world was reset by this step, whose action it ignores
    errors: ErrorLog


@wp.func
def is_finite_request(request: wp.vec2) -> bool:
    """Whether both components of a request are finite."""
    return wp.isfinite(request[0]) and wp.isfinite(request[1])


@wp.func
def clean_request(request: wp.vec2, low: wp.vec2, high: wp.vec2) -> wp.vec2:
    """A request clipped to its limits; (0, 0) if it is not finite."""
    if not is_finite_request(request):
        return wp.vec2(0.0, 0.0)
    return wp.vec2(wp.clamp(request[0], low[0], high[0]), wp.clamp(request[1], low[1], high[1]))


@wp.kernel
def take_actions(
    action: wp.array3d(dtype=float),
    rows: RowArrays,
    low: wp.vec2,
    high: wp.vec2,
    stepping: wp.array(dtype=wp.int8),
    request: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Thread per world: clip its rows' actions into vehicle requests; a non-finite action is (0, 0) and noted."""
    w = wp.tid() + world_begin
    for r in range(action.shape[1]):
        wanted = wp.vec2(action[w, r, 0], action[w, r, 1])
        if stepping[w] != wp.int8(0) and rows.active[w, r] and not is_finite_request(wanted):
            note_error(rows.errors, w, ACTION, rows.vehicle[r], rows.errors.now[w] + 1)
        request[w, rows.vehicle[r]] = clean_request(wanted, low, high)


@wp.kernel
def latch_commands(
    request: wp.array2d(dtype=wp.vec2),
    traffic: wp.array2d(dtype=wp.vec2),
    traffic_held: wp.array2d(dtype=wp.vec2),
    traffic_period: int,
    rows: RowArrays,
    task: TaskState,
    stepping: wp.array(dtype=wp.int8),
    stop_at_event: int,
    full_brake: float,
    low: wp.vec2,
    high: wp.vec2,
    command: wp.array2d(dtype=wp.vec2),
    world_begin: int,
):
    """Thread per world, each control step: requests of controlled vehicles, traffic commands of the others.

    ``traffic`` is read when a world's own step count is a multiple of ``traffic_period`` and held in between. With
    ``stop_at_event`` a vehicle that has had an event holds full brake.
    """
    w = wp.tid() + world_begin
    if stepping[w] == wp.int8(0):
        return
    for v in range(command.shape[1]):
        wanted = request[w, v]
        if rows.row_of_vehicle[v] < 0:
            if task.step[w] % traffic_period == 0:
                traffic_held[w, v] = clean_request(traffic[w, v], low, high)
                if not is_finite_request(traffic[w, v]):
                    note_error(rows.errors, w, TRAFFIC, v, task.step[w] + 1)
            wanted = traffic_held[w, v]
        if stop_at_event != 0 and task.valid[w, v] == wp.int8(0):
            wanted = wp.vec2(-full_brake, 0.0)
        command[w, v] = wanted


@wp.kernel
def finish_decision(
    rows: RowArrays,
    task: TaskState,
    reward_terms: wp.array3d(dtype=float),
    stepping: wp.array(dtype=wp.int8),
    rules: int,
    horizon: int,
    world_begin: int,
):
    """Thread per world: reward, flags and activity of its rows after a decision."""
    w = wp.tid() + world_begin
    count = rows.vehicle.shape[0]
    terms = reward_terms.shape[2]
    if rows.holding[w] != wp.int8(0):
        # The world was reset by this very step: its rows start now.
        rows.holding[w] = wp.int8(0)
        stepping[w] = wp.int8(1)
        for r in range(count):
            rows.reward[w, r] = 0.0
            rows.terminated[w, r] = False
            rows.truncated[w, r] = False
            rows.code[w, r] = ROW_WRITE
            rows.ended[w, r] = False
            for k in range(terms):
                rows.terms[w, r, k] = 0.0
        return

    fault = task.fault[w] != wp.int8(0)
    time_up = task.step[w] >= horizon
    any_active = bool(False)
    for r in range(count):
        v = rows.vehicle[r]
        was_active = rows.active[w, r]
        terminated = bool(False)
        truncated = bool(False)
        total = float(0.0)
        if was_active:
            for k in range(terms):
                rows.terms[w, r, k] = reward_terms[w, v, k]
                total += reward_terms[w, v, k]
            if rules == RULES_TRAINING:
                terminated = task.event[w, v] != wp.int8(0) or rows.user_terminated[w, r]
            else:
                terminated = task.own_fault[w, v] != wp.int8(0)
            truncated = (fault or time_up) and not terminated
        else:
            for k in range(terms):
                rows.terms[w, r, k] = 0.0
        rows.reward[w, r] = total
        rows.terminated[w, r] = terminated
        rows.truncated[w, r] = truncated
        rows.ended[w, r] = terminated or truncated
        rows.event[w, r] = task.event[w, v]
        rows.passage[w, r] = task.passage_step[w, v] >= 0
        rows.episode_start[w, r] = False
        rows.code[w, r] = wp.where(was_active, ROW_WRITE, ROW_ZERO)
        active = was_active and not terminated and not truncated
        rows.active[w, r] = active
        if not active:
            rows.collecting[w, v] = wp.int8(0)
        any_active = any_active or active
    done = fault or time_up
    if rules == RULES_TRAINING:
        done = done or not any_active
    rows.world_done[w] = done
    if done:
        stepping[w] = wp.int8(0)


@wp.kernel
def select_done(rows: RowArrays, mask: wp.array(dtype=wp.bool), world_begin: int):
    """Thread per world: the worlds that are done become the reset mask."""
    w = wp.tid() + world_begin
    mask[w] = rows.world_done[w]


@wp.kernel
def begin_episodes(
    mask: wp.array(dtype=wp.bool),
    episodes: EpisodeArrays,
    rows: RowArrays,
    terrain: Terrain,
    stepping: wp.array(dtype=wp.int8),
    resample_variant: int,
    hold: int,
    world_begin: int,
):
    """Thread per world: scenario seed and row state of masked worlds. With ``hold`` they wait for the step to end."""
    w = wp.tid() + world_begin
    if not mask[w]:
        return
    if episodes.override[w] != wp.int8(0):
        episodes.override[w] = wp.int8(0)
    else:
        episodes.seed[w] = episode_scenario_seed(episodes.stream[w], episodes.episode[w])
    episodes.episode[w] = episodes.episode[w] + wp.uint32(1)
    if resample_variant != 0:
        words = philox_block(episodes.seed[w], wp.uint32(0), wp.uint32(0), TERRAIN_DOMAIN)
        terrain.world_variant[w] = uniform_int(words[0], 0, terrain.grids.shape[0] - 1)
    stepping[w] = wp.int8(1 - hold)
    rows.holding[w] = wp.int8(hold)
    rows.world_done[w] = False
    open_episode(rows.errors, w, episodes.seed[w])
    for r in range(rows.vehicle.shape[0]):
        rows.active[w, r] = True
        rows.episode_start[w, r] = True
        rows.event[w, r] = wp.int8(0)
        rows.passage[w, r] = False
        rows.code[w, r] = ROW_WRITE
        rows.collecting[w, rows.vehicle[r]] = wp.int8(1)


@wp.kernel
def place_scenario(
    mask: wp.array(dtype=wp.bool), scenario: ScenarioArrays, terrain: Terrain, s: VehicleArrays, world_begin: int
):
    """Thread per vehicle: start pose of masked worlds, heading 0, settled on the road, rolling freely."""
    w, v = wp.tid()
    w = w + world_begin
    if not mask[w]:
        return
    x = scenario.start_x[w, v]
    y = scenario.start_y[w, v]
    facet = terrain_facet(terrain, terrain.grids[terrain.world_variant[w]], x, y)
    position = wp.vec3(x, y, facet[0] + s.params[s.params_index[w, v]].rest_height)
    place_vehicle(s, w, v, wp.transform(position, wp.quat_identity()), scenario.start_speed[w, v])


@wp.kernel
def keep_running_rows(mask: wp.array(dtype=wp.bool), rows: RowArrays, world_begin: int):
    """Thread per world: after a masked reset, write the rows of reset worlds and keep all others as they are."""
    w = wp.tid() + world_begin
    for r in range(rows.vehicle.shape[0]):
        rows.code[w, r] = wp.where(mask[w], ROW_WRITE, ROW_KEEP)


@wp.kernel
def copy_final(
    rows: RowArrays,
    seed: wp.array(dtype=wp.uint64),
    observation: wp.array3d(dtype=float),
    final_observation: wp.array3d(dtype=float),
    world_begin: int,
):
    """Thread per row: keep the last observation and infos of worlds about to be reset."""
    w, r = wp.tid()
    w = w + world_begin
    if rows.world_done[w]:
        rows.final_event[w, r] = rows.event[w, r]
        rows.final_passage[w, r] = rows.passage[w, r]
        rows.final_seed[w] = seed[w]
        for k in range(observation.shape[2]):
            final_observation[w, r, k] = observation[w, r, k]


@wp.kernel
def replace_rewards(rows: RowArrays, user_reward: wp.array2d(dtype=float), world_begin: int):
    """Thread per world: the user's reward for rows that were active in this decision, 0 elsewhere."""
    w = wp.tid() + world_begin
    for r in range(rows.vehicle.shape[0]):
        earned = (rows.active[w, r] or rows.ended[w, r]) and not rows.episode_start[w, r]
        reward = user_reward[w, r]
        if not wp.isfinite(reward):
            reward = 0.0
            if earned:
                note_error(rows.errors, w, REWARD, rows.vehicle[r], rows.errors.now[w])
        rows.reward[w, r] = wp.where(earned, reward, 0.0)
