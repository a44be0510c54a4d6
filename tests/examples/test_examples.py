"""Every example runs in its short form."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_short_form(path, tmp_path, monkeypatch, capsys):
    if path.stem == "sb3_ppo":
        pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    module = load(path)
    result = module.main(["--short"])
    assert capsys.readouterr().out.strip()
    assert result is not None
    assert f"examples/{path.name}" in module.__doc__


def test_the_examples_are_there():
    names = {path.stem for path in EXAMPLES}
    assert names >= {"drive_one", "vector", "pettingzoo_loop", "sb3_ppo", "matched_pair", "torch_loop"}


def test_matched_pair_is_equal_until_the_patch(tmp_path, capsys):
    module = load(next(path for path in EXAMPLES if path.stem == "matched_pair"))
    out = tmp_path / "pair.png"
    picture = module.main(["--short", "--out", str(out)])
    assert "still equal" in capsys.readouterr().out
    assert out.stat().st_size > 0
    assert picture.dtype == np.uint8
