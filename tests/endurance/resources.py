"""What a process holds, read from the kernel (Linux): memory, threads, open files."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holdings:
    """Resident memory [MB], threads of the process, Python threads and open file descriptors."""

    memory: float
    threads: int
    python_threads: int
    files: int


def holdings() -> Holdings:
    """What this process holds now, garbage collected first."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Holdings(
        memory=pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        threads=len(os.listdir("/proc/self/task")),
        python_threads=threading.active_count(),
        files=len(os.listdir("/proc/self/fd")),
    )
