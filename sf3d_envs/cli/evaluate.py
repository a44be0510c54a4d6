"""`sf3d evaluate`: agents over conditions on matched worlds."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .exits import CheckFailedError, InputError, at_least, checked_input, split_names, tier_alone
from .text import examples

EXAMPLES = examples(
    "sf3d evaluate --agent idm17 --worlds 8 --out results",
    "sf3d evaluate --agent idm17,constant --conditions reference,mu018 --out pair",
    "sf3d evaluate --suite my_roads.toml --worlds 32 --out mine",
    "sf3d evaluate --suite ucx-conditions-1 --tier 2 --rich 64 --executor ray --ray-address auto --out tier2",
)

FEW_WORLDS = 8


def evaluate(
    out: Annotated[str, typer.Option(help="Result folder; finished cells in it are reused.")],
    agent: Annotated[
        str | None,
        typer.Option(help="Agent, or several separated by commas; default: those of the suite, or idm17."),
    ] = None,
    suite: Annotated[str, typer.Option(help="Suite of the registry, or path of a TOML file.")] = "ucx-conditions-1",
    conditions: Annotated[
        str | None, typer.Option(help="Slugs separated by commas, for example reference,mu018; default: all.")
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option(help="Tier of the suite, instead of --worlds and --seed0; ucx-conditions-1 has 1 and 2."),
    ] = None,
    worlds: Annotated[int | None, typer.Option(help="Scenario seeds per condition; default: 32.")] = None,
    seed0: Annotated[int | None, typer.Option(help="First scenario seed; default: 100000, the benchmark's.")] = None,
    rich: Annotated[int, typer.Option(help="Worlds per cell whose trajectories are recorded at 60 Hz.")] = 0,
    rules: Annotated[
        str, typer.Option(help="scoring: the benchmark's rules, the only ones that are evaluated.")
    ] = "scoring",
    solver: Annotated[
        str, typer.Option(help="vehicle, or xpbd: the reference path on Newton's own solver (slower, one thread).")
    ] = "vehicle",
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable cores.")] = None,
    executor: Annotated[
        str, typer.Option(help="local, or ray: each cell a task on any machine of a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, or auto; default: start Ray on this machine.")
    ] = None,
    frozen: Annotated[
        str | None, typer.Option(metavar="FILE", help="Freeze manifest; a run that disagrees with it is refused.")
    ] = None,
    recompute: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL", help="Cell AGENT/CONDITION or merged file to make again; may be repeated."),
    ] = None,
) -> None:
    """Run agents over road conditions on the same worlds; print rates with 95 % intervals over worlds.

    All conditions use the same scenario seeds, so a change against the reference is a paired difference.
    The folder gets vehicles.parquet, worlds.parquet, table.csv, table.txt, pictures and manifest.json (last).
    Each cell AGENT/CONDITION is written when it is finished: after an interrupt or a kill, the same command goes on
    with what is missing and ends with the same files. A damaged file is named and made again with --recompute only.
    An agent that returns non-finite actions is named and the exit code is 1; its cells' manifests list where and when.
    """
    at_least("--worlds", worlds, 1)
    at_least("--seed0", seed0, 0)
    at_least("--rich", rich, 0)
    tier_alone(tier, worlds, seed0)
    if rules != "scoring":
        raise InputError(f"--rules is {rules!r}; evaluations use scoring")
    at_least("--threads", threads, 1)
    if not out.strip():
        raise InputError("--out is ''; give a folder")
    agents = None if agent is None else split_names("--agent", agent)
    slugs = None if conditions is None else split_names("--conditions", conditions)

    from ..evaluation import CellFailed, DamagedCell, Evaluation, EvaluationConfig, FrozenMismatch
    from ..evaluation.config import BENCHMARK_SEED0
    from ..evaluation.errors import bad_agents, error_lines
    from ..evaluation.progress import progress_bar
    from ..evaluation.store import FolderInUse

    try:
        with checked_input():
            config = EvaluationConfig(
                agents=agents,
                suite=suite,
                conditions=slugs,
                tier=tier,
                worlds=32 if worlds is None else worlds,
                seed0=BENCHMARK_SEED0 if seed0 is None else seed0,
                rich=rich,
                solver=solver,
                device=device,
                threads=threads,
                executor=executor,
                ray_address=ray_address,
                frozen=frozen,
            )
            evaluation = Evaluation(config, out, recompute or ())
    except (DamagedCell, FrozenMismatch) as error:
        raise CheckFailedError(str(error)) from error
    reused = len(evaluation.finished)
    if reused:
        print(f"{reused} of {len(evaluation.store.cells)} cells in {out} are finished and reused", file=sys.stderr)
    try:
        with progress_bar() as show:
            result = evaluation.run(show)
    except FrozenMismatch as error:
        raise CheckFailedError(str(error)) from error
    except CellFailed as error:
        raise OSError(f"--out is {out!r}: {error}") from error
    except (FolderInUse, ConnectionError):
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"--out is {out!r}: {reason}; finished cells stay, the same command goes on") from error
    except KeyboardInterrupt:
        print(f"finished cells stay in {out}; the same command goes on with what is missing", file=sys.stderr)
        raise
    result.print()
    count = config.worlds
    if count < FEW_WORLDS:
        print(f"{count} worlds are too few for the intervals to mean much; use --worlds 32 or more", file=sys.stderr)
    typer.echo(f"{result.vehicles.height} vehicle outcomes in {out}")
    for line in error_lines(result.errors, count):
        print(f"warning: {line}", file=sys.stderr)
    if agents := bad_agents(result.errors):
        raise CheckFailedError(f"non-finite actions, which count as zero, came from {', '.join(agents)}")
