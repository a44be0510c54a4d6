"""The page STATE.md: its table is the one of the class, and its code runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sf3d_envs.sim.state as state
from sf3d_envs.sim.state_table import markdown_table, page_with_table

PAGE = Path(state.__file__).with_name("STATE.md").read_text(encoding="utf-8")


def test_the_table_is_the_one_of_the_class() -> None:
    assert page_with_table(PAGE) == PAGE, "run: python -m sf3d_envs.sim.state_table"
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.M)
    assert [name for name in rows if name in state.views()] == list(state.views())


def test_every_row_is_filled() -> None:
    for line in markdown_table().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        assert len(cells) == 8 and all(cells), line


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="table"):
        page_with_table("# nothing")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, flags=re.S))
def test_code_runs(block: str, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
