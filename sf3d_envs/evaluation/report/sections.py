"""Sections of the page: which tables and drawings stand together, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure as Plot

from ..table import ConditionFacts
from . import charts, event_charts
from .analysis import Analysis, hazard_conditions
from .drawing import NothingToDraw, svg
from .findings import findings
from .page import Figure, Section
from .provenance import limits, provenance, terrain_digests
from .results import Results
from .text import PrintedTable

Tables = Mapping[str, PrintedTable]


def _drawn(name: str, caption: str, plot: Callable[[], Plot]) -> list[Figure]:
    """A drawing; none where the frame has nothing to draw."""
    try:
        figure = plot()
    except NothingToDraw:
        return []
    return [Figure(svg=svg(figure, name, title=caption), caption=caption)]


def _per_agent(
    analysis: pl.DataFrame, agents: Sequence[str], name: str, caption: str, plot: Callable[[pl.DataFrame], Plot]
) -> list[Figure]:
    """One drawing per agent."""
    found: list[Figure] = []
    for agent in agents:
        own = analysis.filter(pl.col("agent") == agent)
        words = f"{caption}, {agent}." if len(agents) > 1 else f"{caption}."
        found += _drawn(f"{name}-{agent}", words, lambda own=own: plot(own))
    return found


def result_sections(results: Results, analysis: Analysis, tables: Tables) -> list[Section]:
    """Everything between the title and the matched pair."""
    facts, agents = results.conditions, results.agents
    return [
        Section(
            name="summary",
            title="In short",
            groups=[(agent, findings(analysis, agent, facts)) for agent in agents],
            open_tables=[tables[name] for name in ("headline", "families", "ranks") if name in tables],
        ),
        Section(
            name="passage",
            title="Passage against friction and grade",
            figures=_drawn(
                "passage",
                "Valid passage of all vehicles; bars: 95 % over worlds.",
                lambda: charts.plot_passage(analysis.passage, facts),
            ),
            tables=[tables["passage"]],
        ),
        Section(
            name="change",
            title="Change from the own reference",
            paragraphs=["The same worlds on both roads: differences are paired by world."],
            figures=_drawn(
                "change",
                "Change of valid passage from the agent's own reference by starting lane; bars: 95 % over worlds.",
                lambda: charts.plot_change(analysis.passage, facts),
            ),
        ),
        Section(
            name="ttc",
            title="Time to collision",
            figures=_drawn(
                "ttc",
                "Share of vehicles that fell below 1.5 s, and share of the time of valid driving below it.",
                lambda: charts.plot_ttc(analysis.rates, facts),
            ),
            tables=[tables["safety"]],
        ),
        Section(
            name="losses",
            title="Where passage is lost",
            paragraphs=[
                "Hatched, on roads with a patch: vehicles no wheel of which had touched it by the end of their valid "
                "driving. A patch on one lane takes passages on the other through collisions and resets."
            ],
            figures=_per_agent(
                analysis.losses,
                agents,
                "losses",
                "Vehicles without a valid passage by outcome and lane",
                lambda own: event_charts.plot_losses(own, facts),
            ),
            tables=[tables["losses"]],
        ),
        Section(
            name="entry-speed",
            title="Entry speeds",
            paragraphs=[
                "x = 20 m lies 20 m before the changed road, x = 40 m where it begins: a difference at 20 m is "
                "anticipation, or traffic that backs up."
            ],
            figures=_drawn(
                "entry",
                "Mean speed of the vehicles that crossed the mark; bars: 95 % over worlds.",
                lambda: charts.plot_entry_speed(analysis.rates, facts),
            ),
            tables=[tables["entry_speed"]],
        ),
        Section(
            name="decomposition",
            title="Kept, lost, gained",
            figures=_per_agent(
                analysis.decomposition,
                agents,
                "decomposition",
                "Vehicles by passage on the reference and on the changed road",
                lambda own: event_charts.plot_decomposition(own, facts),
            ),
            tables=[tables["decomposition"]],
        ),
        *_additivity(analysis, tables),
        _hazard(analysis, tables, facts, agents),
    ]


def _additivity(analysis: Analysis, tables: Tables) -> list[Section]:
    frame = analysis.additivity
    if frame is None:
        return []
    return [
        Section(
            name="additivity",
            title="Additivity of grade and friction",
            figures=_drawn(
                "additivity",
                "Measured change, sum of the single changes, and their difference; bars: 95 % over worlds.",
                lambda: charts.plot_additivity(frame),
            ),
            tables=[tables["additivity"]],
        )
    ]


def _hazard(analysis: Analysis, tables: Tables, facts: Sequence[ConditionFacts], agents: Sequence[str]) -> Section:
    paragraphs = ["First events per vehicle still at risk, second by second: valid, not across, its world not reset."]
    if "hazard_ratio" not in tables:
        paragraphs.append("Hazard ratios need trajectories (sf3d evaluate --rich N), which this evaluation lacks.")
    slugs = [slug for slug in ("reference", "mu035", "mu018", "mu008") if slug in hazard_conditions(facts)]
    return Section(
        name="hazard",
        title="Hazard",
        paragraphs=paragraphs,
        figures=_per_agent(
            analysis.hazard,
            agents,
            "hazard",
            "Hazard of an own failure and of censoring per second, and vehicles at risk",
            lambda own: event_charts.plot_hazard(own, slugs or hazard_conditions(facts)[:4]),
        ),
        tables=[tables["hazard_ratio"]] if "hazard_ratio" in tables else [],
    )


def closing_sections(results: Results) -> list[Section]:
    """Provenance and limits."""
    return [
        Section(
            name="provenance",
            title="Provenance",
            paragraphs=["From the manifests; digests are shortened to 16 characters."],
            facts=[
                *provenance(results),
                ("terrain digests", ", ".join(f"{slug} {digest}" for slug, digest in terrain_digests(results))),
            ],
        ),
        Section(name="limits", title="Limits", points=limits(results)),
    ]
