"""From a command to the torques on the wheels and the angle of the front axle, in every substep.

The modes are numbers of :class:`~sf3d_envs.sim.commands.CommandMode`.
"""

import warp as wp

from .arrays import VehicleArrays
from .vehicle import VehicleData

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

DRIVER = wp.constant(wp.int8(0))
PEDALS = wp.constant(wp.int8(1))
WHEEL_TORQUE = wp.constant(wp.int8(2))
STEER_PD = wp.constant(wp.int8(3))


@wp.struct
class Actuation:
    """Drive and brake torque of each wheel [N·m], angle [rad] and rate [rad/s] of the front axle."""

    drive: wp.vec4
    brake: wp.vec4
    steer: float
    steer_rate: float


@wp.func
def steer_toward(angle: float, command: float, speed: float, car: VehicleData, dt: float) -> float:
    """Steering angle after one substep [rad]: rate-limited approach to s·δ_max/(1 + (v/v_s)²)."""
    ratio = speed * car.inv_steer_speed
    target = command * car.max_steer / (1.0 + ratio * ratio)
    return angle + wp.clamp(target - angle, -car.steer_rate * dt, car.steer_rate * dt)


@wp.func
def steer_to_angle(angle: float, target: float, car: VehicleData, dt: float) -> float:
    """Steering angle after one substep [rad]: rate-limited approach to an angle within ±δ_max."""
    target = wp.clamp(target, -car.max_steer, car.max_steer)
    return angle + wp.clamp(target - angle, -car.steer_rate * dt, car.steer_rate * dt)


@wp.func
def steer_by_gains(angle: float, rate: float, target: float, gains: wp.vec2, car: VehicleData, dt: float) -> wp.vec2:
    """(angle, rate) after one substep of δ'' = k_p (δ* - δ) - k_d δ', backward Euler, so that no gain is too stiff.

    The rate keeps within ±steer_rate and the angle within ±δ_max, where it stops.
    """
    target = wp.clamp(target, -car.max_steer, car.max_steer)
    turned = (rate + dt * gains[0] * (target - angle)) / (1.0 + dt * (gains[1] + dt * gains[0]))
    turned = wp.clamp(turned, -car.steer_rate, car.steer_rate)
    reached = wp.clamp(angle + turned * dt, -car.max_steer, car.max_steer)
    return wp.vec2(reached, (reached - angle) / dt)


@wp.func
def actuate(s: VehicleArrays, car: VehicleData, w: int, v: int, speed: float, dt: float) -> Actuation:
    """What a vehicle's command means in this substep; ``speed`` is that of the centre of mass [m/s]."""
    act = Actuation()
    mode = s.command_mode[w, v]
    angle = s.steer_angle[w, v]
    command = s.command[w, v]
    throttle = wp.clamp(command[0] * car.inv_throttle_accel, 0.0, 1.0)
    brake = wp.clamp(-command[0] * car.inv_brake_accel, 0.0, 1.0)
    steering = command[1]
    if mode == PEDALS:
        pedals = s.pedals[w, v]
        throttle = wp.clamp(pedals[0], 0.0, 1.0)
        brake = wp.clamp(pedals[1], 0.0, 1.0)
        steering = pedals[2]
    if mode == DRIVER or mode == PEDALS:
        act.steer = steer_toward(angle, steering, speed, car, dt)
        act.steer_rate = (act.steer - angle) / dt
    elif mode == STEER_PD:
        turned = steer_by_gains(angle, s.steer_rate[w, v], s.steer_target[w, v], s.steer_gains[w, v], car, dt)
        act.steer = turned[0]
        act.steer_rate = turned[1]
    else:
        act.steer = steer_to_angle(angle, s.steer_target[w, v], car, dt)
        act.steer_rate = (act.steer - angle) / dt
    if mode == WHEEL_TORQUE:
        act.drive = s.drive_torque[w, v]
        act.brake = wp.max(s.brake_torque[w, v], wp.vec4())
    else:
        spin = s.wheel_spin[w, v]
        mean_spin = 0.5 * (spin[2] + spin[3])
        drive = 0.5 * throttle * wp.min(car.max_drive_torque, car.max_power / wp.max(mean_spin, 1.0))
        act.drive = wp.vec4(0.0, 0.0, drive, drive)
        act.brake = wp.vec4(1.0) * (brake * car.max_brake_torque)
    return act
