"""Every condition reaches wheels, preview and chassis of its own worlds and of no other; later patches win."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..observation.spec import LOOK_AHEAD_M
from ..registry import Condition, load_suite
from ..scenario.route import ROUTE_SPACING
from ..sim.simulator import Simulator
from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.friction import Disc, Rectangle
from ..terrain.lane_closure import ROAD, lane_closure_terrain
from .check import Record
from .fleet import CONTROL, Array
from .plots import COLORS, legend_beside, panels
from .reference.vehicle64 import rotation

CLOSING, OPEN, ROOF = 0, 1, 2
"""Vehicles of a world: parked in the closing lane, parked in the open lane, and sliding on its roof."""

PARKED_X, ROOF_X = 120.0, 150.0
"""Middle of the constant grade and of the patch [m]."""

ARRAYS = ("body_q", "body_qd", "wheel_spin", "wheel_load", "wheel_friction", "wheel_compression")
SLIDE_SPEED = 5.0
PRECEDENCE = (
    Rectangle(x=120.0, y=-28.0, length=60.0, width=20.0, friction=0.6),
    Disc(x=120.0, y=ROAD.closing_lane_y, radius=4.0, friction=0.3),
    Rectangle(x=150.0, y=ROAD.closing_lane_y, length=20.0, width=3.0, yaw=0.1, friction=0.4),
    Disc(x=120.0, y=ROAD.open_lane_y, radius=2.5, friction=0.2),
    Rectangle(x=65.0, y=-28.0, length=40.0, width=20.0, friction=0.9),
    Disc(x=70.0, y=-28.0, radius=6.0, friction=0.5),
)
"""Patches over each other where the cars park, where one slides on its roof, and where the preview looks."""


class Readings:
    """What wheels, chassis and preview of one simulator say about their roads.

    Attributes:
        friction: Surface friction under the parked cars' wheels, [W, 2, 4].
        height: Road height under the parked cars' wheels, from pose and compression [m], [W, 2, 4].
        roof_friction: Deceleration of the car on its roof over g cos θ, less drag and grade, [W].
        roof_height: Distance of the resting roof car's centre from the road along its normal [m], [W].
        roof_grade: Slope along which the roof car lies, positive uphill [-], [W].
        wheel_xy: Where the parked cars' wheels stand [m], [W, 2, 4, 2].
        preview_points: Route points of the preview (x, y, cosine and sine of the heading), [W, 12, 6, 4].
        preview_friction: Preview of friction, NaN in rows without a vehicle under way, [W, 12, 6].
        preview_grade: Preview of the slope along the route, likewise.
        bits: State and reading bytes of each world's physics.
        preview_bits: Observation bytes of each world.
    """

    def __init__(self, conditions: Sequence[Condition], *, preview: bool = True):
        self.variants = [lane_closure_terrain(condition) for condition in conditions]
        self._physics()
        if preview:
            self._preview(conditions)

    def _physics(self) -> None:
        worlds = len(self.variants)
        sim = Simulator(worlds, self.variants, range(worlds), num_vehicles=3)
        car = sim.vehicles[0]
        position = np.zeros((worlds, 3, 3))
        position[..., 0] = [PARKED_X, PARKED_X, ROOF_X]
        position[..., 1] = [ROAD.closing_lane_y, ROAD.open_lane_y, ROAD.closing_lane_y]
        slope = np.zeros(worlds)
        for w, variant in enumerate(self.variants):
            position[w, :, 2], slopes, _ = variant.heightfield.facet(position[w, :, 0], position[w, :, 1])
            slope[w] = slopes[ROOF]
        cosine = 1.0 / np.sqrt(1.0 + slope**2)
        position[:, :2, 2] += car.rest_height
        position[:, ROOF, 2] += 0.5 * car.height / cosine
        sim.place(np.ones(worlds, dtype=bool), position)
        pose, twist = sim.body_q.numpy().reshape(worlds, 3, 7), sim.body_qd.numpy().reshape(worlds, 3, 6)
        half = 0.5 * np.arctan(slope)
        pose[:, ROOF, 3:] = np.stack([np.cos(half), np.zeros(worlds), np.sin(half), np.zeros(worlds)], axis=-1)
        twist[:, ROOF, :3] = SLIDE_SPEED * np.stack([cosine, np.zeros(worlds), slope * cosine], axis=-1)
        sim.body_q.assign(pose.reshape(-1, 7))
        sim.body_qd.assign(twist.reshape(-1, 6))
        command = np.zeros((worlds, 3, 2), dtype=np.float32)
        command[..., 0] = -8.0
        sim.command.assign(command)
        speeds = []
        for _ in range(12):
            sim.control_step()
            speeds.append(np.linalg.norm(sim.body_qd.numpy().reshape(worlds, 3, 6)[:, ROOF, :3], axis=-1))
        speed = np.array(speeds)
        decel = (speed[3] - speed[11]) / (8 * CONTROL)
        drag = car.drag * np.mean(speed[3:] ** 2, axis=0) / car.mass
        self.roof_friction = (decel - drag) / (GRAVITY * cosine) - slope
        sim.control_step(60)
        self.friction = sim.wheel_friction.numpy()[:, :2].astype(np.float64)
        self.height = self._wheel_heights(sim, car)
        rest = sim.body_q.numpy().reshape(worlds, 3, 7)[:, ROOF].astype(np.float64)
        road = [float(v.heightfield.height_at(x, y)) for v, (x, y) in zip(self.variants, rest[:, :2], strict=True)]
        self.roof_height = (rest[:, 2] - road) * cosine
        self.roof_grade = rotation(rest[:, 3:])[:, 2, 0] * 1.0
        self.bits = [
            b"".join(getattr(sim, name).numpy().reshape(worlds, -1)[w].tobytes() for name in ARRAYS)
            for w in range(worlds)
        ]
        sim.close()

    def _wheel_heights(self, sim: Simulator, car: VehicleParams) -> Array:
        worlds = len(self.variants)
        pose = sim.body_q.numpy().reshape(worlds, 3, 7)[:, :2].reshape(-1, 7).astype(np.float64)
        turn = rotation(pose[:, 3:])
        a, b = 0.5 * car.wheelbase, 0.5 * car.track
        anchors = np.array([[a, b], [a, -b], [-a, b], [-a, -b]])
        compression = sim.wheel_compression.numpy()[:, :2].reshape(-1, 4).astype(np.float64)
        length = car.suspension_rest_length + car.wheel_radius - compression
        local = np.concatenate([np.tile(anchors, (len(pose), 1, 1)), car.anchor_height - length[..., None]], axis=-1)
        point = pose[:, None, :3] + np.einsum("nij,nkj->nki", turn, local)
        self.wheel_xy = point[..., :2].reshape(worlds, 2, 4, 2)
        return point[..., 2].reshape(worlds, 2, 4)

    def _preview(self, conditions: Sequence[Condition]) -> None:
        import torch

        from ..envs.torch_env import TorchEnv

        worlds = len(conditions)
        env = TorchEnv(worlds, condition=list(conditions), preview=True)
        obs = env.reset(options={"scenario_seed": [100_000] * worlds})[0]
        for _ in range(30):  # drive on until the route points lie on patch and grade
            obs = env.step(torch.zeros((worlds, 12, 2)))[0]
        spec, view = env.observation_spec, env.view
        channels = obs.detach().cpu().numpy()
        self.preview_bits = [row.tobytes() for row in channels]
        scale = np.array([channel.scale for channel in spec.channels])
        block = (channels * scale)[..., spec.slice("preview")].astype(np.float64)
        own: Any = view.own_route.numpy()
        nearest = np.asarray(view.route_index.numpy())[:, np.arange(len(own)), own]
        ahead = np.round(np.array(LOOK_AHEAD_M) / ROUTE_SPACING).astype(int)
        index: Any = np.minimum(nearest[..., None] + ahead, view.routes.count.numpy()[own][None, :, None] - 1)
        self.preview_points = view.routes.points.numpy()[own[None, :, None], index].astype(np.float64)
        live = channels[..., spec["ego.valid"]] == 1.0
        self.preview_friction = np.where(live[..., None], block[..., 0::2], np.nan)
        self.preview_grade = np.where(live[..., None], block[..., 1::2], np.nan)
        env.close()


def expected_friction(condition: Condition, x: Array, y: Array) -> Array:
    """Surface friction that the paper's condition gives at (x, y): the closing lane from 40 to 180 m, else 1."""
    inside = (x >= 40.0) & (x <= 180.0) & (y >= -31.5) & (y <= -28.0)
    return np.where(inside, 1.0 if condition.friction is None else condition.friction, 1.0)


def expected_height(condition: Condition, x: Array) -> Array:
    """Road height [m]: the integral of a slope that ramps over 40-60 m, is constant to 180 m and ramps out to 200 m.

    Stations are 5 m apart and straight between them.
    """

    def exact(station: Array) -> Array:
        ramp = (np.clip(station, 40.0, 60.0) - 40.0) ** 2 / 40.0
        out = (200.0 - np.clip(station, 180.0, 200.0)) ** 2 / 40.0
        return condition.grade * (ramp + np.clip(station, 60.0, 180.0) - 60.0 + 10.0 - out)

    low = 5.0 * np.floor(x / 5.0)
    part = (x - low) / 5.0
    return (1.0 - part) * exact(low) + part * exact(low + 5.0)


def run(record: Record) -> None:
    """Read every condition's world, then each world alone, then overlapping patches."""
    conditions = load_suite().conditions
    together = Readings(conditions)
    for w, condition in enumerate(conditions):
        _condition(record, condition, together, w)
    alone = sum(Readings([c], preview=False).bits != [together.bits[w]] for w, c in enumerate(conditions))
    source = {"source": "promise: a world reads its own variant and nothing else"}
    record.at_most(
        "alone as together",
        alone,
        0,
        "worlds",
        states=f"Each of {len(conditions)} worlds has the same bits alone with its one variant as among the others.",
        **source,
    )
    backwards = Readings(conditions[::-1])
    moved = sum(a != b for a, b in zip(backwards.bits[::-1], together.bits, strict=True))
    moved += sum(a != b for a, b in zip(backwards.preview_bits[::-1], together.preview_bits, strict=True))
    record.at_most(
        "order of variants",
        moved,
        0,
        "worlds",
        states="With variants and worlds in reverse order, physics and observation of each world keep their bits.",
        **source,
    )
    _precedence(record)
    _plot(record, conditions, together)


def _condition(record: Record, condition: Condition, read: Readings, w: int) -> None:
    own = 1.0 if condition.friction is None else condition.friction
    slug, words = condition.slug, {"source": "the condition's own values (paper, app. E)", "plot": "roads"}
    wanted = np.array([[own] * 4, [1.0] * 4])
    record.at_most(
        f"{slug}: wheel friction",
        np.abs(read.friction[w] - wanted).max(),
        1e-6,
        states=f"Wheels read μ {own} in the closing lane and 1 in the open lane.",
        **words,
    )
    x, y = read.wheel_xy[w, ..., 0], read.wheel_xy[w, ..., 1]
    record.at_most(
        f"{slug}: road under the wheels",
        np.abs(read.height[w] - expected_height(condition, x)).max(),
        1e-4,
        "m",
        states=f"Wheels of both parked cars stand on a grade of {100 * condition.grade:g} % "
        f"(at {expected_height(condition, x).mean():.2f} m).",
        **words,
    )
    points = read.preview_points[w]
    x, y, along = points[..., 0], points[..., 1], points[..., 2]
    seen = ~np.isnan(read.preview_friction[w])
    error = np.abs(read.preview_friction[w] - expected_friction(condition, x, y))[seen]
    record.at_most(
        f"{slug}: preview friction",
        error.max() if len(error) else np.nan,
        1e-6,
        states=f"Preview channels of {seen.all(axis=1).sum()} vehicles hold the condition's friction "
        f"(least {np.nanmin(read.preview_friction[w]):g}).",
        **words,
    )
    low = 5.0 * np.floor(x / 5.0)
    slope = (expected_height(condition, low + 5.0) - expected_height(condition, low)) / 5.0 * along
    error = np.abs(read.preview_grade[w] - slope)[seen & (np.abs(x - 5.0 * np.round(x / 5.0)) > 1e-3)]
    record.at_most(
        f"{slug}: preview grade",
        error.max() if len(error) else np.nan,
        1e-5,
        states="Preview channels hold the slope along the route.",
        **words,
    )
    record.add(
        f"{slug}: chassis on the road",
        read.roof_height[w],
        0.45,
        1e-3,
        "m",
        states="A car that came to rest on its roof stands half its height above the condition's road.",
        **words,
    )
    record.add(
        f"{slug}: chassis friction",
        read.roof_friction[w],
        0.5 * own,
        0.015 * own + 1e-3,
        states="It slid there with half the road's friction.",
        source="chassis-road friction 0.5 μ_surface; deceleration less drag and grade",
        plot="roads",
    )


def _precedence(record: Record) -> None:
    """Patches over each other: wheels, preview and chassis all read the last one that holds the point."""
    condition = Condition(slug="overlap", friction=0.8, patches=PRECEDENCE)
    read = Readings([condition, load_suite()["reference"]])

    def wanted(x: Array, y: Array) -> Array:
        value = expected_friction(condition, x, y)
        value = np.where((np.abs(x - 120.0) <= 30.0) & (np.abs(y + 28.0) <= 10.0), 0.6, value)
        value = np.where((x - 120.0) ** 2 + (y + 29.75) ** 2 <= 16.0, 0.3, value)
        along = (x - 150.0) * np.cos(0.1) + (y + 29.75) * np.sin(0.1)
        across = (y + 29.75) * np.cos(0.1) - (x - 150.0) * np.sin(0.1)
        value = np.where((np.abs(along) <= 10.0) & (np.abs(across) <= 1.5), 0.4, value)
        value = np.where((x - 120.0) ** 2 + (y + 26.25) ** 2 <= 6.25, 0.2, value)
        value = np.where((np.abs(x - 65.0) <= 20.0) & (np.abs(y + 28.0) <= 10.0), 0.9, value)
        return np.where((x - 70.0) ** 2 + (y + 28.0) ** 2 <= 36.0, 0.5, value)

    words = {"source": "later patches win"}
    xy = read.wheel_xy[0]
    record.at_most(
        "precedence: wheels",
        np.abs(read.friction[0] - wanted(xy[..., 0], xy[..., 1])).max(),
        1e-6,
        states="Under patches of 0.8, 0.6, 0.3, 0.4 and 0.2 that overlap, each wheel reads the last one there "
        f"(read: {', '.join(f'{v:g}' for v in sorted(set(read.friction[0].round(6).ravel())))}).",
        **words,
    )
    points, seen = read.preview_points[0], ~np.isnan(read.preview_friction[0])
    error = np.abs(read.preview_friction[0] - wanted(points[..., 0], points[..., 1]))[seen]
    found = sorted(set(np.round(read.preview_friction[0][seen], 6)))
    record.at_most(
        "precedence: preview",
        error.max() if len(error) and len(found) > 2 else np.nan,
        1e-6,
        states=f"Route points of the preview read the last patch too (read: {', '.join(f'{v:g}' for v in found)}).",
        **words,
    )
    record.add(
        "precedence: chassis",
        read.roof_friction[0],
        0.2,
        0.006,
        states="A car slides on its roof with half the friction of the last patch, 0.4.",
        **words,
    )
    record.at_most(
        "precedence: neighbour",
        np.abs(read.friction[1] - 1.0).max(),
        0.0,
        states="The world beside it reads its own dry road.",
        **words,
    )


def _plot(record: Record, conditions: Sequence[Condition], read: Readings) -> None:
    figure, axes = panels(rows=2, width=10.0, height=6.4)
    place = np.arange(len(conditions))
    own = np.array([1.0 if c.friction is None else c.friction for c in conditions])
    grade = np.array([c.grade for c in conditions])
    axes[0].bar(place, own, width=0.8, color="#d8dee6", label="condition")
    least = np.nanmin(read.preview_friction, axis=(1, 2))
    axes[0].plot(
        place - 0.2, read.friction[:, CLOSING].mean(axis=1), "o", color=COLORS[0], label="wheels, closing lane"
    )
    axes[0].plot(place, least, "s", color=COLORS[2], markersize=5, label="preview, least value")
    axes[0].plot(
        place + 0.2, 2.0 * read.roof_friction, "D", color=COLORS[1], markersize=5, label="chassis, twice its own"
    )
    axes[0].set_ylabel("surface friction μ")
    axes[1].bar(place, 100.0 * grade, width=0.8, color="#d8dee6", label="condition")
    run_ = read.height[:, CLOSING]
    length = read.wheel_xy[:, CLOSING, :2, 0].mean(axis=1) - read.wheel_xy[:, CLOSING, 2:, 0].mean(axis=1)
    wheels = (run_[:, :2].mean(axis=1) - run_[:, 2:].mean(axis=1)) / length
    largest = np.nanmax(np.abs(read.preview_grade), axis=(1, 2)) * np.sign(grade)
    axes[1].plot(place - 0.2, 100.0 * wheels, "o", color=COLORS[0], label="wheels, rise over wheelbase")
    axes[1].plot(place, 100.0 * largest, "s", color=COLORS[2], markersize=5, label="preview, steepest value")
    axes[1].plot(place + 0.2, 100.0 * read.roof_grade, "D", color=COLORS[1], markersize=5, label="chassis, pitch")
    axes[1].set_ylabel("grade [%]")
    axes[1].axhline(0.0, color="#808080", linewidth=0.8)
    axes[0].set_xticks(place, [])
    axes[1].set_xticks(place, [c.slug for c in conditions], rotation=60, ha="right", fontsize=8)
    for item in axes:
        legend_beside(item)
    record.draw("roads", figure, "What wheels, preview and chassis read in each condition's world, over its values.")
