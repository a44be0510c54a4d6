"""Throughput table: physics and environment, several world counts and thread counts, interleaved in one run.

Rows are measured in turn, round after round, and each figure is the median over rounds, so that other load on the
machine falls on all rows alike. Run it with ``python benchmarks/throughput.py --json bench.json``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from pathlib import Path

from rich.console import Console

from sf3d_envs.benchmark import BenchConfig, BenchResult, measure, report, report_table
from sf3d_envs.launches import MIN_WORLDS_TO_SHARD, usable_threads


def main() -> None:
    """Measure, print the table, write the JSON file if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="1,64,256", help="numbers of worlds, separated by commas")
    parser.add_argument("--threads", default=f"1,{usable_threads()}", help="thread counts, separated by commas")
    parser.add_argument("--modes", default="physics,env", help="physics, env")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time per row and round [s]")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()

    configs = [
        BenchConfig(
            worlds=int(worlds), mode=mode, threads=int(threads), device=arguments.device, seconds=arguments.seconds
        )
        for mode in arguments.modes.split(",")
        for worlds in arguments.worlds.split(",")
        for threads in dict.fromkeys(arguments.threads.split(","))
        if int(threads) == 1 or int(worlds) >= MIN_WORLDS_TO_SHARD
    ]
    rounds: list[list[BenchResult]] = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds} ...", file=sys.stderr, flush=True)
        rounds.append([measure(config) for config in configs])
    results = [_median(list(row)) for row in zip(*rounds, strict=True)]
    Console().print(report_table(results))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report(results), indent=1) + "\n")


def _median(rows: list[BenchResult]) -> BenchResult:
    """One row with the median of each measured figure."""
    env = [row.env_steps_per_s for row in rows if row.env_steps_per_s is not None]
    return dataclasses.replace(
        rows[0],
        vehicle_steps_per_s=statistics.median(row.vehicle_steps_per_s for row in rows),
        env_steps_per_s=statistics.median(env) if env else None,
        peak_mem_mb=max(row.peak_mem_mb for row in rows),
    )


if __name__ == "__main__":
    main()
