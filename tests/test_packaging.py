"""The package list, the version and the built wheel agree with the source tree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pyproject(repo_root: Path) -> dict:
    return tomllib.loads((repo_root / "pyproject.toml").read_text(encoding="utf-8"))


def source_folders(root: Path) -> dict[str, Path]:
    """Folder of each package that the tree holds, by package name."""
    found = {}
    for top, name in (("sf3d_envs", "sf3d_envs"), ("agents", "sf3d_envs.agents"), ("registry", "sf3d_envs.registry")):
        for init in sorted((root / top).rglob("__init__.py")):
            inside = init.parent.relative_to(root / top).parts
            found[".".join((name, *inside))] = init.parent
    return found


def test_package_list_equals_the_tree(pyproject: dict, repo_root: Path) -> None:
    assert sorted(pyproject["tool"]["setuptools"]["packages"]) == sorted(source_folders(repo_root))


def test_every_source_file_lies_in_a_listed_package(pyproject: dict, repo_root: Path) -> None:
    folders = set(source_folders(repo_root).values())
    for top in ("sf3d_envs", "agents", "registry"):
        stray = [path for path in (repo_root / top).rglob("*.py") if path.parent not in folders]
        assert not stray, f"not importable, __init__.py is missing beside: {stray}"


def test_mapped_packages_lie_at_the_top_level(pyproject: dict, repo_root: Path) -> None:
    mapping = pyproject["tool"]["setuptools"]["package-dir"]
    assert mapping == {"sf3d_envs.agents": "agents", "sf3d_envs.registry": "registry"}
    assert all((repo_root / folder).is_dir() for folder in mapping.values())


def test_version_has_one_source_and_the_changelog_knows_it(pyproject: dict, repo_root: Path) -> None:
    import sf3d_envs

    assert "version" not in pyproject["project"]
    assert pyproject["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "sf3d_envs.__version__"}
    changelog = (repo_root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(sf3d_envs.__version__)}\b", changelog, re.MULTILINE)


def test_every_dependency_has_a_lower_bound(pyproject: dict) -> None:
    project = pyproject["project"]
    named = list(project["dependencies"])
    for extra, items in project["optional-dependencies"].items():
        named += [] if extra == "all" else items
    assert not [item for item in named if ">=" not in item]


def test_license_is_apache_2(pyproject: dict, repo_root: Path) -> None:
    assert pyproject["project"]["license"] == "Apache-2.0"
    text = (repo_root / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text


@pytest.mark.slow
def test_wheel_holds_the_tree_and_works_from_another_folder(repo_root: Path, tmp_path: Path) -> None:
    """Builds in isolation (needs a package index), then imports and reads data from the unpacked wheel alone."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(repo_root)]
    result = subprocess.run(build, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "site")
    expected = set()
    for package, folder in source_folders(repo_root).items():
        expected |= {f"{package.replace('.', '/')}/{path.name}" for path in folder.glob("*.py")}
    registry = repo_root / "registry"
    expected |= {f"sf3d_envs/registry/{path.relative_to(registry).as_posix()}" for path in registry.rglob("*.toml")}
    assert names == expected

    code = (
        "import sys; sys.path.insert(0, 'site'); import sf3d_envs; from sf3d_envs.registry import list_conditions;"
        "import sf3d_envs.agents; print(len(list_conditions())); assert 'site' in sf3d_envs.__file__"
    )
    # Isolated mode leaves the working folder and environment variables out of the path.
    alone = [sys.executable, "-I", "-c", code]
    result = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["21"]
