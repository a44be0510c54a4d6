"""Import directions between the layers, and what `import sf3d_envs` costs."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# A layer may import itself and what is named here; "" is the set of small modules directly under sf3d_envs/.
BASE = {"", "registry"}
ALLOWED = {
    "": {""},
    "registry": {"", "registry"},
    "terrain": BASE,
    "scenario": BASE | {"terrain"},
    "sim": BASE | {"terrain", "scenario"},
    "observation": BASE | {"terrain", "scenario", "sim"},
    "task": BASE | {"terrain", "scenario", "sim", "observation"},
    "render": BASE | {"terrain", "scenario", "sim"},
    "envs": BASE | {"terrain", "scenario", "sim", "observation", "task", "render"},
    "agents": BASE | {"terrain", "scenario", "sim", "observation"},
    "evaluation": BASE | {"terrain", "scenario", "sim", "observation", "task", "render", "envs", "agents"},
}
ALLOWED["verification"] = ALLOWED["evaluation"] | {"evaluation"}
ALLOWED["cli"] = set(ALLOWED)
# Module (dotted, below sf3d_envs) -> further layers it may import, with the reason.
EXCEPTIONS = {
    "__init__": {"envs", "scenario", "terrain", "sim", "observation", "task", "registry", "evaluation"},  # lazy names
    "_warp": {"envs"},  # warm-up runs one environment
    "benchmark": {"registry", "terrain", "scenario", "sim", "envs", "evaluation"},  # measures them
    "registration": {"registry", "envs"},  # Gymnasium and PettingZoo IDs
    "lane_closure_v0": {"envs"},  # PettingZoo-style module
    "registry.conditions": {"terrain"},  # patch shapes of user conditions
    "envs.traffic": {"agents"},  # name -> agent, lazily
}


def source_modules(root: Path) -> Iterator[tuple[str, Path]]:
    """(dotted name below sf3d_envs, file) of every source file; packages without their `.__init__`."""
    for top, prefix in (("sf3d_envs", ()), ("agents", ("agents",)), ("registry", ("registry",))):
        for path in sorted((root / top).rglob("*.py")):
            parts = (*prefix, *path.relative_to(root / top).with_suffix("").parts)
            yield ".".join(parts), path


def imported_modules(name: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(dotted name below sf3d_envs, line) of every import of our own code, lazy and type-only ones included."""
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package[: len(package) - (node.level - 1)]
                base = ".".join(["sf3d_envs", *parent, *([base] if base else [])])
            # `from sf3d_envs import x` may name a layer as well as an object.
            targets = [f"sf3d_envs.{alias.name}" for alias in node.names] if base == "sf3d_envs" else [base]
        else:
            continue
        for target in targets:
            if target == "sf3d_envs" or target.startswith("sf3d_envs."):
                yield target.removeprefix("sf3d_envs").lstrip("."), node.lineno


def layer(module: str) -> str:
    """Layer of a dotted name below sf3d_envs; names that are no layer (top-level modules, objects) give ""."""
    head = module.partition(".")[0]
    return head if head in ALLOWED else ""


def test_every_folder_is_a_known_layer(repo_root: Path) -> None:
    folders = {path.parent.name for path in (repo_root / "sf3d_envs").glob("*/__init__.py")}
    assert folders <= set(ALLOWED), "give the new folder a row in ALLOWED"


def test_imports_run_downward(repo_root: Path) -> None:
    wrong = []
    for name, path in source_modules(repo_root):
        short = name.removesuffix(".__init__")
        allowed = ALLOWED[layer(name)] | {layer(name)} | EXCEPTIONS.get(short, set())
        if name.startswith("agents.train_"):
            allowed |= {"envs", "task"}
        for target, line in imported_modules(name, ast.parse(path.read_text(encoding="utf-8"))):
            if layer(target) not in allowed:
                wrong.append(f"{path.relative_to(repo_root)}:{line}: {layer(name) or 'base'} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_the_checker_sees_every_form_of_import() -> None:
    source = (
        "import sf3d_envs.envs\nfrom .. import agents\nfrom ..envs.core import X\nfrom sf3d_envs import sim\n"
        "def f():\n    from sf3d_envs.evaluation.store import Y\n"
    )
    found = {target for target, _ in imported_modules("sim.solver", ast.parse(source))}
    assert found == {"envs", "agents", "envs.core", "sim", "evaluation.store"}


def test_source_is_imported_by_its_installed_name(repo_root: Path) -> None:
    """`import agents` or `import registry` would find another distribution's package on a user's machine."""
    wrong = []
    for folder in ("sf3d_envs", "agents", "registry", "examples", "tests"):
        for path in (repo_root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                wrong += [f"{path}: {name}" for name in names if name.split(".")[0] in ("agents", "registry")]
    assert not wrong, "\n".join(wrong)


def run_python(code: str) -> str:
    """Output of a new interpreter."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def import_seconds() -> float:
    """Processor time of the import: unlike the clock, it does not grow with what else the machine is doing."""
    code = (
        "import sys, time; start = time.process_time(); import sf3d_envs; spent = time.process_time() - start;"
        "heavy = {'torch', 'warp', 'newton', 'polars', 'matplotlib', 'pyarrow'} & set(sys.modules);"
        "assert not heavy, f'imported: {sorted(heavy)}'; print(spent)"
    )
    return float(run_python(code))


def test_import_is_quick_and_loads_no_heavy_library() -> None:
    assert statistics.median(import_seconds() for _ in range(3)) < 1.0


def test_imports_compile_no_kernel() -> None:
    """Kernels compile at first use; Warp prints a line for each module that it compiles or loads."""
    code = (
        "import importlib, pkgutil, sf3d_envs\n"
        "for name in ('terrain', 'scenario', 'sim', 'observation', 'task', 'envs', 'agents'):\n"
        "    package = importlib.import_module(f'sf3d_envs.{name}')\n"
        "    for module in pkgutil.iter_modules(package.__path__):\n"
        "        if not module.name.startswith('train_'):\n"
        "            importlib.import_module(f'{package.__name__}.{module.name}')\n"
    )
    result = run_python(code)
    assert "Module" not in result, result
