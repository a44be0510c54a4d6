"""Simulated worlds whose truth is known, many repeats at a time, shapes [repeats, ..., worlds].

Vehicles of a world share its luck, so they are correlated; bounds keep every probability inside (0, 1), so that means
are exact.
"""

from __future__ import annotations

import numpy as np

from sf3d_envs.evaluation.stats import nested_rate

VEHICLES = 12


def covered(interval, truth):
    """Share of intervals that hold the truth."""
    return float(np.mean((interval.low <= truth) & (truth <= interval.high)))


def paired_counts(rng, repeats, worlds, base, change, spread=0.12):
    """Passes on the reference and in a changed condition; both sides share the world, and the change varies too."""
    luck = rng.uniform(-spread, spread, (repeats, worlds))
    own = rng.uniform(-0.08, 0.08, (repeats, worlds))
    reference = rng.binomial(VEHICLES, base + luck)
    return reference, rng.binomial(VEHICLES, base + change + luck + own)


def exposures(rng, repeats, worlds):
    """Counts and exposures of worlds where long exposure goes with a high rate; returns the true ratio of means."""
    low, high = 500, 3000
    exposure = rng.integers(low, high + 1, (repeats, worlds))
    middle, size = (low + high) / 2, high - low + 1
    rate = 0.06 + 0.04 * (exposure - middle) / size + rng.uniform(-0.03, 0.03, (repeats, worlds))
    truth = 0.06 + 0.04 * (size**2 - 1) / 12 / size / middle
    return rng.binomial(exposure, rate), exposure, truth


def family_counts(rng, repeats, seeds, worlds, seed_sd=0.13, world_sd=0.10, mean=0.5):
    """Passes [repeats, seeds, worlds] of families whose training seeds vary and share their worlds."""
    seed = np.clip(rng.normal(size=(repeats, seeds, 1)), -2.4, 2.4) * seed_sd
    world = rng.uniform(-1.0, 1.0, (repeats, 1, worlds)) * np.sqrt(3.0) * world_sd
    return rng.binomial(VEHICLES, mean + seed + world)


def nested_coverage(seeds, worlds=64, repeats=1000, seed=1000, **spread):
    """Share of nested 95 % intervals that hold the true mean."""
    counts = family_counts(np.random.default_rng(seed), repeats, seeds, worlds, **spread)
    return covered(nested_rate(counts, VEHICLES), 0.5)


def main():
    """Print the figures that nested.py documents; takes minutes."""
    cases = [(n, 64, {}) for n in (2, 3, 4, 5, 6, 8, 10)]
    cases += [(4, 64, {"seed_sd": sd}) for sd in (0.02, 0.05, 0.10)] + [(4, 64, {"seed_sd": 0.18, "world_sd": 0.02})]
    for seeds, worlds, spread in [*cases, (4, 1024, {})]:
        chunks = 20 if worlds == 64 else 4
        shares = [nested_coverage(seeds, worlds, seed=1000 + k, **spread) for k in range(chunks)]
        print(seeds, worlds, spread, round(float(np.mean(shares)), 4), flush=True)


if __name__ == "__main__":
    main()
