"""`sf3d warmup`: compile ahead of use."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import checked_input
from .text import examples

EXAMPLES = examples("sf3d warmup", "sf3d warmup --device cuda:0 --render")


def warmup(
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
    render: Annotated[bool, typer.Option("--render/--no-render", help="Compile the camera's kernels too.")] = False,
) -> None:
    """Compile all kernels and keep them in the kernel cache; progress goes to stderr.

    The first use of an environment does this by itself; here it happens at a moment of your choice.
    """
    from .. import _warp

    with checked_input():
        _warp.get_device(device)
    seconds = _warp.warmup(device, render=render)
    typer.echo(f"kernels for {device} are ready ({seconds:.1f} s)")
