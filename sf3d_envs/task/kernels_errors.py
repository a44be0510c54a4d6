"""What went wrong in which world, noted by the kernels that see it, without a look from the host."""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ACTION = wp.constant(0)
TRAFFIC = wp.constant(1)
REWARD = wp.constant(2)
STATE = wp.constant(3)
CONTACTS = wp.constant(4)
NUM_REASONS = 5


@wp.struct
class ErrorLog:
    """The first error of each kind in the last episode of a world that had one; [W, reasons] unless noted."""

    now: wp.array(dtype=wp.int32)  # [W] completed control steps of the running episode
    running: wp.array(dtype=wp.int32)  # [W] episodes that the world has begun
    seed_now: wp.array(dtype=wp.uint64)  # [W] scenario of the running episode
    episode: wp.array2d(dtype=wp.int32)  # number of the episode, 0 = no error so far
    seed: wp.array2d(dtype=wp.uint64)  # its scenario
    step: wp.array2d(dtype=wp.int32)  # control step, from 1
    vehicle: wp.array2d(dtype=wp.int32)  # -1 = the world as a whole
    episodes: wp.array2d(dtype=wp.int32)  # episodes that had this error, since construction


def error_log(step: wp.array, device: wp.Device | str) -> ErrorLog:
    """An empty log.

    Args:
        step: Completed control steps of each world's episode, int32 [W]; read when an error is noted.
        device: Warp device.
    """
    log = ErrorLog()
    worlds = step.shape[0]
    log.now = step
    log.running = wp.zeros(worlds, dtype=wp.int32, device=device)
    log.seed_now = wp.zeros(worlds, dtype=wp.uint64, device=device)
    log.seed = wp.zeros((worlds, NUM_REASONS), dtype=wp.uint64, device=device)
    for name in ("episode", "step", "vehicle", "episodes"):
        setattr(log, name, wp.zeros((worlds, NUM_REASONS), dtype=wp.int32, device=device))
    return log


@wp.func
def open_episode(log: ErrorLog, w: int, seed: wp.uint64):
    """A world begins an episode: what was noted before belongs to earlier ones."""
    log.running[w] = log.running[w] + 1
    log.seed_now[w] = seed


@wp.func
def note_error(log: ErrorLog, w: int, reason: int, vehicle: int, step: int):
    """Note an error of a control step; later ones of the same kind in the episode are left out."""
    if log.episode[w, reason] == log.running[w]:
        return
    log.episode[w, reason] = log.running[w]
    log.seed[w, reason] = log.seed_now[w]
    log.step[w, reason] = step
    log.vehicle[w, reason] = vehicle
    log.episodes[w, reason] = log.episodes[w, reason] + 1
