"""Float64 NumPy observation, written from the channel table's text."""

from __future__ import annotations

import numpy as np
from observation.worlds import CAR, Scene, matrix

from sf3d_envs.observation import ObservationSpec


def wrap(angle: float) -> float:
    """Angle in [-pi, pi)."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def observe64(scene: Scene, w: int, v: int) -> np.ndarray:
    """Scaled and clipped observation of one vehicle with preview, float64 [124]."""
    q = scene.body_q[w].astype(np.float64)
    qd = scene.body_qd[w].astype(np.float64)
    m = matrix(q[v, 3:])
    yaw = float(np.arctan2(m[1, 0], m[0, 0]))
    to_ego = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    speed = m.T @ qd[v, :3]
    spin = scene.wheel_spin[w, v].astype(np.float64)
    value = {
        "ego.speed_long": speed[0],
        "ego.speed_lat": speed[1],
        "ego.yaw_rate": (m.T @ qd[v, 3:])[2],
        "ego.accel_long": scene.forward_accel[w, v],
        "ego.roll": np.arctan2(m[2, 1], m[2, 2]),
        "ego.pitch": -np.arcsin(m[2, 0]),
        "ego.steering_angle": scene.steer_angle[w, v],
        "ego.previous_acceleration": scene.command[w, v, 0],
        "ego.previous_steering": scene.command[w, v, 1],
        "ego.desired_speed": 17.0,
        "ego.driven_slip": np.mean([(CAR.wheel_radius * spin[k] - speed[0]) / max(abs(speed[0]), 1) for k in (2, 3)]),
        "ego.valid": scene.valid[w, v],
    }
    value |= _route(scene, w, v, yaw, to_ego)
    others = [j for j in range(scene.num_vehicles) if j != v]
    others.sort(key=lambda j: (np.hypot(*(q[j, :2] - q[v, :2])), j))
    for slot, j in enumerate(others[:8]):
        there = matrix(q[j, 3:])
        turn = np.arctan2(there[1, 0], there[0, 0]) - yaw
        place, motion = to_ego @ (q[j, :2] - q[v, :2]), to_ego @ (qd[j, :2] - qd[v, :2])
        channels = ("present", "dx", "dy", "dvx", "dvy", "heading_sin", "heading_cos")
        numbers = (1.0, *place, *motion, np.sin(turn), np.cos(turn))
        value |= {f"traffic.{slot}.{name}": number for name, number in zip(channels, numbers, strict=True)}
    spec = ObservationSpec(preview=True)
    raw = np.array([value.get(name, 0.0) for name in spec.names], np.float64)
    return np.clip(raw / np.array(spec.scales), -10.0, 10.0)


def _route(scene: Scene, w: int, v: int, yaw: float, to_ego: np.ndarray) -> dict[str, float]:
    place = scene.body_q[w, v, :2].astype(np.float64)
    route = scene.routes[scene.own_route[v]]
    index = scene.route_index()[w, v, scene.own_route[v]]
    x, y, heading, curvature = route[index]
    along = np.array([np.cos(heading), np.sin(heading)])
    left = np.array([-along[1], along[0]])
    arc = 0.5 * index + along @ (place - (x, y))
    starts = [np.interp(mark, route[:, 0], 0.5 * np.arange(len(route))) for mark in (50.0, 110.0, 170.0)]
    corners = [
        place[1] + i * np.sin(yaw) * CAR.length / 2 + j * np.cos(yaw) * CAR.width / 2 for i in (1, -1) for j in (1, -1)
    ]
    owes = scene.own_route[v] == 1 and not (min(corners) >= -28.0 and max(corners) <= -24.5)
    value = {
        "route.lateral_offset": left @ (place - (x, y)),
        "route.heading_sin": np.sin(yaw - heading),
        "route.heading_cos": np.cos(yaw - heading),
        "route.curvature": curvature,
        "route.distance_merge_start": (starts[0] - arc) * owes,
        "route.distance_merge_end": (starts[1] - arc) * owes,
        "route.distance_counting_line": starts[2] - arc,
        "route.owes_merge": float(owes),
    }
    terrain = scene.terrain[scene.world_variant[w]]
    for ahead in (0, 8, 16, 24, 32, 40):
        px, py, h, _ = route[min(index + 2 * ahead, len(route) - 1)]
        value[f"route.preview_lateral_{ahead:02d}"] = (to_ego @ ((px, py) - place))[1]
        value[f"route.preview_heading_{ahead:02d}"] = wrap(h - yaw)
        value[f"preview.friction_{ahead:02d}"] = float(terrain.friction_at(px, py))
        normal = terrain.heightfield.normal_at(px, py)
        value[f"preview.grade_{ahead:02d}"] = -(normal[0] * np.cos(h) + normal[1] * np.sin(h)) / normal[2]
    return value
