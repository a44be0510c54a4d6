"""The command modes and an external wrench in float64, from their equations alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .vehicle64 import Vehicle64

MODES = ("driver", "pedals", "wheel torque", "steer pd")


class Commanded64(Vehicle64):
    """Vehicles that each take another kind of command; :meth:`order` says which, one row per vehicle.

    Attributes:
        mode: Name of each vehicle's mode, [N].
        pedal: Throttle and brake in [0, 1], [N, 2].
        drive: Motor torque of each wheel [N·m], [N, 4].
        hold: Brake torque of each wheel [N·m], [N, 4].
        target: Wanted steering angle [rad], [N].
        gains: k_p [1/s²] and k_d [1/s], [N, 2].
        turning: Rate of the steering angle [rad/s], [N].
        push: External force [N] and torque [N·m] at the centre of mass, world frame, [N, 6].
    """

    def order(self, **values: Any) -> None:
        """Set commands by attribute name; what was never set is zero, the driver's mode."""
        n = len(self.position)
        if not hasattr(self, "mode"):
            self.mode, self.turning = np.full(n, "driver", dtype=object), np.zeros(n)
            self.pedal, self.gains, self.push = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros((n, 6))
            self.drive, self.hold, self.target = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros(n)
        for name, value in values.items():
            setattr(self, name, np.asarray(value))

    def steer_towards(self, command: np.ndarray) -> None:
        """Driver and pedals steer by speed, wheel torque to an angle, gains as a driven oscillator."""
        car, before, dt = self.car, self.steer, 1.0 / self.rate
        super().steer_towards(command)
        by_speed = self.steer
        wanted = np.clip(self.target, -car.max_steer, car.max_steer)
        to_angle = before + np.clip(wanted - before, -car.steer_rate * dt, car.steer_rate * dt)
        # Backward Euler of δ'' = k_p (δ* - δ) - k_d δ': both the angle and the rate on the right are the new ones.
        kp, kd = self.gains.T
        turned = (self.turning + dt * kp * (wanted - before)) / (1.0 + dt * kd + dt * dt * kp)
        turned = np.clip(turned, -car.steer_rate, car.steer_rate)
        by_gains = np.clip(before + dt * turned, -car.max_steer, car.max_steer)
        angle = np.where(self.mode == "steer pd", by_gains, np.where(self.mode == "wheel torque", to_angle, by_speed))
        self.steer, self.turning = angle, (angle - before) / dt

    def torques(self, accel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drive and brake torque of each wheel [N·m], each [N, 4]."""
        car = self.car
        drive, brake = super().torques(accel)
        rear = 0.5 * (self.spin[:, 2] + self.spin[:, 3])
        most = np.minimum(car.max_drive_torque, car.max_power / np.maximum(rear, 1.0))
        share = np.array([0.0, 0.0, 0.5, 0.5])
        pedals, wheels = self.mode == "pedals", self.mode == "wheel torque"
        drive = np.where(pedals[:, None], (self.pedal[:, 0] * most)[:, None] * share, drive)
        brake = np.where(pedals[:, None], self.pedal[:, 1:] * car.max_brake_torque * np.ones(4), brake)
        return np.where(wheels[:, None], self.drive, drive), np.where(wheels[:, None], self.hold, brake)

    def forces(self, accel: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forces of the wheels and the road, and the external wrench."""
        force, torque, spin = super().forces(accel, turn)
        return force + self.push[:, :3], torque + self.push[:, 3:], spin
