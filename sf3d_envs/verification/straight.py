"""Launch, requested against realized acceleration, full-brake distances, the braking probe and wheelspin."""

from __future__ import annotations

import numpy as np

from ..registry import load_condition
from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.lane_closure import ROAD, lane_closure_terrain
from ..terrain.plane import plane
from .check import Record
from .fleet import CONTROL, Array, Fleet, rectangle
from .plots import COLORS, REFERENCE, panels

SPEED = 16.0
FRICTION = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05])
LAUNCH = np.array([8.0, 1.0, 2.0, 3.0, 4.0])
BRAKE = -np.arange(1.0, 7.0)
PATCH = 140.0
"""Length of the probe's patch [m]."""

PROBE_SLUGS = ("mu012", "mu008", "mu005")
SPIN = ((0.18, 0.85, False), (0.18, 1.0, True), (0.08, 0.35, False), (0.08, 0.45, True))
"""Surface friction, request [m/s²], and whether the driven wheels spin up."""

SPEC = "specification, reference values (float64, 240 Hz)"
SECONDS = 40.0


def stopping_distance(speed: float, mu: Array, car: VehicleParams) -> Array:
    """Distance [m] of a constant friction deceleration mu g with quadratic drag: m/(2c) ln(1 + c v²/(m mu g))."""
    return car.mass / (2.0 * car.drag) * np.log1p(car.drag * speed**2 / (car.mass * mu * GRAVITY))


def run(record: Record) -> None:
    """Drive all straight manoeuvres side by side, one car per world."""
    dry = plane()
    uniform = [plane(mu) for mu in FRICTION]
    edge = [plane(patches=[rectangle(0.0, 900.0, -450.0, 450.0, mu)]) for mu in FRICTION]
    road = [lane_closure_terrain(load_condition(slug)) for slug in PROBE_SLUGS]
    spin = [plane(mu) for mu, _, _ in SPIN]
    parts = [[dry] * len(LAUNCH), [dry] * len(BRAKE), uniform, edge, road, spin]
    launch, brake, even, onto, probe, slip = np.split(
        np.arange(sum(map(len, parts))), np.cumsum([len(part) for part in parts])[:-1]
    )
    count = slip[-1] + 1
    speed, accel, x, y = np.full(count, SPEED), np.full(count, -8.0), np.zeros(count), np.zeros(count)
    speed[launch] = speed[slip] = 0.0
    accel[launch], accel[brake], accel[slip] = LAUNCH, BRAKE, [request for _, request, _ in SPIN]
    x[probe], y[probe] = ROAD.change_x, ROAD.closing_lane_y
    fleet = Fleet([variant for part in parts for variant in part], x=x, y=y, speed=speed)
    speeds, places = [fleet.forward_speed], [fleet.position[:, 0] - x]
    spun: Array = np.zeros(count)
    for step in range(round(SECONDS / CONTROL)):
        fleet.control_step(accel, 0.0)
        speeds.append(fleet.forward_speed)
        places.append(fleet.position[:, 0] - x)
        if step == 179:
            spun = fleet.car.wheel_radius * fleet.spin[:, 2:].mean(axis=1) - speeds[-1]
        if step == 600:
            accel[launch] = accel[slip] = -8.0  # those have shown what they have to; stay on the map
    stopped = np.abs(speeds[-1][np.concatenate([even, onto])]).max()
    fleet.close()
    speeds, places = np.array(speeds), np.array(places)
    _launch(record, speeds[:, launch], speeds[:, brake], fleet.car)
    distance = places[-1, even]
    _distances(record, distance, stopped, fleet.car)
    _probe(record, places[:, onto], speeds[:, onto], places[-1, probe], distance)
    for index, (mu, request, spins) in enumerate(SPIN):
        words = {
            "states": f"At μ {mu} a request of {request} m/s² {'spins' if spins else 'does not spin'} the rear wheels.",
            "source": f"{SPEC}: onset at about {0.9 if mu > 0.1 else 0.4} m/s²; half the weight is on the driven axle",
        }
        add = record.at_least if spins else record.at_most
        add(
            f"wheelspin μ {mu:.2f} request {request:.2f}",
            float(spun[slip[index]]),
            3.0 if spins else 0.1,
            "m/s",
            **words,
        )


def _launch(record: Record, launch: Array, brake: Array, car: VehicleParams) -> None:
    full = launch[:, 0]
    steps = int(np.argmax(full >= 15.0))
    record.add(
        "launch to 15 m/s",
        steps * CONTROL,
        3.17,
        0.017,
        "s",
        states="Time from rest to 15 m/s at full throttle, in whole control steps.",
        source=SPEC,
        plot="launch",
    )
    record.add(
        "launch peak",
        np.diff(full).max() / CONTROL,
        4.78,
        0.01,
        "m/s²",
        states="Largest acceleration; wheel inertia and drag take the rest of 4.91.",
        source=SPEC,
        plot="launch",
    )
    gained = launch[150, 1:] / 2.5
    for request, value, expected in zip(LAUNCH[1:], gained, (0.971, 1.941, 2.910, 3.878), strict=True):
        record.add(
            f"realized {request:+.0f}",
            value,
            expected,
            2e-3,
            "m/s²",
            states=f"Mean acceleration over 2.5 s at a request of {request:.0f} m/s².",
            source=SPEC,
            plot="launch",
        )
    lost = brake[60] - SPEED
    effective = car.mass + 4.0 * car.wheel_inertia / car.wheel_radius**2
    ideal = BRAKE / car.brake_accel_scale * 4.0 * car.max_brake_torque / car.wheel_radius / effective
    ideal = ideal - car.drag * (SPEED + 0.5 * lost) ** 2 / car.mass
    for request, value, expected in zip(BRAKE, lost, ideal, strict=True):
        record.add(
            f"realized {request:+.0f}",
            value,
            expected,
            0.02,
            "m/s²",
            states=f"Mean acceleration over 1 s from 16 m/s at a request of {request:.0f} m/s².",
            source="brake torque / R over m + 4 J/R², and drag",
            plot="launch",
        )
    figure, axes = panels(2, width=10.0, height=3.8)
    time = CONTROL * np.arange(steps + 31)
    axes[0].plot(time, full[: len(time)], color=COLORS[0], label="simulator")
    axes[0].plot(time, 4.78 * time, **REFERENCE, label="4.78 m/s², the expected peak")
    axes[0].axvline(3.17, color="#888888", linewidth=0.8, linestyle=":", label="expected time to 15 m/s, 3.17 s")
    axes[0].axhline(15.0, color="#888888", linewidth=0.8)
    axes[0].set(title="Full throttle from rest", xlabel="time [s]", ylabel="forward speed [m/s]")
    axes[0].legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.8))
    axes[1].plot([-6.5, 4.5], [-6.5, 4.5], **REFERENCE, label="realized = requested")
    axes[1].plot([*BRAKE[::-1], *LAUNCH[1:]], [*lost[::-1], *gained], "o", color=COLORS[1], label="simulator")
    axes[1].set(title="Open-loop request", xlabel="requested [m/s²]", ylabel="realized [m/s²]")
    axes[1].legend(fontsize="small", frameon=False, loc="upper left")
    record.draw("launch", figure, "Launch from rest, and what a request realizes (mean over 2.5 s and 1 s).")


def _distances(record: Record, distance: Array, stopped: float, car: VehicleParams) -> None:
    closed = stopping_distance(SPEED, FRICTION, car)
    words = {"plot": "braking"}
    for mu, measured, expected in zip(FRICTION, distance, closed, strict=True):
        if mu <= 0.5:
            record.add(
                f"full brake at μ {mu:.2f}",
                measured,
                expected,
                2e-3 * expected,
                "m",
                states=f"Stopping distance from 16 m/s on uniform μ {mu}.",
                source="Coulomb friction with drag: m/(2c) ln(1 + c v²/(m μ g)), c = ½ρC_dA",
                **words,
            )
        elif mu < 1.0:
            record.at_least(
                f"full brake at μ {mu:.2f}",
                measured,
                1.05 * expected,
                "m",
                states="Above μ 0.5 the brakes' limit and the locking rear wheels lengthen the Coulomb distance.",
                source="rear wheels lock above g/(1 + 2h/L) = 6.56 m/s²",
                **words,
            )
    record.add(
        "full brake at μ 1.00",
        distance[0],
        17.85,
        0.05,
        "m",
        states="Stopping distance from 16 m/s on the dry road.",
        source=SPEC,
        **words,
    )
    record.at_most(
        "standing after full brake",
        stopped,
        0.02,
        "m/s",
        states="All cars stand at the end of the run.",
        source="brakes hold",
    )


def _probe(record: Record, place: Array, speed: Array, on_road: Array, even: Array) -> None:
    bumper = place[-1] + 0.5 * VehicleParams().length
    for mu, measured in zip(FRICTION, bumper, strict=True):
        inside = mu >= 0.12
        add = record.at_most if inside else record.at_least
        add(
            f"probe μ {mu:.2f}",
            measured,
            PATCH,
            "m",
            states=f"Braking from 16 m/s as the centre crosses its edge, the car stops "
            f"{'inside' if inside else 'beyond'} a 140 m patch of μ {mu}.",
            source="paper: inside for μ ≥ 0.12, not for 0.08 and 0.05; front bumper counts",
            plot="braking",
        )
    for mu, measured, expected in zip(FRICTION[-3:], bumper[-3:], (103.9, 152.3, 236.2), strict=True):
        record.add(
            f"probe distance μ {mu:.2f}",
            measured,
            expected,
            0.06,
            "m",
            states="Front bumper's distance from the edge when the car stands (the patch has no end here).",
            source=SPEC,
            plot="braking",
        )
    record.add(
        "probe on the benchmark road",
        on_road[0] + 0.5 * VehicleParams().length,
        103.9,
        0.06,
        "m",
        states="The same with condition mu012 on the closing lane of the benchmark's road.",
        source=SPEC,
    )
    past = [float(value + 0.5 * VehicleParams().length - PATCH) for value in on_road]
    record.at_least(
        "probe on the benchmark road, mu008 and mu005",
        min(past[1:]),
        0.0,
        "m",
        states="With mu008 and mu005 it leaves the patch (least distance past its end).",
        source="paper",
    )
    figure, axes = panels(2, width=10.0, height=3.9)
    mu = np.geomspace(0.045, 1.1, 100)
    axes[0].loglog(mu, stopping_distance(SPEED, mu, VehicleParams()), **REFERENCE, label="Coulomb with drag")
    axes[0].loglog(FRICTION, even, "o", color=COLORS[0], label="simulator")
    axes[0].set_xticks(FRICTION, [f"{value:g}" for value in FRICTION], fontsize=8)
    axes[0].set_yticks([20, 50, 100, 200], ["20", "50", "100", "200"])
    axes[0].minorticks_off()
    axes[0].set(title="Full brake from 16 m/s, uniform road", xlabel="surface friction μ", ylabel="distance [m]")
    axes[0].legend(fontsize="small", frameon=False)
    for k, value in enumerate(FRICTION):
        if value <= 0.25 or value == 1.0:
            moving = speed[:, k] > 0.02
            axes[1].plot(place[moving, k] + 2.125, speed[moving, k], color=COLORS[k], label=f"μ {value:g}")
    axes[1].axvline(PATCH, **REFERENCE)
    axes[1].text(PATCH + 3.0, 15.6, "end of the 140 m patch", fontsize=8, va="center")
    axes[1].set(title="Braking probe", xlabel="front bumper past the patch edge [m]", ylabel="speed [m/s]")
    axes[1].legend(fontsize="small", frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.9))
    record.draw("braking", figure, "Above μ 0.5 (left) brake torque and locking rear wheels set the distance.")
