"""Vehicle tables made up for tests, and plain-Python versions of what the package computes."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from sf3d_envs.evaluation.outcomes import VEHICLE_SCHEMA

CLOSING = 5
VEHICLES = 12
SEED0 = 100_000
FAILURES = ("collision", "off_road", "incursion", "fault")


def vehicle_table(outcome, agent="a", condition="reference", end_step=None, seed0=SEED0, closing=CLOSING):
    """Rows of one cell; `outcome` [S, V] of names, `end_step` [S, V] (crossing of a pass, event of the others)."""
    outcome = np.asarray(outcome, dtype=object)
    worlds, vehicles = outcome.shape
    end = np.full(outcome.shape, 600) if end_step is None else np.asarray(end_step)
    lane = np.where(np.arange(vehicles) < closing, "closing", "open")
    names = pl.Series(outcome.ravel().tolist(), dtype=pl.String)
    passed, ends = names == "pass", pl.Series(end.ravel(), dtype=pl.Int32)
    frame = pl.DataFrame(
        {
            "scenario_seed": np.repeat(np.arange(seed0, seed0 + worlds, dtype=np.uint64), vehicles),
            "vehicle": np.tile(np.arange(vehicles, dtype=np.uint8), worlds),
            "lane": np.tile(lane, worlds),
            "valid_passage": passed,
            "strict_success": passed,
            "outcome": names,
            "first_event_step": ends.zip_with(~passed & (names != "not_crossed"), pl.Series([None], dtype=pl.Int32)),
            "passage_step": ends.zip_with(passed, pl.Series([None], dtype=pl.Int32)),
        }
    ).with_columns(agent=pl.lit(agent), condition=pl.lit(condition), merge_completed=pl.lit(None, dtype=pl.Boolean))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in VEHICLE_SCHEMA.items())


def pass_table(passed, **labels):
    """Rows of one cell where a vehicle passes or is in a collision, `passed` bool [S, V]."""
    return vehicle_table(np.where(np.asarray(passed, dtype=bool), "pass", "collision"), **labels)


def random_table(seed=0, agents=("a",), conditions=("reference", "mu018", "mu008"), worlds=6, vehicles=VEHICLES):
    """Random outcomes and steps, shuffled rows."""
    rng = np.random.default_rng(seed)
    parts = []
    for agent, condition in itertools.product(agents, conditions):
        names = ("pass", *FAILURES, "censored", "not_crossed")
        outcome = rng.choice(names, size=(worlds, vehicles), p=(0.5, 0.15, 0.1, 0.05, 0.05, 0.1, 0.05))
        steps = rng.integers(1, 3961, size=(worlds, vehicles))
        parts.append(vehicle_table(outcome, agent, condition, steps))
    table = pl.concat(parts)
    return table.sample(fraction=1.0, shuffle=True, seed=seed)


def drawn_worlds(worlds, config):
    """World numbers of each replicate, from the documented generator."""
    return np.random.Generator(np.random.Philox(key=config.seed)).integers(0, worlds, (config.replicates, worlds))


def percentile(values, percent):
    """Linear interpolation between order statistics, in plain Python."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100.0
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def plain_interval(statistic, worlds, config):
    """Estimate and limits of `statistic(list of world numbers)`; None counts as no value."""
    values = [statistic(list(draw)) for draw in drawn_worlds(worlds, config)]
    values = [v for v in values if v is not None]
    tail = 50.0 * (1.0 - config.level)
    return statistic(list(range(worlds))), percentile(values, tail), percentile(values, 100.0 - tail)


def rows_of(table, **keys):
    """Dictionaries of matching rows by (scenario_seed, vehicle)."""
    rows = table.filter(*(pl.col(name) == value for name, value in keys.items())).to_dicts()
    return {(row["scenario_seed"], row["vehicle"]): row for row in rows}
