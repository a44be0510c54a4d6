"""The physics is IEEE arithmetic alone: its kernels call no function of a C library that rounds as it likes."""

from __future__ import annotations

import ast
import re
import struct
from pathlib import Path

import pytest
import warp as wp

from sf3d_envs import lanes
from sf3d_envs.sim import kernels_fused, kernels_place, kernels_split, kernels_wheel

MODULES = {module.__name__: module for module in (kernels_fused, kernels_place, kernels_split)}
"""Modules whose kernels step or place vehicles; what they call from other modules is compiled into them."""

EXACT = {"memset", "memcpy", "memmove", "floorf", "sqrtf", "fabsf", "_wp_isfinite", "_wp_isnan", "_wp_isinf"}
"""Symbols from outside that a kernel may need: exactly rounded, or no arithmetic at all."""

ROUNDED = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 expm1 log log2 log10 log1p pow cbrt erf erfc erfinv "
    "hypot quat_from_axis_angle quat_to_axis_angle quat_rpy quat_slerp quat_to_euler quat_from_euler randn noise pnoise"
).split()
"""Warp's functions whose result depends on a library."""


def undefined_symbols(path: Path) -> set[str]:
    """Names that an ELF64 object needs from outside."""
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        pytest.skip(f"{path.suffix} files of this system are not read here")
    offset, size, count = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + k * size) for k in range(count)]
    found = set()
    for _, kind, _, _, begin, length, link, _, _, entry in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for at in range(begin + entry, begin + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", data, at)
            if section == 0:
                found.add(data[strings + name : data.index(b"\0", strings + name)].decode())
    return found - {"_GLOBAL_OFFSET_TABLE_"}


def needed_symbols(name: str) -> set[str]:
    """Symbols from outside that the compiled kernels of a module need on a CPU."""
    module = wp.get_module(name)
    wp.load_module(module, device="cpu")
    block_dim = next(key[1] for key in module.execs if key[0] is None)
    identifier = module.get_module_identifier(block_dim=block_dim)
    objects = list((Path(wp.config.kernel_cache_dir) / identifier).glob("*.o"))
    assert objects
    return set().union(*map(undefined_symbols, objects))


@pytest.mark.parametrize("name", MODULES)
def test_compiled_physics_needs_nothing_that_rounds_differently(name: str) -> None:
    assert needed_symbols(name) <= EXACT


@wp.kernel
def library_call(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = wp.sin(x[i]) + wp.pow(x[i], 0.3)


def test_a_library_call_would_be_seen() -> None:
    assert {"sinf", "powf"} <= needed_symbols(__name__)


def kernel_sources(root: Path) -> list[Path]:
    """Files of the simulator with kernels, and the road query."""
    return [*sorted((root / "sf3d_envs/sim").glob("kernels*.py")), root / "sf3d_envs/terrain/kernels.py"]


def test_sources_call_no_rounded_function(repo_root: Path) -> None:
    """Also what a CUDA device would compile."""
    seen = set()
    for path in kernel_sources(repo_root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "wp":
                seen.add(node.attr)
                assert node.attr not in ROUNDED, f"{path.name}, line {node.lineno}: wp.{node.attr}"
            assert not isinstance(getattr(node, "op", None), ast.Pow), f"{path.name}, line {node.lineno}: **"
    assert {"normalize", "sqrt", "floor"} <= seen


def test_lane_functions_call_no_rounded_function() -> None:
    """Native code stands in constants, whose comments may name what they replace."""
    names = vars(kernels_wheel) | vars(lanes)
    bodies = [value for name, value in names.items() if name.isupper() and isinstance(value, str)]
    code = re.sub(r"//.*", "", "\n".join(bodies))
    called = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", code))
    assert {"at", "put", "sqrtf"} <= called
    assert not called & {f"{name}{end}" for name in ROUNDED for end in ("", "f", "l")}


def test_every_kernel_module_of_the_physics_forbids_fused_multiply_add(repo_root: Path) -> None:
    for path in kernel_sources(repo_root):
        options = [line for line in path.read_text(encoding="utf-8").splitlines() if '"fuse_fp": False' in line]
        assert options, path.name
