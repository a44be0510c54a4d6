"""`sf3d bench`: vehicle-steps per second."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .exits import InputError, at_least, checked_input
from .text import examples

EXAMPLES = examples(
    "sf3d bench --worlds 1,64,256",
    "sf3d bench --mode env --worlds 64 --threads 1 --json bench.json",
    "sf3d bench --worlds 64 --profile",
)


def _counts(text: str) -> list[int]:
    counts = []
    for name in text.split(","):
        try:
            counts.append(int(name))
        except ValueError:
            raise InputError(f"--worlds is {text!r}; give whole numbers >= 1 separated by commas") from None
        at_least("--worlds", counts[-1], 1)
    return counts


def bench(
    worlds: Annotated[str, typer.Option(help="Numbers of worlds, separated by commas.")] = "1,64,256",
    seconds: Annotated[float, typer.Option(help="Measuring time per row, after a warm-up [s].")] = 3.0,
    mode: Annotated[
        str,
        typer.Option(
            help="physics: simulator steps alone; env: TorchEnv with observation and reward, 10 Hz; "
            "log: env with safety measures and trajectories."
        ),
    ] = "physics",
    solver: Annotated[
        str, typer.Option(help="vehicle, or xpbd: the reference path on Newton's own solver.")
    ] = "vehicle",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable cores.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
    profile: Annotated[bool, typer.Option("--profile", help="Also print what each kernel costs.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Measure throughput. One vehicle-step is one vehicle for 1/60 s; a row is the median of several stretches."""
    counts = _counts(worlds)
    at_least("--threads", threads, 1)
    if not 0.0 < seconds < float("inf"):
        raise InputError(f"--seconds is {seconds}; it must be a positive number of seconds")

    from ..benchmark import BenchConfig, measure, profile_table, report, report_table
    from ..benchmark import profile as profile_launches
    from ..evaluation.progress import progress_bar
    from ..evaluation.store import check_file, write_json

    with checked_input():
        configs = [
            BenchConfig(worlds=n, mode=mode, solver=solver, threads=threads, device=device, seconds=seconds)
            for n in counts
        ]
        if json_file is not None:
            check_file(json_file, "--json")
    results, profiles = [], {}
    with progress_bar() as show:
        for i, config in enumerate(configs):
            show(f"{config.mode}, {config.worlds} worlds", i, len(configs))
            results.append(measure(config))
            if profile:
                profiles[f"{config.worlds} worlds"] = profile_launches(config)
    from rich.console import Console

    Console().print(report_table(results))
    for config, costs in zip(configs, profiles.values(), strict=False):
        Console().print(profile_table(config, costs))
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        write_json(json_file, report(results, profiles))
        typer.echo(f"figures in {json_file}")
