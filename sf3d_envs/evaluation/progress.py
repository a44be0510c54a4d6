"""Progress on stderr for long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY_S = 15.0


@contextmanager
def progress_bar(unit: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """A bar that is shown while the block runs; a line every 15 s where stderr is no terminal.

    Args:
        unit: Word after the counts.

    Yields:
        A function (label, done, total) that moves the bar.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)

        started = said = time.monotonic()

        def show(label: str, done: int, total: int) -> None:
            nonlocal said
            bar.update(task, description=label, completed=done, total=total)
            now = time.monotonic()
            if not console.is_terminal and now - said >= LINE_EVERY_S:
                said = now
                left = f", about {(now - started) * (total - done) / done:.0f} s left" if done else ""
                print(f"sf3d: {label}: {done} of {total} {unit}{left}", file=sys.stderr, flush=True)

        yield show
