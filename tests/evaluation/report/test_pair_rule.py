"""The rule of the matched pair, and where both runs come from."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, vehicle_table
from scipy.spatial.transform import Rotation

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import evaluate
from sf3d_envs.evaluation.batch import drive, make_scoring_env
from sf3d_envs.evaluation.outcomes import WORLD_SCHEMA
from sf3d_envs.evaluation.report import choose_pair, load_pair, rerun_pair
from sf3d_envs.evaluation.report.pair import PairChoice, PairRun, preferred_conditions
from sf3d_envs.evaluation.report.pair_pictures import plot_pair, poses, shown_steps, write_pair_video
from sf3d_envs.evaluation.table import ConditionFacts
from sf3d_envs.registry import load_condition

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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A pair on mu005 from recorded trajectories."""
    out = tmp_path_factory.mktemp("pair") / "out"
    result = evaluate("idm17", out=out, conditions=["reference", "mu005"], worlds=3, rich=3, horizon_s=20.0, threads=1)
    choice = choose_pair(result.vehicles, result.worlds, "mu005")
    assert choice is not None
    return load_pair(choice, {slug: out / f"cells/idm17/{slug}/rich.parquet" for slug in ("reference", "mu005")})


CONDITIONS = {slug: load_condition(slug) for slug in ("reference", "mu005")}


def test_a_rerun_gives_the_recorded_bits(run):
    again = rerun_pair(run.choice, make_agent("idm17"), CONDITIONS, horizon_s=20.0)
    for slug, rows in run.sides.items():
        assert again.sides[slug].tobytes() == rows.tobytes()
    other = dataclasses.replace(run.choice, event_step=run.choice.event_step + 1)
    with pytest.raises(ValueError, match="does not reproduce the results"):
        rerun_pair(other, make_agent("idm17"), CONDITIONS, horizon_s=20.0)
    with pytest.raises(ValueError, match="does not reproduce the results"):
        rerun_pair(run.choice, make_agent("constant"), CONDITIONS, horizon_s=20.0)


def test_a_world_that_was_not_recorded_is_refused(run, tmp_path):
    empty = tmp_path / "rich.parquet"
    pl.DataFrame({"scenario_seed": pl.Series([7], dtype=pl.UInt64)}).write_parquet(empty)
    with pytest.raises(ValueError, match=f"does not hold the world of scenario seed {run.choice.seed}"):
        load_pair(run.choice, {"reference": empty, "mu005": empty})


def test_the_runs_are_equal_until_the_patch(run):
    apart = run.first_difference()
    assert apart is not None
    before = apart - 2  # rows of steps 1 ... apart - 1
    assert np.array_equal(run.sides["reference"][:before], run.sides["mu005"][:before])
    x = run.column("mu005", "x")
    assert x[apart - 1].max() > 35.0, "nobody was near the patch when the runs parted"


def test_poses_are_those_of_the_simulator(run):
    env = make_scoring_env([CONDITIONS["mu005"]], [run.choice.seed], 60, horizon_s=20.0)
    found = poses(run, "mu005")
    worst = 0.0
    try:
        for steps in drive(env, make_agent("idm17"), 20.0):
            if steps % 60 == 0 and steps <= len(found):
                pose = env.view.body_q.numpy().reshape(12, 7)
                np.testing.assert_allclose(found[steps - 1, :, :3], pose[:, :3], atol=1e-4)
                turned = Rotation.from_quat(found[steps - 1, :, 3:]).inv() * Rotation.from_quat(pose[:, 3:])
                worst = max(worst, float(turned.magnitude().max()))
    finally:
        env.close()
    assert worst < 1e-3
    assert np.abs(run.column("mu005", "yaw")).max() > 0.5, "no car spins: the comparison is weak"


def test_the_plot_marks_what_happens(run):
    figure = plot_pair(run, CONDITIONS)
    names = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    outcome = run.choice.outcome.replace("_", " ")
    assert names >= {
        "reference",
        "mu005",
        "passes",
        outcome,
        "first wheel on the patch",
        "the worlds differ from here on",
    }
    speed = figure.axes[1]
    steps = shown_steps(run)
    for line, slug in zip(speed.lines, run.sides, strict=False):
        assert np.array_equal(line.get_ydata(), run.column(slug, "speed_long")[:steps, run.choice.vehicle])


def test_the_video_has_a_frame_every_tenth_of_a_second(run, tmp_path):
    imageio = pytest.importorskip("imageio", reason="needs the video extra")
    short = PairRun(choice=run.choice, step=run.step[:60], sides={slug: rows[:60] for slug, rows in run.sides.items()})
    assert write_pair_video(short, CONDITIONS, tmp_path / "pair.mp4") == 10
    frames = [*imageio.get_reader(tmp_path / "pair.mp4").iter_data()]
    assert len(frames) == 10
    assert frames[0].shape == (360, 960, 3)
    # The runs are equal in the first second, so are their pictures below the titles.
    assert np.abs(frames[5][30:178].astype(int) - frames[5][210:358].astype(int)).mean() < 12.0
