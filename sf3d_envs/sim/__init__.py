"""Batched vehicle physics: parameters, kernels, the Newton solver and the simulator that owns the state."""

from .._warp import quiet_init

SOLVERS = ("vehicle", "xpbd")
"""Names that ``solver=`` takes: the fused solver, and Newton's XPBD as its reference."""


def check_solver(solver: str) -> str:
    """The name of a solver, if there is one of that name.

    Raises:
        ValueError: If not; the message lists the known ones.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver {solver!r} is unknown; known: {', '.join(map(repr, SOLVERS))}")
    return solver


quiet_init()  # before Newton's import initializes Warp with its banner
