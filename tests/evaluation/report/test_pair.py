"""The matched pair against the rule in plain Python, both of its sources, the simulator's poses, and the pictures."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import SEED0, random_table
from scipy.spatial.transform import Rotation

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import evaluate
from sf3d_envs.evaluation.batch import drive, make_scoring_env
from sf3d_envs.evaluation.measures import TRAJECTORY, index_of
from sf3d_envs.evaluation.outcomes import WORLD_SCHEMA
from sf3d_envs.evaluation.report import PairChoice, PairRun, choose_pair, load_pair, rerun_pair
from sf3d_envs.evaluation.report.pair_pictures import LONGEST_S, plot_pair, poses, shown_steps, write_pair_video
from sf3d_envs.registry import load_condition

SIDES = ("reference", "mu018")
WORLDS = 6
CLAUSES = ("no reset on the reference", "no reset on the changed road", "closing lane", "passes", "fails")


def random_tables(seed):
    """Vehicles and worlds of one agent on two roads: random outcomes and resets, rows in random order."""
    rng = np.random.default_rng(seed)
    reset = rng.random((2, WORLDS)) < 0.35
    rows = [
        {"agent": "a", "condition": side, "scenario_seed": SEED0 + w, "first_reset_step": 300 if reset[s, w] else None}
        for s, side in enumerate(SIDES)
        for w in range(WORLDS)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"scenario_seed": pl.UInt64, "first_reset_step": pl.Int32})
    worlds = frame.select(
        pl.col(name) if name in frame.columns else pl.lit(0).cast(dtype).alias(name)
        for name, dtype in WORLD_SCHEMA.items()
    )
    vehicles = random_table(seed, conditions=SIDES, worlds=WORLDS)
    return vehicles, worlds.sample(fraction=1.0, shuffle=True, seed=seed)


def holds(vehicles, worlds, without=None):
    """(seed, vehicle) of all pairs in order, from the words of the rule; `without` leaves one clause out."""
    was_reset = {
        (row["condition"], row["scenario_seed"]): row["first_reset_step"] is not None for row in worlds.rows(named=True)
    }
    cars = {(row["condition"], row["scenario_seed"], row["vehicle"]): row for row in vehicles.rows(named=True)}
    found = []
    for side, seed, vehicle in sorted(cars):
        if side != "reference":
            continue
        base, then = cars["reference", seed, vehicle], cars["mu018", seed, vehicle]
        clauses = (
            not was_reset["reference", seed],
            not was_reset["mu018", seed],
            base["lane"] == "closing",
            base["outcome"] == "pass",
            then["outcome"] in ("collision", "off_road", "incursion"),
        )
        if all(true for name, true in zip(CLAUSES, clauses, strict=True) if name != without):
            found.append((seed, vehicle))
    return found


def test_the_choice_is_that_of_the_rule_in_plain_python():
    decided = dict.fromkeys(CLAUSES, 0)
    none = 0
    for seed in range(40):
        vehicles, worlds = random_tables(seed)
        wanted = holds(vehicles, worlds)
        for clause in CLAUSES:
            decided[clause] += holds(vehicles, worlds, without=clause)[:1] != wanted[:1]
        found = choose_pair(vehicles, worlds, "mu018")
        if not wanted:
            none += 1
            assert found is None
            continue
        cars = vehicles.filter(pl.col("scenario_seed") == wanted[0][0], pl.col("vehicle") == wanted[0][1])
        base, then = (cars.filter(pl.col("condition") == side).row(0, named=True) for side in SIDES)
        assert found == PairChoice(
            agent="a",
            reference="reference",
            condition="mu018",
            seed=wanted[0][0],
            vehicle=wanted[0][1],
            outcome=then["outcome"],
            passage_step=base["passage_step"],
            event_step=then["first_event_step"],
            candidates=len({world for world, _ in wanted}),
            worlds=WORLDS,
        )
    assert none > 0
    assert min(decided.values()) > 3, f"some clause hardly decides: {decided}"


def test_the_order_of_the_rows_does_not_matter():
    vehicles, worlds = random_tables(0)
    found = choose_pair(vehicles, worlds, "mu018")
    assert found is not None
    for descending in (False, True):
        keys = ["scenario_seed", "vehicle", "condition"]
        ordered = vehicles.sort(keys, descending=descending), worlds.sort(keys[0], descending=descending)
        assert choose_pair(*ordered, "mu018") == found


def test_the_first_worlds_are_those_of_the_reference_by_seed():
    vehicles, worlds = random_tables(1)
    pairs = holds(vehicles, worlds)
    for first in range(1, WORLDS + 3):
        inside = [(seed, vehicle) for seed, vehicle in pairs if seed < SEED0 + first]
        found = choose_pair(vehicles, worlds, "mu018", first_worlds=first)
        if not inside:
            assert found is None
            continue
        assert (found.seed, found.vehicle) == inside[0]
        assert (found.candidates, found.worlds) == (len({seed for seed, _ in inside}), min(first, WORLDS))


def _two_agents(frame):
    return pl.concat([frame, frame.with_columns(agent=pl.lit("b"))])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vehicles": lambda v: v.to_dict()}, "vehicles is a dict; it must be a polars.DataFrame"),
        ({"worlds": lambda w: w.to_dict()}, "worlds is a dict; it must be a polars.DataFrame"),
        (
            {"vehicles": lambda v: v.drop("lane", "passage_step")},
            "vehicles lacks the columns ['lane', 'passage_step']; it has ['agent', ",
        ),
        (
            {"worlds": lambda w: w.drop("scenario_seed")},
            "worlds lacks the columns ['scenario_seed']; it has ['agent', ",
        ),
        ({"vehicles": _two_agents}, "vehicles holds the agents ['a', 'b']; give those of one"),
        ({"worlds": _two_agents}, "worlds holds the agents ['a', 'b']; give those of one"),
        (
            {"worlds": lambda w: w.with_columns(agent=pl.lit("b"))},
            "worlds is of agent 'b' and vehicles of 'a'; give tables of one agent",
        ),
        ({"condition": lambda _: "mu0.18"}, "vehicles has no rows of the conditions ['mu0.18']; it holds ["),
        (
            {"condition": lambda _: "reference"},
            "condition is 'reference', the reference itself; it must be another road",
        ),
        ({"reference": lambda _: "dry"}, "vehicles has no rows of the conditions ['dry']; it holds ["),
        (
            {"worlds": lambda w: w.filter(pl.col("condition") == "reference")},
            "worlds has no rows of the conditions ['mu018']; it holds ['reference']",
        ),
        (
            {"worlds": lambda w: w.filter((pl.col("scenario_seed") != SEED0 + 1) | (pl.col("condition") != "mu018"))},
            f"worlds has no row of condition 'mu018' and scenario seed {SEED0 + 1} (1 lacking); it must hold "
            "each of the 6 worlds of vehicles",
        ),
        (
            {"vehicles": lambda v: v.filter((pl.col("scenario_seed") != SEED0 + 5) | (pl.col("condition") != "mu018"))},
            f"the first missing seed is {SEED0 + 5}, in 'mu018'",
        ),
        ({"vehicles": lambda v: pl.concat([v, v])}, "vehicles holds 288 duplicate rows"),
        *(
            ({"first_worlds": lambda _, n=n: n}, f"first_worlds is {n!r}; it must be an int >= 1, or None for all")
            for n in (0, -1, True, 2.0)
        ),
    ],
)
def test_bad_input_is_named(change, said):
    vehicles, worlds = random_tables(0)
    given = {
        "vehicles": vehicles,
        "worlds": worlds,
        "condition": "mu018",
        "reference": "reference",
        "first_worlds": None,
    }
    for name, make in change.items():
        given[name] = make(given[name])
    with pytest.raises(ValueError) as caught:
        choose_pair(**given)
    assert said in str(caught.value)


HORIZON_S = 66.0
ROADS = ("reference", "mu005", "mu018")
CONDITIONS = {slug: load_condition(slug) for slug in ROADS}
ROLLING = 100_002
"""World of mu005 in which vehicle 0 rolls until the simulator calls it a fault."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """idm17 on three roads in three worlds to the horizon of the paper, all recorded."""
    out = tmp_path_factory.mktemp("pair") / "out"
    return evaluate("idm17", out=out, conditions=ROADS, worlds=3, rich=3, horizon_s=HORIZON_S, threads=1)


def files(results):
    return {slug: results.out / f"cells/idm17/{slug}/rich.parquet" for slug in ROADS}


def chosen(results, condition):
    found = choose_pair(results.vehicles, results.worlds, condition)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def run(results):
    return load_pair(chosen(results, "mu005"), files(results))


@pytest.mark.parametrize("condition", ["mu005", "mu018"])
def test_recorded_and_simulated_again_are_one(results, condition):
    choice = chosen(results, condition)
    loaded = load_pair(choice, files(results))
    again = rerun_pair(choice, make_agent("idm17"), CONDITIONS, horizon_s=HORIZON_S)
    assert loaded.choice == again.choice == choice
    assert [*loaded.sides] == [*again.sides] == ["reference", condition]
    assert loaded.step.tobytes() == again.step.tobytes()
    assert loaded.step.tolist() == list(range(1, round(60 * HORIZON_S) + 1))
    for slug, rows in loaded.sides.items():
        assert rows.shape == (3960, 12, len(TRAJECTORY))
        assert rows.dtype == np.float32
        assert rows.tobytes() == again.sides[slug].tobytes()
    # The recorded events are those of the table.
    valid = loaded.column(condition, "valid")[:, choice.vehicle]
    assert int(loaded.step[np.flatnonzero(valid == 0)[0]]) == choice.event_step


@pytest.mark.parametrize("name", ["passage_step", "event_step"])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_rerun_refuses_other_recorded_steps(results, name, by):
    choice = chosen(results, "mu018")
    other = dataclasses.replace(choice, **{name: getattr(choice, name) + by})
    wanted = rf"\({choice.passage_step}, {choice.event_step}\), not at the recorded "
    wanted += rf"\({other.passage_step}, {other.event_step}\): this machine does not reproduce the results"
    with pytest.raises(ValueError, match=f"agent 'idm17' on scenario seed {choice.seed} .*{wanted}"):
        rerun_pair(other, make_agent("idm17"), CONDITIONS, horizon_s=20.0)


def test_roads_that_are_not_given_are_named(results):
    choice = chosen(results, "mu018")
    with pytest.raises(ValueError, match=r"files lacks \['mu018'\]; it has \['reference'\]"):
        load_pair(choice, {"reference": files(results)["reference"]})
    with pytest.raises(ValueError, match=r"conditions lacks \['reference', 'mu018'\]; it has \['mu005'\]"):
        rerun_pair(choice, make_agent("idm17"), {"mu005": CONDITIONS["mu005"]}, horizon_s=HORIZON_S)


@pytest.mark.parametrize(
    "lost",
    [
        pl.col("step") == 1,
        pl.col("step") == 700,
        (pl.col("step") == 700) & (pl.col("vehicle") == 3),
        (pl.col("step") == 3960) & (pl.col("vehicle") == 11),
    ],
)
def test_a_file_that_lacks_rows_is_refused(results, tmp_path, lost):
    given = files(results)
    part = tmp_path / "rich.parquet"
    pl.scan_parquet(given["mu018"]).filter(~lost).collect().write_parquet(part)
    with pytest.raises(ValueError, match=r"rich.parquet' lacks rows of scenario seed .* every step from 1 on"):
        load_pair(chosen(results, "mu018"), {**given, "mu018": part})


def test_poses_are_those_of_the_simulator_for_cars_that_spin_and_roll(results):
    seeds = (chosen(results, "mu005").seed, ROLLING)
    found = [
        poses(load_pair(dataclasses.replace(chosen(results, "mu005"), seed=seed), files(results)), "mu005")
        for seed in seeds
    ]
    agent = make_agent("idm17")
    env = make_scoring_env([CONDITIONS["mu005"]] * 2, seeds, agent.decision_hz, horizon_s=HORIZON_S)
    worst, least_up, turned = 0.0, 1.0, 0.0
    try:
        for steps in drive(env, agent, HORIZON_S):
            pose = env.view.body_q.numpy().reshape(2, 12, 7).astype(np.float64)
            ours = np.stack([rows[min(steps, len(rows)) - 1] for rows in found])  # after a fault the world stands still
            same = np.sign((ours[..., 3:] * pose[..., 3:]).sum(axis=-1, keepdims=True))  # q and -q are one rotation
            worst = max(
                worst,
                float(np.abs(ours[..., :3] - pose[..., :3]).max()),
                float(np.abs(same * ours[..., 3:] - pose[..., 3:]).max()),
            )
            axes = Rotation.from_quat(pose[..., 3:].reshape(-1, 4)).as_matrix()
            least_up, turned = min(least_up, float(axes[:, 2, 2].min())), max(turned, float(-axes[:, 0, 0].min()))
            if steps >= 900:
                break
    finally:
        env.close()
    assert len(found[1]) < 900, "the rolling car's world was not reset: choose another"
    assert worst <= 1e-4
    assert least_up < 0.3, "no car rolls: the comparison is weak"
    assert turned > 0.9, "no car spins: the comparison is weak"


def synthetic(sides, **choice):
    """A run of made-up rows [T, V, 22]."""
    given = {"agent": "a", "seed": 1, "vehicle": 0, "outcome": "collision", "candidates": 1, "worlds": 1} | choice
    given = {"passage_step": 20, "event_step": 30, "reference": "reference", "condition": "mu018"} | given
    steps = len(next(iter(sides.values())))
    return PairRun(choice=PairChoice(**given), step=np.arange(1, steps + 1, dtype=np.int32), sides=sides)


def test_poses_hold_in_every_attitude():
    q = Rotation.from_quat(np.random.default_rng(3).normal(size=(2000, 4)))
    axes = q.as_matrix()
    keep = np.abs(axes[:, 2, 0]) < 0.996  # a car on its nose has no yaw
    quat, axes = q.as_quat()[keep], axes[keep]
    rows = np.zeros((len(quat), 1, len(TRAJECTORY)), dtype=np.float32)
    rows[:, 0, index_of("yaw", TRAJECTORY)] = np.arctan2(axes[:, 1, 0], axes[:, 0, 0])
    rows[:, 0, index_of("pitch", TRAJECTORY)] = -np.arcsin(axes[:, 2, 0])
    rows[:, 0, index_of("roll", TRAJECTORY)] = np.arctan2(axes[:, 2, 1], axes[:, 2, 2])
    found = poses(synthetic({"reference": rows, "mu018": rows}), "mu018")[:, 0, 3:]
    same = np.sign((found * quat).sum(axis=1, keepdims=True))
    assert np.abs(same * found - quat).max() < 1e-5
    assert (axes[:, 2, 2] < -0.5).sum() > 100, "hardly any car lies on its roof"


def marks(figure):
    """Label -> place of the markers in the plan view."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", "", None)]
    return {line.get_label(): tuple(float(np.asarray(line.get_data()[i])[0]) for i in (0, 1)) for line in lines}


def test_marks_stand_where_and_when_it_happens(results, run):
    choice = run.choice
    row = results.vehicles.filter(
        pl.col("condition") == "mu005", pl.col("scenario_seed") == choice.seed, pl.col("vehicle") == choice.vehicle
    ).row(0, named=True)
    wanted = {
        "passes": ("reference", choice.passage_step),
        choice.outcome.replace("_", " "): ("mu005", choice.event_step),
        "first wheel on the patch": ("mu005", row["patch_first_step"]),
        "the worlds differ from here on": ("mu005", run.first_difference()),
    }
    figure = plot_pair(run, CONDITIONS)
    place = {
        label: tuple(float(run.column(side, name)[step - 1, choice.vehicle]) for name in ("x", "y"))
        for label, (side, step) in wanted.items()
    }
    assert marks(figure) == place
    for axes in figure.axes[1:]:
        upright = sorted(float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_linestyle() == ":")
        assert upright == sorted(step / 60 for _, step in wanted.values())


def test_what_does_not_happen_is_not_marked():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2, len(TRAJECTORY))).astype(np.float32)
    load, friction = index_of("load_fl", TRAJECTORY), index_of("friction", TRAJECTORY)
    rows[..., load : load + 4], rows[..., friction] = 4000.0, 1.0
    common = {"passes", "collision"}
    equal = synthetic({"reference": rows, "mu018": rows.copy()})
    assert equal.first_difference() is None
    assert {*marks(plot_pair(equal, CONDITIONS))} == common
    flying = rows.copy()
    flying[40:45, 0, load : load + 4] = flying[40:45, 0, friction] = 0.0
    apart = synthetic({"reference": rows, "mu018": flying})
    assert apart.first_difference() == 41  # rows 0 ... 39 are steps 1 ... 40
    assert {*marks(plot_pair(apart, CONDITIONS))} == {*common, "the worlds differ from here on"}
    rough = rows.copy()
    rough[50:, 0, friction] = 1.25
    found = marks(plot_pair(synthetic({"reference": rows, "mu018": rough}), CONDITIONS))
    assert {*found} == {*common, "the worlds differ from here on", "first wheel on the patch"}


def test_the_pictures_end_two_seconds_after_the_last_event():
    rows = {slug: np.zeros((3960, 1, len(TRAJECTORY)), dtype=np.float32) for slug in ("reference", "mu018")}
    for passage, event, last in ((300, 500, 620), (700, 500, 820), (2500, 90, round(60 * LONGEST_S))):
        assert shown_steps(synthetic(rows, passage_step=passage, event_step=event)) == last
    short = {slug: side[:400] for slug, side in rows.items()}
    assert shown_steps(synthetic(short, passage_step=300, event_step=350)) == 400


def test_the_video_shows_both_worlds(run, tmp_path):
    imageio = pytest.importorskip("imageio", reason="needs the video extra")
    event = run.choice.event_step
    cut = np.r_[0:31, event : event + 30]  # equal at the start, then as they are after the event
    sides = {slug: rows[cut] for slug, rows in run.sides.items()}
    short = PairRun(choice=run.choice, step=run.step[: len(cut)], sides=sides)
    path = tmp_path / "pair.mp4"
    # Without the patch in one of them, pictures of equal poses are equal.
    dry = dict.fromkeys(sides, CONDITIONS["reference"])
    assert write_pair_video(short, dry, path) == 11
    assert [item.name for item in tmp_path.iterdir()] == ["pair.mp4"]
    with imageio.get_reader(path) as reader:
        assert reader.get_meta_data()["fps"] == pytest.approx(10.0)
        frames = np.stack([*reader.iter_data()]).astype(int)
    assert frames.shape == (11, 360, 960, 3)
    apart = np.abs(frames[:, 28:180] - frames[:, 208:360]).mean(axis=(1, 2, 3))
    assert apart[:6].max() < 1.0
    assert apart[6:].min() > 3.0
