"""Throughput table: physics, environment and logging, both solvers, several world and thread counts, in one run.

Rows are measured in turn, round after round, and each figure is the median over rounds, so that other load on the
machine falls on all rows alike. The table of the README is made by ``python benchmarks/throughput.py --markdown``.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from sf3d_envs.benchmark import BenchConfig, BenchResult, measure, profile, profile_table, report, report_table
from sf3d_envs.evaluation.store import write_json
from sf3d_envs.launches import MIN_WORLDS_TO_SHARD, usable_threads


def main() -> None:
    """Measure, print the tables, write the JSON file if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="1,16,64,256,1024", help="numbers of worlds, separated by commas")
    parser.add_argument("--threads", default=f"1,{usable_threads()}", help="thread counts, separated by commas")
    parser.add_argument("--modes", default="physics,env,log", help="physics, env, log")
    parser.add_argument("--xpbd-worlds", default="64", help="numbers of worlds of the reference path; empty for none")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time per row and round [s]")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N")
    parser.add_argument("--profile", type=int, metavar="WORLDS", help="also print what each kernel costs")
    parser.add_argument("--markdown", action="store_true", help="print the README's table")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()

    threads = list(dict.fromkeys(int(item) for item in arguments.threads.split(",")))
    common = {"device": arguments.device, "seconds": arguments.seconds}
    configs = [
        BenchConfig(worlds=worlds, mode=mode, threads=count, **common)
        for mode in arguments.modes.split(",")
        for worlds in _counts(arguments.worlds)
        for count in threads
        if count == 1 or worlds >= MIN_WORLDS_TO_SHARD
    ]
    configs += [
        BenchConfig(worlds=worlds, solver="xpbd", threads=1, **common) for worlds in _counts(arguments.xpbd_worlds)
    ]
    rounds: list[list[BenchResult]] = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds} ...", file=sys.stderr, flush=True)
        rounds.append([measure(config) for config in configs])
    results = [_median(list(row)) for row in zip(*rounds, strict=True)]
    Console().print(report_table(results))
    profiles = {}
    if arguments.profile:
        config = BenchConfig(worlds=arguments.profile, mode="env", **common)
        profiles[f"{config.worlds} worlds"] = profile(config)
        Console().print(profile_table(config, profiles[f"{config.worlds} worlds"]))
    if arguments.markdown:
        print(_markdown(results))
    if arguments.json is not None:
        write_json(arguments.json, report(results, profiles))


def _counts(text: str) -> list[int]:
    return [int(item) for item in text.split(",") if item]


def _median(rows: list[BenchResult]) -> BenchResult:
    """One row with the median of each measured figure."""
    env = [row.env_steps_per_s for row in rows if row.env_steps_per_s is not None]
    return dataclasses.replace(
        rows[0],
        vehicle_steps_per_s=statistics.median(row.vehicle_steps_per_s for row in rows),
        env_steps_per_s=statistics.median(env) if env else None,
        peak_mem_mb=max(row.peak_mem_mb for row in rows),
    )


def _markdown(results: Sequence[BenchResult]) -> str:
    """Thousand vehicle-steps/s by worlds; a column per solver, mode and thread count; memory of the busiest row."""
    columns = list(dict.fromkeys((r.solver, r.mode, r.threads) for r in results))
    rates = {(r.worlds, r.solver, r.mode, r.threads): r.vehicle_steps_per_s / 1e3 for r in results}
    heads = [f"{mode if solver == 'vehicle' else solver}, {n} thread{'s'[: n > 1]}" for solver, mode, n in columns]
    lines = ["| worlds | " + " | ".join(heads) + " | peak MB |", "|---" * (len(columns) + 2) + "|"]
    for worlds in dict.fromkeys(r.worlds for r in results):
        cells = [f"{rates[key]:,.0f}k" if (key := (worlds, *column)) in rates else "" for column in columns]
        memory = max(r.peak_mem_mb for r in results if r.worlds == worlds)
        lines.append(f"| {worlds:,} | " + " | ".join(cells) + f" | {memory:,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
