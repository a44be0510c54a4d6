"""Trajectories of an evaluation: their rows, and bytes that don't depend on how the worlds were batched."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from sf3d_envs.agents import make_agent
from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation import (
    RICH_SCHEMA,
    VEHICLE_TABLE_SCHEMA,
    Evaluation,
    EvaluationConfig,
    SafetyProbe,
    TrajectoryProbe,
    evaluate,
)
from sf3d_envs.evaluation.batch import drive, make_scoring_env
from sf3d_envs.evaluation.columns import SAFETY_SCHEMA
from sf3d_envs.evaluation.logged import logging_probes
from sf3d_envs.registry import load_condition

CONDITIONS = ["reference", "mu005", "gradeN080"]
SHORT = {"conditions": CONDITIONS, "worlds": 5, "horizon_s": 12.5, "threads": 1, "rich": 3}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """idm17 on three conditions, five worlds, three of them recorded, 12.5 s."""
    return evaluate("idm17", out=tmp_path_factory.mktemp("rich") / "out", **SHORT)


def cell_bytes(root, names=("vehicles.parquet", "worlds.parquet", "rich.parquet", "manifest.json")):
    return {
        f"{slug}/{name}": (root / "cells/idm17" / slug / name).read_bytes() for slug in CONDITIONS for name in names
    }


@pytest.mark.parametrize("settings", [{"max_batch": 1}, {"max_batch": 4}, {"max_batch": 10}, {"threads": 2}])
def test_the_files_do_not_depend_on_batches_and_threads(recorded, tmp_path, settings):
    """Cells cut into slices of the worlds, with one or all conditions in a batch, give the same bytes."""
    other = evaluate("idm17", out=tmp_path, **{**SHORT, **settings})
    assert cell_bytes(other.out) == cell_bytes(recorded.out)


def test_rows_are_the_first_worlds_in_order(recorded):
    for slug in CONDITIONS:
        rich = pl.read_parquet(recorded.out / "cells/idm17" / slug / "rich.parquet")
        assert rich.schema == RICH_SCHEMA
        assert rich["scenario_seed"].unique().sort().to_list() == [100_000, 100_001, 100_002]
        ids = rich.select("step", "scenario_seed", "vehicle")
        assert ids.equals(ids.sort("step", "scenario_seed", "vehicle"))
        assert ids.is_unique().all()
        per_world = rich.group_by("scenario_seed").agg(pl.col("step").max(), pl.len())
        assert (per_world["len"] == 12 * per_world["step"]).all()
        assert not any(rich[name].is_nan().any() for name in rich.columns[3:])


def test_rows_are_those_of_a_world_driven_alone(recorded):
    safety, probe = logging_probes(1)
    env = make_scoring_env([load_condition("mu005")], [100_001], 60, horizon_s=12.5, probes=[safety, probe])
    for _ in drive(env, make_agent("idm17"), 12.5):
        pass
    alone = probe.result()
    env.close()
    rich = pl.read_parquet(recorded.out / "cells/idm17/mu005/rich.parquet").filter(pl.col("scenario_seed") == 100_001)
    stepped = alone.step[:, 0] >= 0
    ours = rich.drop("step", "scenario_seed", "vehicle").to_numpy().reshape(-1, 12, 22)
    assert ours.tobytes() == alone.data[stepped, 0].tobytes()


def test_a_row_group_is_a_second_of_steps(recorded):
    file = pq.ParquetFile(recorded.out / "cells/idm17/reference/rich.parquet")
    first = [file.read_row_group(i, columns=["step"])["step"][0].as_py() for i in range(file.num_row_groups)]
    assert first == [1 + 60 * i for i in range(13)]


def test_more_worlds_leave_the_first_ones_as_they_were(recorded, tmp_path):
    """The first worlds of a larger run are, bit for bit, those of a smaller one, trajectories included."""
    small = evaluate("idm17", out=tmp_path, **{**SHORT, "worlds": 2, "rich": 2})
    chosen = pl.col("scenario_seed") < 100_002
    for name in ("vehicles", "worlds"):
        assert getattr(recorded, name).filter(chosen).equals(getattr(small, name), null_equal=True)
    for slug in CONDITIONS:
        big, little = (pl.read_parquet(r.out / "cells/idm17" / slug / "rich.parquet") for r in (recorded, small))
        first = big.filter(chosen)
        assert first.drop(pl.col(pl.Float32)).equals(little.drop(pl.col(pl.Float32)))
        floats = [frame.select(pl.col(pl.Float32)).to_numpy().tobytes() for frame in (first, little)]
        assert floats[0] == floats[1]


def test_safety_columns_are_those_of_the_probe(recorded):
    """Missing values are null, infinite ones stay, and the numbers are those of the probe on the same worlds."""
    vehicles = recorded.vehicles
    assert vehicles.schema == VEHICLE_TABLE_SCHEMA
    safety = SafetyProbe()
    env = make_scoring_env(
        [load_condition("mu005")] * 5, list(range(100_000, 100_005)), 60, horizon_s=12.5, probes=[safety]
    )
    for _ in drive(env, make_agent("idm17"), 12.5):
        pass
    measured = safety.result()
    env.close()
    rows = vehicles.filter(pl.col("condition") == "mu005")
    for name in SAFETY_SCHEMA:
        expected = measured[name].reshape(-1)
        missing = np.isnan(expected)
        assert rows[name].is_null().to_numpy().tolist() == missing.tolist(), name
        assert np.array_equal(rows[name].drop_nulls().to_numpy(), expected[~missing]), name
    assert rows["ttc_min"].is_infinite().any()
    assert rows["speed_at_20m"].null_count() > 0


def test_the_table_counts_time_to_collision_per_valid_time(recorded):
    row = recorded.table.filter(pl.col("condition") == "mu005").row(0, named=True)
    part = recorded.vehicles.filter(pl.col("condition") == "mu005")
    assert row["ttc_share"] == part["ttc_below_1_5s_steps"].sum() / part["valid_steps"].sum()
    assert row["speed_at_40m"] == pytest.approx(part["speed_at_40m"].drop_nulls().cast(pl.Float64).mean())


def test_a_probe_records_chosen_worlds_in_their_order():
    whole, chosen = TrajectoryProbe(4), TrajectoryProbe([3, 1])
    env = TorchEnv(4, decision_hz=10, rules="scoring", autoreset_mode="Disabled", threads=2, probes=[whole, chosen])
    env.reset(options={"scenario_seed": 100_000})
    driver = make_agent("constant")
    driver.bind(env.view)
    for _ in range(10):
        env.step(driver.act(env.view))
    env.close()
    assert chosen.result().data.tobytes() == whole.result().data[:, [3, 1]].tobytes()
    assert chosen.result().seed[0].tolist() == [100_003, 100_001]


@pytest.mark.parametrize(
    ("worlds", "error", "message"),
    [
        ([], TypeError, "list of different world indices"),
        ([0.5], TypeError, "list of different world indices"),
        ([1, 1], ValueError, "different world indices"),
        ([-1], ValueError, "different world indices"),
    ],
)
def test_bad_world_lists_are_named(worlds, error, message):
    with pytest.raises(error, match=message):
        TrajectoryProbe(worlds)


def test_a_listed_world_that_is_not_there():
    with pytest.raises(ValueError, match="worlds is 7; the environment has num_worlds=2"):
        TorchEnv(2, probes=[TrajectoryProbe([0, 7])])


def test_rich_is_checked(tmp_path):
    with pytest.raises(ValueError, match=r"rich is 3; it must be in 0 \.\.\. worlds \(2\)"):
        EvaluationConfig(worlds=2, rich=3)
    with pytest.raises(ValueError, match="rich is -1"):
        EvaluationConfig(rich=-1)
    with pytest.raises(ValueError, match="rich is 1; trajectories go to files"):
        Evaluation(EvaluationConfig(worlds=1, rich=1))
