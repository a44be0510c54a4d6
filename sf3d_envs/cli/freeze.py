"""`sf3d freeze`: fix what an evaluation will run."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import InputError, at_least, checked_input, split_names
from .text import examples

EXAMPLES = examples(
    "sf3d freeze --suite ucx-conditions-1 --agent idm17 --worlds 1024 --out tier2.json",
    "sf3d evaluate --agent idm17 --worlds 1024 --frozen tier2.json --out results",
)


def freeze(
    out: Annotated[str, typer.Option(help="File to write (JSON); an existing one is not replaced.")],
    suite: Annotated[str, typer.Option(help="Suite of the registry, or path of a TOML file.")] = "ucx-conditions-1",
    agent: Annotated[str, typer.Option(help="Agent, or several separated by commas.")] = "idm17",
    conditions: Annotated[str | None, typer.Option(help="Slugs separated by commas; default: all.")] = None,
    worlds: Annotated[int, typer.Option(help="Scenario seeds per condition.")] = 32,
    seed0: Annotated[int, typer.Option(help="First scenario seed; 100000 is the benchmark's.")] = 100_000,
    solver: Annotated[str, typer.Option(help="vehicle, or xpbd.")] = "vehicle",
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
) -> None:
    """Fix code, packages, agents, roads and worlds of an evaluation in one file; nothing is simulated.

    sf3d evaluate --frozen FILE then refuses a run that disagrees, naming the fields. A run of fewer agents, conditions
    or worlds than were frozen agrees. The file carries a digest of itself, so an edit is noticed.
    """
    at_least("--worlds", worlds, 1)
    at_least("--seed0", seed0, 0)
    if not out.strip():
        raise InputError("--out is ''; give a file")
    agents = split_names("--agent", agent)
    slugs = None if conditions is None else split_names("--conditions", conditions)

    from ..evaluation import EvaluationConfig, write_frozen
    from ..evaluation import freeze as freeze_evaluation
    from ..evaluation.freeze import check_new_file

    with checked_input():
        check_new_file(out)
        config = EvaluationConfig(
            agents=agents, suite=suite, conditions=slugs, worlds=worlds, seed0=seed0, solver=solver, device=device
        )
        manifest = freeze_evaluation(config)
    try:
        write_frozen(out, manifest)
    except OSError as error:
        raise OSError(f"--out is {out!r}: {error.strerror or error}") from error
    typer.echo(f"{len(manifest['cells'])} cells of {worlds} worlds frozen in {out}, digest {manifest['digest'][:12]}")
