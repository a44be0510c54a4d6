"""Files are written where a file may stand, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sf3d_envs.cli import app
from sf3d_envs.evaluation.store import check_file, write_bytes


def test_a_device_or_folder_is_never_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    for target in (fifo, tmp_path):
        with pytest.raises(OSError, match="is no regular file"):
            write_bytes(target, b"x")
    with pytest.raises(ValueError, match=r"--json is .*no regular file"):
        check_file(fifo, "--json")
    with pytest.raises(ValueError, match=r"--json is .*a folder"):
        check_file(tmp_path, "--json")
    assert fifo.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "there" / "real.json")
    write_bytes(link, b"1")
    assert link.is_symlink() and (tmp_path / "there" / "real.json").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["plots", "report.html", "checks.json"])
def test_verify_looks_at_its_targets_before_it_measures(name: str, tmp_path: Path) -> None:
    if name == "plots":
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    result = CliRunner().invoke(app, ["verify", "--out", str(tmp_path), "--only", "suspension"])
    assert result.exit_code == 2
    assert name in result.stderr
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_bench_refuses_what_it_cannot_measure_or_write(tmp_path: Path) -> None:
    run = CliRunner().invoke
    os.mkfifo(tmp_path / "pipe")
    for words, text in (
        (["--worlds", "99999999999"], "worlds is 99999999999; it must be in [1, 1000000]"),
        (["--worlds", "1,,2"], "--worlds is '1,,2'; give whole numbers"),
        (["--json", str(tmp_path / "pipe")], "no regular file"),
    ):
        result = run(app, ["bench", "--seconds", "0.05", *words])
        assert result.exit_code == 2, result.stderr
        assert text in result.stderr
