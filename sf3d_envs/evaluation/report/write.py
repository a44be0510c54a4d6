"""From a result folder to a report: one HTML file, and its tables as CSV and LaTeX."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ...registry import Condition, Suite, load_suite
from ...sim.dynamics import CONTROL_HZ
from ..store import check_file, check_writable, write_bytes
from .analysis import Analysis, analyse, check_members
from .drawing import svg
from .page import Figure, Section, page
from .pair import RULE, PairChoice, PairRun, choose_pair, load_pair, preferred_conditions, rerun_pair
from .results import Results, read_results
from .tables import printed_tables
from .text import latex_table

if TYPE_CHECKING:
    from ...agents import Agent

Progress = Callable[[str, int, int], None]
_STEPS = ("statistics", "drawings", "matched pair", "files")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was written.

    Attributes:
        html: The page.
        tables: Folder of the CSV and LaTeX files.
        analysis: All tables as frames.
        pair: The matched pair; None where the rule holds nowhere.
        remarks: What is not in the page, and why.
    """

    html: Path
    tables: Path
    analysis: Analysis
    pair: PairChoice | None
    remarks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Plan:
    results: Results
    html: Path
    tables: Path
    families: Mapping[str, Sequence[str]]
    pair_agent: str
    suite: Suite | str


def check_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    families: Mapping[str, Sequence[str]] | None = None,
    pair_agent: str | None = None,
    suite: str | Path | None = None,
) -> _Plan:
    """Read the results and check every argument, before anything is computed or written; see `write_report`."""
    results = read_results(folder)
    if out is not None and not isinstance(out, (str, Path)):
        raise ValueError(f"--out is {out!r}; give a file name that ends in .html")
    html = results.folder / "report.html" if out is None else Path(out)
    if html.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out is {str(out)!r}; give a file name that ends in .html")
    check_file(html, "--out")
    tables = check_writable(html.with_name(f"{html.stem}-tables"), "--out")
    if tables.exists() and not tables.is_dir():
        raise ValueError(f"--out is {str(html)!r}, but {str(tables)!r} is no folder; move it or give another file name")
    check_members({} if families is None else families, results.agents)
    if pair_agent is not None and pair_agent not in results.agents:
        raise ValueError(f"pair_agent is {pair_agent!r}; the results hold {list(results.agents)}")
    default = "idm17" if "idm17" in results.agents else results.agents[0]
    return _Plan(
        results=results,
        html=html,
        tables=tables,
        families=families or {},
        pair_agent=pair_agent or default,
        suite=_suite(results, suite),
    )


def _suite(results: Results, given: str | Path | None) -> Suite | str:
    """The suite that was evaluated; what to do where it is not to be had."""
    name = results.identity["suite"] if given is None else given
    try:
        suite = load_suite(name)
    except ValueError:
        if given is not None:
            raise
        return f"its suite {name!r} is not in the registry; name its file with --suite"
    if suite.digest == results.identity["suite_digest"]:
        return suite
    if given is not None:
        raise ValueError(f"--suite is {str(given)!r}, which is not the suite that was evaluated")
    return f"the suite {name!r} of the registry is not the one that was evaluated; name its file with --suite"


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    families: Mapping[str, Sequence[str]] | None = None,
    pair_agent: str | None = None,
    suite: str | Path | None = None,
    agent: Agent | None = None,
    video: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Write the report of a finished evaluation.

    Example:
        ```python
        from sf3d_envs.evaluation.report import write_report

        write_report("results").analysis.headline
        ```

    Args:
        folder: Result folder of `sf3d evaluate`.
        out: HTML file; None writes `report.html` into the folder. The tables go to `<stem>-tables/` beside it.
        families: Name -> agents in order of their training seed; adds intervals over seeds.
        pair_agent: Agent of the matched pair; None takes `idm17` if it is there, else the first.
        suite: TOML file of the suite, for one that is not in the registry; the pair's roads are drawn from it.
        agent: Object of that agent, for one that has no registered name; it is needed only where the pair's
            trajectories were not recorded.
        video: Whether to make the video, which takes about half a minute.
        progress: Called with (label, steps done, steps in all).

    Returns:
        What was written. The page refers to nothing outside it; equal results give equal bytes, where the same
        packages draw and encode.

    Raises:
        ValueError: If the folder holds no finished evaluation with a reference, was measured with other metrics, an
            argument is wrong, or a file cannot be written.
        DamagedCell: If a file of the evaluation was changed.
    """
    plan = check_report(folder, out, families=families, pair_agent=pair_agent, suite=suite)
    return _write(plan, agent, video, progress)


def _write(plan: _Plan, agent: Agent | None, video: bool, progress: Progress | None) -> Report:
    results = plan.results

    def tell(step: int) -> None:
        if progress is not None:
            progress(_STEPS[min(step, len(_STEPS) - 1)], step, len(_STEPS))

    tell(0)
    analysis = analyse(results, families=plan.families)
    tell(1)
    from .sections import closing_sections, result_sections  # matplotlib takes half a second to import

    tables = printed_tables(analysis, results.conditions, results.agents)
    sections = result_sections(results, analysis, tables)
    tell(2)
    choice, pair, remarks = _pair_section(plan, agent, video)
    tell(3)
    text = page(_title(results), _lead(results), [*sections, pair, *closing_sections(results)])
    plan.tables.mkdir(parents=True, exist_ok=True)
    for name, frame in analysis.tables().items():
        write_bytes(plan.tables / f"{name}.csv", frame.write_csv().encode())
    for name, table in tables.items():
        write_bytes(plan.tables / f"{name}.tex", latex_table(table).encode())
    write_bytes(plan.html, text.encode())
    tell(4)
    return Report(html=plan.html, tables=plan.tables, analysis=analysis, pair=choice, remarks=tuple(remarks))


def _title(results: Results) -> str:
    return f"Matched evaluation of {', '.join(results.agents)}"


def _lead(results: Results) -> str:
    identity = results.identity
    return (
        f"{len(results.conditions)} roads of the suite {identity['suite']}, the same {identity['worlds']} traffic "
        f"scenes on each, {len(results.vehicles) // len(results.cells)} vehicles per road and agent. Roads differ in "
        "the friction of a patch on the closing lane, in grade, or in both; everything else is equal, so a difference "
        "between roads is the road's. A valid passage is a front bumper across the counting line before the vehicle's "
        "first event."
    )


def _conditions(plan: _Plan, slugs: Sequence[str]) -> dict[str, Condition]:
    """Conditions of the suite; ValueError if it is not to be had."""
    if isinstance(plan.suite, str):
        raise ValueError(plan.suite)
    return {slug: plan.suite[slug] for slug in slugs}


def _find_pair(plan: _Plan) -> PairChoice | None:
    results = plan.results
    own = pl.col("agent") == plan.pair_agent
    vehicles, worlds = results.vehicles.filter(own), results.worlds.filter(own)
    first = int(results.identity["rich"]) or None
    for condition in preferred_conditions(results.conditions):
        if found := choose_pair(vehicles, worlds, condition, first_worlds=first):
            return found
    return None


def _load(plan: _Plan, choice: PairChoice, conditions: Mapping[str, Condition], agent: Agent | None) -> PairRun:
    results = plan.results
    slugs = (choice.reference, choice.condition)
    files = {slug: results.rich_file(choice.agent, slug) for slug in slugs}
    if all(files.values()):
        return load_pair(choice, {slug: path for slug, path in files.items() if path is not None})
    from ...agents import make_agent

    driver = make_agent(choice.agent) if agent is None else agent
    recorded = results.cell(choice.agent, choice.reference).manifest["identity"]["cell"]["agent_digest"]
    if driver.digest != recorded:
        raise ValueError(f"the agent {choice.agent!r} here is not the one that was evaluated")
    horizon = float(results.identity["horizon_s"])
    return rerun_pair(choice, driver, conditions, horizon_s=horizon, solver=results.identity["solver"])


def _pair_section(plan: _Plan, agent: Agent | None, video: bool) -> tuple[PairChoice | None, Section, list[str]]:
    choice = _find_pair(plan)
    rule = f"Chosen by a rule that was fixed before: {RULE}. It illustrates one mechanism and is not representative."
    if choice is None:
        said = f"There is no such pair of {plan.pair_agent} on any road of this evaluation."
        return None, Section(name="pair", title="A matched pair", paragraphs=[rule, said]), [said]
    said = (
        f"{choice.agent}, scenario seed {choice.seed}, vehicle {choice.vehicle}: passes on the reference after "
        f"{choice.passage_step / 60:.1f} s; on {choice.condition} {choice.outcome.replace('_', ' ')} after "
        f"{choice.event_step / 60:.1f} s. The rule holds in {choice.candidates} of {choice.worlds} worlds."
    )
    remarks: list[str] = []
    figures, film = [], None
    try:
        conditions = _conditions(plan, (choice.reference, choice.condition))
        run = _load(plan, choice, conditions, agent)
    except ValueError as error:
        remarks.append(f"The pair is not drawn: {error}.")
    else:
        from .pair_pictures import LONGEST_S, plot_pair

        caption = "Path, speed and acceleration of the vehicle on both roads."
        if max(choice.passage_step, choice.event_step) > LONGEST_S * CONTROL_HZ:
            caption += f" The pictures end after {LONGEST_S:g} s; what happens later is not in them."
        figures = [Figure(svg=svg(plot_pair(run, conditions), "pair", title=caption), caption=caption)]
        if video:
            film, missing = _film(run, conditions)
            remarks += missing
    section = Section(
        name="pair",
        title="A matched pair",
        paragraphs=[rule, said, *remarks],
        figures=figures,
        video=film,
        video_caption="The same scene on both roads in real time, from above; the vehicle in question is yellow.",
    )
    return choice, section, remarks


def _film(run: PairRun, conditions: Mapping[str, Condition]) -> tuple[bytes | None, list[str]]:
    from .pair_pictures import write_pair_video

    with tempfile.TemporaryDirectory(prefix="sf3d-") as folder:
        path = Path(folder) / "pair.mp4"
        try:
            write_pair_video(run, conditions, path)
        except ImportError as error:
            return None, [f"There is no video: {error}."]
        return path.read_bytes(), []
