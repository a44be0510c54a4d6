"""Result folders: atomic files, resume, conflicts, damage."""

from __future__ import annotations

import json
import os

import polars as pl
import pytest

from sf3d_envs.evaluation.store import (
    DamagedCell,
    ManifestConflict,
    ResultStore,
    check_writable,
    differences,
    write_bytes,
    write_parquet,
)

IDENTITY = {"suite": "s", "worlds": 2, "packages": {"numpy": "2"}}
CELLS = {"a/reference": {"agent_digest": "00"}, "a/mu018": {"agent_digest": "00"}}
FRAME = pl.DataFrame({"x": [1, 2]})


def make_store(root, identity=IDENTITY, cells=CELLS) -> ResultStore:
    return ResultStore(root, identity, cells)


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_bytes(target, b"old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_equal_frames_give_equal_bytes(tmp_path):
    first = write_parquet(tmp_path / "a.parquet", FRAME)
    second = write_parquet(tmp_path / "b.parquet", FRAME.clone())
    assert first == second
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "a.parquet").read_bytes()


def test_finished_cells_are_reused(tmp_path):
    assert make_store(tmp_path).check() == []
    make_store(tmp_path).write_cell("a/mu018", {"vehicles": FRAME}, {"seconds": 1.0})
    assert make_store(tmp_path).check() == ["a/mu018"]
    assert make_store(tmp_path).check(recompute=["a/mu018"]) == []


def test_a_cell_without_manifest_is_computed_again(tmp_path):
    store = make_store(tmp_path)
    store.write_cell("a/mu018", {"vehicles": FRAME}, {})
    (store.cell_folder("a/mu018") / "manifest.json").unlink()
    assert make_store(tmp_path).check() == []


@pytest.mark.parametrize("damage", ["changed", "missing", "manifest"])
def test_a_damaged_cell_is_named(tmp_path, damage):
    store = make_store(tmp_path)
    for cell in CELLS:
        store.write_cell(cell, {"vehicles": FRAME}, {})
    folder = store.cell_folder("a/mu018")
    if damage == "changed":
        write_parquet(folder / "vehicles.parquet", pl.DataFrame({"x": [1, 3]}))
    elif damage == "missing":
        (folder / "vehicles.parquet").unlink()
    else:
        (folder / "manifest.json").write_text("{")
    with pytest.raises(DamagedCell, match=r"a/mu018.*--recompute a/mu018") as caught:
        make_store(tmp_path).check()
    assert caught.value.cells == ("a/mu018",)
    assert make_store(tmp_path).check(recompute=["a/mu018"]) == ["a/reference"]


def test_a_cell_of_another_evaluation_is_a_conflict(tmp_path):
    make_store(tmp_path).write_cell("a/mu018", {"vehicles": FRAME}, {})
    other = {**IDENTITY, "worlds": 4, "packages": {"numpy": "3"}}
    with pytest.raises(ManifestConflict, match="worlds: 2 there, 4 asked") as caught:
        make_store(tmp_path, other).check()
    assert caught.value.fields == ("packages.numpy", "worlds")


def test_a_cell_that_is_not_asked_for_is_a_conflict(tmp_path):
    make_store(tmp_path).write_cell("a/mu018", {"vehicles": FRAME}, {})
    with pytest.raises(ManifestConflict, match="a/mu018"):
        make_store(tmp_path, cells={"a/reference": CELLS["a/reference"]}).check()


def test_a_committed_folder_refuses_another_evaluation(tmp_path):
    store = make_store(tmp_path)
    for cell in CELLS:
        store.write_cell(cell, {"vehicles": FRAME}, {})
    store.commit({}, {"machine": "x"})
    assert sorted(make_store(tmp_path).check()) == sorted(CELLS)
    changed = {**CELLS, "a/mu018": {"agent_digest": "11"}}
    with pytest.raises(ManifestConflict) as caught:
        make_store(tmp_path, cells=changed).check()
    assert caught.value.fields == ("cells.a/mu018.agent_digest",)


def test_unknown_recompute_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--recompute is 'a/mu18'"):
        make_store(tmp_path).check(recompute=["a/mu18"])


def test_names_that_are_no_folder_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no folder name"):
        make_store(tmp_path, cells={"../x": {}})


def test_the_manifest_goes_last(tmp_path, monkeypatch):
    """When a frame cannot be written, the cell has no manifest, even if it had one before."""
    store = make_store(tmp_path)
    store.write_cell("a/mu018", {"vehicles": FRAME}, {})

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        store.write_cell("a/mu018", {"vehicles": FRAME}, {})
    assert not (store.cell_folder("a/mu018") / "manifest.json").exists()


def test_writable_check_leaves_nothing(tmp_path):
    check_writable(tmp_path / "new" / "deep")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"--out is .*not a folder"):
            check_writable(path)


def test_differences_name_nested_fields():
    assert differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}, "d": 4}) == {"a.c": (2, 3), "d": (None, 4)}
    assert differences(json.loads('{"x": [1]}'), {"x": [1]}) == {}
