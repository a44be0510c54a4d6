"""`sf3d envs`: what can be made."""

from __future__ import annotations

from .text import verbatim

EXAMPLES = verbatim(
    "In Python:",
    "  import gymnasium, sf3d_envs",
    '  env = gymnasium.make("SF3D/LaneClosure-mu018-v0")',
)


def envs() -> None:
    """List the environments, the road condition behind each, and the agents."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from ..agents import AGENTS
    from .ids import environment_ids

    table = Table(title="Environments", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("ID", "alias", "mu", "grade %", "road"):
        table.add_column(name, justify="right" if name in ("mu", "grade %") else "left", no_wrap=True)
    for full, condition in environment_ids().items():
        friction = 1.0 if condition.friction is None else condition.friction
        table.add_row(
            full,
            full.partition("/")[2],
            f"{friction:.2f}",
            f"{100 * (condition.grade or 0.0):+.1f}" if condition.grade else "0",
            condition.label,
        )
    console = Console()
    console.width = max(console.width, 120)
    console.print(table)
    console.print(f"Agents: {', '.join(AGENTS)}")
