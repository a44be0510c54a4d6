"""Axes of conditions, and figures as SVG."""

from __future__ import annotations

import re

import pytest

from sf3d_envs.evaluation.report.drawing import condition_axes, new_figure, svg
from sf3d_envs.evaluation.table import ConditionFacts

FACTS = [
    ConditionFacts(slug=slug, friction=friction, grade=grade)
    for slug, friction, grade in (
        ("reference", 1.0, 0.0),
        ("mu018", 0.18, 0.0),
        ("mu008", 0.08, 0.0),
        ("up", 1.0, 0.03),
        ("down", 1.0, -0.045),
        ("down-mu018", 0.18, -0.045),
    )
]


def test_axes_of_the_conditions():
    friction, grade = condition_axes(FACTS)
    assert dict(friction.places) == {"reference": 0.0, "mu018": 1.0, "mu008": 2.0}
    assert dict(grade.places) == pytest.approx({"down": -4.5, "reference": 0.0, "up": 3.0})
    assert [axis.label for axis in condition_axes(FACTS[:2])] == ["friction \u03bc of the patch"]
    assert [axis.label for axis in condition_axes([FACTS[0], FACTS[3]])] == ["grade [%]"]
    assert condition_axes(FACTS[:1]) == []
    assert condition_axes([FACTS[0], ConditionFacts(slug="other", friction=1.0, grade=0.0)]) == []


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.08, 0.04, ["\u22128", "\u22126", "\u22124", "\u22122", "0", "+2", "+4"]),
        (0.0, 0.3, None),
        (0.0, 0.002, None),
    ],
)
def test_grades_have_few_ticks(low, high, expected):
    facts = [FACTS[0], *(ConditionFacts(slug=f"g{x}", friction=1.0, grade=x) for x in (low, high) if x)]
    (axis,) = condition_axes(facts)
    assert 3 <= len(axis.ticks) <= 9
    assert len({label for _, label in axis.ticks}) == len(axis.ticks)
    if expected:
        assert [label for _, label in axis.ticks] == expected


def test_frictions_that_differ_in_the_third_digit_have_labels_of_their_own():
    facts = [FACTS[0], *(ConditionFacts(slug=f"m{x}", friction=x, grade=0.0) for x in (0.125, 0.12))]
    assert [label for _, label in condition_axes(facts)[0].ticks] == ["1.00", "0.125", "0.12"]


@pytest.mark.parametrize("names", [("a.b", "a_b"), ("a b", "a-b"), ("\u03b1", "\u03b2")])
def test_names_that_differ_in_signs_have_ids_of_their_own(names):
    figure, panels = new_figure(2.0)
    panels[0, 0].plot([0, 1], [0, 1])
    first, second = (set(re.findall(r'\bid="([^"]+)"', svg(figure, name))) for name in names)
    assert first
    assert not first & second
