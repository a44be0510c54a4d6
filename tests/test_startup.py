"""What the first use of an environment costs: Newton stays out of the stepping path until somebody asks for it."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from sf3d_envs import Simulator, load_condition
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

# Modules that import Newton when they are imported, none of which an environment needs before its first frame.
IMPORT_NEWTON = {"sim/solver.py", "sim/reference_model.py", "sim/solver_xpbd.py", "render/scene.py", "render/tracer.py"}

STEP = (
    "import sys, time, torch, gymnasium, sf3d_envs; start = time.process_time();"
    "env = gymnasium.make('SF3D/LaneClosure-v0'); spent = time.process_time() - start;"
    "env.reset(seed=0); env.step(env.action_space.sample());"
    "heavy = {'newton', 'matplotlib', 'polars', 'pyarrow', 'stable_baselines3', 'PIL'} & set(sys.modules);"
    "assert not heavy, f'imported: {sorted(heavy)}';"
)


def test_only_the_solver_and_the_pictures_import_newton_at_import(repo_root: Path) -> None:
    found = set()
    for path in (repo_root / "sf3d_envs").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            if any(name.split(".")[0] == "newton" for name in names):
                found.add(path.relative_to(repo_root / "sf3d_envs").as_posix())
    assert found == IMPORT_NEWTON


def run_python(code: str) -> str:
    """Output of a new interpreter."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_make_reset_and_step_import_nothing_heavy_and_take_little_processor_time() -> None:
    """Processor time does not grow with what else the machine does; importing Newton alone takes about 3 s of it."""
    run_python(STEP)  # fills the kernel cache
    assert statistics.median(float(run_python(STEP + "print(spent)")) for _ in range(3)) < 3.0


def test_newton_can_be_imported_before_and_after() -> None:
    use = "import newton; newton.ModelBuilder().finalize(device='cpu');"
    run_python(use + STEP.replace("{'newton', ", "{") + use)
    run_python(STEP + use + "assert env.unwrapped.core.sim.model.body_count == 12")


def test_newtons_state_and_model_are_views_of_the_simulators_memory() -> None:
    sim = Simulator(2, [lane_closure_terrain(load_condition("reference"))], num_vehicles=3)
    sim.control_step(3)
    assert sim.model.body_count == 6
    assert sim.newton_state.body_q.ptr == sim.body_q.ptr
    assert sim.newton_state.body_qd.ptr == sim.body_qd.ptr
    assert sim.model.gravity.ptr == sim.dynamics.gravity.ptr
    assert sim.solver.model is sim.model
    sim.model.set_gravity((0.0, 0.0, -1.62))  # a lunar car stands higher on its springs
    before = sim.body_q.numpy()[:, 2].copy()
    sim.control_step(20)
    assert (sim.newton_state.body_q.numpy()[:, 2] > before).all()
    sim.close()


def test_a_newton_solver_step_is_the_simulators_own() -> None:
    """Four substeps through ``SolverVehicle.step``, into another state and back, equal one control step bit for bit."""
    road = [lane_closure_terrain(load_condition("mu035"))]
    alone, newtons = (Simulator(1, road, num_vehicles=2) for _ in range(2))
    for sim in (alone, newtons):
        sim.place(np.ones(1, bool), [[[0.0, -29.75, 0.6454], [20.0, -26.25, 0.6454]]], speed=12.0)
        sim.command.assign(np.full((1, 2, 2), [-3.0, 0.1], dtype=np.float32))
    alone.control_step()
    other = newtons.model.state()
    for k in range(4):
        pair = (newtons.newton_state, other) if k % 2 == 0 else (other, newtons.newton_state)
        newtons.solver.step(*pair, None, None, 1 / 240)
    assert np.array_equal(alone.body_q.numpy(), newtons.body_q.numpy())
    assert np.array_equal(alone.body_qd.numpy(), newtons.body_qd.numpy())
    alone.close()
    newtons.close()
