"""An agent whose actions are not finite is named: it must not pass for one that drives with zero commands."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from typer.testing import CliRunner

from sf3d_envs.cli import app
from sf3d_envs.evaluation import Evaluation, EvaluationConfig, evaluate

SHORT = {"conditions": ["reference", "mu012"], "worlds": 3, "horizon_s": 1.0, "threads": 1}


class Lapsing:
    """Zero commands, and NaN for vehicle 5 of the chosen worlds from the second decision on."""

    name, decision_hz, digest = "lapsing", 10, "lapsing-1"

    def __init__(self, worlds=slice(None)):
        self.worlds = worlds

    def bind(self, view) -> None:
        self.actions = torch.zeros(view.num_worlds, view.num_vehicles, 2)

    def reset(self, mask=None) -> None:
        self.decision = 0

    def act(self, view) -> torch.Tensor:
        self.decision += 1
        actions = self.actions.clone()
        if self.decision == 2:
            actions[self.worlds, 5, 0] = float("nan")
        return actions


def test_an_agent_with_non_finite_actions_is_named_with_count_world_and_time(tmp_path):
    with pytest.warns(RuntimeWarning) as caught:
        result = evaluate(Lapsing(), out=tmp_path / "out", **SHORT)
    assert [str(item.message) for item in caught if item.category is RuntimeWarning] == [
        "agent 'lapsing': a non-finite action was replaced by zero: 6 of 6 worlds in 2 conditions, "
        "first reference, scenario 100000, vehicle 5, control step 7 (0.12 s)"
    ]
    assert list(result.errors) == ["lapsing/reference", "lapsing/mu012"]
    first = {"scenario_seed": 100_000, "reason": "action", "vehicle": 5, "step": 7, "time_s": pytest.approx(7 / 60)}
    assert result.errors["lapsing/mu012"][0] == first
    cell = json.loads((tmp_path / "out/cells/lapsing/mu012/manifest.json").read_text())
    assert [error["scenario_seed"] for error in cell["record"]["errors"]] == [100_000, 100_001, 100_002]
    assert json.loads((tmp_path / "out/manifest.json").read_text())["record"]["errors"] == result.errors

    with pytest.warns(RuntimeWarning, match="'lapsing'"):
        again = evaluate(Lapsing(), out=tmp_path / "out", **SHORT)
    assert again.computed == ()
    assert again.errors == result.errors


def test_errors_belong_to_their_own_condition_and_batch():
    """World 4 of the condition-major batch is scenario 100001 of the second condition; batches of 2 split a cell."""
    result = Evaluation(EvaluationConfig(agents=[Lapsing([4])], **SHORT)).run()
    assert list(result.errors) == ["lapsing/mu012"]
    assert [error["scenario_seed"] for error in result.errors["lapsing/mu012"]] == [100_001]
    split = Evaluation(EvaluationConfig(agents=[Lapsing([0])], max_batch=2, **SHORT)).run()
    assert [error["scenario_seed"] for error in split.errors["lapsing/reference"]] == [100_000, 100_002]


def test_a_sound_agent_gives_no_errors_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert evaluate("constant", **SHORT).errors == {}


def test_the_command_line_exits_with_1(tmp_path, monkeypatch):
    import sf3d_envs.agents

    real = sf3d_envs.agents.make_agent
    monkeypatch.setattr(sf3d_envs.agents, "make_agent", lambda a: Lapsing() if a == "lapsing" else real(a))
    words = ["evaluate", "--agent", "lapsing", "--conditions", "mu012", "--worlds", "1", "--out", str(tmp_path / "out")]
    for _ in range(2):  # computed, then reused
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 1
        assert "warning: agent 'lapsing': a non-finite action" in result.stderr
        assert "error: non-finite actions, which count as zero, came from lapsing" in result.stderr
        assert (tmp_path / "out" / "manifest.json").is_file()
