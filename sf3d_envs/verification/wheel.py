"""The wheel's implicit update and the friction circle, read from one substep of thousands of random states."""

from __future__ import annotations

import numpy as np

from ..sim.vehicle import VehicleParams
from ..terrain.plane import plane
from .check import Record
from .fleet import Array, Fleet
from .plots import COLORS, REFERENCE, panels
from .reference.wheel64 import WheelCase, bisect_spin, solve_wheel

COUNT = 4000
FRICTION = (1.0, 0.7, 0.5, 0.35, 0.18, 0.05)
DT = 1.0 / 240.0


def run(record: Record) -> None:
    """Set level cars in motion at random, take one substep and compare."""
    rng = np.random.default_rng(11)
    car = VehicleParams()
    index = rng.integers(0, len(FRICTION), COUNT)
    mu = np.array(FRICTION)[index]
    height = car.rest_height + rng.uniform(-0.06, 0.06, COUNT) + 0.3 * (rng.random(COUNT) < 0.05)  # a few in the air
    surfaces = [plane(value) for value in FRICTION]
    fleet = Fleet([surfaces[i] for i in index], height=height)

    speed = rng.uniform(-3.0, 30.0, COUNT) * rng.choice([1.0, 0.05, 0.0], COUNT, p=[0.85, 0.1, 0.05])
    slide = rng.normal(0.0, 1.0, COUNT) * rng.choice([0.0, 0.02, 0.3, 3.0], COUNT)
    alike = rng.random(COUNT) < 0.5  # four wheels in one state and no yaw: their forces add up along one direction
    yaw_rate = np.where(alike, 0.0, rng.normal(0.0, 0.5, COUNT))
    slip = rng.normal(0.0, 1.0, (COUNT, 4)) * rng.choice([0.3, 3.0, 30.0], (COUNT, 1))
    slip = np.where(alike[:, None], slip[:, :1], slip)
    spin = np.where(rng.random((COUNT, 1)) < 0.1, 0.0, speed[:, None] / car.wheel_radius + slip)
    accel = np.where(rng.random(COUNT) < 0.4, 0.0, rng.uniform(-8.0, 5.0, COUNT))

    twist = np.zeros((COUNT, 6), dtype=np.float32)
    twist[:, 0], twist[:, 1], twist[:, 5] = speed, slide, yaw_rate
    fleet.sim.body_qd.assign(twist)
    fleet.set_spin(spin)
    before = {"linear": fleet.velocity, "yaw_rate": fleet.omega[:, 2], "spin": fleet.spin, "z": fleet.position[:, 2]}
    fleet.substep(accel, 0.0)
    case, load = wheel_case(before, accel.astype(np.float32).astype(np.float64), mu, car)
    _, force_long, force_lat = solve_wheel(case)

    error = np.abs(fleet.spin - bisect_spin(case))
    words = {"source": "bisection on J (ω' - ω)/Δt = T_d - T_b sgn ω' - R F_x(ω'), float64"}
    record.at_most(
        "wheel speed, largest error",
        error.max(),
        2e-4,
        "rad/s",
        states=f"Wheel speeds after one substep of {COUNT} random states solve the implicit law "
        "(three Newton steps leave up to 1.5e-4).",
        **words,
    )
    record.at_most(
        "wheel speed, 99.5 % of errors",
        np.quantile(error, 0.995),
        4e-5,
        "rad/s",
        states="All but one in two hundred wheels are within float32 round-off.",
        **words,
    )
    record.at_most(
        "wheel load",
        np.abs(fleet.load - load).max(),
        0.5,
        "N",
        states="Loads follow k δ plus the bump stop.",
        source="F_z = k δ + 4k max(0, δ - 0.8 l0), v_n = 0",
    )

    drag = car.drag * np.linalg.norm(before["linear"], axis=-1, keepdims=True) * before["linear"]
    force = car.mass * (fleet.velocity - before["linear"]) / DT + drag
    expected = np.stack([force_long.sum(axis=1), force_lat.sum(axis=1)], axis=-1)
    record.at_most(
        "tyre force",
        np.abs(force[:, :2] - expected).max(),
        3.0,
        "N",
        states="The sum of the tyre forces, from the change of the car's velocity.",
        source="the eight equations of the wheel update in float64; float32 velocities resolve 0.6 N",
    )
    limit = (car.grip * mu[:, None] * load).sum(axis=1)
    size = np.linalg.norm(force[:, :2], axis=-1)
    record.at_most(
        "friction circle",
        (size - limit).max(),
        2.0,
        "N",
        states="No car gets more horizontal force than its wheels' μ F_z together.",
        source="‖(F_x, F_y)‖ ≤ μ_vehicle μ_surface F_z",
        plot="circle-of-friction",
    )
    saturated = alike & (np.hypot(force_long, force_lat) >= case.friction_limit * (1 - 1e-9)).all(1) & (limit > 0)
    straight = saturated & (slide == 0.0) & (np.abs(np.sign(force_long).sum(axis=1)) == 4)
    record.at_most(
        "sliding cars on the circle",
        np.abs(size[straight] / limit[straight] - 1.0).max() if straight.sum() > 100 else np.nan,
        1e-3,
        states=f"Where four wheels slide straight in one direction ({straight.sum()} cars), the force is Σ μ F_z.",
        source="Coulomb friction",
        plot="circle-of-friction",
    )
    power = _slip_power(before, fleet, force, case, car)
    record.at_least(
        "slip power",
        power.min(),
        -25.0,
        "W",
        states="Tyre slip takes energy out of car and wheels together, never in "
        f"(largest dissipation here {power.max() / 1000:.0f} kW; round-off of float32 is 20 W).",
        source="Σ F_x (R ω' - v_x) - F_y v_y ≥ 0",
    )
    fleet.close()
    _plot(record, force[alike & (limit > 0)] / limit[alike & (limit > 0), None], saturated[alike & (limit > 0)])


def wheel_case(before: dict[str, Array], accel: Array, mu: Array, car: VehicleParams) -> tuple[WheelCase, Array]:
    """What the wheels of level cars on level ground see, and their loads [N], [N, 4]; wheels FL, FR, RL, RR."""
    half_base, half_track = 0.5 * car.wheelbase, 0.5 * car.track
    arm_x = np.array([half_base, half_base, -half_base, -half_base])
    arm_y = np.array([half_track, -half_track, half_track, -half_track])
    compression = car.suspension_rest_length + car.wheel_radius - (before["z"] + car.anchor_height)
    compression = np.maximum(compression, 0.0)
    stop = 4.0 * car.suspension_stiffness * np.maximum(0.0, compression - 0.8 * car.suspension_rest_length)
    load = np.repeat((car.suspension_stiffness * compression + stop)[:, None], 4, axis=1)
    touches = load > 0.0
    rear_spin = before["spin"][:, 2:].mean(axis=1)
    throttle = np.clip(accel / car.throttle_accel, 0.0, 1.0)
    drive = throttle * np.minimum(car.max_drive_torque, car.max_power / np.maximum(rear_spin, 1.0))
    brake = np.clip(-accel / car.brake_accel_scale, 0.0, 1.0) * car.max_brake_torque
    front, rear = car.tire_cornering_stiffness_front, car.tire_cornering_stiffness_rear
    case = WheelCase(
        spin=before["spin"],
        speed_long=np.where(touches, before["linear"][:, :1] - before["yaw_rate"][:, None] * arm_y, 0.0),
        speed_lat=np.where(touches, before["linear"][:, 1:2] + before["yaw_rate"][:, None] * arm_x, 0.0),
        drive_torque=0.5 * drive[:, None] * np.array([0.0, 0.0, 1.0, 1.0]),
        brake_torque=np.repeat(brake[:, None], 4, axis=1),
        friction_limit=car.grip * mu[:, None] * load,
        cornering_stiffness=np.array([front, front, rear, rear]),
        longitudinal_stiffness=car.tire_longitudinal_stiffness,
        radius=car.wheel_radius,
        inertia=car.wheel_inertia,
        dt=DT,
    )
    return case, load


def _slip_power(before: dict[str, Array], fleet: Fleet, force: Array, case: WheelCase, car: VehicleParams) -> Array:
    """Power that slip takes out [W], [N], all from measured changes of velocity, yaw rate and wheel speed."""
    spin = fleet.spin
    torque = case.drive_torque - case.brake_torque * np.sign(spin)
    wheels = ((torque - car.wheel_inertia * (spin - before["spin"]) / DT) * spin).sum(axis=1)
    yaw_torque = car.inertia[2] * (fleet.omega[:, 2] - before["yaw_rate"]) / DT
    body = np.sum(force[:, :2] * before["linear"][:, :2], axis=1) + yaw_torque * before["yaw_rate"]
    return wheels - body


def _plot(record: Record, force: Array, saturated: np.ndarray) -> None:
    figure, axes = panels(width=5.6, height=5.2)
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    axes[0].plot(force[~saturated, 1], force[~saturated, 0], ".", markersize=3, color=COLORS[0], label="rolling")
    axes[0].plot(force[saturated, 1], force[saturated, 0], ".", markersize=3, color=COLORS[1], label="sliding")
    axes[0].plot(np.cos(angle), np.sin(angle), **REFERENCE, label="μ F_z")
    axes[0].set_aspect("equal")
    axes[0].set_xticks(np.arange(-1.0, 1.1, 0.5))
    axes[0].set_yticks(np.arange(-1.0, 1.1, 0.5))
    axes[0].set(
        title="Tyre force of cars whose four wheels are in one state",
        xlabel="lateral force / Σ μ F_z",
        ylabel="longitudinal force / Σ μ F_z",
    )
    axes[0].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, markerscale=3)
    record.draw(
        "circle-of-friction",
        figure,
        "Force in one substep over the sum of μ F_z. Sliding points inside the circle: front and rear tyres differ in "
        "stiffness, so their forces need not be parallel.",
    )
