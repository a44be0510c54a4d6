"""Statistics of a matched evaluation in a notebook's terms: tables in, numbers with intervals out.

Runs the IDM agent on the reference road, on a slippery patch, on a slope, and on both together, on the same worlds, and
prints where passage is lost, and whether the losses of friction and grade add up. Intervals are 95 % over worlds.

Run: python examples/statistics.py [--worlds N | --short] [--results DIR]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import polars as pl

import sf3d_envs
from sf3d_envs.evaluation.stats import Interval, decompose, interaction_contrast, paired_difference, world_table

FRICTION, GRADE, BOTH = "mu018", "gradeN045", "gradeN045-mu018"


def text(interval: Interval) -> str:
    """Estimate and limits."""
    return f"{interval.estimate:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Evaluate, or read a result folder, and print; returns the estimates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=32)
    parser.add_argument("--short", action="store_true", help="two worlds")
    parser.add_argument("--results", help="result folder of `sf3d evaluate` to read instead of running")
    options = parser.parse_args(arguments)

    if options.results:
        vehicles = pl.read_parquet(f"{options.results}/vehicles.parquet")
    else:
        worlds = 2 if options.short else options.worlds
        names = ["reference", FRICTION, GRADE, BOTH]
        vehicles = sf3d_envs.evaluate("idm17", conditions=names, worlds=worlds).vehicles

    found = {}
    for lane in (None, "closing", "open"):
        table = world_table(vehicles, agents=["idm17"], conditions=["reference", FRICTION], lane=lane)
        base, changed = table.counts[0]
        change = paired_difference(changed, base, len(table.vehicles))
        found[f"change, {lane or 'all'}"] = float(change.estimate)
        print(f"change of valid passage on {FRICTION}, {lane or 'both'} lane{'' if lane else 's'}: {text(change)}")
        parts = decompose(vehicles, "idm17", FRICTION, lane=lane)
        shares = (f"{name} {getattr(parts, name).estimate:.3f}" for name in ("kept", "lost", "gained", "persistent"))
        print(f"    {', '.join(shares)}")
        for name, share in parts.lost_by_outcome.items():
            print(f"    lost by {name}: {text(share)}")
    contrast = interaction_contrast(vehicles, "idm17", BOTH, FRICTION, GRADE)
    found["interaction"] = float(contrast.estimate)
    print(f"interaction of friction and grade (0: losses add): {text(contrast)}")
    return found


if __name__ == "__main__":
    main()
