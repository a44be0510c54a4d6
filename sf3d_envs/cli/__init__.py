"""The `sf3d` command line. Heavy imports happen inside the commands, so `--help` answers at once."""

from __future__ import annotations

from typing import Annotated

import typer

from . import bench, compare, envs, evaluate, freeze, report, run, verify, warmup
from .exits import ExitGroup
from .text import examples, verbatim

__all__ = ["app", "main"]

_FIRST_ROUND = examples(
    "sf3d warmup       # compile the kernels once",
    "sf3d envs         # what there is",
    "sf3d run SF3D/LaneClosure-mu018-v0 --agent idm17 --seed 100000",
    "sf3d evaluate --agent idm17 --worlds 8 --out results",
    "sf3d report results",
)
_EXIT_CODES = verbatim(
    "Exit codes: 0 done, 1 a check failed, 2 bad input,", "            3 out of a resource, 130 interrupted"
)

app = typer.Typer(
    cls=ExitGroup,
    help="Terrain-conditioned driving environments: twelve physical vehicles per world, batched.",
    epilog=f"{_FIRST_ROUND}\n\n{_EXIT_CODES}",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("envs", short_help="List environments and agents.", epilog=envs.EXAMPLES)(envs.envs)
app.command("run", short_help="Run one world; print what became of each vehicle.", epilog=run.EXAMPLES)(run.run)
app.command("evaluate", short_help="Agents over road conditions on the same worlds.", epilog=evaluate.EXAMPLES)(
    evaluate.evaluate
)
app.command("freeze", short_help="Fix code, agents, roads and worlds of an evaluation.", epilog=freeze.EXAMPLES)(
    freeze.freeze
)
app.command("compare", short_help="Two results that differ in one thing.", epilog=compare.EXAMPLES)(compare.compare)
app.command("report", short_help="A finished evaluation as one page.", epilog=report.EXAMPLES)(report.report)
app.command("verify", short_help="Check the physics; write a report.", epilog=verify.EXAMPLES)(verify.verify)
app.command("bench", short_help="Measure throughput.", epilog=bench.EXAMPLES)(bench.bench)
app.command("warmup", short_help="Compile all kernels.", epilog=warmup.EXAMPLES)(warmup.warmup)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"sf3d-envs {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit with its code."""
    app(prog_name="sf3d")
