"""Parameters of one vehicle model and their device twin."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import warp as wp

from ..numbers import finite_number

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

GRAVITY = 9.81
MAX_STEER = 1.4
"""Largest steering angle [rad]: the wheels' tangents stay finite."""


@dataclass(frozen=True, kw_only=True)
class VehicleParams:
    """One vehicle model. SI units; the defaults are the benchmark car (a compact, rear-wheel drive).

    The body origin is the centre of mass and the centre of the collision box. Sources: footprint and the acceleration
    threshold 4.91 m/s² from the paper (Table 4 and the text around it); the rest was chosen against the checks of
    ``tests/physics``.

    Attributes:
        length: Footprint and collision-box length [m].
        width: Footprint and collision-box width [m].
        height: Collision-box height [m].
        mass: Vehicle mass [kg].
        inertia: Principal moments of inertia about the body axes (x, y, z) [kg·m²].
        wheelbase: Distance between the axles [m].
        track: Distance between the wheels of an axle [m].
        anchor_height: Height of the suspension anchors above the centre of mass [m]; negative is below.
        suspension_rest_length: Rest length of a leg [m].
        suspension_stiffness: Spring rate of a leg [N/m].
        suspension_damping: Damping rate of a leg [N·s/m].
        wheel_radius: Rolling radius [m].
        wheel_inertia: Spin inertia of a wheel [kg·m²].
        max_drive_torque: Largest total drive torque, split over the rear wheels [N·m].
        max_power: Largest drive power at the rear wheels' mean spin [W].
        max_brake_torque: Brake torque of each wheel at full brake [N·m].
        brake_accel_scale: Requested deceleration that means full brake [m/s²].
        tire_cornering_stiffness_front: Lateral force per slip angle of a front wheel [N/rad].
        tire_cornering_stiffness_rear: Lateral force per slip angle of a rear wheel [N/rad].
        tire_longitudinal_stiffness: Longitudinal force per slip speed of a wheel [N·s/m].
        grip: Vehicle factor on the surface friction coefficient (μ_vehicle) [-].
        max_steer: Largest steering angle at standstill, at most 1.4 [rad].
        steer_rate: Largest rate of the steering angle [rad/s].
        steer_speed_scale: Speed at which the steering authority is halved [m/s].
        drag: Aerodynamic drag ½ρC_dA [N·s²/m²].
        rolling_resistance: Rolling resistance coefficient [-].
        chassis_friction: Friction coefficient of the chassis in contact [-].
    """

    length: float = 4.25
    width: float = 1.78
    height: float = 0.90
    mass: float = 1350.0
    inertia: tuple[float, float, float] = (500.0, 2100.0, 2300.0)
    wheelbase: float = 2.60
    track: float = 1.46
    anchor_height: float = -0.12
    suspension_rest_length: float = 0.30
    suspension_stiffness: float = 35_000.0
    suspension_damping: float = 3_000.0
    wheel_radius: float = 0.32
    wheel_inertia: float = 1.0
    max_drive_torque: float = 2121.12  # 4.91 m/s² · R · m, the paper's throttle threshold
    max_power: float = 100_000.0
    max_brake_torque: float = 900.0
    brake_accel_scale: float = 8.0
    tire_cornering_stiffness_front: float = 50_000.0
    tire_cornering_stiffness_rear: float = 60_000.0
    tire_longitudinal_stiffness: float = 10_000.0
    grip: float = 1.0
    max_steer: float = 0.60
    steer_rate: float = 1.3
    steer_speed_scale: float = 22.0
    drag: float = 0.39
    rolling_resistance: float = 0.0
    chassis_friction: float = 0.5

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            TypeError: If a field is not a number (or three numbers, for ``inertia``).
            ValueError: If a field is not finite or out of range; the message names it.
        """
        may_be_zero = {"grip", "drag", "rolling_resistance", "suspension_damping", "chassis_friction"}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "inertia":
                if not isinstance(value, (tuple, list)) or len(value) != 3:
                    raise TypeError(f"inertia must be three numbers [kg·m²], got {value!r}")
                numbers = tuple(finite_number("inertia", item) for item in value)
                object.__setattr__(self, "inertia", numbers)
                values = self.inertia
            else:
                values = (value,)
            for item in values:
                finite_number(field.name, item)
                if field.name == "anchor_height":
                    continue
                if item < 0.0 or (item == 0.0 and field.name not in may_be_zero):
                    allowed = ">= 0" if field.name in may_be_zero else "> 0"
                    raise ValueError(f"{field.name} must be {allowed}, got {value!r}")
        if self.max_steer > MAX_STEER:
            raise ValueError(f"max_steer must be at most {MAX_STEER} rad, got {self.max_steer!r}")
        if self.rest_compression >= self.suspension_rest_length:
            raise ValueError(
                f"suspension_stiffness {self.suspension_stiffness!r} N/m cannot carry mass {self.mass!r} kg: the legs "
                f"would rest at {self.rest_compression:.3f} m of {self.suspension_rest_length!r} m"
            )

        clearance = self.rest_height - 0.5 * self.height
        if clearance <= 0.0:
            raise ValueError(
                f"height {self.height!r} m leaves no ground clearance: the box would rest {-clearance:.3f} m "
                f"under the road; lower anchor_height ({self.anchor_height!r} m) or height"
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> "VehicleParams":
        """Build from a mapping of field names, as a registry TOML file holds them.

        Raises:
            ValueError: If a key is not a field; the message lists the fields.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown vehicle parameter {unknown[0]!r}; known: {', '.join(sorted(known))}")
        return cls(**values)  # type: ignore[arg-type]

    @property
    def rest_compression(self) -> float:
        """Suspension compression at rest on level ground [m]."""
        load = 0.25 * self.mass * GRAVITY
        linear = load / self.suspension_stiffness
        knee = 0.8 * self.suspension_rest_length
        if linear <= knee:
            return linear
        return knee + (load - self.suspension_stiffness * knee) / (5.0 * self.suspension_stiffness)

    @property
    def rest_height(self) -> float:
        """Height of the centre of mass above level ground at rest [m]."""
        return self.suspension_rest_length + self.wheel_radius - self.rest_compression - self.anchor_height

    @property
    def throttle_accel(self) -> float:
        """Requested acceleration that means full throttle, T_max / (R·m) [m/s²]."""
        return self.max_drive_torque / (self.wheel_radius * self.mass)


@wp.struct
class VehicleData:
    """Device twin of :class:`VehicleParams`; derived values are computed once on the host."""

    half_extent: wp.vec3
    inv_mass: float
    mass: float
    inertia: wp.vec3
    inv_inertia: wp.vec3
    half_wheelbase: float
    wheelbase: float
    half_track: float
    anchor_height: float
    rest_length: float
    stiffness: float
    damping: float
    radius: float
    wheel_inertia: float
    max_drive_torque: float
    max_power: float
    max_brake_torque: float
    inv_throttle_accel: float
    inv_brake_accel: float
    cornering_front: float
    cornering_rear: float
    longitudinal: float
    grip: float
    max_steer: float
    steer_rate: float
    inv_steer_speed: float
    drag: float
    rolling_resistance: float
    chassis_friction: float
    rest_height: float
    bounding_radius: float
    wheel_reach: float


def vehicle_data(params: VehicleParams) -> VehicleData:
    """Pack parameters for the device."""
    data = VehicleData()
    data.half_extent = wp.vec3(0.5 * params.length, 0.5 * params.width, 0.5 * params.height)
    data.inv_mass, data.mass = 1.0 / params.mass, params.mass
    data.inertia = wp.vec3(*params.inertia)
    data.inv_inertia = wp.vec3(*(1.0 / item for item in params.inertia))
    data.half_wheelbase, data.wheelbase = 0.5 * params.wheelbase, params.wheelbase
    data.half_track = 0.5 * params.track
    data.anchor_height = params.anchor_height
    data.rest_length = params.suspension_rest_length
    data.stiffness, data.damping = params.suspension_stiffness, params.suspension_damping
    data.radius, data.wheel_inertia = params.wheel_radius, params.wheel_inertia
    data.max_drive_torque, data.max_power = params.max_drive_torque, params.max_power
    data.max_brake_torque = params.max_brake_torque
    data.inv_throttle_accel = 1.0 / params.throttle_accel
    data.inv_brake_accel = 1.0 / params.brake_accel_scale
    data.cornering_front = params.tire_cornering_stiffness_front
    data.cornering_rear = params.tire_cornering_stiffness_rear
    data.longitudinal = params.tire_longitudinal_stiffness
    data.grip = params.grip
    data.max_steer, data.steer_rate = params.max_steer, params.steer_rate
    data.inv_steer_speed = 1.0 / params.steer_speed_scale
    data.drag, data.rolling_resistance = params.drag, params.rolling_resistance
    data.chassis_friction = params.chassis_friction
    data.rest_height = params.rest_height
    data.bounding_radius = 0.5 * math.sqrt(params.length**2 + params.width**2 + params.height**2)
    # No contact point of a wheel on the road is farther from the centre; a ray that misses reads no friction.
    leg = abs(params.anchor_height) + params.suspension_rest_length + params.wheel_radius
    data.wheel_reach = 1.01 * math.hypot(0.5 * params.wheelbase, 0.5 * params.track, leg)
    return data
