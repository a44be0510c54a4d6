"""Examples in docstrings run as written."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules_with_examples() -> list[str]:
    """Installed names of all source files that hold a doctest."""
    found = []
    for top, name in (("sf3d_envs", "sf3d_envs"), ("agents", "sf3d_envs.agents"), ("registry", "sf3d_envs.registry")):
        for path in sorted((ROOT / top).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = (name, *path.relative_to(ROOT / top).with_suffix("").parts)
                found.append(".".join(parts).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("name", modules_with_examples() or [pytest.param("", marks=pytest.mark.skip("no examples"))])
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0
