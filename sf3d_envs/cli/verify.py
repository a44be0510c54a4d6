"""`sf3d verify`: the verification report of the physics."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import CheckFailedError, InputError, checked_input, split_names
from .text import examples

EXAMPLES = examples(
    "sf3d verify --out verification",
    "sf3d verify --only straight,circle --out brakes",
    "sf3d verify --full --out verification",
)


def verify(
    out: Annotated[str | None, typer.Option(help="Folder for the report; an earlier report in it is replaced.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Add the long checks.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="GROUP[,GROUP]", help="Groups of checks, separated by commas; default: all.")
    ] = None,
    list_groups: Annotated[bool, typer.Option("--list", help="List the groups and leave.")] = False,
) -> None:
    """Check the physics against closed forms, float64, standards and its bitwise promises; write a report.

    The folder gets report.html (self-contained), checks.json, checks.csv and plots/. Takes two to five minutes on two
    cores. Exit code 1 if a check fails.
    """
    from ..verification import GROUPS

    if list_groups:
        width = max(len(group.name) for group in GROUPS)
        for group in GROUPS:
            typer.echo(f"{group.name:{width}}  {group.title}{' (--full)' if group.full_only else ''}")
        return
    if out is None:
        raise InputError("--out is missing; give a folder for the report")
    if not out.strip():
        raise InputError("--out is ''; give a folder")
    names = None if only is None else split_names("--only", only)

    from ..evaluation.progress import progress_bar
    from ..evaluation.store import check_writable
    from ..verification import select, verify
    from ..verification.report import check_report_folder

    with checked_input():
        select(names, full)
        check_writable(out)
        check_report_folder(out)
    try:
        with progress_bar("groups") as show:
            result = verify(out, full=full, groups=names, progress=show)
    except OSError as error:
        raise OSError(f"--out is {out!r}: {error.strerror or error}") from error
    result.print()
    for item in result.groups:
        for remark in item.record.remarks:
            typer.echo(f"{item.group.name}: {remark}")
    if not result.checks:
        raise CheckFailedError("no check ran")
    if result.failed:
        raise CheckFailedError(f"{len(result.failed)} of {len(result)} checks failed; report in {out}")
    typer.echo(f"all {len(result)} checks passed; report in {out}")
