"""`sf3d freeze`: fix what an evaluation will run."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import InputError, at_least, checked_input, split_names, tier_alone
from .text import examples

EXAMPLES = examples(
    "sf3d freeze --suite ucx-conditions-1 --agent idm17 --worlds 1024 --out tier2.json",
    "sf3d evaluate --agent idm17 --worlds 1024 --frozen tier2.json --out results",
)


def freeze(
    out: Annotated[str, typer.Option(help="File to write (JSON); an existing one is not replaced.")],
    suite: Annotated[str, typer.Option(help="Suite of the registry, or path of a TOML file.")] = "ucx-conditions-1",
    agent: Annotated[
        str | None,
        typer.Option(help="Agent, or several separated by commas; default: those of the suite, or idm17."),
    ] = None,
    conditions: Annotated[str | None, typer.Option(help="Slugs separated by commas; default: all.")] = None,
    tier: Annotated[str | None, typer.Option(help="Tier of the suite; it sets worlds and seeds.")] = None,
    worlds: Annotated[int | None, typer.Option(help="Scenario seeds per condition; default: 32.")] = None,
    seed0: Annotated[int | None, typer.Option(help="First scenario seed; default: 100000, the benchmark's.")] = None,
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
    tier_alone(tier, worlds, seed0)
    agents = None if agent is None else split_names("--agent", agent)
    slugs = None if conditions is None else split_names("--conditions", conditions)

    from ..evaluation import EvaluationConfig, write_frozen
    from ..evaluation import freeze as freeze_evaluation
    from ..evaluation.config import BENCHMARK_SEED0
    from ..evaluation.freeze import check_new_file

    with checked_input():
        check_new_file(out)
        config = EvaluationConfig(
            agents=agents,
            suite=suite,
            conditions=slugs,
            tier=tier,
            worlds=32 if worlds is None else worlds,
            seed0=BENCHMARK_SEED0 if seed0 is None else seed0,
            solver=solver,
            device=device,
        )
        manifest = freeze_evaluation(config)
    try:
        write_frozen(out, manifest)
    except OSError as error:
        raise OSError(f"--out is {out!r}: {error.strerror or error}") from error
    typer.echo(
        f"{len(manifest['cells'])} cells of {config.worlds} worlds frozen in {out}, digest {manifest['digest'][:12]}"
    )
