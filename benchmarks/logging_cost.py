"""What recording costs: safety measures, and trajectories written to Parquet, against the bare environment step.

Every kind of run drives the same worlds with IDM-17 from the same start; the kinds take turns, round after round, and
the figure is the median over rounds of the ratio within a round, in processor time, so that other load on the machine
matters little. `rich` includes compressing and writing the file.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import SafetyProbe, TrajectoryProbe, logging_probes
from sf3d_envs.evaluation.batch import drive, make_scoring_env
from sf3d_envs.evaluation.rich import RichWriter
from sf3d_envs.registry import load_condition

KINDS = ("plain", "outcomes and safety", "with rich")


def run(kind: str, worlds: int, rich: int, seconds: float, decision_hz: int, threads: int) -> tuple[float, float]:
    """Processor time [s] of driving, and the size of the trajectory file [MB]."""
    agent = make_agent("idm17" if decision_hz == 60 else "constant")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rich.parquet"
        writer = RichWriter(file) if kind == "with rich" else None
        probes: list[SafetyProbe | TrajectoryProbe] = []
        if writer is not None:
            probes += logging_probes(rich, lambda chunk: writer.write(chunk.step, chunk.seed, chunk.data))
        elif kind != "plain":
            probes += logging_probes()
        env = make_scoring_env(
            [load_condition("mu018")] * worlds,
            [100_000 + i for i in range(worlds)],
            agent.decision_hz,
            threads=threads,
            probes=probes,
        )
        try:
            started = time.process_time()
            for _ in drive(env, agent, seconds):
                pass
            env.task_numpy()
            for probe in probes:
                if isinstance(probe, TrajectoryProbe):
                    probe.flush()
            if writer is not None:
                writer.close()
            spent = time.process_time() - started
        finally:
            env.close()
        return spent, file.stat().st_size / 1e6 if file.exists() else 0.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="64,128,512", help="worlds of a batch, separated by commas")
    parser.add_argument("--rich", type=int, default=64, help="worlds whose trajectories are written")
    parser.add_argument("--seconds", type=float, default=8.0, help="simulated time [s]")
    parser.add_argument("--rounds", type=int, default=7, help="rounds over all kinds")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--decision-hz", type=int, choices=(10, 60), default=60, help="60: IDM-17; 10: constant agent")
    arguments = parser.parse_args()
    common = (arguments.seconds, arguments.decision_hz, arguments.threads)
    for worlds in map(int, arguments.worlds.split(",")):
        rich = min(arguments.rich, worlds)
        for kind in KINDS:
            run(kind, worlds, rich, 1.0, *common[1:])
        rounds = [{kind: run(kind, worlds, rich, *common) for kind in KINDS} for _ in range(arguments.rounds)]
        steps = worlds * 12 * 60 * arguments.seconds
        for kind in KINDS:
            rate = steps / statistics.median(times[kind][0] for times in rounds)
            extra = statistics.median(times[kind][0] / times["plain"][0] - 1.0 for times in rounds)
            size = f", {rounds[0][kind][1]:.1f} MB for {rich} worlds" if kind == KINDS[2] else ""
            print(f"{worlds} worlds, {kind}: {rate / 1e3:,.0f}k vehicle-steps per processor second, {extra:+.1%}{size}")


if __name__ == "__main__":
    main()
