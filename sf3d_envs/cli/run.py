"""`sf3d run`: one world, every vehicle driven by one agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from .exits import InputError, at_least, checked_input
from .ids import resolve
from .text import examples

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

EXAMPLES = examples(
    "sf3d run SF3D/LaneClosure-mu018-v0 --agent idm17 --seed 100000",
    "sf3d run LaneClosure-v0 --condition gradeN080 --video downhill.mp4 --view top",
)


def run(
    environment: Annotated[str, typer.Argument(metavar="ID", help="Environment ID; see `sf3d envs`.")],
    agent: Annotated[str, typer.Option(help="Agent that drives all twelve vehicles.")] = "idm17",
    seed: Annotated[int, typer.Option(help="Scenario seed.")] = 100_000,
    condition: Annotated[str | None, typer.Option(help="Road condition, for SF3D/LaneClosure-v0.")] = None,
    seconds: Annotated[float, typer.Option(help="Length of the run [s].")] = 66.0,
    video: Annotated[Path | None, typer.Option(help="Write a video (.mp4) to this file.")] = None,
    view: Annotated[str, typer.Option(help="Camera of the video: chase or top.")] = "chase",
    ego: Annotated[int, typer.Option(help="Vehicle the camera follows, 0 ... 11.")] = 0,
    fps: Annotated[int, typer.Option(help="Frames per second; at most the agent's decision rate.")] = 20,
    solver: Annotated[
        str, typer.Option(help="vehicle, or xpbd: the reference path on Newton's own solver (slower, one thread).")
    ] = "vehicle",
    device: Annotated[str, typer.Option(help="cpu or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="CPU threads; default: all usable cores.")] = None,
) -> None:
    """Run one world under the scoring rules and print what became of each vehicle."""
    at_least("--seed", seed, 0)
    at_least("--threads", threads, 1)
    at_least("--fps", fps, 1)
    if seed >= 2**64:
        raise InputError(f"--seed is {seed}; a scenario seed is below 2**64")
    if view not in ("chase", "top"):
        raise InputError(f"--view is {view!r}; it must be chase or top")
    if not 0 <= ego < 12:
        raise InputError(f"--ego is {ego}; it must be 0 ... 11")

    from .. import _warp
    from ..agents import make_agent
    from ..evaluation.batch import decision_count
    from ..evaluation.progress import progress_bar
    from ..evaluation.single import FilmConfig, run_world
    from ..evaluation.store import check_writable
    from ..launches import check_threads
    from ..sim import check_solver

    with checked_input():
        road = resolve(environment, condition)
        driver = make_agent(agent)
        decision_count(seconds, driver.decision_hz)
        check_threads(threads)
        check_solver(solver)
        _warp.get_device(device)
        if video is not None:
            if video.is_dir() or video.suffix != ".mp4":
                raise InputError(f"--video is {str(video)!r}; give a file name that ends in .mp4")
            check_writable(video.parent, "--video")
    film = (
        None if video is None else FilmConfig(path=video, view=cast("Literal['chase', 'top']", view), ego=ego, fps=fps)
    )
    with progress_bar() as show:
        vehicles = run_world(
            driver, road, seed, seconds=seconds, film=film, device=device, threads=threads, solver=solver, progress=show
        )
    from rich.console import Console

    Console().print(outcome_table(vehicles, f"{driver.name} on {road.slug}, seed {seed}, {seconds:g} s"))
    passed = int(vehicles["valid_passage"].sum())
    typer.echo(f"{passed} of {vehicles.height} vehicles passed")
    if video is not None:
        typer.echo(f"video in {video}")


def outcome_table(vehicles: pl.DataFrame, title: str) -> Table:
    """Per-vehicle outcomes for a terminal; times in seconds."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("vehicle", "lane", "outcome", "passage s", "first event s", "merged", "strict"):
        table.add_column(name, justify="left" if name in ("lane", "outcome") else "right")
    for row in vehicles.to_dicts():
        times = ("-" if row[k] is None else f"{row[k] / 60:.2f}" for k in ("passage_step", "first_event_step"))
        passage, event = times
        merged = "-" if row["merge_completed"] is None else "yes" if row["merge_completed"] else "no"
        strict = "yes" if row["strict_success"] else "no"
        table.add_row(str(row["vehicle"]), row["lane"], row["outcome"], passage, event, merged, strict)
    return table
