"""From an evaluation to a report: run agents on matched worlds, look at the tables, check a pair, write the page.

What `sf3d evaluate`, `sf3d compare` and `sf3d report` do, as functions on tables. A folder that is finished already is
read, not run again.

Run: python examples/evaluation_report.py [--worlds N | --short] [--out DIR]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sf3d_envs.evaluation import UnmatchedPair, compare, evaluate, stats
from sf3d_envs.evaluation.report import Report, write_report

CONDITIONS = ("reference", "mu018", "mu008", "gradeN045", "gradeN045-mu018")


def main(arguments: Sequence[str] | None = None) -> Report:
    """Run, print, write; returns the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=16, help="worlds per condition")
    parser.add_argument("--short", action="store_true", help="2 worlds, without the video")
    parser.add_argument("--out", type=Path, default=Path("runs/evaluation_report"))
    options = parser.parse_args(arguments)
    worlds = 2 if options.short else options.worlds

    result = evaluate("idm17", conditions=CONDITIONS, worlds=worlds, rich=worlds, out=options.out, progress=True)
    result.print()

    # One row per vehicle: every statistic is a function of this table, and so is anything you write yourself.
    vehicles = result.vehicles
    slowest = vehicles.group_by("condition", maintain_order=True).agg(pl.col("ttc_min").min(), pl.col("drac_max").max())
    print(slowest)
    losses = stats.losses_by_patch(vehicles).frame().filter(pl.col("outcome") == "any", pl.col("lane") == "open")
    print(losses.select("condition", "where", "share", "share_low", "share_high"))

    # Two cells make a pair only if they differ along one axis alone.
    compare(options.out, options.out, axis="terrain").print()
    cells = options.out / "cells/idm17"
    try:
        compare(cells / "reference", cells / "mu018", axis="solver")
    except UnmatchedPair as error:
        print(f"refused: {error}")

    report = write_report(options.out, video=not options.short)
    print(f"{report.html}: matched pair {report.pair}")
    return report


if __name__ == "__main__":
    main()
