"""The summary table on a made-up vehicle table whose rates are known."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from sf3d_envs.evaluation.outcomes import VEHICLE_SCHEMA
from sf3d_envs.evaluation.table import SUMMARY_SCHEMA, WIDE, ConditionFacts, print_tables, summary_table, table_text

REFERENCE = ConditionFacts(slug="reference", friction=1.0, grade=0.0)
SLIPPERY = ConditionFacts(slug="mu018", friction=0.18, grade=0.0)


def vehicles(condition: str, passes: list[int], agent: str = "a", seed0: int = 0) -> pl.DataFrame:
    """Worlds of twelve vehicles; the first `passes[w]` of world w pass, the others collide at step 9."""
    rows = [
        {
            "agent": agent,
            "condition": condition,
            "scenario_seed": seed0 + w,
            "vehicle": v,
            "lane": "closing" if v < 5 else "open",
            "valid_passage": v < count,
            "strict_success": v < count,
            "merge_completed": (v < count) if v < 5 else None,
            "outcome": "pass" if v < count else "collision",
            "first_event_step": None if v < count else 9,
            "passage_step": 50 if v < count else None,
        }
        for w, count in enumerate(passes)
        for v in range(12)
    ]
    return pl.DataFrame(rows, schema=VEHICLE_SCHEMA)


def test_rates_changes_and_shares():
    frame = pl.concat([vehicles("reference", [12, 9]), vehicles("mu018", [6, 3])])
    table = summary_table(frame, [REFERENCE, SLIPPERY])
    assert table.schema == SUMMARY_SCHEMA
    reference, slippery = table.to_dicts()
    assert reference["passage"] == 21 / 24
    assert reference["change"] is None
    assert slippery["passage"] == 9 / 24
    assert slippery["change"] == slippery["change_low"] == slippery["change_high"] == -0.5
    assert (slippery["low"], slippery["high"]) == (3 / 12, 6 / 12)
    assert slippery["closing_passage"] == 8 / 10
    assert slippery["open_passage"] == 1 / 14
    assert slippery["merge_completed"] == 8 / 10
    assert slippery["share_collision"] == 15 / 24
    assert slippery["share_censored"] == 0.0
    assert slippery["worlds"] == 2


def test_rows_may_come_in_any_order():
    frame = pl.concat([vehicles("mu018", [6, 3, 8]), vehicles("reference", [12, 9, 7])])
    ordered = summary_table(frame, [REFERENCE, SLIPPERY])
    shuffled = summary_table(frame.sample(fraction=1.0, shuffle=True, seed=3), [REFERENCE, SLIPPERY])
    assert ordered.equals(shuffled)


def test_each_agent_is_compared_with_its_own_reference():
    frame = pl.concat(
        vehicles(slug, passes, agent)
        for agent, slug, passes in (
            ("a", "reference", [12]),
            ("a", "mu018", [6]),
            ("b", "reference", [6]),
            ("b", "mu018", [3]),
        )
    )
    table = summary_table(frame, [REFERENCE, SLIPPERY])
    assert table["change"].to_list() == [None, -0.5, None, -0.25]
    text = table_text(table)
    assert "a: rates, shares, safety on 1 matched worlds" in text
    assert ".50 [.50, .50]" in text
    assert "-.50 [-.50, -.50]" in text


def test_without_reference_there_is_no_change():
    assert summary_table(vehicles("mu018", [6]), [SLIPPERY])["change"].to_list() == [None]


def test_unmatched_worlds_are_refused():
    frame = pl.concat([vehicles("reference", [12, 9]), vehicles("mu018", [6, 3], seed0=5)])
    with pytest.raises(ValueError, match="worlds do not pair"):
        summary_table(frame, [REFERENCE, SLIPPERY])


def test_a_missing_condition_is_named():
    with pytest.raises(ValueError, match="mu018"):
        summary_table(vehicles("reference", [12]), [REFERENCE, SLIPPERY])


@pytest.mark.parametrize(("width", "tables"), [(200, 1), (WIDE, 1), (80, 3)])
def test_nothing_is_cut_off_on_common_terminals(width, tables):
    condition = ConditionFacts(slug="gradeN045-mu018", friction=0.18, grade=-0.045)
    frame = pl.concat([vehicles("reference", [12, 0]), vehicles("gradeN045-mu018", [0, 12])])
    summary = summary_table(frame, [REFERENCE, condition])
    buffer = io.StringIO()
    print_tables(summary, Console(file=buffer, width=width, force_terminal=True, color_system=None))
    assert "…" not in buffer.getvalue()
    assert buffer.getvalue().count("gradeN045-mu018") == tables
    assert "+.00 [-1.00, +1.00]" in buffer.getvalue()
