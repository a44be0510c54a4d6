"""The bits of the `-v0` environments. A failure here means: raise the version of the IDs, or undo the change."""

from __future__ import annotations

import json

import pytest
from golden import digests

GOLDEN = json.loads(digests.FILE.read_text())
ADVICE = (
    "a change altered the bits of a -v0 environment: if that was the purpose, raise the version of the IDs as "
    "CONTRIBUTING.md says and write tests/golden/digests.json anew"
)


def same_library() -> None:
    if digests.library() != GOLDEN["library"]:
        pytest.skip("the C library's sin, cos, atan2 or asin round differently here, so observations do too")


def test_scenarios() -> None:
    assert digests.scenarios() == GOLDEN["scenarios"], ADVICE


def test_physics() -> None:
    """No call of a C library is in the physics: its bits are those of IEEE arithmetic, wherever it runs."""
    assert digests.physics() == GOLDEN["physics"], ADVICE


@pytest.mark.parametrize("control", ["all", "ego"])
def test_environment(control: str) -> None:
    same_library()
    assert digests.environment(control) == GOLDEN[f"environment, {control}"], ADVICE


def test_a_change_of_one_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands reach the digest: another one in the last place of one command gives other bits."""
    plain = digests.hashed

    def nudged(step, shape, low, high):
        values = plain(step, shape, low, high)
        if step == 2:
            values[(0,) * len(shape)] += 1e-6
        return values

    monkeypatch.setattr(digests, "hashed", nudged)
    found = digests.physics()
    assert found[0] == GOLDEN["physics"][0]
    assert found[1] != GOLDEN["physics"][1]
