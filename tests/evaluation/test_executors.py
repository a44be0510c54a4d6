"""Where cells are computed: equal bits from Ray's workers, failures named, progress over all cells."""

from __future__ import annotations

import builtins
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import (
    CellFailed,
    Evaluation,
    EvaluationConfig,
    FrozenMismatch,
    LocalExecutor,
    RayExecutor,
    WorkerMismatch,
    evaluate,
    freeze,
    write_frozen,
)
from sf3d_envs.evaluation.cells import CellSettings, batch_limit, condition_groups
from sf3d_envs.evaluation.executors import compute_remote, make_executor, worker_facts
from sf3d_envs.registry import load_condition, load_suite

SHORT = {"conditions": ["reference", "mu005"], "worlds": 3, "horizon_s": 8.0, "rich": 2}
SETTINGS = CellSettings(device="cpu", threads=1, horizon_s=1.0, solver="vehicle", rich=0, max_batch=8)


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine with two workers."""
    ray = pytest.importorskip("ray", reason="needs the ray extra")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def snapshot(root: Path) -> dict[str, bytes]:
    found = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    found.pop("run.json")
    return found


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return evaluate(["idm17", "constant"], out=tmp_path_factory.mktemp("local") / "out", **SHORT)


def test_ray_gives_the_bits_of_a_local_run(ray, local, tmp_path):
    """Two agents on two conditions, one by name and one as an object; all files are the same."""
    seen = []
    config = EvaluationConfig(agents=["idm17", make_agent("constant")], executor="ray", **SHORT)
    result = Evaluation(config, tmp_path).run(lambda label, done, total: seen.append((done, total)))
    assert set(result.computed) == {f"{a}/{c}" for a in ("idm17", "constant") for c in SHORT["conditions"]}
    assert snapshot(tmp_path) == snapshot(local.out)
    steps = 3 * 480
    assert seen == [(steps * i, 4 * steps) for i in range(5)]
    assert ray.is_initialized()


def test_cells_of_workers_agree_with_a_freeze_manifest_or_are_refused(ray, tmp_path):
    settings = {"agents": ["constant"], "conditions": ["reference", "mu005"], "worlds": 2, "horizon_s": 1.0}
    manifest = freeze(EvaluationConfig(**settings))
    good = write_frozen(tmp_path / "good.json", manifest)
    here = evaluate(out=tmp_path / "local", frozen=good, **settings)
    assert evaluate(out=tmp_path / "ray", frozen=good, executor="ray", **settings).computed == here.computed
    assert snapshot(tmp_path / "ray") == snapshot(tmp_path / "local")

    evaluation = Evaluation(EvaluationConfig(frozen=good, executor="ray", **settings), tmp_path / "other")
    record = json.loads(json.dumps(evaluation.frozen.manifest))
    record["record"]["scenario"][1] = "0" * 64
    evaluation.frozen = dataclasses.replace(evaluation.frozen, manifest=record)
    with pytest.raises(FrozenMismatch, match="scenario \\(1 of 2 worlds, first seed 100001\\)"):
        evaluation.run()
    assert not list((tmp_path / "other").glob("cells/*/*/manifest.json"))


def test_a_local_run_goes_on_with_ray_and_the_other_way_round(ray, local, tmp_path):
    class OneCell:
        name = "one"

        def __init__(self, inner):
            self.inner = inner

        def run(self, work, scratch, progress):
            yield next(iter(self.inner.run(work, scratch, progress)))
            raise KeyboardInterrupt

    for first, second in ((LocalExecutor(), "ray"), (RayExecutor(), "local")):
        out = tmp_path / str(second)
        config = EvaluationConfig(agents=["idm17", "constant"], executor=OneCell(first), max_batch=3, **SHORT)
        with pytest.raises(KeyboardInterrupt):
            Evaluation(config, out).run()
        rest = Evaluation(EvaluationConfig(agents=["idm17", "constant"], executor=second, **SHORT), out)
        assert len(rest.finished) == 1
        seen = []
        result = rest.run(lambda label, done, total, seen=seen: seen.append((done, total)))
        assert len(result.computed) == 3
        assert seen[-1] == (3 * 1440, 3 * 1440)
        assert snapshot(out) == snapshot(local.out)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_ray_run_goes_on(local, tmp_path):
    """Killed after its first cell; Ray's own processes end with it."""
    pytest.importorskip("ray", reason="needs the ray extra")
    script = f"""
import sys
from sf3d_envs.evaluation import RayExecutor, evaluate
ray = RayExecutor(num_cpus=1)
evaluate(["idm17", "constant"], out=sys.argv[1], executor=ray, **{SHORT!r})
"""
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", script, str(out)], stderr=subprocess.DEVNULL)
    while not list(out.glob("cells/*/*/manifest.json")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rest = Evaluation(EvaluationConfig(agents=["idm17", "constant"], **SHORT), out)
    assert len(rest.finished) >= 1
    assert len(rest.run().computed) == 4 - len(rest.finished)
    assert snapshot(out) == snapshot(local.out)


def test_a_failing_worker_names_its_cells_and_the_others_are_finished(ray, tmp_path):
    class Broken:
        name, decision_hz, digest = "broken", 10, "0" * 64

        def bind(self, view):
            raise RuntimeError("no such checkpoint")

        def reset(self, mask=None):
            pass

        def act(self, view):
            pass

    config = EvaluationConfig(agents=[Broken(), "constant"], executor="ray", **SHORT)
    with pytest.raises(CellFailed, match="broken/reference: RuntimeError: no such checkpoint") as caught:
        Evaluation(config, tmp_path).run()
    assert set(caught.value.cells) == {"broken/reference", "broken/mu005"}
    assert set(Evaluation(config, tmp_path).finished) == {"constant/reference", "constant/mu005"}


def test_a_worker_that_dies_names_its_cell(ray, tmp_path):
    class Dying:
        name, decision_hz, digest = "dying", 10, "0" * 64

        def bind(self, view):
            import os

            os._exit(1)

        def reset(self, mask=None):
            pass

        def act(self, view):
            pass

    config = EvaluationConfig(agents=[Dying()], executor="ray", conditions=["reference"], worlds=1, horizon_s=1.0)
    with pytest.raises(CellFailed, match="dying/reference: WorkerCrashedError"):
        Evaluation(config, tmp_path).run()


@pytest.mark.parametrize("field", ["code", "agent", "device"])
def test_a_worker_of_another_version_refuses(field):
    expected = {**worker_facts("cpu"), "agent": make_agent("constant").digest, field: "other"}
    with pytest.raises(WorkerMismatch, match=f"{field}: other on the driver"):
        compute_remote("constant", load_condition("reference"), [100_000], SETTINGS, expected)


def test_a_worker_with_another_package_refuses():
    expected = {**worker_facts("cpu"), "agent": make_agent("constant").digest}
    expected["packages"] = {**expected["packages"], "warp-lang": "0.1"}
    with pytest.raises(WorkerMismatch, match=r"packages\.warp-lang: 0\.1 on the driver"):
        compute_remote("constant", load_condition("reference"), [100_000], SETTINGS, expected)


def test_ray_that_is_not_installed_is_named_with_the_way_out(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'sf3d-envs\[ray\]'"):
        Evaluation(EvaluationConfig(executor="ray"))


def test_executors_are_checked():
    with pytest.raises(ValueError, match="executor 'dask' is unknown; known: 'local', 'ray'"):
        make_executor("dask")
    with pytest.raises(ValueError, match="ray_address is 'auto'; it needs executor 'ray', got 'local'"):
        make_executor("local", "auto")


def test_groups_fill_batches_evenly():
    conditions = load_suite().conditions
    groups = [list(group) for group in condition_groups(conditions, 32, 128)]
    assert [len(group) for group in groups] == [4, 4, 4, 3, 3, 3]
    assert [c for group in groups for c in group] == list(conditions)
    assert [len(group) for group in condition_groups(conditions[:2], 1024, 128)] == [1, 1]
    assert list(condition_groups([], 32, 128)) == []


def test_a_batch_fits_the_memory(monkeypatch):
    from sf3d_envs.evaluation import cells

    assert batch_limit("cpu", threads=1) == 128
    assert batch_limit("cpu", threads=8) == 512
    monkeypatch.setattr(cells, "_free_memory", lambda: 10_000_000)
    assert batch_limit("cpu", threads=1) == 50
    assert batch_limit("cpu", threads=1, rich_share=1.0) == 11


def test_progress_covers_the_missing_cells_only(tmp_path):
    config = EvaluationConfig(
        agents=["constant"], conditions=["reference", "mu018"], worlds=1, horizon_s=2.0, max_batch=1
    )

    def stop(label, done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Evaluation(config, tmp_path).run(stop)
    seen = []
    Evaluation(config, tmp_path).run(lambda label, done, total: seen.append((done, total)))
    assert seen[0] == (0, 120)
    assert seen[-1] == (120, 120)
