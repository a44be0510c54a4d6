"""The float64 reference vehicle, under the name that the tests use."""

from sf3d_envs.verification.reference.vehicle64 import GRAVITY, Car64, Vehicle64, cross, dot, quat_multiply, rotation

__all__ = ["GRAVITY", "Car64", "Vehicle64", "cross", "dot", "quat_multiply", "rotation"]
