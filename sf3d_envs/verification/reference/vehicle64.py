"""Float64 vehicle on four raycast legs: the specification's force model, semi-implicitly integrated.

N independent vehicles advance together (there is no contact between bodies); every array has a leading axis N.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from .roads import Road64
from .wheel64 import WheelCase, solve_wheel

GRAVITY = 9.81


@dataclass(frozen=True, kw_only=True)
class Car64:
    """The benchmark vehicle in SI units (specification tables)."""

    mass: float = 1350.0
    inertia: tuple[float, float, float] = (500.0, 2100.0, 2300.0)
    wheelbase: float = 2.60
    track: float = 1.46
    anchor_height: float = -0.12
    rest_length: float = 0.30
    stiffness: float = 35e3
    damping: float = 3e3
    wheel_radius: float = 0.32
    wheel_inertia: float = 1.0
    max_drive_torque: float = 4.91 * 0.32 * 1350.0
    max_power: float = 100e3
    max_brake_torque: float = 900.0
    brake_accel_scale: float = 8.0
    cornering_front: float = 50e3
    cornering_rear: float = 60e3
    longitudinal_stiffness: float = 10e3
    grip: float = 1.0
    max_steer: float = 0.60
    steer_rate: float = 1.3
    steer_speed_scale: float = 22.0
    drag: float = 0.39

    @property
    def anchors(self) -> np.ndarray:
        """Leg anchors in the body frame [m], shape [4, 3], order FL FR RL RR."""
        a, b, z = 0.5 * self.wheelbase, 0.5 * self.track, self.anchor_height
        return np.array([[a, b, z], [a, -b, z], [-a, b, z], [-a, -b, z]])

    @property
    def rest_compression(self) -> float:
        """Static compression of each leg on level ground [m]."""
        return self.mass * GRAVITY / (4.0 * self.stiffness)

    @property
    def rest_height(self) -> float:
        """Static height of the centre of mass over level ground [m]."""
        return self.rest_length + self.wheel_radius - self.rest_compression - self.anchor_height


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Vector product over the last axis; NumPy's own costs several times as much on arrays this small."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out[..., 0], out[..., 1], out[..., 2] = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    return out


def rotation(quat: np.ndarray) -> np.ndarray:
    """Body-to-world matrices [N, 3, 3] of unit quaternions xyzw [N, 4]; columns are the body axes."""
    x, y, z, w = quat.T
    out = np.empty((len(quat), 3, 3))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[:, 2, 0], out[:, 2, 1], out[:, 2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    return out


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton product of quaternions xyzw."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + cross(av, bv)
    return np.concatenate([vector, aw * bw - np.sum(av * bv, axis=-1, keepdims=True)], axis=-1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner product over the last axis."""
    return np.sum(a * b, axis=-1)


@dataclass
class Vehicle64:
    """State and step of N vehicles.

    Attributes:
        position: Centre of mass [m], [N, 3].
        quat: Orientation xyzw, [N, 4].
        velocity: World velocity of the centre of mass [m/s], [N, 3].
        omega: World angular velocity [rad/s], [N, 3].
        spin: Wheel speeds [rad/s], [N, 4].
        steer: Front steering angle of the bicycle model [rad], [N].
        rate: Substeps per second [1/s].
    """

    road: Road64
    position: np.ndarray
    quat: np.ndarray
    velocity: np.ndarray
    omega: np.ndarray
    spin: np.ndarray
    steer: np.ndarray
    car: Car64 = field(default_factory=Car64)
    rate: float = 240.0
    load: np.ndarray = field(init=False)
    compression: np.ndarray = field(init=False)
    wheel_friction: np.ndarray = field(init=False)

    @classmethod
    def start(
        cls,
        road: Road64,
        *,
        x: float | np.ndarray = 0.0,
        y: float | np.ndarray = 0.0,
        speed: float | np.ndarray = 0.0,
        yaw: float = 0.0,
        height: float | None = None,
        count: int | None = None,
        car: Car64 | None = None,
        rate: float = 240.0,
    ) -> Self:
        """Vehicles at the settled height over the plane under them, rolling freely along `yaw` at `speed`."""
        car = car or Car64()
        n = count or max(np.size(x), np.size(y), np.size(speed))
        x, y, speed = (np.broadcast_to(np.asarray(a, dtype=np.float64), (n,)) for a in (x, y, speed))
        ground = road.height(x[:, None], y[:, None])[:, 0]
        position = np.stack([x, y, ground + (car.rest_height if height is None else height)], axis=-1)
        heading = np.array([np.cos(yaw), np.sin(yaw), 0.0])
        return cls(
            road=road,
            position=position,
            quat=np.tile([0.0, 0.0, np.sin(0.5 * yaw), np.cos(0.5 * yaw)], (n, 1)),
            velocity=speed[:, None] * heading,
            omega=np.zeros((n, 3)),
            spin=np.repeat((speed / car.wheel_radius)[:, None], 4, axis=1),
            steer=np.zeros(n),
            car=car,
            rate=rate,
        )

    def cast_legs(self, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Exact ray hits: (contact points [N, 4, 3], hit distances along the body's down axis [N, 4], normals)."""
        origin = self.position[:, None, :] + self.car.anchors @ turn.transpose(0, 2, 1)
        down = -turn[:, None, :, 2]
        distance = np.zeros(origin.shape[:2])
        point, gx, gy = origin, distance, distance
        for _ in range(20):  # Newton on a piecewise linear surface ends exactly after a few facets
            point = origin + distance[..., None] * down
            gx, gy = self.road.gradient(point[..., 0], point[..., 1])
            gap = point[..., 2] - self.road.height(point[..., 0], point[..., 1])
            distance = distance - gap / (down[..., 2] - gx * down[..., 0] - gy * down[..., 1])
            if np.abs(gap).max() < 1e-12:
                break
        normal = np.stack([-gx, -gy, np.ones_like(gx)], axis=-1)
        return point, distance, normal / np.sqrt(dot(normal, normal))[..., None]

    def steer_towards(self, command: np.ndarray) -> None:
        """Move the steering angle towards s * delta_max / (1 + (v/22)^2) at the limited rate."""
        car = self.car
        speed = np.linalg.norm(self.velocity, axis=-1)
        limited = np.clip(command, -1.0, 1.0) * car.max_steer
        target = limited / (1.0 + (speed / car.steer_speed_scale) ** 2)
        reach = car.steer_rate / self.rate
        self.steer = self.steer + np.clip(target - self.steer, -reach, reach)

    def wheel_angles(self) -> np.ndarray:
        """Ackermann wheel angles [rad], [N, 4]; rear wheels are straight."""
        tangent = np.tan(self.steer)
        half = 0.5 * self.car.track * tangent
        left = np.arctan2(self.car.wheelbase * tangent, self.car.wheelbase - half)
        right = np.arctan2(self.car.wheelbase * tangent, self.car.wheelbase + half)
        return np.stack([left, right, np.zeros_like(left), np.zeros_like(left)], axis=-1)

    def torques(self, accel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drive and brake torque per wheel [N m], each [N, 4], of a requested acceleration [m/s^2]."""
        car = self.car
        throttle = np.clip(accel * car.wheel_radius * car.mass / car.max_drive_torque, 0.0, 1.0)
        brake = np.clip(-accel / car.brake_accel_scale, 0.0, 1.0)
        rear_spin = 0.5 * (self.spin[:, 2] + self.spin[:, 3])
        drive = throttle * np.minimum(car.max_drive_torque, car.max_power / np.maximum(rear_spin, 1.0))
        zero = np.zeros_like(drive)
        return (
            np.stack([zero, zero, 0.5 * drive, 0.5 * drive], axis=-1),
            np.repeat((brake * car.max_brake_torque)[:, None], 4, axis=1),
        )

    def forces(self, accel: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Total force [N] and torque [N m] on the chassis, each [N, 3], and the new wheel speeds [N, 4]."""
        car = self.car
        point, distance, normal = self.cast_legs(turn)
        up = turn[:, None, :, 2]
        reach = car.rest_length + car.wheel_radius
        hit = (distance <= reach) & (dot(normal, up) > 0.15)
        compression = np.where(hit, reach - distance, 0.0)
        arm = point - self.position[:, None, :]
        contact_velocity = self.velocity[:, None, :] + cross(self.omega[:, None, :], arm)
        normal_speed = dot(contact_velocity, normal)
        load = np.maximum(0.0, car.stiffness * compression - car.damping * normal_speed)
        load = load + 4.0 * car.stiffness * np.maximum(0.0, compression - 0.8 * car.rest_length)
        load = np.where(hit, load, 0.0)
        angle = self.wheel_angles()
        heading = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1) @ turn.transpose(0, 2, 1)
        forward = heading - dot(heading, normal)[..., None] * normal
        forward = forward / np.sqrt(dot(forward, forward))[..., None]
        left = cross(normal, forward)
        friction = np.where(hit, self.road.friction(point[..., 0], point[..., 1]), 0.0)
        drive, brake = self.torques(accel)
        cornering = np.array([car.cornering_front, car.cornering_front, car.cornering_rear, car.cornering_rear])
        spin, force_long, force_lat = solve_wheel(
            WheelCase(
                spin=self.spin,
                speed_long=np.where(hit, dot(contact_velocity, forward), 0.0),
                speed_lat=np.where(hit, dot(contact_velocity, left), 0.0),
                drive_torque=drive,
                brake_torque=brake,
                friction_limit=car.grip * friction * load,
                cornering_stiffness=cornering,
                longitudinal_stiffness=car.longitudinal_stiffness,
                radius=car.wheel_radius,
                inertia=car.wheel_inertia,
                dt=1.0 / self.rate,
            )
        )
        wheel_force = load[..., None] * normal + force_long[..., None] * forward + force_lat[..., None] * left
        speed = np.linalg.norm(self.velocity, axis=-1, keepdims=True)
        force = wheel_force.sum(axis=1) - car.drag * speed * self.velocity
        force[:, 2] -= car.mass * GRAVITY
        self.load, self.compression, self.wheel_friction = load, compression, friction
        return force, cross(arm, wheel_force).sum(axis=1), spin

    def substep(self, accel: float | np.ndarray, steering: float | np.ndarray) -> None:
        """One physics step: steering, forces, velocities, then pose from the new velocities."""
        n, dt, inertia = len(self.position), 1.0 / self.rate, np.array(self.car.inertia)
        turn = rotation(self.quat)
        self.steer_towards(np.broadcast_to(np.asarray(steering, dtype=np.float64), (n,)))
        force, torque, self.spin = self.forces(np.broadcast_to(np.asarray(accel, dtype=np.float64), (n,)), turn)
        self.velocity = self.velocity + dt / self.car.mass * force
        omega_body = np.einsum("nji,nj->ni", turn, self.omega)
        torque_body = np.einsum("nji,nj->ni", turn, torque)
        omega_body = omega_body + dt * (torque_body - cross(omega_body, inertia * omega_body)) / inertia
        self.omega = np.einsum("nij,nj->ni", turn, omega_body)
        self.position = self.position + dt * self.velocity
        rate = np.concatenate([self.omega, np.zeros((n, 1))], axis=-1)
        quat = self.quat + 0.5 * dt * quat_multiply(rate, self.quat)
        self.quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)

    def control_step(self, accel: float | np.ndarray, steering: float | np.ndarray) -> None:
        """One 60 Hz control step with a held command."""
        for _ in range(round(self.rate / 60.0)):
            self.substep(accel, steering)

    @property
    def forward_speed(self) -> np.ndarray:
        """Speed along the body's x axis [m/s], [N]."""
        return dot(self.velocity, rotation(self.quat)[:, :, 0])

    @property
    def yaw(self) -> np.ndarray:
        """Heading [rad], [N]."""
        turn = rotation(self.quat)
        return np.arctan2(turn[:, 1, 0], turn[:, 0, 0])
