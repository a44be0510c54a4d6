"""Freeze manifests: what they fix, and which runs they refuse."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sf3d_envs.agents import make_agent
from sf3d_envs.cli import app
from sf3d_envs.envs.torch_env import TorchEnv
from sf3d_envs.evaluation import (
    Evaluation,
    EvaluationConfig,
    FrozenMismatch,
    evaluate,
    freeze,
    read_frozen,
    write_frozen,
)
from sf3d_envs.evaluation.batch import run_batch
from sf3d_envs.evaluation.freeze import placed_digests
from sf3d_envs.registry import load_condition, load_suite

SLUGS = ["reference", "mu018", "gradeN080"]
SETTINGS = {"conditions": SLUGS, "worlds": 4, "horizon_s": 1.0, "threads": 1}
RUN = {**SETTINGS, "conditions": ["reference", "mu018"], "worlds": 2}


@pytest.fixture(scope="module")
def manifest():
    """Two agents, three conditions, four worlds, 1 s."""
    return freeze(EvaluationConfig(agents=["constant", "random"], **SETTINGS))


@pytest.fixture
def file(manifest, tmp_path):
    return write_frozen(tmp_path / "frozen.json", manifest)


def sf3d(*words: object):
    return CliRunner().invoke(app, [str(w) for w in words])


def rewritten(manifest: dict, path: Path, change) -> Path:
    """A freeze manifest that was made differently: its digest fits its content."""
    content = copy.deepcopy(manifest)
    del content["digest"]
    change(content)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**content, "digest": hashlib.sha256(text.encode()).hexdigest()}))
    return path


def test_it_holds_what_a_run_records(manifest, tmp_path):
    """The digests of placed worlds are those of driven ones, and the identity is that of the folder."""
    result = evaluate(["constant", "random"], out=tmp_path, **SETTINGS)
    assert manifest["identity"] == result.manifest["identity"]
    assert manifest["cells"] == result.manifest["cells"]
    for path in tmp_path.glob("cells/*/*/manifest.json"):
        record = json.loads(path.read_text())["record"]
        assert record["terrain"] == manifest["record"]["terrain"][path.parent.name]
        for name in ("scenario", "initial_state", "route"):
            assert record[name] == manifest["record"][name]
    assert len(set(manifest["record"]["scenario"])) == len(set(manifest["record"]["initial_state"])) == 4
    assert len(set(manifest["record"]["terrain"].values())) == 3


def test_it_is_the_same_when_made_again(manifest, tmp_path):
    again = freeze(EvaluationConfig(agents=["constant", "random"], **{**SETTINGS, "threads": 2}))
    assert again == manifest
    files = [write_frozen(tmp_path / name, manifest).read_bytes() for name in ("a", "b")]
    assert files[0] == files[1]
    assert str(tmp_path).encode() not in files[0]


def test_slices_of_worlds_and_conditions_do_not_change_it(manifest, monkeypatch):
    for limit in (1, 3, 5, 8):
        monkeypatch.setattr(import_module("sf3d_envs.evaluation.freeze"), "_PLACED_AT_ONCE", limit)
        conditions = [load_condition(slug) for slug in SLUGS]
        assert placed_digests(conditions, range(100_000, 100_004)) == manifest["record"]


def test_the_whole_suite_starts_alike():
    record = placed_digests(load_suite("ucx-conditions-1").conditions, range(100_000, 100_003))
    assert len(set(record["terrain"].values())) == 21


def test_the_reference_path_starts_like_the_default(manifest):
    """So a frozen start holds for both solvers."""
    batch = run_batch(make_agent("constant"), [load_condition("mu018")], [100_000], horizon_s=0.1, solver="xpbd")
    assert batch.digests["initial_state"] == manifest["record"]["initial_state"][:1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"worlds": 2},
        {"worlds": 2, "seed0": 100_002},
        {"conditions": ["gradeN080"]},
        {"conditions": ["mu018"], "worlds": 1, "seed0": 100_003},
    ],
)
def test_the_frozen_evaluation_and_parts_of_it_agree(file, settings):
    config = EvaluationConfig(agents=["random"], frozen=file, **{**SETTINGS, **settings})
    assert Evaluation(config).frozen.digest == read_frozen(file).digest


def test_cells_record_the_digest(manifest, file, tmp_path):
    result = evaluate("constant", out=tmp_path / "out", frozen=file, **RUN)
    assert result.manifest["record"]["frozen"] == manifest["digest"]
    for path in (tmp_path / "out").glob("cells/*/*/manifest.json"):
        assert json.loads(path.read_text())["record"]["frozen"] == manifest["digest"]
    free = evaluate("constant", out=tmp_path / "free", **RUN)
    assert "frozen" not in free.manifest["record"]
    for name in ("vehicles.parquet", "worlds.parquet", "table.csv"):
        assert (tmp_path / "free" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


@pytest.mark.parametrize(
    ("settings", "fields", "text"),
    [
        ({"worlds": 5}, {"seeds"}, "seeds: 100000 ... 100003 frozen, 100000 ... 100004 now"),
        ({"seed0": 99_999}, {"seeds"}, "99999"),
        ({"seed0": 7}, {"seeds"}, "7 ... 8 now"),
        ({"horizon_s": 2.0}, {"horizon_s"}, "horizon_s: 1.0 frozen, 2.0 now"),
        ({"solver": "xpbd"}, {"solver"}, "solver: vehicle frozen, xpbd now"),
        ({"conditions": ["reference", "mu012"]}, {"cells.constant/mu012"}, "cells.constant/mu012 is not frozen"),
        ({"agents": ["idm17"], "conditions": ["mu018"]}, {"cells.idm17/mu018"}, "cells.idm17/mu018 is not frozen"),
    ],
)
def test_another_evaluation_is_refused_with_the_fields(file, tmp_path, settings, fields, text):
    config = EvaluationConfig(**{"agents": ["constant"], "frozen": file, **RUN, **settings})
    with pytest.raises(FrozenMismatch) as caught:
        Evaluation(config, tmp_path / "out")
    assert set(caught.value.fields) == fields
    assert text in str(caught.value)
    assert str(file) in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_another_agent_under_the_same_name_is_refused(file):
    agent = make_agent("constant", acceleration=1.0)
    with pytest.raises(FrozenMismatch) as caught:
        Evaluation(EvaluationConfig(agents=[agent], frozen=file, **RUN))
    assert set(caught.value.fields) == {f"cells.constant/{slug}.agent_digest" for slug in RUN["conditions"]}


def test_another_road_under_the_same_name_is_refused(tmp_path):
    suite = tmp_path / "mine.toml"
    suite.write_text('[[conditions]]\nslug = "reference"\n[[conditions]]\nslug = "icy"\nfriction = 0.1\n')
    settings = {"agents": ["constant"], "suite": suite, "worlds": 1, "horizon_s": 1.0}
    file = write_frozen(tmp_path / "frozen.json", freeze(EvaluationConfig(**settings)))
    Evaluation(EvaluationConfig(frozen=file, **settings))
    suite.write_text(suite.read_text().replace("0.1", "0.2"))
    with pytest.raises(FrozenMismatch, match="suite_digest"):
        Evaluation(EvaluationConfig(frozen=file, **settings))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m["identity"].update(code="0" * 64), "code: 000000000000... frozen"),
        (lambda m: m["identity"]["packages"].update(numpy="0.1"), "packages.numpy: 0.1 frozen"),
        (lambda m: m["identity"].update(metric_schema="safety-1"), "metric_schema: safety-1 frozen, null now"),
        (lambda m: m["record"].update(route="0" * 64), "constant/reference: route"),
        (lambda m: m["record"]["terrain"].update(mu018="0" * 64), "constant/mu018: terrain"),
        (
            lambda m: m["record"]["scenario"].__setitem__(1, "0"),
            r"scenario (1 of 2 worlds, first seed 100001): 0 frozen",
        ),
        (
            lambda m: m["record"]["initial_state"].__setitem__(0, "0"),
            "initial_state (1 of 2 worlds, first seed 100000)",
        ),
    ],
)
def test_every_frozen_field_is_compared(manifest, tmp_path, change, text):
    file = rewritten(manifest, tmp_path / "other.json", change)
    with pytest.raises(FrozenMismatch) as caught:
        Evaluation(EvaluationConfig(agents=["constant"], frozen=file, **RUN))
    assert text in str(caught.value)
    assert len(caught.value.fields) == 1


def test_nothing_is_simulated_before_the_refusal(manifest, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("simulated")

    monkeypatch.setattr("sf3d_envs.evaluation.batch.drive", never)
    freeze(EvaluationConfig(agents=["constant"], **RUN))
    file = rewritten(manifest, tmp_path / "other.json", lambda m: m["record"].update(route="0" * 64))
    with pytest.raises(FrozenMismatch):
        evaluate("constant", frozen=file, **RUN)


def test_finished_cells_are_compared_too(manifest, file, tmp_path):
    """Cells computed without the freeze manifest are reused where they agree, and refused where they don't."""
    out = tmp_path / "out"
    evaluate("constant", out=out, **RUN)
    assert Evaluation(EvaluationConfig(agents=["constant"], frozen=file, **RUN), out).missing == []
    (out / "manifest.json").unlink()  # as after an interrupt
    path = out / "cells" / "constant" / "mu018" / "manifest.json"
    content = json.loads(path.read_text())
    content["record"]["initial_state"][1] = "0" * 64
    path.write_text(json.dumps(content))
    with pytest.raises(FrozenMismatch, match=r"constant/mu018: initial_state \(1 of 2 worlds, first seed 100001\)"):
        Evaluation(EvaluationConfig(agents=["constant"], frozen=file, **RUN), out)


def test_a_run_whose_worlds_come_out_otherwise_is_refused(file, tmp_path, monkeypatch):
    """The placed worlds agree, the driven ones don't: the cell is not finished."""
    evaluation = Evaluation(EvaluationConfig(agents=["constant"], frozen=file, **RUN), tmp_path / "out")
    original = TorchEnv.digests

    def other(self):
        digests = original(self)
        digests["scenario"][0] = "0" * 64
        return digests

    monkeypatch.setattr(TorchEnv, "digests", other)
    with pytest.raises(FrozenMismatch, match="constant/reference: scenario"):
        evaluation.run()
    assert not list((tmp_path / "out").glob("cells/*/*/manifest.json"))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda text: text.replace('"worlds": 4', '"worlds": 3'), "changed after it was written"),
        (lambda text: text.replace('"digest"', '"digets"'), "changed after it was written"),
        (lambda text: text[: len(text) // 2], "damaged or no freeze manifest"),
        (lambda text: "", "damaged or no freeze manifest"),
        (lambda text: "[1]", "of schema None"),
        (lambda text: text.replace("sf3d.freeze/1", "sf3d.freeze/9"), "of schema 'sf3d.freeze/9'; this version reads"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(file, damage, text):
    before = file.read_text()
    file.write_text(damage(before))
    assert file.read_text() != before
    with pytest.raises(ValueError, match=text):
        Evaluation(EvaluationConfig(agents=["constant"], frozen=file, **RUN))
    result = sf3d("evaluate", "--agent", "constant", "--frozen", file, "--out", file.parent / "out")
    assert result.exit_code == 2
    assert text in result.stderr
    assert not (file.parent / "out").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("identity"),
        lambda m: m.update(cells=None),
        lambda m: m.update(record=True),
        lambda m: m["identity"].update(worlds=0),
        lambda m: m["identity"].update(seed0="1"),
        lambda m: m["record"].update(scenario=None),
        lambda m: m["record"]["initial_state"].pop(),
        lambda m: m["record"].pop("route"),
        lambda m: m["record"].update(terrain=[]),
    ],
)
def test_a_manifest_whose_parts_are_others_is_refused(manifest, tmp_path, change):
    with pytest.raises(ValueError, match="lacks identity, cells or record of a freeze manifest"):
        read_frozen(rewritten(manifest, tmp_path / "odd.json", change))


def test_a_manifest_of_an_evaluation_is_no_freeze_manifest(tmp_path):
    evaluate("constant", out=tmp_path, conditions=["reference"], worlds=1, horizon_s=1.0)
    with pytest.raises(ValueError, match=r"of schema 'sf3d.evaluation/"):
        read_frozen(tmp_path / "manifest.json")


def test_conditions_that_start_otherwise_cannot_be_matched(monkeypatch):
    """Conditions leave the start alone by construction; the check would notice if they did not."""
    original = TorchEnv.digests

    def other(self):
        digests = original(self)
        digests["initial_state"][-1] = "0" * 64
        return digests

    monkeypatch.setattr(TorchEnv, "digests", other)
    with pytest.raises(ValueError, match=r"condition 'mu018' changes the initial_state .* 'reference'"):
        placed_digests([load_condition(slug) for slug in ("reference", "mu018")], [1, 2])


def test_the_commands_work_together(tmp_path):
    frozen, out = tmp_path / "new" / "frozen.json", tmp_path / "out"
    words = ["--agent", "constant", "--conditions", "reference,mu018"]
    result = sf3d("freeze", *words, "--worlds", 2, "--out", frozen)
    assert result.exit_code == 0, result.stderr
    digest = read_frozen(frozen).digest
    assert result.stdout == f"2 cells of 2 worlds frozen in {frozen}, digest {digest[:12]}\n"

    run = sf3d("evaluate", *words, "--worlds", 1, "--frozen", frozen, "--out", out)
    assert run.exit_code == 0, run.stderr
    more = sf3d("evaluate", *words, "--worlds", 3, "--frozen", frozen, "--out", tmp_path / "more")
    assert more.exit_code == 1
    assert "seeds: 100000 ... 100001 frozen, 100000 ... 100002 now" in more.stderr
    assert more.stderr.count("\n") == 1
    assert not (tmp_path / "more").exists()

    before = frozen.read_bytes()
    again = sf3d("freeze", *words, "--worlds", 2, "--out", frozen)
    assert again.exit_code == 2
    assert "a freeze manifest is not replaced" in again.stderr
    assert frozen.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["freeze"], "--out"),
        (["freeze", "--out", ""], "--out is ''"),
        (["freeze", "--out", "{folder}"], "a folder; give a file name"),
        (["freeze", "--out", "{file}/below.json"], "is not a folder"),
        (["freeze", "--out", "{new}", "--agent", "idm71"], "did you mean 'idm17'"),
        (["freeze", "--out", "{new}", "--conditions", "mu18"], "did you mean 'mu018'"),
        (["freeze", "--out", "{new}", "--suite", "ucx"], "ucx-conditions-1"),
        (["freeze", "--out", "{new}", "--worlds", "0"], "--worlds is 0"),
        (["freeze", "--out", "{new}", "--seed0", "-1"], "--seed0 is -1"),
        (["freeze", "--out", "{new}", "--solver", "mujoco"], "solver 'mujoco' is unknown"),
        (
            ["evaluate", "--out", "{new}", "--frozen", "nowhere.json"],
            "--frozen is 'nowhere.json', which cannot be read",
        ),
        (["evaluate", "--out", "{new}", "--frozen", "{folder}"], "which cannot be read"),
    ],
)
def test_bad_input_ends_with_2_in_one_line_and_writes_nothing(tmp_path, words, text):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    names = {name: tmp_path / name for name in ("file", "folder", "new")}
    result = sf3d(*(word.format(**names) for word in words))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert text in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_a_full_disk_ends_with_3_and_leaves_no_half_file(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    words = ["--agent", "constant", "--conditions", "reference", "--worlds", 1]
    result = sf3d("freeze", *words, "--out", tmp_path / "frozen.json")
    assert result.exit_code == 3
    assert "No space left" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_freezing_a_frozen_configuration_freezes_it_anew(file, manifest):
    assert freeze(EvaluationConfig(agents=["constant", "random"], frozen=file, **SETTINGS)) == manifest
