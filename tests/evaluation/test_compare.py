"""Comparisons of short real evaluations, in Python and on the command line."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from sf3d_envs.agents import make_agent
from sf3d_envs.cli import app
from sf3d_envs.evaluation import (
    DamagedCell,
    UnmatchedPair,
    compare,
    compare_vehicles,
    evaluate,
    paired_difference,
    rate_interval,
)
from sf3d_envs.evaluation.compare_table import print_comparison

SHORT = {"conditions": ["reference", "mu012", "gradeN080"], "worlds": 3, "horizon_s": 24.0, "threads": 1}
QUICK = {"conditions": ["reference", "mu018"], "worlds": 2, "horizon_s": 1.0, "threads": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two agents on three conditions, three worlds, 24 s, in a result folder."""
    out = tmp_path_factory.mktemp("compare") / "out"
    return evaluate(["idm17", make_agent("constant", acceleration=1.0)], out=out, **SHORT)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One agent on two conditions, two worlds, 1 s."""
    return evaluate("constant", out=tmp_path_factory.mktemp("quick") / "out", **QUICK).out


@pytest.fixture
def copied(quick, tmp_path):
    """A copy of `quick` to be damaged."""
    return Path(shutil.copytree(quick, tmp_path / "copy"))


def sf3d(*words: object):
    return CliRunner().invoke(app, [str(w) for w in words])


def edit(path: Path, change) -> None:
    """Change a manifest as if it had been written so."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    sign(next(folder for folder in path.parents if (folder / "cells").is_dir()))


def sign(root: Path) -> None:
    """Let the manifest of a folder list the cell manifests that are there, if it lists any."""
    committed = root / "manifest.json"
    content = json.loads(committed.read_text())
    for name in content.get("cell_manifests", {}):
        path = cell(root, name) / "manifest.json"
        content["cell_manifests"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    committed.write_text(json.dumps(content))


def cell(root: Path, name: str) -> Path:
    return root / "cells" / name


def test_terrain_compares_every_condition_with_the_agents_own_reference(finished):
    result = compare(finished.out, finished.out, axis="terrain")
    pairs = result.table.select("agent_a", "condition_a", "agent_b", "condition_b").unique(maintain_order=True).rows()
    assert pairs == [
        (agent, "reference", agent, slug) for agent in ("constant", "idm17") for slug in ("mu012", "gradeN080")
    ]
    assert result.table["lane"].to_list() == ["all", "closing", "open"] * 4
    assert result.table.filter(pl.col("lane") == "all")["vehicles"].to_list() == [36] * 4
    assert result.remarks == ()


def test_figures_are_those_of_the_summary_table(finished):
    rows = compare(finished.out, finished.out, axis="terrain").table.filter(pl.col("lane") == "all")
    table = finished.table
    for row in rows.iter_rows(named=True):
        mine = table.filter((pl.col("agent") == row["agent_b"]) & (pl.col("condition") == row["condition_b"]))
        names = ("passage", "low", "high", "change", "change_low", "change_high")
        ours = ("rate_b", "rate_b_low", "rate_b_high", "difference", "difference_low", "difference_high")
        assert tuple(row[name] for name in ours) == mine.select(names).row(0)


def test_figures_are_those_counted_by_hand(finished):
    """Every lane: both rates and the difference with intervals, the four parts, and where the lost ones ended."""
    result = compare(finished.out, finished.out, axis="terrain")
    lost_somewhere = 0
    for row in result.table.iter_rows(named=True):
        sides = []
        for slug in (row["condition_a"], row["condition_b"]):
            own = pl.col("agent").eq(row["agent_b"]) & pl.col("condition").eq(slug)
            part = finished.vehicles.filter(own if row["lane"] == "all" else own & pl.col("lane").eq(row["lane"]))
            sides.append(part.sort("scenario_seed", "vehicle"))
        trials = sides[0].height // SHORT["worlds"]
        passed = [part["valid_passage"].to_list() for part in sides]
        a, b = ([sum(p[i : i + trials]) for i in range(0, len(p), trials)] for p in passed)
        wanted = {"rate_a": rate_interval(a, trials), "rate_b": rate_interval(b, trials)}
        wanted["difference"] = paired_difference(b, a, trials)
        for name, interval in wanted.items():
            found = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            assert found == (interval.estimate, interval.low, interval.high), (row, name)
        pairs = list(zip(*passed, strict=True))
        parts = {"kept": (True, True), "lost": (True, False), "gained": (False, True), "persistent": (False, False)}
        for name, pair in parts.items():
            assert row[name] == pytest.approx(pairs.count(pair) / len(pairs))
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
        ends = [end for end, pair in zip(sides[1]["outcome"], pairs, strict=True) if pair == (True, False)]
        keys = ("agent_b", "condition_b", "lane")
        losses = result.losses.filter(pl.all_horizontal(pl.col(k) == row[k] for k in keys))
        assert dict(losses.select("outcome", "lost").iter_rows()) == pytest.approx(
            {end: ends.count(end) / len(pairs) for end in set(ends)}
        )
        lost_somewhere += losses.height
    assert lost_somewhere


def test_two_cells_that_are_named_are_a_pair_or_the_other_fields_are_listed(finished):
    one, other = (cell(finished.out, name) for name in ("idm17/reference", "constant/mu012"))
    for axis, fields in {
        "terrain": ["agent:", "agent_digest:", "decision_hz:"],
        "agent": ["condition:", "terrain:"],
        "solver": ["agent:", "condition:", "terrain:"],
    }.items():
        found = sf3d("compare", one, other, "--axis", axis)
        assert found.exit_code == 1
        said = " ".join(found.output.split())
        assert f"differ in more than the axis '{axis}'" in said
        for field in fields:
            assert field in said


def test_swapped_sides_swap_signs_and_lost_with_gained(finished):
    one, other = (cell(finished.out, f"idm17/{slug}") for slug in ("reference", "mu012"))
    forward, back = (compare(a, b, axis="terrain").table for a, b in ((one, other), (other, one)))
    assert (forward["difference"] < 0.0).any()
    assert forward["difference"].to_list() == [-x for x in back["difference"]]
    assert forward["lost"].to_list() == back["gained"].to_list()
    assert forward["rate_a"].to_list() == back["rate_b"].to_list()


def test_a_single_cell_is_the_base(finished):
    result = compare(cell(finished.out, "idm17/mu012"), finished.out, axis="terrain")
    assert result.table["condition_a"].unique().to_list() == ["mu012"]
    assert result.table["condition_b"].unique(maintain_order=True).to_list() == ["reference", "gradeN080"]
    assert any("without a counterpart in A: constant/" in remark for remark in result.remarks)


def test_agents_are_compared_on_each_condition(finished):
    result = compare(finished.out, finished.out, axis="agent")
    assert result.table.select("agent_a", "agent_b").unique().rows() == [("constant", "idm17")]
    assert result.table["condition_b"].unique(maintain_order=True).to_list() == SHORT["conditions"]
    assert result.pairs == 3
    rates = {row[:2]: row[2] for row in finished.table.select("agent", "condition", "passage").iter_rows()}
    for row in result.table.filter(pl.col("lane") == "all").iter_rows(named=True):
        wanted = rates["idm17", row["condition_b"]] - rates["constant", row["condition_b"]]
        assert row["difference"] == pytest.approx(wanted, abs=1e-12)


def test_an_agent_is_not_compared_with_itself_where_there_are_others(finished, tmp_path):
    """Two folders that share an agent: the pairs with the other one are left."""
    other = evaluate("random", out=tmp_path / "other", **SHORT).out
    agents = compare(finished.out, other, axis="agent").table.select("agent_a", "agent_b").unique(maintain_order=True)
    assert agents.rows() == [("constant", "random"), ("idm17", "random")]
    both = evaluate(["idm17", "random"], out=tmp_path / "both", **SHORT).out
    agents = compare(other, both, axis="agent").table.select("agent_a", "agent_b").unique()
    assert agents.rows() == [("random", "idm17")]


def test_the_largest_seeds_are_compared(tmp_path):
    out = evaluate("constant", out=tmp_path, seed0=2**64 - 2, **QUICK).out
    assert compare(out, out, axis="terrain", worlds=1).table["worlds"].unique().to_list() == [1]
    assert compare(out, out, axis="terrain").table["worlds"].unique().to_list() == [2]


def test_solvers_are_compared(quick, tmp_path):
    evaluate("constant", solver="xpbd", out=tmp_path / "xpbd", **QUICK)
    result = compare(quick, tmp_path / "xpbd", axis="solver")
    assert result.table.select("solver_a", "solver_b").unique().rows() == [("vehicle", "xpbd")]
    assert result.pairs == 2
    assert result.matched[0]["differs"] == {"solver": ["vehicle", "xpbd"]}
    with pytest.raises(UnmatchedPair, match="solver: vehicle in A, xpbd in B"):
        compare(quick, tmp_path / "xpbd", axis="terrain")


def test_other_parameters_under_one_name_are_compared_as_agents(quick, tmp_path):
    evaluate(make_agent("constant", acceleration=2.0), out=tmp_path / "other", **{**QUICK, "conditions": ["mu018"]})
    result = compare(quick, tmp_path / "other", axis="agent")
    assert list(result.matched[0]["differs"]) == ["agent_digest"]
    assert result.remarks == ("without a counterpart in B: constant/reference of A",)
    with pytest.raises(UnmatchedPair, match="agent_digest"):
        compare(quick, tmp_path / "other", axis="terrain")


def test_worlds_that_are_a_prefix_are_compared_on_request_only(finished, tmp_path):
    evaluate("idm17", out=tmp_path / "two", **{**SHORT, "worlds": 2})
    with pytest.raises(UnmatchedPair, match=r"worlds: 3 in A, 2 in B.*--worlds 2 \(worlds=2\)"):
        compare(finished.out, tmp_path / "two", axis="terrain")
    mixed = compare(finished.out, tmp_path / "two", axis="terrain", worlds=2)
    within = compare(tmp_path / "two", tmp_path / "two", axis="terrain")
    assert mixed.table.equals(within.table)
    assert mixed.table["worlds"].unique().to_list() == [2]
    with pytest.raises(ValueError, match="worlds is 3"):
        compare(finished.out, tmp_path / "two", axis="terrain", worlds=3)


def test_other_seeds_are_refused(quick, tmp_path):
    evaluate("constant", out=tmp_path / "other", seed0=7, **QUICK)
    with pytest.raises(UnmatchedPair, match="worlds do not pair"):
        compare(quick, tmp_path / "other", axis="terrain")


def test_another_code_version_is_refused_and_named(quick, copied):
    for path in [copied / "manifest.json", *copied.glob("cells/*/*/manifest.json")]:
        edit(path, lambda m: m["identity"].update(code="0" * 64))
    with pytest.raises(UnmatchedPair, match="code: ") as caught:
        compare(quick, copied, axis="terrain")
    assert list(caught.value.fields) == ["code"]
    compare(copied, copied, axis="terrain")  # old results compare with each other


@pytest.mark.parametrize("damage", ["changed", "truncated", "empty", "missing", "manifest"])
def test_a_damaged_cell_is_named(quick, copied, damage):
    file = cell(copied, "constant/mu018") / "vehicles.parquet"
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "manifest":
        (file.parent / "manifest.json").write_text('{"schema": ')
    else:
        file.write_bytes({"changed": data[:50] + b"x" + data[51:], "truncated": data[:-9], "empty": b""}[damage])
    with pytest.raises(DamagedCell) as caught:
        compare(quick, copied, axis="terrain")
    assert caught.value.cells == ("constant/mu018",)
    result = sf3d("compare", quick, copied, "--axis", "terrain", "--out", copied / "out")
    assert result.exit_code == 1
    assert "constant/mu018" in result.stderr
    assert not (copied / "out").exists()


def test_a_damaged_file_that_no_pair_uses_does_not_matter(finished, tmp_path):
    root = Path(shutil.copytree(finished.out, tmp_path / "copy"))
    (cell(root, "constant/mu012") / "vehicles.parquet").write_bytes(b"")
    one, other = cell(root, "idm17/reference"), cell(root, "idm17/gradeN080")
    assert compare(one, other, axis="terrain").pairs == 1


def test_a_finished_cell_that_is_gone_is_named(quick, copied):
    (cell(copied, "constant/mu018") / "manifest.json").unlink()
    with pytest.raises(DamagedCell, match="constant/mu018"):
        compare(quick, copied, axis="terrain")


def test_an_interrupted_evaluation_is_compared_as_far_as_it_got(quick, copied):
    (copied / "manifest.json").unlink()
    shutil.rmtree(cell(copied, "constant/reference"))
    assert compare(quick, copied, axis="terrain").table["condition_b"].unique().to_list() == ["mu018"]


def test_cells_of_two_evaluations_in_one_folder_are_refused(quick, copied, tmp_path):
    """A cell of other worlds, of another agent under the same name, and one more cell."""
    other = evaluate(make_agent("constant", acceleration=2.0), out=tmp_path / "other", **QUICK).out
    shutil.rmtree(cell(copied, "constant/mu018"))
    shutil.copytree(cell(other, "constant/mu018"), cell(copied, "constant/mu018"))
    with pytest.raises(ValueError, match=r"mixes evaluations.*cells.constant/mu018.agent_digest"):
        compare(copied, copied, axis="terrain")
    edit(cell(copied, "constant/mu018") / "manifest.json", lambda m: m["identity"].update(horizon_s=9.0))
    with pytest.raises(ValueError, match=r"mixes evaluations.*horizon_s"):
        compare(quick, copied, axis="terrain")


def test_a_cell_that_the_evaluation_does_not_list_is_refused(copied, tmp_path):
    more = evaluate("constant", out=tmp_path / "more", **{**QUICK, "conditions": ["mu012"]}).out
    shutil.copytree(cell(more, "constant/mu012"), cell(copied, "constant/mu012"))
    with pytest.raises(ValueError, match=r"mixes evaluations.*constant/mu012"):
        compare(copied, copied, axis="terrain")


def test_rows_of_another_cell_are_refused(copied):
    """Two cells that were exchanged, each with intact files."""
    one, other = cell(copied, "constant/reference"), cell(copied, "constant/mu018")
    one.rename(one.with_name("x"))
    other.rename(one)
    one.with_name("x").rename(other)
    sign(copied)
    with pytest.raises(ValueError, match="holds rows of constant/mu018, not of constant/reference"):
        compare(copied, copied, axis="terrain")


@pytest.mark.parametrize("name", ["manifest.json", "cells/constant/mu018/manifest.json"])
def test_another_schema_is_refused(quick, copied, name):
    edit(copied / name, lambda m: m.update(schema="sf3d.other/7"))
    with pytest.raises(ValueError, match=r"has the schema 'sf3d.other/7'; this version reads"):
        compare(quick, copied, axis="terrain")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m["record"].pop("scenario"), "lacks record.scenario"),
        (lambda m: m.pop("files"), r"lacks files.vehicles.parquet"),
        (lambda m: m["identity"].update(worlds=9), "says 9 worlds and lists others"),
        (lambda m: m["identity"].update(seed0="x"), "contradicts itself"),
    ],
)
def test_a_manifest_that_lacks_something_is_refused(quick, copied, change, text):
    edit(cell(copied, "constant/mu018") / "manifest.json", change)
    with pytest.raises(ValueError, match=text):
        compare(quick, copied, axis="terrain")


def test_folders_without_results_are_refused(quick, tmp_path):
    (tmp_path / "empty" / "cells").mkdir(parents=True)
    for path, text in (
        ("nowhere", "B is 'nowhere'; give a result folder"),
        (tmp_path, "holds neither cells/ nor the files of a cell"),
        (tmp_path / "empty", "holds no finished cell"),
    ):
        with pytest.raises(ValueError, match=text):
            compare(quick, path, axis="terrain")
    lone = shutil.copytree(cell(quick, "constant/mu018"), tmp_path / "lone")
    with pytest.raises(ValueError, match="is no cell folder"):
        compare(quick, lone, axis="terrain")


def test_nothing_to_pair_is_said(quick):
    with pytest.raises(ValueError, match=r"nothing to compare along the axis 'terrain'.*A holds constant/reference"):
        compare(cell(quick, "constant/reference"), cell(quick, "constant/reference"), axis="terrain")
    for axis in ("agent", "solver"):
        with pytest.raises(ValueError, match="nothing to compare"):
            compare(quick, quick, axis=axis)


def test_a_folder_without_reference_is_refused(finished, tmp_path):
    slugs = ["mu012", "mu018"]
    out = evaluate("constant", out=tmp_path / "out", **{**QUICK, "conditions": slugs}).out
    with pytest.raises(
        ValueError, match=r"A holds no cell of the condition 'reference'.*constant/mu018, constant/mu012"
    ):
        compare(out, out, axis="terrain")
    assert compare(cell(out, "constant/mu012"), out, axis="terrain").pairs == 1


def test_errors_of_worlds_are_remarked(quick, copied):
    error = {"scenario_seed": 100_001, "reason": "action", "vehicle": 0, "step": 1, "time_s": 0.0}
    edit(cell(copied, "constant/mu018") / "manifest.json", lambda m: m["record"].update(errors=[error]))
    assert compare(quick, copied, axis="terrain").remarks == ("constant/mu018 of B had errors in 1 worlds (action)",)
    assert compare(quick, copied, axis="terrain", worlds=1).remarks == ()


def test_tables_can_be_compared_without_folders(finished):
    vehicles = finished.vehicles.filter(pl.col("agent") == "idm17")
    a, b = (vehicles.filter(pl.col("condition") == slug) for slug in ("reference", "mu012"))
    rows, losses = compare_vehicles(a, b)
    folders = compare(finished.out, finished.out, axis="terrain").table
    same = folders.filter((pl.col("agent_b") == "idm17") & (pl.col("condition_b") == "mu012"))
    assert rows.equals(same.select(rows.columns))
    assert losses["lane"].unique().sort().to_list() == ["all", "closing", "open"]
    with pytest.raises(ValueError, match="one cell"):
        compare_vehicles(vehicles, b)
    with pytest.raises(ValueError, match="worlds do not pair"):
        compare_vehicles(a.filter(pl.col("scenario_seed") == 100_000), b)


def test_the_command_prints_a_table_and_writes_three_files(finished, tmp_path):
    out = tmp_path / "new" / "out"
    result = sf3d("compare", finished.out, finished.out, "--axis", "terrain", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "idm17: B against reference (A), 3 matched worlds" in result.stdout
    assert sorted(p.name for p in out.iterdir()) == ["compare.csv", "compare.json", "compare.txt"]
    comparison = compare(finished.out, finished.out, axis="terrain")
    assert pl.read_csv(out / "compare.csv").rows() == comparison.table.rows()
    assert (out / "compare.txt").read_text() == comparison.text()
    content = json.loads((out / "compare.json").read_text())
    assert content["rows"] == comparison.table.to_dicts()
    assert content["pairs"][0]["differs"]["condition"] == ["reference", "mu012"]
    assert str(tmp_path) not in (out / "compare.json").read_text()
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert sf3d("compare", finished.out, finished.out, "--axis", "terrain", "--out", out).exit_code == 0
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_narrow_and_wide(finished, width):
    result = compare(finished.out, finished.out, axis="terrain")
    long = result.table.with_columns(pl.lit("gradeN045-mu035").alias("condition_b"))
    buffer = io.StringIO()
    print_comparison(long, "terrain", (), Console(file=buffer, width=width, force_terminal=True, color_system=None))
    text = buffer.getvalue()
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert " 1.0" in text
    assert text.count("matched worlds") == (4 if width == 80 else 2)
    assert text.count("gradeN045-mu035") == (8 if width == 80 else 4)
    for word in ("B - A", "kept", "lost", "gained", "neither", "closing", "open"):
        assert word in text


def test_a_pair_that_is_refused_ends_with_1_and_names_the_fields(quick, tmp_path):
    evaluate("constant", out=tmp_path / "other", **{**QUICK, "horizon_s": 2.0})
    result = sf3d("compare", quick, tmp_path / "other", "--axis", "terrain", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "horizon_s: 1.0 in A, 2.0 in B" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["{a}", "{a}"], "--axis"),
        (["{a}", "{a}", "--axis", "agents"], "axis is 'agents'; did you mean 'agent'?"),
        (["{a}", "nowhere", "--axis", "terrain"], "B is 'nowhere'"),
        (["", "{a}", "--axis", "terrain"], "A is ''"),
        (["{a}", "{a}", "--axis", "terrain", "--worlds", "0"], "--worlds is 0"),
        (["{a}", "{a}", "--axis", "terrain", "--worlds", "5"], "worlds is 5; A holds 2 and B 2"),
        (["{a}", "{a}", "--axis", "solver"], "nothing to compare"),
        (["{a}", "{a}", "--axis", "terrain", "--out", "{file}"], "is not a folder"),
        (["{a}", "{a}", "--axis", "terrain", "--out", "{file}/below"], "is not a folder"),
        (["{a}", "{a}", "--axis", "terrain", "--out", "{blocked}"], "its 'compare.csv' is a folder"),
    ],
)
def test_bad_input_ends_with_2_in_one_line(quick, tmp_path, words, text):
    (tmp_path / "file").write_text("x")
    (tmp_path / "blocked" / "compare.csv").mkdir(parents=True)
    names = {"a": quick, "file": tmp_path / "file", "blocked": tmp_path / "blocked"}
    result = sf3d("compare", *(word.format(**names) for word in words))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert text in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom folder rights bind")
def test_a_read_only_out_folder_is_refused(quick, tmp_path):
    tmp_path.chmod(0o500)
    result = sf3d("compare", quick, quick, "--axis", "terrain", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_a_full_disk_ends_with_3_and_leaves_no_half_file(quick, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    result = sf3d("compare", quick, quick, "--axis", "terrain", "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "No space left" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []
