"""`sf3d report`: a finished evaluation as one page."""

from __future__ import annotations

from typing import Annotated

import typer

from .exits import CheckFailedError, InputError, checked_input, split_names
from .text import examples

EXAMPLES = examples(
    "sf3d report results",
    "sf3d report results --out idm.html --no-video",
    "sf3d report trained --family ppo=ppo-s0,ppo-s1,ppo-s2,ppo-s3",
)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Result folder of sf3d evaluate.")],
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="HTML file; default: DIR/report.html. Tables go beside it.")
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="Agents that are training seeds of one family; may be repeated."),
    ] = None,
    pair_agent: Annotated[
        str | None, typer.Option(metavar="AGENT", help="Agent of the matched pair; default: idm17, else the first.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file of the suite, if it is not in the registry.")
    ] = None,
    video: Annotated[bool, typer.Option(help="Make the pair's video (about half a minute).")] = True,
) -> None:
    """Write one self-contained HTML page about a finished evaluation, and its tables as CSV and LaTeX.

    Headline table, passage against friction and grade, change from the own reference, time to collision, where passage
    is lost, entry speeds, decomposition, additivity, hazard, one matched pair as video and plot, provenance, limits.
    """
    for name, value in (("DIR", folder), ("--out", out)):
        if value is not None and not value.strip():
            raise InputError(f"{name} is ''; give a {'folder' if name == 'DIR' else 'file name'}")
    families = dict(_family(text) for text in family or ())
    if len(families) != len(family or ()):
        raise InputError(f"--family is {family}; each name may appear once")

    from ..evaluation.report import check_report, write_report
    from ..evaluation.store import DamagedCell

    try:
        with checked_input():
            check_report(folder, out, families=families, pair_agent=pair_agent, suite=suite)
        from ..evaluation.progress import progress_bar

        with progress_bar("steps") as show:
            written = write_report(
                folder, out, families=families, pair_agent=pair_agent, suite=suite, video=video, progress=show
            )
    except DamagedCell as error:
        raise CheckFailedError(str(error)) from error
    except OSError as error:
        raise OSError(f"--out is {out or folder!r}: {error.strerror or error}") from error
    for remark in written.remarks:
        typer.echo(remark)
    typer.echo(f"report in {written.html}, tables in {written.tables}")


def _family(text: str) -> tuple[str, list[str]]:
    name, sign, members = text.partition("=")
    if not sign or not name.strip():
        raise InputError(f"--family is {text!r}; give NAME=AGENT,AGENT,...")
    return name.strip(), split_names("--family", members)
