"""Matched evaluation on the real environment, in short runs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import (
    VEHICLE_SCHEMA,
    VEHICLE_TABLE_SCHEMA,
    WORLD_SCHEMA,
    DamagedCell,
    Evaluation,
    EvaluationConfig,
    ManifestConflict,
    evaluate,
)
from sf3d_envs.evaluation.batch import matched, run_batch
from sf3d_envs.registry import load_condition

SHORT = {"conditions": ["reference", "mu012", "gradeN080"], "worlds": 2, "horizon_s": 24.0, "threads": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """idm17 on three conditions, two worlds, 24 s, in a result folder."""
    return evaluate("idm17", out=tmp_path_factory.mktemp("evaluation") / "out", **SHORT)


def cell_manifest(root: Path, cell: str) -> dict:
    return json.loads((root / "cells" / cell / "manifest.json").read_text())


def test_one_row_per_vehicle_sorted_and_on_the_same_worlds(finished):
    vehicles = finished.vehicles
    assert vehicles.schema == VEHICLE_TABLE_SCHEMA
    assert finished.worlds.schema == WORLD_SCHEMA
    assert vehicles.height == 3 * 2 * 12
    assert vehicles.equals(vehicles.sort("agent", "condition", "scenario_seed", "vehicle"))
    seeds = vehicles.group_by("condition").agg(pl.col("scenario_seed").unique().sort())
    assert seeds["scenario_seed"].to_list() == [[100_000, 100_001]] * 3
    lanes = vehicles.group_by("lane").agg(pl.col("vehicle").unique().sort()).sort("lane")
    assert lanes["vehicle"].to_list() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10, 11]]


def test_the_table_is_in_suite_order_and_agrees_with_the_rows(finished):
    assert finished.table["condition"].to_list() == ["reference", "mu012", "gradeN080"]
    rates = dict(finished.vehicles.group_by("condition").agg(pl.col("valid_passage").mean()).iter_rows())
    assert dict(finished.table.select("condition", "passage").iter_rows()) == pytest.approx(rates)
    changes = finished.table["change"].to_list()
    assert changes[0] is None
    assert changes[1] == pytest.approx(rates["mu012"] - rates["reference"])


def test_the_road_matters(finished):
    """The agent gets vehicles across on a dry road; at mu 0.12 the outcomes of the same worlds differ."""
    outcomes = {slug: part["outcome"].to_list() for (slug,), part in finished.vehicles.group_by("condition")}
    assert outcomes["reference"].count("pass") >= 4
    assert outcomes["reference"] != outcomes["mu012"]


def test_folder_holds_what_the_manifest_lists(finished):
    root = finished.out
    manifest = json.loads((root / "manifest.json").read_text())
    tables = {"vehicles.parquet", "worlds.parquet", "table.csv", "table.txt"}
    assert set(manifest["files"]) == tables | {"passage-idm17.png", "matched-idm17.png"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == digest
    assert pl.read_parquet(root / "vehicles.parquet").equals(finished.vehicles)
    assert pl.read_csv(root / "table.csv")["condition"].to_list() == finished.table["condition"].to_list()
    assert "idm17" in (root / "table.txt").read_text()
    assert not [p.name for p in root.rglob(".*")]


def test_pictures_show_a_plot_and_two_worlds_that_differ(finished):
    with Image.open(finished.out / "passage-idm17.png") as plot:
        assert len(plot.convert("RGB").getcolors(maxcolors=2**24)) > 10
    with Image.open(finished.out / "matched-idm17.png") as pair:
        picture = np.asarray(pair.convert("RGB"))
    half = (picture.shape[1] - 4) // 2
    assert (picture[:, :half] != picture[:, -half:]).any()


def test_matched_cells_share_scenario_and_start_and_differ_in_terrain(finished):
    records = [cell_manifest(finished.out, f"idm17/{slug}")["record"] for slug in SHORT["conditions"]]
    for field in ("scenario", "initial_state", "route"):
        assert records[0][field] == records[1][field] == records[2][field]
    assert len({record["terrain"] for record in records}) == 3
    assert len(set(records[0]["scenario"])) == 2


def test_no_file_but_the_manifests_knows_time_or_place(finished, tmp_path):
    """The same run elsewhere gives the same bytes."""
    again = evaluate("idm17", out=tmp_path / "elsewhere", **SHORT)
    for name in ("vehicles.parquet", "worlds.parquet", "table.csv", "table.txt"):
        assert (again.out / name).read_bytes() == (finished.out / name).read_bytes()


def test_results_do_not_depend_on_the_batch(finished):
    """One world at a time gives what six worlds at once gave, and an evaluation in memory writes nothing."""
    alone = evaluate("idm17", max_batch=1, **SHORT)
    assert alone.out is None
    assert alone.vehicles.equals(finished.vehicles)
    assert alone.worlds.equals(finished.worlds)
    assert alone.table.equals(finished.table)


def test_an_interrupted_evaluation_goes_on_where_it_stopped(finished, tmp_path):
    config = EvaluationConfig(agents=["idm17"], max_batch=2, **SHORT)

    def interrupt(label, done, total):
        if "mu012" in label and done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Evaluation(config, tmp_path).run(interrupt)
    assert not (tmp_path / "manifest.json").exists()
    before = cell_manifest(tmp_path, "idm17/reference")

    rest = Evaluation(config, tmp_path)
    assert rest.finished == ["idm17/reference"]
    result = rest.run()
    assert result.computed == ("idm17/mu012", "idm17/gradeN080")
    assert cell_manifest(tmp_path, "idm17/reference") == before
    assert result.vehicles.equals(finished.vehicles)
    assert (tmp_path / "manifest.json").exists()


def test_a_finished_evaluation_is_read_not_run(finished):
    again = Evaluation(EvaluationConfig(agents=["idm17"], **SHORT), finished.out)
    assert again.missing == []
    before = (finished.out / "vehicles.parquet").read_bytes()
    assert again.run().computed == ()
    assert (finished.out / "vehicles.parquet").read_bytes() == before


def test_a_folder_of_another_evaluation_is_refused_with_the_fields(finished):
    other = {**SHORT, "worlds": 3, "horizon_s": 12.0}
    with pytest.raises(ManifestConflict) as caught:
        Evaluation(EvaluationConfig(agents=["idm17"], **other), finished.out)
    assert caught.value.fields == ("identity.horizon_s", "identity.worlds")


def test_a_folder_of_another_solver_is_refused(finished, tmp_path):
    """Whole evaluations and single cells of an interrupted one."""
    with pytest.raises(ManifestConflict) as caught:
        Evaluation(EvaluationConfig(agents=["idm17"], solver="xpbd", **SHORT), finished.out)
    assert caught.value.fields == ("identity.solver",)
    shutil.copytree(finished.out / "cells", tmp_path / "cells")
    with pytest.raises(ManifestConflict) as caught:
        Evaluation(EvaluationConfig(agents=["idm17"], solver="xpbd", **SHORT), tmp_path)
    assert caught.value.fields == ("solver",)


def test_the_reference_path_drives_the_same_worlds(tmp_path):
    """One world before its first touch: the same outcomes on both paths, and positions within a centimetre.

    A folder of the reference path says so, and its row-invariance probe runs there too.
    """
    agent, road = make_agent("idm17"), load_condition("reference")
    batches = [run_batch(agent, [road], [100_000], horizon_s=2.0, solver=s) for s in ("vehicle", "xpbd")]
    apart = np.abs(batches[0].position - batches[1].position).max()
    assert 0.0 < apart < 0.01
    assert batches[0].digests["initial_state"] == batches[1].digests["initial_state"]
    settings = {"conditions": ["reference"], "worlds": 1, "horizon_s": 1.0}
    result = evaluate("idm17", out=tmp_path, solver="xpbd", **settings)
    assert result.manifest["identity"]["solver"] == "xpbd"
    assert cell_manifest(tmp_path, "idm17/reference")["identity"]["solver"] == "xpbd"
    assert result.manifest["record"]["row_invariant"] == {"idm17": True}
    outcomes = list(VEHICLE_SCHEMA)
    assert result.vehicles[outcomes].equals(evaluate("idm17", **settings).vehicles[outcomes])


def test_another_agent_under_the_same_name_is_refused(tmp_path):
    settings = {"conditions": ["reference"], "worlds": 1, "horizon_s": 1.0}
    evaluate(make_agent("constant", acceleration=-4.0), out=tmp_path, **settings)
    with pytest.raises(ManifestConflict, match="agent_digest"):
        evaluate(make_agent("constant", acceleration=-3.0), out=tmp_path, **settings)


def test_a_damaged_cell_is_named_and_can_be_recomputed(tmp_path):
    settings = {"agents": ["constant"], "conditions": ["reference", "mu018"], "worlds": 1, "horizon_s": 1.0}
    first = Evaluation(EvaluationConfig(**settings), tmp_path).run()
    target = tmp_path / "cells" / "constant" / "mu018" / "vehicles.parquet"
    target.write_bytes(target.read_bytes()[:-1])
    with pytest.raises(DamagedCell, match="constant/mu018"):
        Evaluation(EvaluationConfig(**settings), tmp_path)
    repaired = Evaluation(EvaluationConfig(**settings), tmp_path, recompute=["constant/mu018"])
    assert repaired.missing == ["constant/mu018"]
    assert repaired.run().vehicles.equals(first.vehicles)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("name", None, "agent.name is None; it must be a text"),
        ("name", 5, "agent.name is 5; it must be a text"),
        ("name", "a/b", "is no folder name"),
        ("digest", b"x", "agent.digest is b'x'; it must be a text"),
        ("decision_hz", 10.0, "has decision_hz=10.0; it must be an int that divides 60"),
        ("decision_hz", 7, "has decision_hz=7; it must be an int that divides 60"),
        ("decision_hz", True, "has decision_hz=True"),
        ("decision_hz", None, "has decision_hz=None"),
    ],
)
def test_an_agent_that_cannot_be_recorded_is_refused(name, value, text, tmp_path):
    odd = make_agent("constant")
    setattr(odd, name, value)
    with pytest.raises(ValueError, match=re.escape(text)):
        evaluate(odd, conditions=["reference"], worlds=1, horizon_s=1.0, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_actions_of_a_network_may_carry_gradients():
    class Network(type(make_agent("constant"))):
        def act(self, view):
            return super().act(view).requires_grad_()

    result = evaluate(Network(), conditions=["reference"], worlds=1, horizon_s=1.0)
    assert result.vehicles.height == 12


def test_full_braking_passes_nobody():
    result = evaluate(make_agent("constant", acceleration=-8.0), conditions=["reference"], worlds=2, horizon_s=12.0)
    assert set(result.vehicles["outcome"]) <= {"not_crossed", "collision"}
    assert result.table["passage"].item() == 0.0
    assert result.vehicles["passage_step"].null_count() == 24


def test_full_steering_leaves_the_road():
    agent = make_agent("constant", acceleration=3.0, steering=1.0)
    result = evaluate(agent, conditions=["reference"], worlds=1, horizon_s=12.0)
    assert "off_road" in result.vehicles["outcome"].to_list()
    assert result.vehicles["first_event_step"].null_count() < 12


def test_worlds_are_condition_major():
    conditions = [load_condition("reference"), load_condition("mu018")]
    slots, seeds = matched(conditions, [7, 8, 9])
    assert [c.slug for c in slots] == ["reference"] * 3 + ["mu018"] * 3
    assert seeds == [7, 8, 9, 7, 8, 9]


class CountingAgent:
    """Brakes by the number of worlds: an agent whose action depends on its batch."""

    name = "counting"
    decision_hz = 10
    digest = "0" * 64

    def bind(self, view):
        self.actions = torch.zeros((view.num_worlds, view.num_vehicles, 2))

    def reset(self, mask=None):
        pass

    def act(self, view):
        self.actions[..., 0] = -float(view.num_worlds)
        return self.actions


def test_row_invariance_is_measured(finished, tmp_path):
    result = evaluate([CountingAgent()], out=tmp_path, conditions=["reference"], worlds=1, horizon_s=1.0)
    assert result.manifest["record"]["row_invariant"] == {"counting": False}
    assert finished.manifest["record"]["row_invariant"] == {"idm17": True}


def test_several_agents_get_their_own_rows_and_reference():
    result = evaluate(["idm17", "constant"], conditions=["reference", "mu018"], worlds=1, horizon_s=1.0)
    assert result.table["agent"].to_list() == ["constant"] * 2 + ["idm17"] * 2
    assert result.table["change"].null_count() == 2


def test_progress_ends_at_the_total():
    seen = []
    config = EvaluationConfig(
        agents=["constant"], conditions=["reference", "mu018"], worlds=1, horizon_s=2.0, max_batch=1
    )
    Evaluation(config).run(lambda label, done, total: seen.append((done, total)))
    assert seen[-1] == (240, 240)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_user_suite_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[conditions]]\nslug = "reference"\n[[conditions]]\nslug = "icy"\nfriction = 0.1\n')
    result = evaluate("constant", suite=path, worlds=1, horizon_s=1.0, out=tmp_path / "out")
    assert result.table.select("condition", "friction").rows() == [("reference", 1.0), ("icy", 0.1)]


def test_the_batch_reports_where_the_vehicles_are():
    result = run_batch(make_agent("constant"), [load_condition("reference")], [100_000], horizon_s=1.0)
    assert result.position.shape == (1, 12, 3)
    assert result.closing_lane == [True] * 5 + [False] * 7
    assert result.extents == (-300.0, 2260.0, -45.0, -11.0)
    assert result.task["step"].tolist() == [60]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"agents": ["idm71"]}, "did you mean 'idm17'"),
        ({"agents": ["idm17", "idm17"]}, "each agent may appear once"),
        ({"agents": []}, "agents is empty"),
        ({"conditions": ["mu18"]}, "did you mean 'mu018'"),
        ({"conditions": ["mu018", "mu018"]}, "each condition may appear once"),
        ({"conditions": []}, "conditions is empty"),
        ({"suite": "ucx-conditions-2"}, "ucx-conditions-1"),
        ({"worlds": 0}, "worlds is 0"),
        ({"seed0": -1}, "seed0 is -1"),
        ({"device": "cuda:99"}, "device 'cuda:99'"),
        ({"threads": 0}, "threads is 0"),
        ({"solver": "mujoco"}, "solver 'mujoco' is unknown; known: 'vehicle', 'xpbd'"),
        ({"horizon_s": 0.0}, "seconds is 0.0"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(settings, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        Evaluation(EvaluationConfig(**settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_in_the_way_of_a_result_is_refused_before_computing(tmp_path):
    (tmp_path / "table.csv").mkdir()
    with pytest.raises(ValueError, match=r"its 'table\.csv' is a folder"):
        Evaluation(EvaluationConfig(worlds=1, conditions=["reference"]), tmp_path)


TIERED = """
agents = ["constant"]
[[tiers]]
name = "quick"
worlds = 2
seed0 = 7
[[conditions]]
slug = "reference"
"""


def test_a_tier_sets_worlds_seeds_and_the_suite_its_agents(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TIERED)
    result = evaluate(suite=path, tier="quick", horizon_s=1.0, out=tmp_path / "out")
    assert result.vehicles["scenario_seed"].unique().to_list() == [7, 8]
    assert result.vehicles["agent"].unique().to_list() == ["constant"]
    same = EvaluationConfig(suite=path, worlds=2, seed0=7, horizon_s=1.0)
    assert Evaluation(same, tmp_path / "out").store.complete
    with pytest.raises(
        ValueError, match="worlds is 5, but tier 'quick' is 2 worlds from seed 7; leave out one of them"
    ):
        EvaluationConfig(suite=path, tier="quick", worlds=5)
    with pytest.raises(ValueError, match="tier '1' is not in suite"):
        EvaluationConfig(suite=path, tier="1")
    assert EvaluationConfig(tier="2").worlds == 1024


def test_an_unknown_agent_of_a_suite_names_the_suite(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TIERED.replace('"constant"', '"constnt"'))
    with pytest.raises(ValueError, match="agents of suite 'mine': agent 'constnt' is unknown; did you mean 'constant'"):
        Evaluation(EvaluationConfig(suite=path))
