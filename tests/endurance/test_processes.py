"""Worker processes, forked and spawned, give the bits of an environment in this process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("vectors.py")


@pytest.mark.parametrize(
    ("scenario", "context"),
    [
        ("gymnasium_async_after_threads", "fork"),
        ("gymnasium_async_after_threads", "spawn"),
        ("gymnasium_async_batches", "fork"),
        # A fresh interpreter for each worker, or ground that the scenarios above cover: half a minute each.
        pytest.param("gymnasium_async", "fork", marks=pytest.mark.slow),
        pytest.param("gymnasium_async", "spawn", marks=pytest.mark.slow),
        pytest.param("sb3_subproc", "fork", marks=pytest.mark.slow),
        pytest.param("sb3_subproc", "spawn", marks=pytest.mark.slow),
        pytest.param("sb3_subproc", "forkserver", marks=pytest.mark.slow),
    ],
)
def test_workers_give_the_same_bits(scenario: str, context: str) -> None:
    if context not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {context} here")
    if scenario.startswith("sb3"):
        pytest.importorskip("stable_baselines3")
    result = subprocess.run(
        [sys.executable, str(SCRIPT), scenario, context],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "ok"
