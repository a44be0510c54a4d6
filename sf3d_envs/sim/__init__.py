"""Batched vehicle physics: parameters, kernels, the Newton solver and the simulator that owns the state."""

from .._warp import quiet_init

SOLVERS = ("vehicle",)
"""Names that ``solver=`` takes."""

quiet_init()  # before Newton's import initializes Warp with its banner
