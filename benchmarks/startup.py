"""First-use times, each in a fresh process: ``import sf3d_envs``, ``gymnasium.make`` with and without compiled kernels.

The processes that measure ``make`` have imported torch and gymnasium before. "cold" has an empty kernel cache and
counts ``make``, ``reset`` and a step. Figures are medians; run it with ``python benchmarks/startup.py``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = "import time; start = time.perf_counter(); import sf3d_envs; print(time.perf_counter() - start)"
MAKE = (
    "import time, torch, gymnasium, sf3d_envs; start = time.perf_counter();"
    "env = gymnasium.make({env_id!r}); made = time.perf_counter() - start;"
    "env.reset(seed=0); env.step(env.action_space.sample());"
    "print(made, time.perf_counter() - start)"
)


def seconds(code: str, **environment: str) -> list[float]:
    """The numbers that a new interpreter prints."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(word) for word in result.stdout.split()]


def main() -> None:
    """Measure and print a line per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes per warm figure")
    parser.add_argument("--cold-rounds", type=int, default=1, help="processes with an empty kernel cache; 0 = none")
    parser.add_argument("--id", default="SF3D/LaneClosure-v0", help="environment to make")
    arguments = parser.parse_args()

    make = MAKE.format(env_id=arguments.id)
    seconds(make)  # fills the kernel cache
    imports, makes = [], []
    for _ in range(arguments.rounds):
        imports.append(seconds(IMPORT)[0])
        makes.append(seconds(make)[0])
    _line("import sf3d_envs", imports)
    _line("make, warm kernel cache", makes)
    cold = []
    for _ in range(arguments.cold_rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(seconds(make, WARP_CACHE_PATH=cache)[1])
    if cold:
        _line("make + reset + step, cold", cold)


def _line(name: str, values: list[float]) -> None:
    print(f"{name:28} {statistics.median(values):6.2f} s  ({min(values):.2f} to {max(values):.2f}, n={len(values)})")


if __name__ == "__main__":
    main()
