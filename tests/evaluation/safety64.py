"""Safety measures in plain float64 NumPy, one vehicle at a time, written from the definitions alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

DT, GRAVITY = 1.0 / 60.0, 9.81
HALF_LENGTH = 0.5 * 4.25


@dataclass
class Trace:
    """State of W worlds with V vehicles before the first control step (index 0) and after each, [T + 1, W, V, ...]."""

    frames: list[dict[str, np.ndarray]] = field(default_factory=list)

    def take(self, env) -> None:
        """Append the environment's state now."""
        view, sim = env.view, env.sim
        shape = (env.num_worlds, 12, -1)
        self.frames.append(
            {
                "body_q": view.body_q.numpy().reshape(shape).copy(),
                "body_qd": view.body_qd.numpy().reshape(shape).copy(),
                "spin": view.wheel_spin.numpy().copy(),
                "steer_angle": view.steer_angle.numpy().copy(),
                "command": view.command.numpy().copy(),
                "accel": view.forward_accel.numpy().copy(),
                "load": sim.wheel_load.numpy().copy(),
                "friction": sim.wheel_friction.numpy().copy(),
                "compression": sim.wheel_compression.numpy().copy(),
                "valid": view.valid.numpy().copy(),
                "event": env.task.event.numpy().copy(),
                "step": view.step.numpy().copy(),
                "fault": env.task.fault.numpy().copy(),
            }
        )

    def __getitem__(self, name: str) -> np.ndarray:
        values = np.stack([frame[name] for frame in self.frames])
        return values.astype(np.float64) if values.dtype == np.float32 else values


def yaw_of(q: np.ndarray) -> np.ndarray:
    """Heading [rad] of quaternions xyzw."""
    x, y, z, w = np.moveaxis(q, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def on_route(route, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arc length, lateral offset [m] and tangent direction [rad] at the nearest of a route's samples."""
    # Nobody moves more than some hundred metres: a window around the vehicle is enough and keeps this quick.
    index = np.empty(x.shape, dtype=int)
    for at in np.ndindex(x.shape):
        guess = int((x[at] - route.x[0]) / 0.5)
        first = max(guess - 60, 0)
        near = slice(first, guess + 60)
        index[at] = first + np.argmin((route.x[near] - x[at]) ** 2 + (route.y[near] - y[at]) ** 2)
    heading = route.heading[index]
    dx, dy = x - route.x[index], y - route.y[index]
    along = np.cos(heading) * dx + np.sin(heading) * dy
    return 0.5 * index + along, np.cos(heading) * dy - np.sin(heading) * dx, heading


def safety64(trace: Trace, routes, own_route, grip: float = 1.0, base_friction: float = 1.0) -> list[list[dict]]:
    """Measures of every vehicle, ``result[world][vehicle][name]``."""
    q = trace["body_q"]
    worlds, vehicles = q.shape[1:3]
    result = []
    for w in range(worlds):
        places = [on_route(route, q[:, w, :, 0], q[:, w, :, 1]) for route in routes]
        result.append([vehicle64(trace, w, v, places[own_route[v]], grip, base_friction) for v in range(vehicles)])
    return result


def vehicle64(trace: Trace, w: int, v: int, place, grip: float, base_friction: float) -> dict[str, float]:
    """Measures of one vehicle, in a loop over control steps."""
    arc, lateral, heading = place
    q, qd = trace["body_q"][:, w], trace["body_qd"][:, w]
    yaw = yaw_of(q[:, v, 3:])
    accel, command = trace["accel"][:, w, v], trace["command"][:, w, v, 0]
    load, friction = trace["load"][:, w, v], trace["friction"][:, w, v]
    compression = trace["compression"][:, w, v]
    step, valid, fault = trace["step"][:, w], trace["valid"][:, w, v], trace["fault"][:, w]
    along = qd[..., 0] * np.cos(heading) + qd[..., 1] * np.sin(heading)
    speed = np.hypot(qd[:, v, 0], qd[:, v, 1])

    counts = dict.fromkeys(
        (
            *("valid_steps", "leader_steps", "ttc_below_1_5s_steps", "ttc_below_3s_steps", "drac_above_limit_steps"),
            *("hard_brake_steps", "hard_brake_onsets", "need_above_capacity_steps", "patch_steps"),
        ),
        0,
    )
    counts["patch_first_step"] = -1
    ttcs, needs, ratios, realized, requested = [math.inf], [0.0], [0.0], [], []
    distance, marks, braked = 0.0, {20.0: math.nan, 40.0: math.nan}, False
    for t in range(1, len(step)):
        if step[t] == step[t - 1] or not valid[t] or fault[t]:
            continue
        counts["valid_steps"] += 1
        distance += speed[t] * DT
        realized.append(accel[t])
        requested.append(command[t])
        hard = accel[t] < -3.0
        counts["hard_brake_steps"] += hard
        counts["hard_brake_onsets"] += hard and not braked
        braked = hard
        if any(c > 0.0 and m != np.float32(base_friction) for c, m in zip(compression[t], friction[t], strict=True)):
            counts["patch_steps"] += 1
            if counts["patch_first_step"] < 0:
                counts["patch_first_step"] = step[t]
        for mark, found in marks.items():
            here, last = q[t, v, 0], q[t - 1, v, 0]
            if last < mark <= here and math.isnan(found):
                marks[mark] = np.interp(mark, [last, here], [speed[t - 1], speed[t]])

        ahead = arc[t] - arc[t, v]
        ahead = [(ahead[o], o) for o in range(12) if o != v and 0.0 < ahead[o] <= 100.0 and abs(lateral[t, o]) < 2.0]
        if not ahead:
            continue
        counts["leader_steps"] += 1
        nearest, leader = min(ahead)
        closing = along[t, v] - along[t, leader]
        if closing <= 0.0:
            continue
        gap = max(nearest - 2.0 * HALF_LENGTH, 0.1)
        ttcs.append(gap / closing)
        needs.append(closing**2 / (2.0 * gap))
        counts["ttc_below_1_5s_steps"] += ttcs[-1] < 1.5
        counts["ttc_below_3s_steps"] += ttcs[-1] < 3.0
        counts["drac_above_limit_steps"] += needs[-1] > 3.35
        change = (qd[t, v, :2] - qd[t - 1, v, :2]) / DT
        accel_lat = -math.sin(yaw[t]) * change[0] + math.cos(yaw[t]) * change[1]
        mu = grip * (friction[t] @ load[t]) / load[t].sum() if load[t].sum() > 0.0 else 0.0
        left = (mu * GRAVITY) ** 2 - accel_lat**2
        capacity = math.sqrt(left) if left > 0.0 else 0.0
        counts["need_above_capacity_steps"] += needs[-1] > capacity
        ratios.append(needs[-1] / capacity if capacity > 0.0 else math.inf)

    error = np.array(realized) - np.array(requested)
    return {
        **counts,
        "ttc_min": min(ttcs),
        "drac_max": max(needs),
        "need_ratio_max": max(ratios),
        "distance": distance,
        "speed_at_20m": marks[20.0],
        "speed_at_40m": marks[40.0],
        "realized_accel_sum": sum(realized),
        "requested_accel_sum": sum(requested),
        "accel_error_square_sum": float((error**2).sum()),
        "realized_accel_mean": np.mean(realized) if realized else math.nan,
        "requested_accel_mean": np.mean(requested) if requested else math.nan,
        "accel_error_rms": math.sqrt((error**2).mean()) if realized else math.nan,
    }
