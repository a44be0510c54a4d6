"""Runs that are killed, run out of disk or meet damage: the same command ends with the same files."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sf3d_envs.evaluation import DamagedCell, Evaluation, EvaluationConfig, ManifestConflict, evaluate, files
from sf3d_envs.evaluation.rich import RichWriter
from sf3d_envs.evaluation.store import FolderInUse

HERE = Path(__file__).parent
SMALL = {"agents": ["constant"], "conditions": ["reference", "mu018"], "worlds": 2, "horizon_s": 1.0, "rich": 1}
needs_signals = pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL and fork")


def snapshot(root: Path) -> dict[str, bytes]:
    """All files but `run.json`, which holds the times."""
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    found.pop("run.json", None)
    return found


def stamps(root: Path) -> dict[str, int]:
    return {p.as_posix(): p.stat().st_mtime_ns for p in root.rglob("*")}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("resume") / "out"
    Evaluation(EvaluationConfig(**SMALL), root).run()
    return root


def run_killed(small: Path, root: Path, first: int, stride: int) -> None:
    words = [sys.executable, HERE / "killed.py", small, root, str(first), str(stride)]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    computed = [row[1] for row in found]
    assert computed == sorted(computed, reverse=True)
    assert {2, 1, 0} == set(computed)
    for operation, _, again, differing in found:
        assert (again, differing) == (0, []), f"killed before operation {operation}"


@needs_signals
def test_a_kill_between_file_operations_loses_nothing_that_was_finished(small, tmp_path):
    """Killed before every fifth operation: no finished cell is computed again, and all files are the same."""
    run_killed(small, tmp_path, 2, 5)


@pytest.mark.slow
@needs_signals
def test_a_kill_before_any_file_operation(small, tmp_path):
    run_killed(small, tmp_path, 0, 1)


LONG = {"conditions": ["reference", "mu018", "mu005", "gradeN080"], "worlds": 8, "horizon_s": 10.0, "rich": 2}
SCRIPT = f"""
import sys
from sf3d_envs.evaluation import evaluate
evaluate("idm17", out=sys.argv[1], max_batch=8, threads=1, **{LONG!r})
"""


def wait_for(condition, process, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "the run ended before it was to be killed"


@needs_signals
def test_kills_in_a_row_while_it_computes(tmp_path):
    """Killed at a random moment of three successive runs, then finished: the files of a run in one piece."""
    whole = evaluate("idm17", out=tmp_path / "whole", threads=1, **LONG)
    out, dice = tmp_path / "out", random.Random(7)
    cells = [0]
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(out)], stderr=subprocess.DEVNULL)
        if len(cells) == 1:
            wait_for((out / ".partial").is_dir, process)
        else:
            wait_for(lambda: len(list(out.glob("cells/*/*/manifest.json"))) > cells[-1], process)
        time.sleep(dice.uniform(0.0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        cells.append(len(list(out.glob("cells/*/*/manifest.json"))))
    assert not (out / "manifest.json").exists()
    rest = Evaluation(EvaluationConfig(agents=["idm17"], **LONG), out)
    assert len(rest.finished) == cells[-1] >= 2
    result = rest.run()
    assert len(result.computed) == 4 - cells[-1]
    assert snapshot(out) == snapshot(whole.out)
    assert result.manifest == whole.manifest


def test_a_complete_folder_is_not_touched(small):
    before, times = snapshot(small), stamps(small)
    again = Evaluation(EvaluationConfig(**SMALL), small)
    assert again.store.complete
    result = again.run()
    assert result.computed == ()
    assert result.vehicles.height == 48
    assert (snapshot(small), stamps(small)) == (before, times)


def test_times_are_in_run_json_alone(small):
    run = json.loads((small / "run.json").read_text())["runs"][0]
    assert set(run["cells"]) == {"constant/reference", "constant/mu018"}
    assert run["seconds"] > 0.0
    record = json.loads((small / "cells/constant/mu018/manifest.json").read_text())["record"]
    assert set(record) == {"scenario", "terrain", "initial_state", "route", "errors"}
    assert set(json.loads((small / "manifest.json").read_text())["record"]) == {
        "bootstrap",
        "conditions",
        "errors",
        "row_invariant",
        "writers",
    }


@pytest.fixture
def copy(small, tmp_path):
    import shutil

    return Path(shutil.copytree(small, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("cells/constant/mu018/rich.parquet", "constant/mu018"),
        ("cells/constant/mu018/manifest.json", "constant/mu018"),
        ("table.csv", "table.csv"),
        ("matched-constant.png", "matched-constant.png"),
        ("manifest.json", "manifest.json"),
    ],
)
@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_damage_is_named_and_repaired_on_request_only(copy, small, name, again, damage):
    if (name, damage) == ("manifest.json", "missing"):
        pytest.skip("a folder without a manifest is an unfinished one")
    target = copy / name
    if damage == "truncated":
        target.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
    else:
        target.unlink()
    with pytest.raises(DamagedCell, match=f"--recompute {again}"):
        Evaluation(EvaluationConfig(**SMALL), copy)
    repaired = Evaluation(EvaluationConfig(**SMALL), copy, recompute=[again]).run()
    assert repaired.computed == ((again,) if "/" in again else ())
    assert snapshot(copy) == snapshot(small)


def test_an_interrupted_repair_goes_on(copy, small):
    """The commit mark is gone before a cell is made again, so the plain command finishes what the repair began."""

    class Interrupted:
        name = "interrupted"

        def run(self, work, scratch, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Evaluation(EvaluationConfig(**SMALL, executor=Interrupted()), copy, recompute=["constant/mu018"]).run()
    assert not (copy / "manifest.json").exists()
    Evaluation(EvaluationConfig(**SMALL), copy).run()
    assert snapshot(copy) == snapshot(small)


def test_an_edited_cell_manifest_of_a_committed_folder_is_damage(copy):
    path = copy / "cells/constant/mu018/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["record"]["errors"] = [{"reason": "action"}]
    path.write_text(json.dumps(manifest))
    with pytest.raises(DamagedCell, match=r"constant/mu018 \(manifest\.json\)"):
        Evaluation(EvaluationConfig(**SMALL), copy)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("schema", "sf3d.evaluation/1", r"results of another version of this package \(schema: "),
        ("code", "0" * 64, "results of other code"),
        ("metrics", "0" * 64, "results of other code"),
    ],
)
def test_folders_of_other_versions_are_refused_with_the_fields(copy, committed, field, value, text):
    names = ["cells/constant/mu018/manifest.json", *(["manifest.json"] if committed else [])]
    for name in names:
        manifest = json.loads((copy / name).read_text())
        (manifest if field == "schema" else manifest["identity"])[field] = value
        (copy / name).write_text(json.dumps(manifest))
    if not committed:
        (copy / "manifest.json").unlink()
    with pytest.raises(ManifestConflict, match=text) as caught:
        Evaluation(EvaluationConfig(**SMALL), copy)
    assert "choose another folder" in str(caught.value)
    assert caught.value.fields[0].endswith(field)


@pytest.mark.skipif(os.name == "nt", reason="no lock on folders")
def test_two_writers_are_kept_apart(copy):
    (copy / "manifest.json").unlink()
    first, second = (Evaluation(EvaluationConfig(**SMALL), copy) for _ in range(2))
    with first.store.writing(), pytest.raises(FolderInUse, match="another process is writing"):
        second.run()
    assert second.run().computed == ()


def test_a_full_disk_leaves_finished_cells(tmp_path, monkeypatch, small):
    """The second cell's table does not fit; afterwards the same evaluation goes on with that cell."""
    written = files.write_bytes
    config = EvaluationConfig(**SMALL, max_batch=2)

    def full(path, data):
        if path.parts[-2:] == ("mu018", "vehicles.parquet"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(path, data)

    with monkeypatch.context() as patch:
        patch.setattr("sf3d_envs.evaluation.store.write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            Evaluation(config, tmp_path / "out").run()
    rest = Evaluation(config, tmp_path / "out")
    assert rest.finished == ["constant/reference"]
    assert rest.run().computed == ("constant/mu018",)
    assert snapshot(tmp_path / "out") == snapshot(small)


def test_a_full_disk_while_trajectories_are_written(tmp_path, monkeypatch, small):
    def full(self, columns):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(RichWriter, "write_rows", full)
        with pytest.raises(OSError, match="No space left"):
            Evaluation(EvaluationConfig(**SMALL), tmp_path / "out").run()
    assert not list((tmp_path / "out").rglob("*.parquet"))
    Evaluation(EvaluationConfig(**SMALL), tmp_path / "out").run()
    assert snapshot(tmp_path / "out") == snapshot(small)


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 512 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_really_full_disk_ends_with_3_and_the_same_command_goes_on(tiny_disk, tmp_path):
    words = ["--agent", "constant", "--conditions", "reference,mu018", "--worlds", "1", "--rich", "1"]
    command = [sys.executable, "-m", "sf3d_envs.cli", "evaluate", *words, "--out"]
    full = subprocess.run([*command, tiny_disk / "out"], capture_output=True, text=True, check=False)
    assert full.returncode == 3, full.stderr
    assert "finished cells stay, the same command goes on" in full.stderr
    assert "Traceback" not in full.stderr
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    rest = subprocess.run([*command, tiny_disk / "out"], capture_output=True, text=True, check=False)
    assert rest.returncode == 0, rest.stderr
    elsewhere = subprocess.run([*command, tmp_path / "whole"], capture_output=True, text=True, check=False)
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert snapshot(tiny_disk / "out") == snapshot(tmp_path / "whole")
