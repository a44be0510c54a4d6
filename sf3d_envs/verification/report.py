"""The report's files: one self-contained HTML page, JSON, CSV and the plots."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from ..evaluation.store import check_file, write_bytes, write_json
from .check import Check, Plot, Record
from .groups import Group

if TYPE_CHECKING:
    from rich.table import Table

SCHEMA = "sf3d.verification/1"
FOLDED = 30
"""A group with more checks than this shows its table on demand."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.86rem; margin: 0.6rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.6rem 0.25rem 0; border-bottom: 1px solid #e6e6e6; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.ok { color: #1d7a36; font-weight: 600; } .bad { color: #b3261e; font-weight: 700; }
.small { color: #666; font-size: 0.82rem; }
figure { margin: 1rem 0; } img { max-width: 100%; } figcaption { color: #555; font-size: 0.85rem; }
summary { cursor: pointer; }
"""


@dataclass(frozen=True)
class GroupResult:
    """What a group gave.

    Attributes:
        group: The group.
        record: Its checks, plots and remarks.
        seconds: How long it took [s].
    """

    group: Group
    record: Record
    seconds: float

    @property
    def failed(self) -> int:
        """Number of checks that failed."""
        return sum(not check.passed for check in self.record.checks)


@dataclass(frozen=True)
class Verification:
    """Result of :func:`sf3d_envs.verification.verify`; iterating gives its checks.

    Attributes:
        groups: Results of the groups, in the report's order.
        full: Whether the long form ran.
    """

    groups: tuple[GroupResult, ...]
    full: bool

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks."""
        return tuple(check for item in self.groups for check in item.record.checks)

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All plots."""
        return tuple(plot for item in self.groups for plot in item.record.plots)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks that do not hold."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def passed(self) -> bool:
        """Whether there are checks and all of them hold."""
        return bool(self.checks) and not self.failed

    def __iter__(self) -> Iterator[Check]:
        """Iterate over the checks."""
        return iter(self.checks)

    def __len__(self) -> int:
        """Number of checks."""
        return len(self.checks)

    def print(self) -> None:
        """Print a table of the groups, and one of the failed checks, to stdout."""
        from rich.console import Console

        console = Console()
        console.print(group_table(self.groups))
        if self.failed:
            console.print(failure_table(self.failed))


def group_table(groups: Sequence[GroupResult]) -> Table:
    """Table of groups for the terminal."""
    from rich.table import Table

    table = Table(title="Verification of the physics")
    table.add_column("group")
    table.add_column("what")
    for name in ("checks", "failed", "s"):
        table.add_column(name, justify="right")
    for item in groups:
        failed = f"[red]{item.failed}[/red]" if item.failed else "0"
        count = str(len(item.record.checks)) if item.record.checks else "none"
        table.add_row(item.group.name, item.group.title, count, failed, f"{item.seconds:.1f}")
    return table


def failure_table(checks: Sequence[Check]) -> Table:
    """Table of failed checks for the terminal."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Failed")
    for name in ("group", "check", "measured", "expected", "unit"):
        table.add_column(name)
    for check in checks:
        measured = f"{check.measured:.5g}" + (f" ({escape(check.note)})" if check.note else "")
        table.add_row(check.group, escape(check.name), measured, check.expectation, check.unit)
    return table


def environment() -> dict[str, str]:
    """Versions that decide the figures; no time, host or path."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in ("sf3d-envs", "warp-lang", "newton", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    from .. import __version__

    found["sf3d-envs"] = __version__
    return found


def check_report_folder(out: str | Path) -> None:
    """Make sure that nothing stands where a report's files go, before anything is computed.

    Raises:
        ValueError: If it does; the message names it.
    """
    folder = Path(out)
    for name in ("checks.csv", "report.html", "checks.json"):
        check_file(folder / name, "--out")
    if (folder / "plots").exists() and not (folder / "plots").is_dir():
        raise ValueError(f"--out is {str(out)!r}, but {str(folder / 'plots')!r} is not a folder; move it away")


def write_report(result: Verification, out: Path) -> list[Path]:
    """Write plots, `checks.csv`, `report.html` and, last, `checks.json`; each file is either old or complete.

    Plots that an earlier report listed and this one lacks are removed.

    Args:
        result: What to write.
        out: Folder; made if it is missing.

    Returns:
        The files.
    """
    plots = out / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    stale = _plots_of(out / "checks.json") - {plot.file for plot in result.plots}
    (out / "checks.json").unlink(missing_ok=True)
    for name in stale:
        (plots / name).unlink(missing_ok=True)
    written = []
    for plot in result.plots:
        written.append(plots / plot.file)
        write_bytes(written[-1], plot.png)
    for name, text in (("checks.csv", csv_text(result.checks)), ("report.html", html_page(result))):
        written.append(out / name)
        write_bytes(written[-1], text.encode())
    written.append(out / "checks.json")
    write_json(written[-1], as_json(result))
    return written


def _plots_of(path: Path) -> set[str]:
    """File names of an earlier report's plots; empty where there is none to read."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["plots"]
        return {name for name in names if isinstance(name, str) and Path(name).name == name}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def as_json(result: Verification) -> dict[str, object]:
    """The content of `checks.json`."""
    return {
        "schema": SCHEMA,
        "full": result.full,
        "passed": result.passed,
        "environment": environment(),
        "groups": [
            {
                "name": item.group.name,
                "title": item.group.title,
                "checks": len(item.record.checks),
                "failed": item.failed,
                "seconds": round(item.seconds, 2),
                "remarks": item.record.remarks,
            }
            for item in result.groups
        ],
        "checks": [check.as_dict() for check in result.checks],
        "plots": [plot.file for plot in result.plots],
    }


def csv_text(checks: Sequence[Check]) -> str:
    """The content of `checks.csv`: one row per check."""
    buffer = io.StringIO()
    rows = [check.as_dict() for check in checks]
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else ["group", "name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def html_page(result: Verification) -> str:
    """The content of `report.html`: self-contained, plots included."""
    verdict = (
        f'<span class="ok">all {len(result)} checks passed</span>'
        if result.passed
        else f'<span class="bad">{len(result.failed)} of {len(result)} checks failed</span>'
    )
    versions = ", ".join(f"{name} {value}" for name, value in environment().items())
    rows = "".join(
        f'<tr><td><a href="#{item.group.name}">{html.escape(item.group.title)}</a></td>'
        f'<td class="number">{len(item.record.checks) or "none"}</td><td class="number">{_count(item.failed)}</td>'
        f'<td class="number">{item.seconds:.1f}</td></tr>'
        for item in result.groups
    )
    failures = f"<h2>Failed</h2>{_check_table(result.failed, with_group=True)}" if result.failed else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>SF3D physics verification</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Verification of the physics</h1><p>{verdict}, {'long' if result.full else 'short'} form. "
        f'<span class="small">{html.escape(versions)}</span></p>\n'
        "<p>Every measured value comes from a run of the simulator for this report. The vehicle is the benchmark car. "
        "The model is verified against closed forms, conservation laws, standards and an independent float64 model; it "
        "is not calibrated against a real car.</p>\n"
        "<table><tr><th>group</th><th>checks</th><th>failed</th><th>seconds</th></tr>"
        f"{rows}</table>\n{failures}\n{''.join(_section(item) for item in result.groups)}</body></html>\n"
    )


def _count(failed: int) -> str:
    return f'<span class="bad">{failed}</span>' if failed else "0"


def _section(item: GroupResult) -> str:
    record = item.record
    table = _check_table(record.checks) if record.checks else ""
    if len(record.checks) > FOLDED:
        table = f"<details><summary>{len(record.checks)} checks</summary>{table}</details>"
    remarks = "".join(f"<p>{html.escape(text)}</p>" for text in record.remarks)
    plots = "".join(
        f'<figure><img alt="{html.escape(plot.caption)}" src="data:image/png;base64,'
        f'{base64.b64encode(plot.png).decode()}"><figcaption>{html.escape(plot.caption)}</figcaption></figure>'
        for plot in record.plots
    )
    return (
        f'<h2 id="{item.group.name}">{html.escape(item.group.title)}</h2><p>{html.escape(item.group.about)}</p>'
        f"{remarks}{plots}{table}\n"
    )


def _check_table(checks: Sequence[Check], with_group: bool = False) -> str:
    head = "<th></th>" + ("<th>group</th>" if with_group else "")
    head += "<th>check</th><th>measured</th><th>expected</th><th>unit</th><th>states; source</th>"
    rows = []
    for check in checks:
        mark = '<td class="ok">✓</td>' if check.passed else '<td class="bad">✗</td>'
        group = f"<td>{html.escape(check.group)}</td>" if with_group else ""
        note = f' <span class="bad">{html.escape(check.note)}</span>' if check.note else ""
        rows.append(
            f"<tr>{mark}{group}<td>{html.escape(check.name)}</td>"
            f'<td class="number">{check.measured:.5g}</td><td class="number">{html.escape(check.expectation)}</td>'
            f"<td>{html.escape(check.unit)}</td><td>{html.escape(check.states)}{note}<br>"
            f'<span class="small">{html.escape(check.source)}</span></td></tr>'
        )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
