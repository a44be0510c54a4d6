"""Numbers and tables as people read them."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from evaluation.stats.tables import random_table

from sf3d_envs.evaluation.report.headline import change_columns, headline
from sf3d_envs.evaluation.report.text import Column, PrintedTable, html_table, interval, latex_table, number, wide
from sf3d_envs.evaluation.stats import BootstrapConfig
from sf3d_envs.evaluation.table import ConditionFacts


@pytest.mark.parametrize(
    ("value", "digits", "sign", "text"),
    [
        (0.684, 2, False, ".68"),
        (1.0, 2, False, "1.00"),
        (-0.049, 2, True, "\u2212.05"),
        (-0.004, 2, True, "\u2212.00"),
        (0.004, 2, True, "+.00"),
        (0.0, 2, True, "0"),
        (-0.0, 2, False, "0"),
        (12.34, 1, False, "12.3"),
        (-1234.5, 1, True, "\u22121234.5"),
        (0.4, 0, False, "0"),
        (math.inf, 2, False, "\u221e"),
        (-math.inf, 2, False, "\u2212\u221e"),
        (math.nan, 2, False, "\u2013"),
        (None, 2, True, "\u2013"),
    ],
)
def test_numbers(value, digits, sign, text):
    assert number(value, digits, sign) == text


def test_intervals():
    row = {"a": 0.5, "a_low": 0.25, "a_high": 1.0, "b": 0.5, "b_low": None, "b_high": None, "c": None, "d": 0.1}
    assert interval(row, "a") == ".50 [.25, 1.00]"
    assert interval(row, "b") == ".50"
    assert interval(row, "c") == "\u2013"
    assert interval(row, "d") == ".10"
    assert interval({**row, "a_low": math.nan}, "a") == ".50"


TABLE = PrintedTable(
    name="odd_names",
    title="100 % & <more> \u2264 \u0394",
    note="a_b costs $5 \u2212 #1 {x} ~ ^ \\ \u00b2",
    columns=[
        Column(title="a&b", source="name"),
        Column(title="x", source="x", kind="interval", sign=True, bold=True),
        Column(title="n", source="n", kind="count"),
    ],
    rows=[
        {"name": "<b>&_%</b>", "x": -0.1, "x_low": -0.2, "x_high": -0.05, "n": 12345},
        {"name": None, "x": 0.1, "x_low": -0.2, "x_high": 0.4, "n": None},
    ],
)


def test_html_escapes_and_marks_what_excludes_zero():
    text = html_table(TABLE)
    assert "<b>&_%</b>" not in text
    assert '<th scope="row" class="txt">&lt;b&gt;&amp;_%&lt;/b&gt;</th>' in text
    assert "<caption>100 % &amp; &lt;more&gt; \u2264 \u0394</caption>" in text
    assert re.findall(r"<b>(.*?)</b>", text) == ["\u2212.10 [\u2212.20, \u2212.05]"]
    assert ">12,345<" in text


def test_latex_escapes_and_marks_what_excludes_zero():
    text = latex_table(TABLE)
    assert r"\caption{100 \% \& $<$more$>$ $\le$ $\Delta$. a\_b costs \$5 $-$ \#1 \{x\} \textasciitilde{}" in text
    assert r"\textasciicircum{} \textbackslash{} $^2$}" in text
    assert r"\textbf{$-$.10 [$-$.20, $-$.05]}" in text
    assert r"\label{tab:odd-names}" in text
    assert text.isascii()
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    assert body.count("&") - body.count(r"\&") == 2 * 2


def test_long_rows_are_brought_side_by_side():
    frame = pl.DataFrame(
        {"k": ["a", "a", "b"], "lane": ["x", "y", "x"], "v": [1.0, 2.0, 3.0], "v_low": [0.0, 1.0, 2.0]}
    )
    assert wide(frame, ("k",), "lane", ("v",)) == [
        {"k": "a", "x_v": 1.0, "x_v_low": 0.0, "y_v": 2.0, "y_v_low": 1.0},
        {"k": "b", "x_v": 3.0, "x_v_low": 2.0},
    ]


FACTS = [
    ConditionFacts(slug=slug, friction=mu, grade=grade)
    for slug, mu, grade in (
        ("reference", 1.0, 0.0),
        ("mu018", 0.18, 0.0),
        ("mu008", 0.08, 0.0),
        ("mu005", 0.05, 0.0),
        ("up", 1.0, 0.03),
        ("down", 1.0, -0.08),
        ("both", 0.18, 0.03),
    )
]


def test_the_headline_is_counted_world_by_world():
    slugs = [c.slug for c in FACTS]
    table = random_table(seed=4, agents=("a", "b"), conditions=slugs, worlds=7).with_columns(
        valid_steps=pl.lit(600), ttc_below_1_5s_steps=pl.col("vehicle").cast(pl.Int32) % 3, distance=pl.lit(120.0)
    )
    found = headline(table, ["a", "b"], FACTS, BootstrapConfig(replicates=50))
    assert found.columns[:3] == ["agent", "worlds", "vehicles"]
    for row in found.to_dicts():
        own = table.filter(pl.col("agent") == row["agent"])
        rate = {
            slug: sum(own.filter(pl.col("condition") == slug)["valid_passage"].to_list()) / (7 * 12) for slug in slugs
        }
        assert row["passage"] == pytest.approx(rate["reference"])
        assert row["mu018"] == pytest.approx(rate["mu018"] - rate["reference"])
        assert row["mu_severe"] == pytest.approx((rate["mu008"] + rate["mu005"]) / 2 - rate["reference"])
        changes = {slug: rate[slug] - rate["reference"] for slug in ("up", "down")}
        assert row["grade"] == pytest.approx(changes[row["grade_condition"]])
        assert abs(row["grade"]) == pytest.approx(max(map(abs, changes.values())))
        assert row["ttc_share"] == pytest.approx(8 / 12)
        assert row["speed"] == pytest.approx(120.0 / 10.0)
        for name in ("passage", "mu018", "mu_severe", "grade", "ttc_share", "speed"):
            assert row[f"{name}_low"] <= row[name] + 1e-12
            assert row[name] <= row[f"{name}_high"] + 1e-12
    assert list(change_columns(FACTS)) == ["mu018", "mu_severe"]
    assert change_columns(FACTS)["mu_severe"] == ["mu008", "mu005"]
    assert change_columns([FACTS[0], FACTS[4]]) == {}
