"""Every clause of the matched pair's rule, one at a time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, vehicle_table

from sf3d_envs.evaluation.outcomes import WORLD_SCHEMA
from sf3d_envs.evaluation.report import choose_pair
from sf3d_envs.evaluation.report.pair import PairChoice, preferred_conditions
from sf3d_envs.evaluation.table import ConditionFacts

PASS, HIT, GONE = "pass", "collision", "not_crossed"


def world_rows(seeds, resets=None, condition="reference"):
    resets = resets or {}
    frame = pl.DataFrame(
        {
            "scenario_seed": pl.Series(seeds, dtype=pl.UInt64),
            "first_reset_step": pl.Series([resets.get(seed) for seed in seeds], dtype=pl.Int32),
        }
    ).with_columns(agent=pl.lit("a"), condition=pl.lit(condition))
    return frame.select(
        pl.col(c) if c in frame.columns else pl.lit(0).cast(t).alias(c) for c, t in WORLD_SCHEMA.items()
    )


def tables(base, then, resets=({}, {})):
    """Two conditions; `base`, `then` map (world, vehicle) to an outcome that is not the usual one."""
    usual = np.full((4, 12), GONE, dtype=object)
    sides = []
    for slug, changes in (("reference", base), ("mu018", then)):
        outcome = usual.copy()
        for (world, vehicle), end in changes.items():
            outcome[world, vehicle] = end
        steps = 100 + np.arange(48).reshape(4, 12)
        sides.append(vehicle_table(outcome, condition=slug, end_step=steps))
    seeds = list(range(SEED0, SEED0 + 4))
    worlds = [world_rows(seeds, r, c) for r, c in zip(resets, ("reference", "mu018"), strict=True)]
    return pl.concat(sides).sample(fraction=1.0, shuffle=True, seed=1), pl.concat(worlds)


def test_it_is_the_first_world_by_seed_and_its_lowest_vehicle():
    vehicles, worlds = tables(
        {(2, 4): PASS, (2, 1): PASS, (3, 0): PASS}, {(2, 4): HIT, (2, 1): "off_road", (3, 0): HIT}
    )
    found = choose_pair(vehicles, worlds, "mu018")
    assert found == PairChoice(
        agent="a",
        reference="reference",
        condition="mu018",
        seed=SEED0 + 2,
        vehicle=1,
        outcome="off_road",
        passage_step=125,
        event_step=125,
        candidates=2,
        worlds=4,
    )


@pytest.mark.parametrize("outcome", ["collision", "off_road", "incursion"])
def test_these_failures_make_a_pair(outcome):
    assert choose_pair(*tables({(0, 0): PASS}, {(0, 0): outcome}), "mu018").outcome == outcome


@pytest.mark.parametrize(
    ("base", "then", "resets"),
    [
        ({(0, 0): PASS}, {(0, 0): "fault"}, ({}, {})),
        ({(0, 0): PASS}, {(0, 0): "censored"}, ({}, {})),
        ({(0, 0): PASS}, {(0, 0): GONE}, ({}, {})),
        ({(0, 0): PASS}, {(0, 0): PASS}, ({}, {})),
        ({(0, 0): HIT}, {(0, 0): HIT}, ({}, {})),
        ({(0, 5): PASS}, {(0, 5): HIT}, ({}, {})),  # open lane
        ({(0, 1): PASS}, {(0, 2): HIT}, ({}, {})),  # not the same vehicle
        ({(0, 0): PASS}, {(1, 0): HIT}, ({}, {})),  # not the same world
        ({(0, 0): PASS}, {(0, 0): HIT}, ({SEED0: 300}, {})),
        ({(0, 0): PASS}, {(0, 0): HIT}, ({}, {SEED0: 300})),
    ],
)
def test_every_clause_is_needed(base, then, resets):
    assert choose_pair(*tables(base, then, resets), "mu018") is None


def test_only_the_recorded_worlds_are_looked_at():
    vehicles, worlds = tables({(2, 0): PASS}, {(2, 0): HIT})
    assert choose_pair(vehicles, worlds, "mu018", first_worlds=2) is None
    assert choose_pair(vehicles, worlds, "mu018", first_worlds=3).worlds == 3


def test_what_is_no_table_of_one_agent_is_refused():
    vehicles, worlds = tables({}, {})
    with pytest.raises(ValueError, match=r"vehicles lacks the columns \['outcome'\]"):
        choose_pair(vehicles.drop("outcome"), worlds, "mu018")
    with pytest.raises(ValueError, match=r"worlds lacks the columns \['first_reset_step'\]"):
        choose_pair(vehicles, worlds.drop("first_reset_step"), "mu018")
    with pytest.raises(ValueError, match=r"no rows of the conditions \['mu005'\]; it holds"):
        choose_pair(vehicles, worlds, "mu005")
    two = pl.concat([vehicles, vehicles.with_columns(agent=pl.lit("b"))])
    with pytest.raises(ValueError, match=r"holds the agents \['a', 'b'\]; give those of one"):
        choose_pair(two, worlds, "mu018")
    with pytest.raises(ValueError, match="vehicles holds the agents"):
        choose_pair(vehicles.clear(), worlds, "mu018")


def test_the_papers_friction_comes_first():
    facts = [
        ConditionFacts(slug=slug, friction=mu, grade=grade)
        for slug, mu, grade in (
            ("reference", 1.0, 0.0),
            ("g", 1.0, 0.02),
            ("a", 0.18, 0.0),
            ("b", 0.25, 0.0),
            ("c", 0.3, 0.1),
        )
    ]
    assert preferred_conditions(facts) == ["b", "a", "g", "c"]
