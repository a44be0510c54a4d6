"""The verification report through the public API and the command line."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sf3d_envs.cli import app
from sf3d_envs.verification import GROUPS, Check, Record, verify
from sf3d_envs.verification import slopes as slopes_group
from sf3d_envs.verification import suspension as suspension_group

QUICK = ["suspension", "slopes", "wheel"]


def sf3d(*words: object):
    """Run one command in this process."""
    return CliRunner().invoke(app, ["verify", *(str(w) for w in words)])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a report on the quick groups, made by the command line."""
    out = tmp_path_factory.mktemp("verification") / "report"
    result = sf3d("--only", ",".join(QUICK), "--out", out)
    assert result.exit_code == 0, result.output
    assert "checks passed" in result.output
    return out


def test_files_are_complete(report: Path) -> None:
    assert sorted(path.name for path in report.iterdir()) == ["checks.csv", "checks.json", "plots", "report.html"]
    content = json.loads((report / "checks.json").read_text(encoding="utf-8"))
    assert content["passed"] is True and content["full"] is False
    assert [group["name"] for group in content["groups"]] == QUICK
    checks = content["checks"]
    assert len(checks) > 20
    for check in checks:
        assert check["passed"] and check["states"].strip() and check["source"].strip()
        assert math.isfinite(check["measured"])
        assert check["plot"] is None or check["plot"] in content["plots"]
    with (report / "checks.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["group"], row["name"]) for row in rows] == [(check["group"], check["name"]) for check in checks]
    page = (report / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(content["plots"]) == len(list((report / "plots").iterdir()))
    for plot in content["plots"]:
        assert (report / "plots" / plot).read_bytes().startswith(b"\x89PNG")
    assert 'src="http' not in page and "all " in page


def test_a_later_report_replaces_an_earlier_one(report: Path, tmp_path: Path) -> None:
    verify(tmp_path, groups=["suspension"])
    assert (tmp_path / "plots" / "suspension.png").exists()
    (tmp_path / "plots" / "mine.png").write_bytes(b"kept")
    verify(tmp_path, groups=["slopes"])
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["mine.png", "slopes.png"]


def test_a_wrong_expectation_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suspension_group, "MODES", {**suspension_group.MODES, "heave": (1.50, 0.44)})
    result = sf3d("--only", "suspension", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "1 of 11 checks failed" in result.output and "heave frequency" in result.output
    content = json.loads((tmp_path / "out" / "checks.json").read_text(encoding="utf-8"))
    assert content["passed"] is False
    assert [check["name"] for check in content["checks"] if not check["passed"]] == ["heave frequency"]
    assert "1 of 11 checks failed" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_changed_vehicle_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Softer dampers in the simulator alone are found out by the damping ratios."""
    soft = suspension_group.VehicleParams(suspension_damping=2500.0)
    real = suspension_group.Fleet
    monkeypatch.setattr(suspension_group, "Fleet", lambda *a, **k: real(*a, **{**k, "car": soft}))
    failed = {check.name for check in verify(groups=["suspension"]).failed}
    assert {"heave damping", "pitch damping", "roll damping"} <= failed


def test_a_group_that_raises_fails_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(record: Record) -> None:
        record.at_most("before", 0.0, 1.0, states="holds", source="here")
        raise RuntimeError("no road")

    monkeypatch.setattr(slopes_group, "run", broken)
    result = verify(groups=["suspension", "slopes"])
    assert not result.passed
    (failed,) = result.failed
    assert failed.group == "slopes" and "no road" in failed.note
    assert sum(check.group == "suspension" for check in result) == 11


def test_progress_names_every_group() -> None:
    seen = []
    verify(groups=["slopes"], progress=lambda *item: seen.append(item))
    assert seen == [("Slopes", 0, 1)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--out is missing"),
        (["--out", ""], "--out is ''"),
        (["--out", "{file}/inside"], "is not a folder"),
        (["--out", "{out}", "--only", "nosuch"], "group 'nosuch' is unknown; known: suspension"),
        (["--out", "{out}", "--only", "slopes,"], "--only is 'slopes,'"),
        (["--out", "{out}", "--only", "solvers"], "runs with --full"),
    ],
)
def test_bad_input(words: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = sf3d(*(word.format(file=tmp_path / "file", out=tmp_path / "out") for word in words))
    assert result.exit_code == 2
    assert text in result.output
    assert not (tmp_path / "out").exists()


def test_list_shows_the_groups_and_loads_no_physics() -> None:
    code = (
        "import sys\nfrom sf3d_envs.cli import app\n"
        "try:\n    app(['verify', '--list'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'warp', 'newton', 'matplotlib'} & set(sys.modules)))"
    )
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [group.name for group in GROUPS]
    assert lines[-1] == "[]"


def test_checks_compare_as_they_say() -> None:
    record = Record("g")
    words = {"states": "s", "source": "o"}
    assert record.add("a", 1.04, 1.0, 0.05, **words).passed
    assert not record.add("b", 1.06, 1.0, 0.05, **words).passed
    assert record.at_most("c", 1.0, 1.0, **words).passed and not record.at_most("d", 1.1, 1.0, **words).passed
    assert record.at_least("e", 1.0, 1.0, **words).passed and not record.at_least("f", 0.9, 1.0, **words).passed
    for k, value in enumerate((math.nan, math.inf, -math.inf)):
        assert not record.at_most(f"n{k}", value, 1.0, **words).passed
    with pytest.raises(ValueError, match="twice"):
        record.add("a", 1.0, 1.0, **words)
    with pytest.raises(ValueError, match="relation 'below'"):
        record.add("z", 1.0, 1.0, relation="below", **words)
    assert isinstance(record.checks[0], Check) and record.checks[0].expectation == "1 ± 0.05"


def test_the_reference_knows_nothing_of_the_simulator(repo_root: Path) -> None:
    for path in (repo_root / "sf3d_envs" / "verification" / "reference").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "warp" not in text and "from .." not in text and "import sf3d_envs" not in text, path


@pytest.mark.slow
def test_the_whole_report(tmp_path: Path) -> None:
    """All groups, long form, in a process of its own that sees neither this folder nor the repository's tests."""
    command = [sys.executable, "-m", "sf3d_envs.cli", "verify", "--full", "--out", "report"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "report" / "checks.json").read_text(encoding="utf-8"))
    assert content["passed"] and len(content["checks"]) > 300
    assert {group["name"] for group in content["groups"]} == {group.name for group in GROUPS}
