"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """Folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Folder with circuit files, named by SF3D_TEST_DATA; tests that need it are skipped without it."""
    folder = os.environ.get("SF3D_TEST_DATA")
    if not folder:
        pytest.skip("SF3D_TEST_DATA is unset: no circuit files to test with")
    return Path(folder)
