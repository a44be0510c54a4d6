"""The float64 reference's roads, under the name that the tests use."""

from sf3d_envs.verification.reference.roads import (
    GradientField,
    Road64,
    ScalarField,
    constant,
    grid_road,
    plane_road,
    rectangle_patch,
)

__all__ = ["GradientField", "Road64", "ScalarField", "constant", "grid_road", "plane_road", "rectangle_patch"]
