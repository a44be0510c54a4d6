"""Steady-state circle: understeer gradient on a constant radius, and the lateral limit under slowly ramped steering."""

from __future__ import annotations

import numpy as np

from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.plane import plane
from .check import Record
from .fleet import CONTROL, Array, Fleet
from .plots import COLORS, REFERENCE, panels

RADIUS = 60.0
ACCELERATIONS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8])
"""Lateral accelerations of the runs on the circle [g]."""

LINEAR = 0.4
"""The gradient is fitted up to here [g], as ISO 4138 asks for the linear range."""

LIMIT_FRICTION = np.array([1.0, 0.7, 0.5, 0.35, 0.18])
LIMIT_SPEED = 15.0
SETTLE, AVERAGE = 12.0, 3.0


def bicycle_gradient(car: VehicleParams) -> float:
    """Understeer gradient m/L (b/C_f - a/C_r) of the linear bicycle with axle stiffnesses [rad s²/m]."""
    half = 0.5 * car.wheelbase
    front, rear = 2.0 * car.tire_cornering_stiffness_front, 2.0 * car.tire_cornering_stiffness_rear
    return car.mass / car.wheelbase * (half / front - half / rear)


def run(record: Record) -> None:
    """Drive circles at fourteen speeds, then ramp the steering on five surfaces."""
    steer, lateral, radius, slip = _circles()
    car = VehicleParams()
    steer_deg = np.degrees(steer)
    fit = lateral <= LINEAR
    gradient = np.polyfit(lateral[fit], np.degrees(steer - car.wheelbase / radius)[fit], 1)[0]
    analytic = np.degrees(bicycle_gradient(car)) * GRAVITY
    words = {"plot": "circle"}
    record.add(
        "understeer gradient",
        gradient,
        0.66,
        0.1,
        "deg/g",
        states=f"Slope of steering angle less L/R over lateral acceleration, up to {LINEAR} g on a 60 m radius "
        "(road-wheel angle; the car has no steering ratio).",
        source=f"specification 0.66 deg/g; linear bicycle m/L (b/C_f - a/C_r) = {analytic:.3f} deg/g, "
        "which knows neither roll nor tractive force",
        **words,
    )
    record.add(
        "understeer gradient, bicycle",
        gradient,
        analytic,
        0.1,
        "deg/g",
        states="The same against the linear bicycle model.",
        source="ISO 4138; m/L (b/C_f - a/C_r), axle stiffnesses 100 and 120 kN/rad",
        **words,
    )
    record.add(
        "steering at walking pace",
        np.degrees(steer[0] - bicycle_gradient(car) * lateral[0] * GRAVITY),
        np.degrees(car.wheelbase / RADIUS),
        0.02,
        "deg",
        states="At 0.02 g the car steers the kinematic angle L/R.",
        source="Ackermann geometry",
        **words,
    )
    record.at_most(
        "radius held",
        np.abs(radius - RADIUS).max(),
        0.5,
        "m",
        states="The driver holds the radius up to 0.8 g, so the runs are steady circles.",
        source="ISO 4138, constant-radius method",
        **words,
    )
    expected = np.degrees(_bicycle_sideslip(car, lateral * GRAVITY))
    record.add(
        "sideslip at 0.4 g",
        np.interp(0.4, lateral, np.degrees(slip)),
        np.interp(0.4, lateral, expected),
        0.1,
        "deg",
        states="Sideslip angle of the centre of mass.",
        source="linear bicycle: b/R - a m a_y/(L C_r)",
        **words,
    )
    ramp = _ramps()
    _limits(record, ramp)
    _plot(record, lateral, steer_deg, np.degrees(slip), expected, ramp, car, gradient)


def _bicycle_sideslip(car: VehicleParams, lateral: Array) -> Array:
    half, rear = 0.5 * car.wheelbase, 2.0 * car.tire_cornering_stiffness_rear
    return half / RADIUS - half * car.mass * lateral / (car.wheelbase * rear)


def _circles() -> tuple[Array, Array, Array, Array]:
    """Steering angle [rad], lateral acceleration [g], radius [m] and sideslip [rad] of steady circles, each [N]."""
    count = len(ACCELERATIONS)
    target = np.sqrt(ACCELERATIONS * GRAVITY * RADIUS)
    fleet = Fleet([plane()] * count, y=-RADIUS, speed=target)
    car = fleet.car
    feedforward = car.wheelbase / RADIUS + bicycle_gradient(car) * ACCELERATIONS * GRAVITY
    per_accel = feedforward / (ACCELERATIONS * GRAVITY)  # steering angle per lateral acceleration [rad s²/m]
    pace = np.minimum(1.0, 0.25 * target)  # natural frequency of the driver's path control [rad/s]
    offset, pull, sums = np.zeros(count), np.zeros(count), []
    for step in range(round((SETTLE + AVERAGE) / CONTROL)):
        position, velocity = fleet.position, fleet.velocity
        speed = np.linalg.norm(velocity[:, :2], axis=-1)
        distance = np.linalg.norm(position[:, :2], axis=-1)
        outward = np.sum(position[:, :2] * velocity[:, :2], axis=-1) / np.maximum(distance, 1.0)
        error = distance - RADIUS
        offset = np.clip(offset + 0.2 * pace**3 * error * CONTROL, -2.0, 2.0)
        angle = feedforward + per_accel * (pace**2 * error + 1.6 * pace * outward + offset)
        pull = np.clip(pull + 0.5 * (target - speed) * CONTROL, 0.0, 4.0)
        limit = car.max_steer / (1.0 + (speed / car.steer_speed_scale) ** 2)
        fleet.control_step(2.0 * (target - speed) + pull, angle / limit)
        if step * CONTROL >= SETTLE:
            velocity, yaw_rate = fleet.velocity, fleet.omega[:, 2]
            speed = np.linalg.norm(velocity[:, :2], axis=-1)
            heading = fleet.turn[:, :2, 0]
            across = velocity[:, 1] * heading[:, 0] - velocity[:, 0] * heading[:, 1]
            along = np.sum(velocity[:, :2] * heading, axis=-1)
            sums.append([fleet.steer, speed * yaw_rate / GRAVITY, speed / yaw_rate, np.arctan2(across, along)])
    fleet.close()
    steer, lateral, radius, slip = np.mean(sums, axis=0)
    return steer, lateral, radius, slip


def _ramps() -> tuple[Array, Array]:
    """Steering angle [rad] and lateral acceleration [g] over time while the steering is ramped slowly, [T, N]."""
    fleet = Fleet([plane(mu) for mu in LIMIT_FRICTION], speed=LIMIT_SPEED)
    steer, lateral = [], []
    previous = fleet.velocity
    for step in range(round(10.0 / CONTROL)):
        speed = fleet.speed
        fleet.control_step(1.5 * (LIMIT_SPEED - speed), min(1.0, step * CONTROL / 20.0))
        velocity = fleet.velocity
        normal = np.stack([-velocity[:, 1], velocity[:, 0]], axis=-1)
        normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
        lateral.append(np.sum((velocity - previous)[:, :2] * normal, axis=-1) / CONTROL / GRAVITY)
        steer.append(fleet.steer)
        previous = velocity
    fleet.close()
    return np.array(steer), np.array(lateral)


def _limits(record: Record, ramp: tuple[Array, Array]) -> None:
    peak = ramp[1].max(axis=0) / LIMIT_FRICTION
    for mu, value in zip(LIMIT_FRICTION, peak, strict=True):
        record.add(
            f"lateral limit μ {mu:.2f}",
            value,
            0.99,
            0.015,
            "μ g",
            states=f"Largest lateral acceleration at {LIMIT_SPEED:.0f} m/s under slowly ramped steering.",
            source="friction circle: at most μ g; front tyres saturate first and point away from the centre by their "
            "steering angle, and the rear ones also drive",
            plot="circle",
        )


def _plot(
    record: Record,
    lateral: Array,
    steer: Array,
    slip: Array,
    bicycle_slip: Array,
    ramp: tuple[Array, Array],
    car: VehicleParams,
    gradient: float,
) -> None:
    figure, axes = panels(3, width=12.0, height=3.8)
    line = np.array([0.0, 0.92])
    kinematic = np.degrees(car.wheelbase / RADIUS)
    slope = np.degrees(bicycle_gradient(car)) * GRAVITY
    axes[0].plot(line, kinematic + slope * line, **REFERENCE, label=f"linear bicycle, {slope:.2f} deg/g")
    axes[0].axhline(kinematic, color="#808080", linewidth=0.8, linestyle=":", label="kinematic, L/R")
    axes[0].plot(lateral, steer, "o-", color=COLORS[0], markersize=4, label=f"simulator, {gradient:.2f} deg/g to 0.4 g")
    axes[0].set(title=f"Constant radius {RADIUS:.0f} m", xlabel="lateral acceleration [g]")
    axes[0].set_ylabel("steering angle at the wheels [deg]")
    axes[0].legend(fontsize="small", frameon=False, loc="upper left")
    axes[1].plot(lateral, bicycle_slip, **REFERENCE, label="linear bicycle")
    axes[1].plot(lateral, slip, "o-", color=COLORS[2], markersize=4, label="simulator")
    axes[1].set(title="Sideslip of the centre of mass", xlabel="lateral acceleration [g]", ylabel="sideslip [deg]")
    axes[1].legend(fontsize="small", frameon=False, loc="lower left")
    for k, mu in enumerate(LIMIT_FRICTION):
        axes[2].plot(np.degrees(ramp[0][:, k]), ramp[1][:, k], color=COLORS[k], linewidth=1.2)
        axes[2].axhline(mu, **{**REFERENCE, "color": COLORS[k], "linewidth": 0.8})
        axes[2].text(12.1, mu, f"μ {mu:g}", color=COLORS[k], fontsize=8, va="center")
    axes[2].set_xlim(0.0, 12.0)
    axes[2].set(title=f"Ramped steering at {LIMIT_SPEED:.0f} m/s; dashed: μ g", xlabel="steering angle [deg]")
    axes[2].set_ylabel("lateral acceleration [g]")
    record.draw("circle", figure, "Steady circles (ISO 4138, constant radius) and the lateral limit.")
