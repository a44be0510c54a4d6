"""The kernels as CUDA code: Warp brings NVIDIA's compiler, so that they can be compiled where there is no GPU."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import warp as wp

from sf3d_envs._warp import LOGGING_MODULES, PHYSICS_MODULES, RANDOMIZATION_MODULES, STATE_MODULES, STEP_MODULES

QUICK = ("sf3d_envs.agents.idm", "sf3d_envs.sim.kernels_place")
MODULES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in (PHYSICS_MODULES[False], *STEP_MODULES, *RANDOMIZATION_MODULES, *LOGGING_MODULES, *STATE_MODULES)
]


def ptx_of(name: str, folder: Path) -> str:
    importlib.import_module(name)
    wp.compile_aot_module(name, arch=80, module_dir=folder, use_ptx=True)
    (file,) = folder.glob("*.ptx")
    return file.read_text()


@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
@pytest.mark.parametrize("name", MODULES)
def test_kernels_compile_for_cuda(name: str, tmp_path: Path) -> None:
    ptx = ptx_of(name, tmp_path)
    assert ".visible .entry" in ptx and "sm_80" in ptx


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
def test_the_forces_of_a_vehicle_need_no_local_memory_and_nothing_is_fused(tmp_path: Path) -> None:
    """Arrays that spill to local memory would cost more than the arithmetic; fused multiply-adds change bits."""
    ptx = ptx_of(PHYSICS_MODULES[False], tmp_path)
    entries = re.split(r"(?=\.visible \.entry )", ptx)
    (forces,) = [
        entry for entry in entries if entry.startswith(".visible .entry advance_vehicles") and "forward" in entry
    ]
    assert "__local_depot" not in forces
    assert "fma.rn.f32" not in forces
