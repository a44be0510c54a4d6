"""From a vehicle table to claims with intervals: sensitivity, decomposition, hazard, additivity.

IDM drives the reference road, a slippery one, a slope, and both together, on the same worlds; or the table is read from
a result folder of ``sf3d evaluate``. Every interval resamples worlds, never vehicles.

Run: python examples/paired_statistics.py [--worlds N | --short] [--results DIR] [--agent NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table

import sf3d_envs
from sf3d_envs.evaluation import stats
from sf3d_envs.registry import load_suite

CONDITIONS = ("reference", "mu018", "gradeN045", "gradeN045-mu018")


def show(title: str, frame: pl.DataFrame, **columns: str | tuple[str, str]) -> None:
    """Print a table: a column name is shown as it is, (column, format) as value [low, high] where it has limits."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, wanted in columns.items():
        table.add_column(
            heading.replace("_", " "), justify="left" if isinstance(wanted, str) else "right", no_wrap=True
        )
    for row in frame.to_dicts():
        cells = []
        for wanted in columns.values():
            if isinstance(wanted, str):
                cells.append(str(row[wanted]))
                continue
            name, form = wanted
            text = format(row[name], form)
            if f"{name}_low" in row:
                text += f" [{format(row[f'{name}_low'], form)}, {format(row[f'{name}_high'], form)}]"
            cells.append(text)
        table.add_row(*cells)
    console = Console()
    if not console.is_terminal:
        console.width = 120
    console.print(table)


def lost_per_second(vehicles: pl.DataFrame, agent: str) -> pl.DataFrame:
    """Hazard of a first event in bins of eleven seconds, whoever caused it, where anybody was still at risk."""
    frame = stats.hazard(vehicles, agent=agent, bin_s=11.0, by_lane=False).frame()
    return frame.filter(pl.col("failure").is_in(["own", "censored"]), pl.col("events") > 0)


def main(arguments: Sequence[str] | None = None) -> dict[str, pl.DataFrame]:
    """Print the tables; returns them by name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=32, help="worlds per condition")
    parser.add_argument("--short", action="store_true", help="4 worlds")
    parser.add_argument("--results", type=Path, help="folder of sf3d evaluate, instead of running")
    parser.add_argument("--agent", default="idm17")
    options = parser.parse_args(arguments)

    if options.results:
        vehicles = pl.read_parquet(options.results / "vehicles.parquet")
    else:
        worlds = 4 if options.short else options.worlds
        vehicles = sf3d_envs.evaluate(options.agent, conditions=list(CONDITIONS), worlds=worlds).vehicles
    agent = options.agent

    change = stats.sensitivity(vehicles, agent=agent)
    tables = {"sensitivity": change.frame()}
    show(
        f"Valid passage of {agent} and its change from the reference, {change.worlds} matched worlds",
        tables["sensitivity"],
        condition="condition",
        lane="lane",
        passage=("rate", ".2f"),
        reference=("reference_rate", ".2f"),
        change=("change", "+.2f"),
    )

    parts = stats.decomposition(vehicles, agent=agent)
    tables |= {"decomposition": parts.frame(), "lost": parts.lost_frame()}
    show(
        "What became of each vehicle, as a share of all vehicles",
        parts.frame().filter(pl.col("lane") == "all"),
        condition="condition",
        part="part",
        share=("share", ".2f"),
    )
    show(
        "Where the lost passages went",
        parts.lost_frame().filter(pl.col("vehicles") > 0, pl.col("lane") != "all"),
        condition="condition",
        lane="lane",
        outcome="outcome",
        share=("share", ".2f"),
    )

    tables["hazard"] = lost_per_second(vehicles, agent)
    show(
        "Hazard of the first event in 11 s, among vehicles that are valid and not across",
        tables["hazard"],
        condition="condition",
        failure="failure",
        from_s=("second", ".0f"),
        events=("events", "d"),
        at_risk=("at_risk", "d"),
        hazard=("hazard", ".3f"),
    )

    held = set(vehicles["condition"])
    suite = load_suite("ucx-conditions-1").conditions
    compositions = stats.find_compositions(c for c in suite if c.slug in held)
    if compositions:
        found = stats.interactions(vehicles, compositions, agent=agent)
        tables["interactions"] = found.frame()
        show(
            "Additivity: change of the composition, sum of its parts, and what is beyond (negative: loses more)",
            found.frame(),
            condition="condition",
            lane="lane",
            change=("change", "+.2f"),
            sum_of_parts=("sum_of_parts", "+.2f"),
            interaction=("interaction", "+.2f"),
        )

    if rates := stats.available_rates(vehicles):
        tables["exposure"] = stats.exposure_rates(vehicles, rates, agent=agent, by_lane=False).frame()
        show(
            "Rates over the valid-driving window",
            tables["exposure"],
            condition="condition",
            rate="rate",
            unit="unit",
            value=("value", ".3f"),
        )

    config = change.config
    print(
        f"Brackets: {100 * config.level:.0f} % percentile intervals over worlds ({config.replicates} replicates, seed "
        f"{config.seed}), each by itself: they are not adjusted for how many are shown."
    )
    return tables


if __name__ == "__main__":
    main()
