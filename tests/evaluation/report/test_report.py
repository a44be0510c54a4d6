"""Reports of short real evaluations: what the page and its tables hold, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from sf3d_envs.agents import make_agent
from sf3d_envs.cli import app
from sf3d_envs.evaluation import DamagedCell, Evaluation, EvaluationConfig, evaluate
from sf3d_envs.evaluation.report import analyse, choose_pair, pair_pictures, read_results, write_report
from sf3d_envs.evaluation.report.pair import FAILURES
from sf3d_envs.evaluation.report.text import interval

CONDITIONS = ["reference", "mu018", "mu005", "gradeN045", "gradeN045-mu018"]
SETTINGS = {"conditions": CONDITIONS, "worlds": 3, "horizon_s": 30.0, "rich": 3, "threads": 1}
SECTIONS = (
    *("summary", "passage", "change", "ttc", "losses", "entry-speed", "decomposition", "additivity", "hazard"),
    *("pair", "provenance", "limits"),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two agents, five conditions, three worlds, trajectories of all."""
    return evaluate(["idm17", "constant"], out=tmp_path_factory.mktemp("report") / "out", **SETTINGS)


@pytest.fixture(scope="module")
def written(finished, tmp_path_factory):
    """Its report without the video."""
    return write_report(finished.out, tmp_path_factory.mktemp("page") / "page.html", video=False)


@pytest.fixture
def copied(finished, tmp_path):
    return Path(shutil.copytree(finished.out, tmp_path / "copy"))


def sf3d(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


def test_the_page_stands_alone(written):
    text = written.html.read_text()
    assert [*re.findall(r'<section id="([^"]+)"', text)] == list(SECTIONS)
    links = re.findall(r'(?:src|href|xlink:href|action)="([^"]*)"', text)
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"@import|url\((?!#)", text)
    assert "<script" not in text
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert str(Path.home()) not in text
    assert str(written.html.parent) not in text


def test_equal_results_give_equal_pages(finished, written, tmp_path):
    again = write_report(finished.out, tmp_path / "other.html", video=False)
    assert again.html.read_bytes() == written.html.read_bytes()
    names = sorted(path.name for path in written.tables.iterdir())
    assert names == sorted(path.name for path in again.tables.iterdir())
    for name in names:
        assert (written.tables / name).read_bytes() == (again.tables / name).read_bytes()


def test_every_table_is_there_as_csv_and_the_printed_ones_as_latex(written):
    stems = {path.stem for path in written.tables.glob("*.csv")}
    assert stems == {
        *("headline", "passage", "rates", "losses", "decomposition", "lost_to", "additivity", "hazard"),
        "hazard_ratio",
    }
    for name, frame in written.analysis.tables().items():
        read = pl.read_csv(written.tables / f"{name}.csv", infer_schema_length=None)
        assert read.columns == frame.columns
        assert read.height == frame.height
    latex = {path.stem for path in written.tables.glob("*.tex")}
    assert latex == {
        *("headline", "passage", "safety", "entry_speed", "losses", "decomposition", "additivity", "hazard_ratio"),
    }


def test_rates_and_changes_are_those_of_the_evaluation(finished, written):
    text = written.html.read_text()
    for row in finished.table.to_dicts():
        assert interval({"p": row["passage"], "p_low": row["low"], "p_high": row["high"]}, "p") in text
        if row["condition"] != "reference":
            assert interval(row, "change", sign=True) in text
    head = written.analysis.headline.filter(pl.col("agent") == "idm17").row(0, named=True)
    mine = finished.table.filter(pl.col("agent") == "idm17")
    rows = {row["condition"]: row for row in mine.to_dicts()}
    assert head["passage"] == rows["reference"]["passage"]
    assert (head["mu018"], head["mu018_low"]) == (rows["mu018"]["change"], rows["mu018"]["change_low"])
    assert head["mu_severe"] == rows["mu005"]["change"]
    assert (head["grade_condition"], head["grade"]) == ("gradeN045", rows["gradeN045"]["change"])


def test_the_pair_obeys_the_rule(finished, written):
    pair = written.pair
    assert pair is not None
    assert (pair.agent, pair.reference) == ("idm17", "reference")
    worlds = finished.worlds.filter(pl.col("scenario_seed") == pair.seed, pl.col("agent") == "idm17")
    both = worlds.filter(pl.col("condition").is_in([pair.reference, pair.condition]))
    assert both["first_reset_step"].null_count() == 2
    rows = finished.vehicles.filter(
        pl.col("agent") == "idm17", pl.col("scenario_seed") == pair.seed, pl.col("vehicle") == pair.vehicle
    )
    ends = dict(rows.select("condition", "outcome").iter_rows())
    assert ends["reference"] == "pass"
    assert ends[pair.condition] in FAILURES
    assert f"scenario seed {pair.seed}, vehicle {pair.vehicle}" in written.html.read_text()


def test_without_trajectories_the_pair_is_simulated_again(finished, written, tmp_path):
    plain = evaluate(
        "idm17", out=tmp_path / "plain", conditions=CONDITIONS, worlds=3, horizon_s=SETTINGS["horizon_s"], threads=1
    )
    report = write_report(plain.out, video=False)
    assert report.html == plain.out / "report.html"
    assert report.remarks == ()
    assert report.analysis.hazard_ratio is None
    assert (report.pair.seed, report.pair.vehicle) == (written.pair.seed, written.pair.vehicle)

    def drawing(page):
        return re.search(r'<svg role="img" aria-label="Path.*?</svg>', page.read_text(), re.DOTALL)[0]

    assert drawing(report.html) == drawing(written.html)
    assert "Hazard ratios need trajectories" in report.html.read_text()
    # The folder is still the finished evaluation it was.
    again = EvaluationConfig(
        agents=["idm17"], conditions=CONDITIONS, worlds=3, horizon_s=SETTINGS["horizon_s"], threads=1
    )
    assert Evaluation(again, plain.out).missing == []


@pytest.mark.parametrize(
    "slugs", [["reference", "gradeN045"], ["reference", "mu018"], ["reference", "gradeP030-mu018"]]
)
def test_few_conditions_make_a_page_too(tmp_path, slugs):
    out = tmp_path / "out"
    evaluate("constant", out=out, conditions=slugs, worlds=1, horizon_s=4.0, threads=1)
    text = write_report(out, video=False).html.read_text()
    assert [*re.findall(r'<section id="([^"]+)"', text)] == [name for name in SECTIONS if name != "additivity"]
    assert "1 worlds are few" in text


def test_an_agent_without_a_name_is_given_as_an_object(tmp_path):
    driver = make_agent("idm17")
    driver.name = "mine"
    settings = {"conditions": ["reference", "mu005"], "worlds": 2, "horizon_s": 24.0, "threads": 1}
    result = evaluate(driver, out=tmp_path / "out", **settings)
    remarks = write_report(result.out, video=False).remarks
    assert len(remarks) == 1
    assert "'mine'" in remarks[0]
    assert write_report(result.out, agent=driver, video=False).remarks == ()


def test_a_suite_of_ones_own_is_named_by_its_file(tmp_path):
    suite = tmp_path / "roads.toml"
    suite.write_text('[[conditions]]\nslug = "reference"\n[[conditions]]\nslug = "ice"\nfriction = 0.05\n')
    result = evaluate("idm17", suite=suite, out=tmp_path / "out", worlds=2, horizon_s=24.0, threads=1)
    report = write_report(result.out, video=False)
    assert report.pair.condition == "ice"
    assert report.remarks == (
        "The pair is not drawn: its suite 'roads' is not in the registry; name its file with --suite.",
    )
    assert write_report(result.out, suite=suite, video=False).remarks == ()
    suite.write_text(suite.read_text().replace("0.05", "0.06"))
    with pytest.raises(ValueError, match="which is not the suite that was evaluated"):
        write_report(result.out, suite=suite, video=False)
    assert sf3d("report", result.out, "--suite", tmp_path / "none.toml").exit_code == 2


def test_families_show_the_spread_over_seeds_and_what_the_nested_interval_covers(finished, tmp_path):
    report = write_report(
        finished.out, tmp_path / "f.html", families={"both": ["idm17", "constant"]}, video=False, pair_agent="constant"
    )
    assert report.analysis.families["family"].unique().to_list() == ["both"]
    assert report.analysis.hazard_ratio["group"].unique().to_list() == ["both"]
    text = report.html.read_text()
    assert "Families of training seeds" in text
    assert "nested interval" in text


def test_functions_on_tables_give_the_same(finished, written):
    results = read_results(finished.out)
    tables = analyse(results).tables()
    for name, frame in written.analysis.tables().items():
        assert tables[name].equals(frame)
    vehicles, worlds = (t.filter(pl.col("agent") == "idm17") for t in (results.vehicles, results.worlds))
    assert choose_pair(vehicles, worlds, written.pair.condition, first_worlds=3) == written.pair


def test_the_video_is_in_the_page(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(pair_pictures, "LONGEST_S", 1.5)
    found = sf3d("report", finished.out, "--out", tmp_path / "film.html")
    assert found.exit_code == 0, found.output
    assert "film.html, tables in" in found.output.replace("\n", "")
    assert re.search(
        r'<video[^>]*src="data:video/mp4;base64,[A-Za-z0-9+/=]{10000,}"', (tmp_path / "film.html").read_text()
    )


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "name", ["vehicles.parquet", "worlds.parquet", "cells/idm17/mu018/manifest.json", "cells/idm17/mu018/rich.parquet"]
)
def test_a_damaged_file_is_named_and_nothing_is_written(copied, name):
    damage(copied / name)
    with pytest.raises((DamagedCell, ValueError), match=r"idm17/mu018|" + re.escape(Path(name).name)):
        write_report(copied, video=False)
    assert not list(copied.glob("report*"))
    assert sf3d("report", copied, "--no-video").exit_code in (1, 2)


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m["identity"].update(metrics="0" * 64), "mixes evaluations"),
        (lambda m: m.update(schema="sf3d.evaluation/1"), "schema 'sf3d.evaluation/1'"),
        (lambda m: m["record"].pop("conditions"), "lacks record.conditions"),
        (lambda m: m["files"].pop("worlds.parquet"), "lacks files.worlds.parquet"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(copied, change, text):
    edit(copied / "manifest.json", change)
    with pytest.raises(ValueError, match=re.escape(text)):
        write_report(copied, video=False)
    assert sf3d("report", copied).exit_code == 2


def test_results_of_other_metrics_are_refused(copied):
    for path in copied.glob("cells/*/*/manifest.json"):
        edit(path, lambda m: m["identity"].update(metrics="0" * 64))
    edit(copied / "manifest.json", lambda m: (m["identity"].update(metrics="0" * 64), m.pop("cell_manifests")))
    with pytest.raises(ValueError, match=r"measured with the metrics 000000000000\.\.\."):
        write_report(copied, video=False)


def test_an_unfinished_evaluation_is_refused(copied):
    (copied / "manifest.json").unlink()
    with pytest.raises(ValueError, match="has not finished \\(10 cells are there\\)"):
        write_report(copied, video=False)


def test_wrong_types_are_refused(finished):
    for settings, text in (
        ({"folder": None}, "DIR is None"),
        ({"out": 3}, "--out is 3"),
        ({"families": [("a", ["idm17"])]}, "give a mapping of family"),
        ({"families": {"a": "idm17"}}, "it must be a list of agent names"),
        ({"families": {"a": []}}, "it must be a list of agent names"),
        ({"pair_agent": 7}, "pair_agent is 7; the results hold"),
        (
            {"folder": finished.out / "cells/idm17/mu018"},
            "one cell of an evaluation; give the folder that holds cells/",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            write_report(**{"folder": finished.out, **settings})


def test_a_folder_that_is_none_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name, text in (("absent", "give the result folder"), ("file", "give the result folder"), ("empty", "holds ")):
        found = sf3d("report", tmp_path / name)
        assert found.exit_code == 2, found.output
        assert text in found.output.replace("\n", " ")
    assert sf3d("report", " ").exit_code == 2


def test_results_without_a_reference_or_anything_beside_it_are_refused(tmp_path):
    for slugs in (["mu018", "mu005"], ["reference"]):
        out = tmp_path / "-".join(slugs)
        evaluate("constant", out=out, conditions=slugs, worlds=1, horizon_s=1.0, threads=1)
        with pytest.raises(ValueError, match="a report needs 'reference' and another one"):
            write_report(out)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--out", "{tmp}/report.pdf"], "ends in .html"),
        (["--out", "{tmp}"], "ends in .html"),
        (["--out", "{tmp}/file/report.html"], "is not a folder"),
        (["--out", "{tmp}/taken.html"], "a folder; give a file name"),
        (["--family", "f"], "give NAME=AGENT,AGENT,..."),
        (["--family", "f=idm17,nobody"], "family 'f' names ['nobody']"),
        (["--family", "f=idm17", "--family", "g=idm17"], "is named in 'f' and 'g'"),
        (["--family", "f=idm17", "--family", "f=constant"], "each name may appear once"),
        (["--pair-agent", "nobody"], "pair_agent is 'nobody'; the results hold ['constant', 'idm17']"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_computed(finished, tmp_path, words, text):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.html").mkdir()
    found = sf3d("report", finished.out, *(word.format(tmp=tmp_path) for word in words))
    assert found.exit_code == 2, found.output
    assert text in " ".join(found.output.split())
    assert not list(finished.out.glob("report*"))
