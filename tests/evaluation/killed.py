"""A process whose children write a result folder and are killed at a chosen file operation; run by test_resume.py.

    python killed.py REFERENCE ROOT FIRST STRIDE

REFERENCE is a finished result folder; its cells stand for the simulation, so that a run is nothing but file operations.
For every operation FIRST, FIRST + STRIDE, ... a child is killed just before it, and a second child goes on. Prints
a JSON list of [operation, cells that the second and a third child computed, files that differ from an undisturbed run].
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import matplotlib.figure  # noqa: F401
import numpy as np

from sf3d_envs.evaluation import Evaluation, EvaluationConfig, figures, runner
from sf3d_envs.evaluation.cells import FinishedCell

SETTINGS = {"agents": ["constant"], "conditions": ["reference", "mu018"], "worlds": 2, "horizon_s": 1.0, "rich": 1}
OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "shutil.rmtree"}
ENOUGH = 400


class Canned:
    """Yields the cells of a finished folder."""

    name = "local"

    def __init__(self, reference: Path) -> None:
        self.reference = reference

    def run(self, work, scratch, progress):
        """Copy trajectories to the scratch folder, as a simulation leaves them."""
        for agent, condition in work.cells:
            cell = f"{agent}/{condition.slug}"
            folder = self.reference / "cells" / cell
            rich = scratch / f"{agent}-{condition.slug}.parquet"
            shutil.copyfile(folder / "rich.parquet", rich)
            files = {stem: (folder / f"{stem}.parquet").read_bytes() for stem in ("vehicles", "worlds")}
            record = json.loads((folder / "manifest.json").read_text())["record"]
            yield FinishedCell(name=cell, files={**files, "rich": rich}, record=record, seconds=0.0)


def write(reference: Path, out: Path) -> int:
    """Write the folder; returns the number of cells computed."""
    figures.matched_picture = lambda *_, **__: np.zeros((4, 6, 3), dtype=np.uint8)
    runner.agent_is_row_invariant = lambda *_: True
    config = EvaluationConfig(executor=Canned(reference), **SETTINGS)
    return len(Evaluation(config, out).run().computed)


def kill_before(operation: int, out: Path) -> None:
    """Kill this process before its nth operation on a file below `out`, counted from 0."""
    seen, inside = 0, str(out)

    def hook(event: str, arguments: tuple) -> None:
        nonlocal seen
        if (
            event in OPERATIONS
            and inside in str(arguments[0])
            and not (event == "open" and arguments[1] in ("r", "rb"))
        ):
            if seen == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(hook)


def child(work) -> tuple[int, str]:
    """Run in a forked child; returns its signal (0 if it ended by itself) and what it returned."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(sender, str(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(sender)
    with os.fdopen(receiver) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status > 0:
        raise SystemExit("a child failed")
    return -status, text


def different(one: Path, other: Path) -> list[str]:
    """Files of either folder that the other lacks or holds with other bytes, `run.json` apart."""
    names = {p.relative_to(root).as_posix() for root in (one, other) for p in root.rglob("*") if p.is_file()}
    names.discard("run.json")
    same = [
        n
        for n in names
        if (one / n).is_file() and (other / n).is_file() and (one / n).read_bytes() == (other / n).read_bytes()
    ]
    return sorted(names - set(same))


def main(reference: Path, root: Path, first: int, stride: int) -> None:
    """Kill and go on at every chosen operation."""
    clean = root / "clean"
    child(lambda: write(reference, clean))
    found = []
    for operation in range(first, ENOUGH, stride):
        out = root / "out"
        killed, _ = child(lambda n=operation, o=out: (kill_before(n, o), write(reference, o))[1])
        if not killed:
            break
        _, computed = child(lambda o=out: write(reference, o))
        _, again = child(lambda o=out: write(reference, o))
        found.append([operation, int(computed), int(again), different(clean, out)])
        shutil.rmtree(out)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
