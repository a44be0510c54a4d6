"""Rest pose, load transfer and the damped modes of the chassis on its springs."""

from __future__ import annotations

import numpy as np

from ..sim.vehicle import GRAVITY, VehicleParams
from ..terrain.plane import plane
from .check import Record
from .fleet import Array, Fleet
from .plots import COLORS, REFERENCE, panels

SUBSTEP = 1.0 / 240.0
MODES = {"heave": (1.47, 0.44), "pitch": (1.48, 0.47), "roll": (1.13, 0.40)}
"""Damped frequency [Hz] and damping ratio of the standing car."""

TILT, LIFT = 0.02, 0.02
SPEC = "specification, reference values (float64, 240 Hz)"


def run(record: Record) -> None:
    """Release four cars and watch them for five seconds."""
    car = VehicleParams()
    fleet = Fleet([plane()] * 4, height=[car.rest_height + LIFT, car.rest_height, car.rest_height, 0.70])
    quat = np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))
    quat[1, [1, 3]] = quat[2, [0, 3]] = np.sin(0.5 * TILT), np.cos(0.5 * TILT)
    fleet.set_quat(quat)
    signal = []
    for _ in range(420):
        fleet.substep(0.0, 0.0)
        pose = fleet.quat
        signal.append([fleet.position[0, 2] - car.rest_height, 2.0 * pose[1, 1], 2.0 * pose[2, 0]])
    for _ in range(195):
        fleet.control_step(0.0, 0.0)
    weight = car.mass * GRAVITY
    rest = {"source": "equilibrium of weight and springs: m g / 4 = k d"}
    record.add(
        "rest compression",
        fleet.compression[3].mean(),
        weight / (4.0 * car.suspension_stiffness),
        2e-5,
        "m",
        states="A parked car compresses each leg by m g / (4 k).",
        **rest,
    )
    record.add(
        "rest height",
        fleet.position[3, 2],
        0.6454,
        1e-4,
        "m",
        states="Its centre of mass stands l0 + R + 0.12 m minus the compression above the road.",
        source=SPEC,
    )
    record.add(
        "wheel load at rest",
        fleet.load[3].mean(),
        weight / 4.0,
        0.5,
        "N",
        states="Each wheel carries a quarter of the weight.",
        **rest,
    )
    record.at_most(
        "speed at rest",
        np.abs(np.concatenate([fleet.velocity[3], fleet.omega[3]])).max(),
        1e-5,
        "m/s or rad/s",
        states="A parked car does not creep, bounce or rock on level ground.",
        source="equilibrium",
    )
    fleet.close()
    _modes(record, np.array(signal))
    _load_transfer(record, car)


def swing(signal: Array) -> tuple[float, float]:
    """(damped frequency [Hz], damping ratio) from zero crossings and successive extremes, sampled at 240 Hz."""
    before = np.nonzero(signal[:-1] * signal[1:] < 0.0)[0][:4]
    if len(before) < 3:
        return float("nan"), float("nan")
    crossing = before + signal[before] / (signal[before] - signal[before + 1])
    first = np.abs(signal[before[0] + 1 : before[1] + 1]).max()
    second = np.abs(signal[before[1] + 1 : before[2] + 1]).max()
    decrement = np.log(first / second)
    return float(0.5 / (np.diff(crossing).mean() * SUBSTEP)), float(decrement / np.hypot(np.pi, decrement))


def _modes(record: Record, signal: Array) -> None:
    for k, (mode, (frequency, damping)) in enumerate(MODES.items()):
        measured = swing(signal[:, k])
        words = {"source": SPEC, "plot": "suspension"}
        record.add(
            f"{mode} frequency",
            measured[0],
            frequency,
            0.01,
            "Hz",
            states=f"Damped frequency of {mode} of a standing car.",
            **words,
        )
        record.add(
            f"{mode} damping",
            measured[1],
            damping,
            0.01,
            states=f"Damping ratio of {mode} from the logarithmic decrement.",
            **words,
        )
    figure, axes = panels(3, width=10.0, height=3.2)
    time = SUBSTEP * np.arange(1, len(signal) + 1)
    for k, (mode, (frequency, damping)) in enumerate(MODES.items()):
        scale, unit = (1000.0, "mm") if mode == "heave" else (1000.0, "mrad")
        decay = 2.0 * np.pi * frequency * damping / np.sqrt(1.0 - damping**2)
        start = scale * (LIFT if mode == "heave" else TILT)
        envelope = start * np.exp(-decay * time) / np.sqrt(1.0 - damping**2)
        axes[k].plot(time, envelope, **REFERENCE, label="expected envelope")
        axes[k].plot(time, -envelope, **REFERENCE)
        axes[k].plot(time, scale * signal[:, k], color=COLORS[0], label="simulator")
        axes[k].set(title=f"{mode}: {frequency} Hz, ζ {damping}", xlabel="time [s]", ylabel=f"{mode} [{unit}]")
        axes[k].legend(fontsize="small", frameon=False, loc="upper right")
    record.draw("suspension", figure, "Free decay of a standing car; dashed: the envelope of the expected damping.")


def _load_transfer(record: Record, car: VehicleParams) -> None:
    """Moment balance about the centre of mass once the dive has settled.

    The front axle gains (F h + m g o)/L: the tyre force F at height h, and the legs' tilt, which moves all four contact
    points back by o = h tan(pitch).
    """
    fleet = Fleet([plane()], speed=16.0)
    for _ in range(90):
        fleet.control_step(-4.0, 0.0)
    before = fleet.forward_speed[0]
    fleet.control_step(-4.0, 0.0)
    force = car.mass * (before - fleet.forward_speed[0]) * 60.0 - car.drag * fleet.forward_speed[0] ** 2
    height = fleet.position[0, 2]
    offset = height * np.tan(2.0 * np.arcsin(fleet.quat[0, 1]))
    expected = (force * height + car.mass * GRAVITY * offset) / car.wheelbase
    record.add(
        "load transfer under braking",
        fleet.load[0, :2].sum() - 0.5 * car.mass * GRAVITY,
        expected,
        0.01 * expected,
        "N",
        states="Load that the front axle gains at a request of -4 m/s².",
        source="moment balance (F h + m g o)/L with measured force, height and pitch",
    )
    fleet.close()
