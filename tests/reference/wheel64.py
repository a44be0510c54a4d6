"""The float64 wheel update, under the name that the tests use."""

from sf3d_envs.verification.reference.wheel64 import (
    WheelCase,
    bisect_spin,
    lateral_demand,
    locked_state,
    random_cases,
    sign,
    solve_wheel,
)

__all__ = ["WheelCase", "bisect_spin", "lateral_demand", "locked_state", "random_cases", "sign", "solve_wheel"]
