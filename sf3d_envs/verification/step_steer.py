"""Step steer against the linear bicycle model: gain, rise time, overshoot, at several speeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.plane import plane
from .check import Record
from .circle import bicycle_gradient
from .fleet import CONTROL, Array, Fleet
from .plots import COLORS, REFERENCE, panels

SPEEDS = np.array([10.0, 15.0, 20.0, 25.0, 30.0])
LATERAL = 0.2
"""Steady lateral acceleration of the step [g]: the tyres stay linear."""

SECONDS = 4.0


@dataclass(frozen=True)
class Response:
    """Yaw response to a steering step: steady gain [1/s], 10-90 % rise time [s], overshoot [-]."""

    gain: float
    rise: float
    overshoot: float


def bicycle_matrices(car: VehicleParams, speed: float) -> tuple[Array, Array]:
    """d/dt (v_y, r) = A (v_y, r) + B δ of the linear bicycle at a speed [m/s]."""
    half = 0.5 * car.wheelbase
    front, rear = 2.0 * car.tire_cornering_stiffness_front, 2.0 * car.tire_cornering_stiffness_rear
    mass, inertia = car.mass, car.inertia[2]
    a = np.array(
        [
            [-(front + rear) / (mass * speed), -(half * front - half * rear) / (mass * speed) - speed],
            [-(half * front - half * rear) / (inertia * speed), -(half**2) * (front + rear) / (inertia * speed)],
        ]
    )
    return a, np.array([front / mass, half * front / inertia])


def bicycle_yaw(car: VehicleParams, speed: float, steer: Array) -> Array:
    """Yaw rate [rad/s] of the linear bicycle under a steering angle per control step [T], integrated at 60 x 40 Hz."""
    a, b = bicycle_matrices(car, speed)
    state, out, fine = np.zeros(2), [], 40
    for angle in steer:
        for _ in range(fine):
            state = state + CONTROL / fine * (a @ state + b * angle)
        out.append(state[1])
    return np.array(out)


def characterize(yaw_rate: Array, steer: float) -> Response:
    """Gain, rise time and overshoot of a yaw-rate history [T] at 60 Hz, interpolated between samples."""
    steady = yaw_rate[-60:].mean()
    time = CONTROL * np.arange(len(yaw_rate) + 1)
    history = np.concatenate([[0.0], yaw_rate]) / steady

    def crossing(level: float) -> float:
        k = int(np.argmax(history >= level))
        part = (level - history[k - 1]) / (history[k] - history[k - 1])
        return float(time[k - 1] + part * CONTROL)

    return Response(float(steady / steer), crossing(0.9) - crossing(0.1), float(history.max() - 1.0))


def run(record: Record) -> None:
    """Steer at five speeds in one batch, in the simulator and in the linear bicycle."""
    car = VehicleParams()
    gradient = bicycle_gradient(car)
    angle = LATERAL * GRAVITY * (car.wheelbase / SPEEDS**2 + gradient)
    fleet = Fleet([plane()] * len(SPEEDS), speed=SPEEDS)
    for _ in range(30):
        fleet.control_step(2.0 * (SPEEDS - fleet.forward_speed) + car.drag * SPEEDS**2 / car.mass, 0.0)
    yaw_rate, steer = [], []
    for _ in range(round(SECONDS / CONTROL)):
        speed = fleet.speed
        limit = car.max_steer / (1.0 + (speed / car.steer_speed_scale) ** 2)
        fleet.control_step(4.0 * (SPEEDS - fleet.forward_speed) + car.drag * SPEEDS**2 / car.mass, angle / limit)
        yaw_rate.append(fleet.omega[:, 2])
        steer.append(fleet.steer)
    fleet.close()
    yaw_rate, steer = np.array(yaw_rate), np.array(steer)
    expected_rate = np.stack([bicycle_yaw(car, v, steer[:, k]) for k, v in enumerate(SPEEDS)], axis=-1)
    for k, speed in enumerate(SPEEDS):
        measured, expected = characterize(yaw_rate[:, k], angle[k]), characterize(expected_rate[:, k], angle[k])
        a, _ = bicycle_matrices(car, speed)
        natural = np.sqrt(np.linalg.det(a))
        damping = -np.trace(a) / (2.0 * natural)
        model = f"linear bicycle at {speed:.0f} m/s: natural frequency {natural / 2 / np.pi:.2f} Hz, ζ {damping:.2f}"
        words = {"source": model, "plot": "step-steer"}
        record.add(
            f"yaw gain at {speed:.0f} m/s",
            measured.gain,
            speed / (car.wheelbase + gradient * speed**2),
            0.03 * expected.gain,
            "1/s",
            states="Steady yaw rate over steering angle, v/(L + K v²).",
            **words,
        )
        record.add(
            f"rise time at {speed:.0f} m/s",
            1000.0 * measured.rise,
            1000.0 * expected.rise,
            12.0,
            "ms",
            states="Time of the yaw rate from 10 to 90 % of its steady value.",
            **words,
        )
        record.add(
            f"overshoot at {speed:.0f} m/s",
            100.0 * measured.overshoot,
            100.0 * expected.overshoot,
            1.5,
            "%",
            states="Overshoot of the yaw rate; body roll, which the bicycle lacks, adds to it.",
            **words,
        )
    _plot(record, yaw_rate, expected_rate, angle, car, gradient)


def _plot(record: Record, yaw_rate: Array, expected: Array, angle: Array, car: VehicleParams, gradient: float) -> None:
    figure, axes = panels(2, width=11.0, height=4.0)
    time = CONTROL * np.arange(1, len(yaw_rate) + 1)
    for k, speed in enumerate(SPEEDS):
        axes[0].plot(time, np.degrees(yaw_rate[:, k]), color=COLORS[k], label=f"{speed:.0f} m/s")
        axes[0].plot(time, np.degrees(expected[:, k]), **{**REFERENCE, "color": COLORS[k]})
    axes[0].plot([], [], **REFERENCE, label="linear bicycle")
    axes[0].set_xlim(0.0, 2.0)
    axes[0].set(title=f"Steering step to {LATERAL} g", xlabel="time after the step [s]", ylabel="yaw rate [deg/s]")
    axes[0].legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    speed = np.linspace(1.0, 35.0, 100)
    axes[1].plot(speed, speed / (car.wheelbase + gradient * speed**2), **REFERENCE, label="v/(L + K v²)")
    axes[1].plot(SPEEDS, yaw_rate[-60:].mean(axis=0) / angle, "o", color=COLORS[1], label="simulator")
    characteristic = np.sqrt(car.wheelbase / gradient)
    axes[1].set(title=f"Yaw gain (characteristic speed {characteristic:.0f} m/s)", xlabel="speed [m/s]")
    axes[1].set_ylabel("yaw rate / steering angle [1/s]")
    axes[1].legend(fontsize="small", frameon=False, loc="lower right")
    record.draw("step-steer", figure, "Yaw response to a steering step (ISO 7401); dashed: linear bicycle model.")
