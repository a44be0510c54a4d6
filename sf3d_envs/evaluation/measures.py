"""The tables of what a logged run measures: safety measures of a vehicle, and columns of a trajectory.

One row, one place: kernels, result arrays, documentation and tests read names and order from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One measured number per vehicle, or per vehicle and control step.

    Attributes:
        name: Name of the array or column.
        unit: SI unit, "1" without one, "steps" for control steps of 1/60 s.
        doc: What it says.
        start: Value before anything was measured.
    """

    name: str
    unit: str
    doc: str
    start: float = 0.0


TTC_LIMITS = (1.5, 3.0)
"""Times to collision whose undercutting is counted [s] (1.5: paper, sec. 6; 3: ours, the wider customary limit)."""

DRAC_LIMIT = 3.35
"""Deceleration rate to avoid a crash whose exceedance is counted [m/s²]; ours, a customary limit in conflict work."""

HARD_BRAKE = -3.0
"""Realized forward acceleration below which braking is hard [m/s²] (interfaces: safety formulas)."""

SPEED_MARKS = (20.0, 40.0)
"""Where the speed is read on the way to the merge [m]: 20 m before, and at, the first changed metre of road."""

SAFETY_COUNTS = (
    Measure("valid_steps", "steps", "Steps of valid driving: the exposure of all other measures."),
    Measure("leader_steps", "steps", "Steps with a leader."),
    Measure("ttc_below_1_5s_steps", "steps", "Steps with a time to collision below 1.5 s."),
    Measure("ttc_below_3s_steps", "steps", "Steps with a time to collision below 3 s."),
    Measure("drac_above_limit_steps", "steps", "Steps with a DRAC above 3.35 m/s²."),
    Measure("hard_brake_steps", "steps", "Steps with a realized forward acceleration below −3 m/s²."),
    Measure("hard_brake_onsets", "1", "Times that hard braking began."),
    Measure("need_above_capacity_steps", "steps", "Steps whose braking need (DRAC) exceeds the remaining capacity."),
    Measure("patch_steps", "steps", "Steps with a wheel on a surface other than the road's base."),
    Measure("patch_first_step", "steps", "First such step, −1 if none.", -1),
)
"""Counted safety measures, int32."""

SAFETY_VALUES = (
    Measure("ttc_min", "s", "Least time to collision; infinite if the gap to a leader never shrank.", math.inf),
    Measure("drac_max", "m/s²", "Largest deceleration rate to avoid a crash."),
    Measure("need_ratio_max", "1", "Largest braking need over capacity; infinite where there was none left."),
    Measure("distance", "m", "Distance driven, planar speed summed over time."),
    Measure("speed_at_20m", "m/s", "Planar speed on crossing x = 20 m; NaN if that did not happen.", math.nan),
    Measure("speed_at_40m", "m/s", "Planar speed on crossing x = 40 m; NaN if that did not happen.", math.nan),
    Measure("realized_accel_sum", "m/s²", "Sum over steps of the realized forward acceleration."),
    Measure("requested_accel_sum", "m/s²", "Sum over steps of the requested acceleration."),
    Measure("accel_error_square_sum", "m²/s⁴", "Sum over steps of (realized − requested)²."),
)
"""Summed and extreme safety measures, float32."""

SAFETY_DERIVED = (
    Measure("realized_accel_mean", "m/s²", "Mean realized forward acceleration; NaN without valid driving."),
    Measure("requested_accel_mean", "m/s²", "Mean requested acceleration; NaN without valid driving."),
    Measure("accel_error_rms", "m/s²", "Root mean square of realized − requested; NaN without valid driving."),
)
"""What :meth:`~sf3d_envs.evaluation.safety.SafetyProbe.result` computes from the sums, float64."""

TRAJECTORY = (
    Measure("x", "m", "Centre of mass."),
    Measure("y", "m", "Centre of mass, positive to the left."),
    Measure("z", "m", "Centre of mass, positive up."),
    Measure("yaw", "rad", "Heading, positive to the left."),
    Measure("pitch", "rad", "Pitch angle, positive with the nose down."),
    Measure("roll", "rad", "Roll angle, positive with the left side up."),
    Measure("speed_long", "m/s", "Velocity along the body's forward axis."),
    Measure("speed_lat", "m/s", "Velocity along the body's left axis."),
    Measure("yaw_rate", "rad/s", "Angular velocity about the body's up axis."),
    Measure("accel", "m/s²", "Realized forward acceleration over the step."),
    Measure("command_accel", "m/s²", "Requested acceleration held over the step."),
    Measure("command_steer", "1", "Requested steering held over the step, in [−1, 1]."),
    Measure("steer_angle", "rad", "Steering angle of the front axle."),
    Measure("load_fl", "N", "Load of the front left wheel."),
    Measure("load_fr", "N", "Load of the front right wheel."),
    Measure("load_rl", "N", "Load of the rear left wheel."),
    Measure("load_rr", "N", "Load of the rear right wheel."),
    Measure("friction", "1", "Surface friction under the wheels, weighted by load; 0 without load."),
    Measure("event", "1", "Code of the vehicle's first event, 0 if none so far (task.events.Event)."),
    Measure("valid", "1", "1 until the vehicle's first event, then 0."),
    Measure("ttc", "s", "Time to collision; infinite where the gap does not shrink, or driving is not valid."),
    Measure("need_ratio", "1", "Braking need (DRAC) over capacity; 0 without a need, infinite without capacity."),
)
"""Columns of a recorded trajectory, float32, after the control step they belong to."""


def index_of(name: str, table: tuple[Measure, ...]) -> int:
    """Position of a measure in its table."""
    return [measure.name for measure in table].index(name)
