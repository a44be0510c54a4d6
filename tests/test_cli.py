"""The command line through its public entry: exit codes, one-line errors, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from typer.testing import CliRunner

from sf3d_envs import __version__
from sf3d_envs.cli import app

SHORT_EVALUATION = ["evaluate", "--agent", "constant", "--conditions", "reference,mu018", "--worlds", "1"]


def sf3d(*words: object):
    """Run one command in this process."""
    return CliRunner().invoke(app, [str(w) for w in words])


def sf3d_process(*words: str, **kwargs) -> subprocess.Popen:
    """Start one command in its own process."""
    command = [sys.executable, "-m", "sf3d_envs.cli", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def test_help_shows_every_command_with_an_example():
    result = sf3d("--help")
    assert result.exit_code == 0
    for command in ("envs", "run", "evaluate", "bench", "warmup"):
        assert command in result.stdout
        page = sf3d(command, "--help")
        assert page.exit_code == 0
        assert "Examples:" in page.stdout or "In Python:" in page.stdout
    assert "sf3d evaluate --agent idm17 --worlds 8 --out results\n" in result.stdout


def test_no_command_shows_the_help():
    result = sf3d()
    assert result.exit_code == 0
    assert "Commands:" in result.stdout


def test_version():
    result = sf3d("--version")
    assert (result.exit_code, result.stdout) == (0, f"sf3d-envs {__version__}\n")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom sf3d_envs.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'warp', 'newton', 'polars', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_envs_lists_all_ids_and_agents():
    result = sf3d("envs")
    assert result.exit_code == 0
    ids = [word for word in result.stdout.split() if word.startswith("SF3D/")]
    assert len(ids) == len(set(ids)) == 21
    assert {"SF3D/LaneClosure-v0", "SF3D/LaneClosure-mu018-v0", "SF3D/LaneClosure-gradeN045-mu035-v0"} <= set(ids)
    assert "idm17" in result.stdout
    assert "…" not in result.stdout


BAD_INPUT = [
    (["nosuch"], "nosuch"),
    (["evaluate"], "--out"),
    (["evaluate", "--out", "{out}", "--worlds", "0"], "--worlds is 0; it must be >= 1"),
    (["evaluate", "--out", "{out}", "--worlds", "many"], "--worlds"),
    (["evaluate", "--out", "{out}", "--seed0", "-1"], "--seed0 is -1; it must be >= 0"),
    (["evaluate", "--out", "{out}", "--threads", "0"], "--threads is 0"),
    (["evaluate", "--out", "{out}", "--agent", "idm71"], "agent 'idm71' is unknown; did you mean 'idm17'?"),
    (["evaluate", "--out", "{out}", "--agent", "idm17,,random"], "--agent is 'idm17,,random'"),
    (["evaluate", "--out", "{out}", "--conditions", "mu18"], "condition 'mu18'"),
    (["evaluate", "--out", "{out}", "--suite", "ucx"], "ucx-conditions-1"),
    (["evaluate", "--out", "{out}", "--suite", "no/such.toml"], "no/such.toml"),
    (["evaluate", "--out", "{out}", "--device", "cuda:99"], "device 'cuda:99'"),
    (["evaluate", "--out", "{out}", "--device", "tpu"], "device 'tpu'"),
    (["evaluate", "--out", "{out}", "--solver", "mujoco"], "solver 'mujoco' is unknown; known: 'vehicle', 'xpbd'"),
    (["evaluate", "--out", "{out}", "--recompute", "idm17/mu18"], "--recompute is 'idm17/mu18'"),
    (["evaluate", "--out", "{file}"], "--out is"),
    (["evaluate", "--out", ""], "--out is ''"),
    (["evaluate", "--out", "{out}", "--rich", "-1"], "--rich is -1"),
    (["evaluate", "--out", "{out}", "--rich", "33"], "rich is 33; it must be in 0 ... worlds (32)"),
    (["evaluate", "--out", "{out}", "--tier", "3"], "tier '3' is not in suite 'ucx-conditions-1'"),
    (["evaluate", "--out", "{out}", "--tier", "1", "--worlds", "32"], "--tier is '1'; it sets worlds and seeds"),
    (["evaluate", "--out", "{out}", "--executor", "dask"], "executor 'dask' is unknown"),
    (["evaluate", "--out", "{out}", "--ray-address", "auto"], "ray_address is 'auto'; it needs executor 'ray'"),
    (["evaluate", "--out", "{file}/below"], "not a folder"),
    (["run", "SF3D/LaneClosure-mu18-v0"], "did you mean 'SF3D/LaneClosure-mu018-v0'?"),
    (["run", "CartPole-v1"], "ID 'CartPole-v1' is unknown"),
    (["run", "LaneClosure-v0", "--agent", "nobody"], "agent 'nobody'"),
    (["run", "LaneClosure-v0", "--seed", "-3"], "--seed is -3"),
    (["run", "LaneClosure-v0", "--seed", str(2**64)], "below 2**64"),
    (["run", "LaneClosure-v0", "--seconds", "0"], "seconds is 0.0"),
    (["run", "LaneClosure-v0", "--seconds", "nan"], "seconds is nan"),
    (["run", "LaneClosure-v0", "--seconds", "inf"], "seconds is inf"),
    (["run", "LaneClosure-v0", "--seconds", "1e300"], "seconds is 1e+300"),
    (["run", "LaneClosure-v0", "--threads", "99999999999"], "threads must be in [1, 1024]"),
    (["evaluate", "--worlds", "100000000", "--out", "unused"], "worlds is 100000000"),
    (["run", "LaneClosure-v0", "--condition", "ice"], "condition 'ice'"),
    (["run", "LaneClosure-mu018-v0", "--condition", "mu012"], "carries the condition 'mu018'"),
    (["run", "LaneClosure-v0", "--video", "{out}.avi"], ".mp4"),
    (["run", "LaneClosure-v0", "--video", "{file}/a.mp4"], "--video is"),
    (["run", "LaneClosure-v0", "--ego", "12"], "--ego is 12; it must be 0 ... 11"),
    (["run", "LaneClosure-v0", "--view", "side"], "--view is 'side'"),
    (["run", "LaneClosure-v0", "--solver", "newton"], "solver 'newton' is unknown; known: 'vehicle', 'xpbd'"),
    (["bench", "--worlds", "1,x"], "--worlds is '1,x'"),
    (["bench", "--worlds", "0"], "--worlds is 0"),
    (["bench", "--mode", "rich"], "mode 'rich' is unknown; known: physics, env, log"),
    (["bench", "--solver", "mujoco"], "solver 'mujoco' is unknown; known: vehicle, xpbd"),
    (["bench", "--seconds", "-1"], "--seconds is -1.0"),
    (["bench", "--device", "cuda:99"], "device 'cuda:99'"),
    (["bench", "--json", "{file}/a.json"], "--json is"),
    (["warmup", "--device", "cuda:99"], "device 'cuda:99'"),
]


@pytest.mark.parametrize(("words", "text"), BAD_INPUT, ids=[" ".join(words) for words, _ in BAD_INPUT])
def test_bad_input_gives_one_line_and_code_2_and_writes_nothing(words, text, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    result = sf3d(*(w.format(out=tmp_path / "out", file=file) for w in words))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert text in result.stderr
    assert result.stderr.startswith("sf3d")
    assert result.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom folder rights bind")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    result = sf3d("evaluate", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_evaluate_writes_the_folder_and_reuses_it(tmp_path):
    out = tmp_path / "out"
    first = sf3d(*SHORT_EVALUATION, "--out", out)
    assert first.exit_code == 0, first.stderr
    assert "constant: rates, shares, safety on 1 matched worlds" in first.stdout
    assert "mu018" in first.stdout
    vehicles = pl.read_parquet(out / "vehicles.parquet")
    assert vehicles.height == 2 * 12
    before = {p.name: p.read_bytes() for p in out.glob("*.parquet")}

    second = sf3d(*SHORT_EVALUATION, "--out", out)
    assert second.exit_code == 0
    assert "2 of 2 cells" in second.stderr
    assert {p.name: p.read_bytes() for p in out.glob("*.parquet")} == before

    other = sf3d(*SHORT_EVALUATION, "--seed0", 5, "--out", out)
    assert other.exit_code == 2
    assert "identity.seed0: 100000 there, 5 asked" in other.stderr

    (out / "cells" / "constant" / "mu018" / "vehicles.parquet").write_bytes(b"")
    damaged = sf3d(*SHORT_EVALUATION, "--out", out)
    assert damaged.exit_code == 1
    assert "constant/mu018" in damaged.stderr
    repaired = sf3d(*SHORT_EVALUATION, "--out", out, "--recompute", "constant/mu018")
    assert repaired.exit_code == 0
    assert {p.name: p.read_bytes() for p in out.glob("*.parquet")} == before


def test_an_interrupt_ends_with_130_and_keeps_finished_cells(tmp_path):
    """Two agents: after the quick one's cell is written, a SIGINT stops the long one."""
    out = tmp_path / "out"
    words = ["evaluate", "--agent", "constant,idm17", "--conditions", "reference", "--worlds", "8", "--out", str(out)]
    process = sf3d_process(*words)
    finished = out / "cells" / "constant" / "reference" / "manifest.json"
    deadline = time.monotonic() + 300
    while not finished.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "sf3d evaluate: error: interrupted"
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    assert finished.exists()
    assert not (out / "manifest.json").exists()


def test_out_of_memory_ends_with_3(monkeypatch, tmp_path):
    from sf3d_envs.evaluation import Evaluation

    def run(self, progress=None):
        raise MemoryError

    monkeypatch.setattr(Evaluation, "run", run)
    result = sf3d(*SHORT_EVALUATION, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert result.stderr == "sf3d evaluate: error: out of memory; use fewer worlds\n"


def test_an_unforeseen_error_keeps_its_traceback(monkeypatch, tmp_path):
    from sf3d_envs.evaluation import Evaluation

    def run(self, progress=None):
        raise ValueError("a fault of ours")

    monkeypatch.setattr(Evaluation, "run", run)
    result = sf3d(*SHORT_EVALUATION, "--out", tmp_path / "out")
    assert isinstance(result.exception, ValueError)
    assert result.exit_code == 1


def test_run_prints_what_became_of_each_vehicle():
    result = sf3d("run", "LaneClosure-mu018-v0", "--agent", "constant", "--seconds", "2")
    assert result.exit_code == 0, result.stderr
    assert "constant on mu018, seed 100000, 2 s" in result.stdout
    assert result.stdout.count("not_crossed") == 12
    assert "0 of 12 vehicles passed" in result.stdout
    again = sf3d("run", "SF3D/LaneClosure-v0", "--condition", "mu018", "--agent", "constant", "--seconds", "2")
    assert again.stdout == result.stdout


def test_run_writes_a_video(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="needs the video extra")
    file = tmp_path / "new" / "film.mp4"
    words = ["run", "LaneClosure-v0", "--agent", "constant", "--seconds", "1", "--fps", "5", "--view", "top"]
    result = sf3d(*words, "--video", file)
    assert result.exit_code == 0, result.stderr
    import imageio_ffmpeg

    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(file))
    assert (frames, seconds) == (5, pytest.approx(1.0, abs=0.05))
    assert [p.name for p in file.parent.iterdir()] == ["film.mp4"]


def test_run_agrees_with_evaluate(tmp_path):
    """The outcomes of one world are those of the same seed in an evaluation."""
    from sf3d_envs.agents import make_agent
    from sf3d_envs.evaluation import evaluate
    from sf3d_envs.evaluation.single import run_world
    from sf3d_envs.registry import load_condition

    batch = evaluate("idm17", conditions=["reference", "mu012"], worlds=2, horizon_s=20.0).vehicles
    alone = run_world(make_agent("idm17"), load_condition("mu012"), 100_001, seconds=20.0)
    mine = (pl.col("condition") == "mu012") & (pl.col("scenario_seed") == 100_001)
    assert alone.equals(batch.filter(mine).select(alone.columns))


def test_a_folder_is_not_continued_with_another_solver(tmp_path):
    words = ["evaluate", "--agent", "constant", "--conditions", "reference", "--worlds", "1", "--out", tmp_path]
    assert sf3d(*words).exit_code == 0
    result = sf3d(*words, "--solver", "xpbd")
    assert result.exit_code == 2
    assert "identity.solver" in result.stderr


def test_run_takes_the_reference_path(monkeypatch):
    """`--solver xpbd` reaches the environment; without it, the fused solver drives."""
    from sf3d_envs.evaluation import single

    solvers = []

    def make(*args, solver, **settings):
        env = make_scoring_env(*args, solver=solver, **settings)
        solvers.append(type(env.sim.solver).__name__)
        return env

    make_scoring_env = single.make_scoring_env
    monkeypatch.setattr(single, "make_scoring_env", make)
    words = ["run", "LaneClosure-v0", "--agent", "constant", "--seconds", "1"]
    results = [sf3d(*words), sf3d(*words, "--solver", "xpbd")]
    assert [result.exit_code for result in results] == [0, 0]
    assert solvers == ["SolverVehicle", "SolverReference"]


@pytest.mark.parametrize("mode", ["physics", "env", "log"])
def test_bench_prints_and_writes_figures(mode, tmp_path):
    file = tmp_path / "new" / "bench.json"
    result = sf3d("bench", "--worlds", "1,3", "--seconds", "0.05", "--mode", mode, "--threads", "1", "--json", file)
    assert result.exit_code == 0, result.stderr
    report = json.loads(file.read_text())
    assert report["schema"] == "sf3d.bench/1"
    assert set(report["machine"]) == {"cores", "python", "platform", "packages"}
    assert [row["worlds"] for row in report["results"]] == [1, 3]
    for row in report["results"]:
        assert set(row) == {
            *("worlds", "mode", "solver", "threads", "device"),
            *("vehicle_steps_per_s", "env_steps_per_s", "peak_mem_mb"),
        }
        assert (row["mode"], row["solver"], row["threads"], row["device"]) == (mode, "vehicle", 1, "cpu")
        assert row["vehicle_steps_per_s"] > 1000
        assert row["peak_mem_mb"] > 10
        if mode != "physics":
            assert row["env_steps_per_s"] == pytest.approx(row["vehicle_steps_per_s"] / 72, rel=0.01)
        else:
            assert row["env_steps_per_s"] is None
    assert "vehicle-steps/s" in result.stdout


def test_bench_profile_names_the_kernels(tmp_path):
    file = tmp_path / "bench.json"
    result = sf3d("bench", "--worlds", "2", "--seconds", "0.05", "--mode", "env", "--profile", "--json", file)
    assert result.exit_code == 0, result.stderr
    costs = json.loads(file.read_text())["profiles"]["2 worlds"]
    by_name = {cost["kernel"]: cost for cost in costs}
    assert {"advance_worlds", "score_control_step", "observe"} <= set(by_name)
    assert by_name["advance_worlds"]["launches_per_s"] == 60 and by_name["observe"]["launches_per_s"] == 10
    assert sum(cost["share"] for cost in costs) == pytest.approx(1.0)
    assert "advance_worlds" in result.stdout


def test_warmup_reports_when_it_is_done():
    result = sf3d("warmup")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("kernels for cpu are ready")
