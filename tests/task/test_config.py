"""Task configuration: step counts and errors that name the argument."""

from __future__ import annotations

import pytest

from sf3d_envs.task import EVENT_NAMES, Event, TaskConfig
from sf3d_envs.task.kernels import task_rules


def test_the_horizon_is_3960_control_steps():
    assert TaskConfig().horizon_steps == 3960
    assert TaskConfig(horizon_s=0.5).horizon_steps == 30


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("horizon_s", 0.0),
        ("horizon_s", 0.99),
        ("horizon_s", float("nan")),
        ("rules", "play"),
        ("collision_margin", -0.1),
        ("upright_limit", 1.0),
    ],
)
def test_bad_values_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=field):
        TaskConfig(**{field: value})


def test_rules_carry_the_road_and_the_limits():
    rules = task_rules(TaskConfig(collision_margin=0.25))
    assert (rules.paved_low, rules.paved_high, rules.lane_line) == (-31.5, -24.5, -28.0)
    assert (rules.closure_x, rules.counting_x, rules.collision_margin) == (150.0, 170.0, 0.25)


def test_event_codes_are_the_published_ones():
    assert EVENT_NAMES == {0: "none", 1: "fault", 2: "collision", 3: "off_road", 4: "incursion"}
    assert [int(event) for event in Event] == [0, 1, 2, 3, 4]
