"""Batched vehicle physics: parameters, kernels, the Newton solver and the simulator that owns the state."""

from .._warp import quiet_init

SOLVERS = ("vehicle", "xpbd")
"""Names that ``solver=`` takes: the fused solver, and Newton's XPBD as its reference."""

quiet_init()  # before Newton's import initializes Warp with its banner
