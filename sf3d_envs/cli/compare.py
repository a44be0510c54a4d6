"""`sf3d compare`: two sides that differ in one thing, world by world."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import CheckFailedError, InputError, at_least, checked_input
from .text import examples

EXAMPLES = examples(
    "sf3d compare results results --axis terrain",
    "sf3d compare results results/cells/idm17/mu018 --axis terrain --out contrast",
    "sf3d compare idm other --axis agent --out contrast",
    "sf3d compare native reference_path --axis solver --worlds 8",
)


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Result folder, or a cell DIR/cells/AGENT/CONDITION in it.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other side; may be the same folder.")],
    axis: Annotated[str, typer.Option(help="What may differ: terrain, agent or solver.")],
    out: Annotated[str | None, typer.Option(help="Folder for compare.csv, compare.txt and compare.json.")] = None,
    worlds: Annotated[int | None, typer.Option(help="Compare the first N worlds of both sides; default: all.")] = None,
) -> None:
    """Compare valid passage on the same worlds: rates, paired difference B - A, and what was kept, lost and gained.

    A pair is admitted only if it differs in the fields of the axis alone; else the others are listed, exit code 1.

    terrain: the cell A, or the reference cell of a folder A, against the same agent's other conditions in B.

    agent: cells of the same condition, every agent of A with every other one of B.

    solver: cells of the same agent and condition.
    """
    for name, value in (("A", a), ("B", b), ("--out", out)):
        if value is not None and not value.strip():
            raise InputError(f"{name} is ''; give a folder")
    at_least("--worlds", worlds, 1)

    from ..evaluation.compare import check_compare_folder
    from ..evaluation.compare import compare as compare_folders
    from ..evaluation.matching import UnmatchedPair
    from ..evaluation.store import DamagedCell

    try:
        with checked_input():
            if out is not None:
                check_compare_folder(out)
            comparison = compare_folders(a, b, axis=axis, worlds=worlds)
    except InputError as error:
        if isinstance(error.__cause__, UnmatchedPair):
            raise CheckFailedError(str(error)) from error
        raise
    except DamagedCell as error:
        raise CheckFailedError(str(error)) from error
    comparison.print()
    if out is not None:
        try:
            comparison.write(out)
        except OSError as error:
            raise OSError(f"--out is {out!r}: {error.strerror or error}") from error
        typer.echo(f"{comparison.pairs} pairs in {out}")
