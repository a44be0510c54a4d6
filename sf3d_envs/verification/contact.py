"""Rigid contact: momentum, energy, penetration and rest of boxes that meet each other, the road and a terrain step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.heightfield import Heightfield, HeightfieldGrid
from ..terrain.plane import plane
from ..terrain.variants import TerrainVariant
from .check import Record
from .collisions import History, half_extent, simulate
from .fleet import Array
from .plots import COLORS, REFERENCE, panels

CAR = VehicleParams(drag=0.0)
"""Without drag the road is the only outside force; off the ground or at friction 0 it has no horizontal part."""

DEPTH = 0.02
"""Largest penetration allowed [m]."""

MEETINGS = {
    "rear-end": ((0.0, 8.0), (0.0, 0.0), (12.0, 5.0), (0.0, 0.0)),
    "head-on": ((0.0, 20.0), (0.0, 0.0), (7.5, 7.5), (0.0, np.pi)),
    "fast head-on": ((0.0, 20.0), (0.0, 0.0), (30.0, 30.0), (0.0, np.pi)),
    "offset head-on": ((0.0, 20.0), (0.0, 0.9), (10.0, 10.0), (0.0, np.pi)),
    "side": ((0.0, 6.0), (0.0, -6.0), (10.0, 10.0), (0.0, 0.5 * np.pi)),
    "side swipe": ((0.0, 0.0), (0.0, 2.5), (15.0, 10.0), (0.1, -0.1)),
}
"""Two cars each: x [m], y [m], speed [m/s], heading [rad]."""

LAW = "conservation law; no outside force in the plane"


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a solver's contact is allowed.

    Attributes:
        rear_end: Speed difference after a square rear-end hit [m/s].
        pile_momentum: Relative change of the forward momentum in a pile-up.
        pile_energy: Relative gain of kinetic energy in a control step of a pile-up.
        roof: Speed of a car at rest on its roof [m/s].
    """

    rear_end: float = 0.01
    pile_momentum: float = 1e-5
    pile_energy: float = 1e-3
    roof: float = 2e-3


BOUNDS = {"vehicle": Bounds(), "xpbd": Bounds(rear_end=0.02, pile_momentum=0.01, pile_energy=5e-3, roof=3e-3)}
"""Newton divides each body's correction by its number of contacts: where a body has several at once, that neither keeps
momentum nor ends a hit at once. With two bodies and one contact it does, and those bounds are the same."""


def run(record: Record, solver: str = "vehicle") -> None:
    """Run all collisions with a solver."""
    history = _meetings(record, solver)
    pile = _pile_up(record, solver)
    _roof(record, solver)
    wall = _wall(record, solver)
    record.remarks.append(_ledge(solver))
    _plot(record, history, pile, wall, plot_name(solver))


def plot_name(solver: str) -> str:
    """File stem of the plot of a solver."""
    return "contact" if solver == "vehicle" else f"contact-{solver}"


def _meetings(record: Record, solver: str) -> History:
    """Six meetings in free flight, then two on a road without friction, side by side."""
    names = [*MEETINGS, "rear-end", "head-on"]
    x, y, speed, yaw = (np.array([MEETINGS[name][k] for name in names]) for k in range(4))
    height = np.full(x.shape, 50.0)
    height[len(MEETINGS) :] = CAR.rest_height
    history = simulate(
        [plane(0.0)] * len(names), np.stack([x, y, height], -1), yaw, speed, seconds=2.0, car=CAR, solver=solver
    )
    velocity = speed * np.exp(1j * yaw)
    closing = np.abs(velocity[:, 0] - velocity[:, 1])
    change = np.abs(history.momentum - history.momentum[0])[..., :2].max(axis=(0, 2)) / (CAR.mass * closing)
    turned = np.abs(history.angular_momentum - history.angular_momentum[0]).max(axis=(0, 2))
    turned = turned / (CAR.mass * closing * CAR.length)
    gain = np.diff(history.energy, axis=0).max(axis=0) / history.energy[0]
    met = np.abs(np.diff(history.velocity[:, :, 0, :2], axis=0)).max(axis=(0, 2))
    for w, name in enumerate(names):
        road = w >= len(MEETINGS)
        label = f"{name}, {'road without friction' if road else 'free flight'} at {closing[w]:.0f} m/s"
        record.at_most(
            f"{label}: momentum",
            change[w] if met[w] > 0.2 else np.nan,
            1e-5,
            states="Change of the pair's horizontal momentum over one car's at the closing speed.",
            source=LAW,
        )
        record.at_most(
            f"{label}: penetration",
            history.depth[:, w].max(),
            DEPTH,
            "m",
            states="Deepest overlap of the boxes by the separating-axis test.",
            source="demand of the specification: 2 cm at 15 m/s",
            plot=plot_name(solver),
        )
        if not road:
            record.at_most(
                f"{label}: angular momentum",
                turned[w],
                0.01,
                states="Change about the common centre over impulse times car length.",
                source="conservation law; contact points of two overlapping boxes lie a penetration apart",
            )
            record.at_most(
                f"{label}: energy gain",
                gain[w],
                2e-6,
                states="Largest gain of kinetic energy in any control step over the energy at the start.",
                source="contact without restitution only dissipates; float32 round-off",
            )
    record.add(
        "rear-end: speed after",
        history.velocity[-1, 0, :, 0].mean(),
        8.5,
        0.01,
        "m/s",
        states="After a square rear-end hit both cars move on at the mean speed.",
        source="plastic impact: (12 + 5)/2",
    )
    record.at_most(
        "rear-end: speed difference after",
        abs(np.diff(history.velocity[-1, 0, :, 0])[0]),
        BOUNDS[solver].rear_end,
        "m/s",
        states="They move on together: restitution is 0.",
        source="plastic impact",
    )
    return history


def _pile_up(record: Record, solver: str) -> History:
    """Eleven cars at 15 m/s run into a standing one, on dry road and on a road without friction."""
    count = 12
    x = -(CAR.length + 2.0) * np.arange(count)
    y = 0.05 * np.sin(2.4 * np.arange(count))  # not a perfect line
    place = np.stack([x, y, np.full(count, CAR.rest_height)], -1)
    speed = np.full((2, count), 15.0)
    speed[:, 0] = 0.0
    accel = np.zeros((2, count))
    accel[0, 0] = -8.0
    history = simulate(
        [plane(1.0), plane(0.0)],
        np.stack([place, place]),
        np.zeros((2, count)),
        speed,
        seconds=8.0,
        car=CAR,
        accel=accel,
        brake_after=2.5,
        solver=solver,
    )
    speeds = np.linalg.norm(history.velocity[-60:, 0], axis=-1)
    momentum = history.momentum[:, 1, 0]
    words = {"plot": plot_name(solver)}
    record.at_most(
        "pile-up of 12: penetration",
        history.depth[:, 0].max(),
        DEPTH,
        "m",
        states="Eleven cars run into a standing one at 15 m/s on dry road; deepest overlap of any pair.",
        source="demand of the specification: 2 cm at 15 m/s",
        **words,
    )
    record.at_most(
        "pile-up of 12, no friction: penetration",
        history.depth[:, 1].max(),
        DEPTH,
        "m",
        states="The same on a road without friction.",
        source="demand of the specification: 2 cm at 15 m/s",
        **words,
    )
    record.at_most(
        "pile-up of 12, no friction: momentum",
        np.abs(momentum / momentum[0] - 1.0).max(),
        BOUNDS[solver].pile_momentum,
        states="Forward momentum of all twelve over its start.",
        source=LAW,
    )
    energy = history.energy[:, 1]
    record.at_most(
        "pile-up of 12, no friction: energy gain",
        np.diff(energy).max() / energy[0],
        BOUNDS[solver].pile_energy,
        states="Largest gain of kinetic energy in a control step; springs that were pressed give some back.",
        source="contact only dissipates",
    )
    record.at_most(
        "pile-up of 12: speed at rest",
        speeds.max(),
        0.02,
        "m/s",
        states="With all brakes on, every car stands in the last second.",
        source="brakes hold",
    )
    record.at_most(
        "pile-up of 12: height at rest",
        np.abs(history.position[-1, 0, :, 2] - CAR.rest_height).max(),
        0.02,
        "m",
        states="They stand on their wheels: distance of the centres from the rest height.",
        source="equilibrium on the springs",
    )
    record.at_most(
        "pile-up of 12: order",
        float((np.diff(history.position[-1, 0, :, 0]) >= 0.0).sum() + (~history.finite).sum()),
        0,
        "cars",
        states="No car went through another, and no state turned non-finite.",
        source="rigid bodies",
    )
    return history


def _roof(record: Record, solver: str) -> None:
    angles = np.array([np.pi, 2.4, -2.4])
    quat = np.stack([np.sin(angles / 2), np.zeros(3), np.zeros(3), np.cos(angles / 2)], -1)[:, None]
    place = np.tile([0.0, 0.0, 1.2], (3, 1, 1))
    zero = np.zeros((3, 1))
    history = simulate([plane()] * 3, place, zero, zero, seconds=8.0, car=CAR, accel=-8.0, quat=quat, solver=solver)
    record.at_most(
        "roof: height at rest",
        np.abs(history.position[-1, :, 0, 2] - 0.5 * CAR.height).max(),
        2e-3,
        "m",
        states="Cars dropped on their roof, level and tilted, rest half their height above the road.",
        source="box on a plane",
    )
    record.at_most(
        "roof: speed at rest",
        np.linalg.norm(history.velocity[-120:], axis=-1).max(),
        BOUNDS[solver].roof,
        "m/s",
        states="They lie still in the last two seconds.",
        source="friction 0.5 μ holds",
    )
    settled = history.mechanical_energy
    record.at_most(
        "roof: energy gain",
        np.diff(settled, axis=0).max() / (CAR.mass * GRAVITY * 1.2),
        2e-3,
        states="Largest gain of kinetic and potential energy in a control step over the energy of the drop.",
        source="contact only dissipates",
    )


WALL_X, WALL_RISE, WALL_RUN = 20.0, 1.5, 0.5


def valley() -> TerrainVariant:
    """A level floor between two steps of 1.5 m over 0.5 m (72 degrees), 40 m apart along x."""
    grid = HeightfieldGrid(x0=-60.0, y0=-40.0, dx=WALL_RUN, dy=2.0, nx=241, ny=41)
    x = grid.x0 + grid.dx * np.arange(grid.nx)
    heights = WALL_RISE * np.clip((np.abs(x) - WALL_X) / WALL_RUN, 0.0, 1.0)
    return TerrainVariant("valley", Heightfield(grid, np.repeat(heights[:, None], grid.ny, axis=1)))


def _wall(record: Record, solver: str) -> tuple[History, Array]:
    """Cars drive and slide into the wall of the valley at three angles and two speeds."""
    road = valley()
    yaw = np.radians([0.0, 0.0, 30.0, 90.0])
    speed = np.array([5.0, 10.0, 10.0, 0.0])
    place = np.zeros((4, 1, 3))
    place[:, 0, 0] = 8.0
    place[:, 0, 2] = CAR.rest_height
    history = simulate(
        [road] * 4, place, yaw[:, None], speed[:, None], seconds=6.0, car=CAR, brake_after=2.5, solver=solver
    )
    corners = history.corners
    sunk = road.heightfield.height_at(corners[..., 0], corners[..., 1]) - corners[..., 2]
    depth = np.maximum(sunk.max(axis=(2, 3)), 0.0)
    names = ("5 m/s", "10 m/s", "10 m/s at 30°", "standing")
    for w, name in enumerate(names[:3]):
        record.at_most(
            f"terrain step, {name}: corners below ground",
            depth[:, w].max(),
            0.05,
            "m",
            states="A car drives into a step of 1.5 m over 0.5 m; deepest point of its corners under the surface, "
            "measured vertically (on 72 degrees that is 3.2 times the distance from the surface).",
            source="rigid bodies",
            plot=plot_name(solver),
        )
    energy = history.mechanical_energy
    record.at_most(
        "terrain step: energy",
        (energy.max(axis=0) / energy[0] - 1.0)[:3].max(),
        0.01,
        states="Kinetic and potential energy never exceed the start.",
        source="contact only dissipates",
    )
    record.at_most(
        "terrain step: speed at rest",
        np.linalg.norm(history.velocity[-30:], axis=-1).max(),
        0.05,
        "m/s",
        states="All cars come to rest.",
        source="brakes and friction",
    )
    return history, depth


def _ledge(solver: str) -> str:
    """A limit of the model, measured: how far a car that hangs over the edge of the step sinks onto it."""
    place = np.array([[[26.0, 0.0, WALL_RISE + CAR.rest_height]]])
    heading, speed = np.full((1, 1), np.pi), np.full((1, 1), 2.0)
    history = simulate([valley()], place, heading, speed, seconds=6.0, car=CAR, brake_after=4.0, solver=solver)
    crest = np.stack(np.broadcast_arrays(WALL_X + WALL_RUN, np.linspace(-2.0, 2.0, 41), WALL_RISE), axis=-1)
    local = np.einsum("tji,tkj->tki", history.turn[:, 0, 0], crest - history.position[:, 0, 0, None])
    depth = np.clip(half_extent(CAR) - np.abs(local), 0.0, None).min(axis=-1).max()
    return (
        "A limit of the model: the road meets the corners of a chassis box and not its faces, so a crest can enter "
        f"the floor between them. A car driven slowly over the edge of the {WALL_RISE} m step sinks {depth:.2f} m onto "
        "the edge. The lane-closure road bends by at most 2 % from one 5 m station to the next, where this does not "
        "arise."
    )


def _plot(record: Record, history: History, pile: History, wall: tuple[History, Array], name: str) -> None:
    figure, axes = panels(2, 2, width=11.0, height=7.0)
    for k, meeting in enumerate(MEETINGS):
        energy = history.energy[:, k] / history.energy[0, k]
        axes[0].plot(history.time, energy, color=COLORS[k], label=meeting)
    axes[0].axhline(1.0, **REFERENCE)
    axes[0].set(title="Two cars in free flight", xlabel="time [s]", ylabel="kinetic energy / start")
    axes[0].set_ylim(-0.03, 1.08)
    axes[0].legend(fontsize="small", frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.24))
    for w, surface in enumerate(("dry road", "no friction")):
        depth = np.where(pile.depth[:, w] > 1e-7, 1000.0 * pile.depth[:, w], np.nan)
        axes[1].semilogy(pile.time, depth, ".", color=COLORS[w], label=surface)
    axes[1].set(title="Pile-up of twelve", xlabel="time [s]", ylabel="deepest penetration [mm]")
    axes[1].legend(fontsize="small", frameon=False, loc="upper right", ncols=2, markerscale=1.5)
    axes[1].axhline(1000.0 * DEPTH, **REFERENCE)
    axes[1].text(0.05, 1250.0 * DEPTH, "20 mm allowed", fontsize=8, va="bottom")
    axes[1].set(xlim=(0.0, pile.time[-1]), ylim=(1e-4, 300.0))
    half = half_extent(CAR)
    for v in range(pile.position.shape[2]):
        axes[2].plot(pile.time, pile.position[:, 0, v, 0] + half[0], color=COLORS[v % 10], linewidth=1.0)
    axes[2].set(title="Pile-up on dry road: front bumpers", xlabel="time [s]", ylabel="x [m]")
    for w, start in enumerate(("5 m/s", "10 m/s", "10 m/s at 30°")):
        axes[3].plot(wall[0].time, wall[0].velocity[:, w, 0, 0], color=COLORS[w], label=start)
    axes[3].set(title="Into a terrain step 1.5 m high", xlabel="time [s]", ylabel="speed along x [m/s]")
    axes[3].legend(fontsize="small", frameon=False)
    caption = (
        "Energy of the meetings; penetration, read at 60 Hz, and paths of the pile-up; cars that hit the terrain step."
    )
    record.draw(name, figure, caption)
