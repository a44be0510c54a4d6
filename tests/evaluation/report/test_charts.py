"""Charts show what their tables hold."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import random_table

from sf3d_envs.evaluation import stats
from sf3d_envs.evaluation.report import charts, event_charts
from sf3d_envs.evaluation.report.drawing import NothingToDraw, condition_axes, svg
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
SLUGS = [c.slug for c in FACTS]
AGENTS = ("one", "two")


@pytest.fixture(scope="module")
def vehicles():
    """Two agents on six conditions, with made-up safety measures."""
    table = random_table(agents=AGENTS, conditions=SLUGS, worlds=5)
    rng = np.random.default_rng(3)
    valid = rng.integers(1, 3000, table.height)
    crossed = rng.random(table.height) < 0.8
    speed = pl.Series(rng.uniform(3.0, 15.0, table.height)).zip_with(
        pl.Series(crossed), pl.Series([None], dtype=pl.Float64)
    )
    return table.with_columns(
        valid_steps=pl.Series(valid),
        ttc_below_1_5s_steps=pl.Series((valid * rng.random(table.height) * 0.1).astype(int)),
        speed_at_20m=speed,
        speed_at_40m=speed + 1.0,
        patch_first_step=pl.lit(-1),
    )


@pytest.fixture(scope="module")
def passage(vehicles):
    return pl.concat([stats.sensitivity(vehicles, agent=a, conditions=SLUGS).frame() for a in AGENTS])


@pytest.fixture(scope="module")
def rates(vehicles):
    names = ("ttc_below_1_5s", "ttc_below_1_5s_vehicles", "speed_at_20m", "speed_at_40m")
    chosen = [rate for rate in stats.EXPOSURE_RATES if rate.name in names]
    return pl.concat([stats.exposure_rates(vehicles, chosen, agent=a, conditions=SLUGS).frame() for a in AGENTS])


def lines(ax):
    """Points and limits of each errorbar: name -> (x, y, half bars)."""
    found = {}
    for bars in ax.containers:
        data, _, (segments, *_) = bars.lines
        found[bars.get_label()] = (data.get_xdata(), data.get_ydata(), [s[:, :] for s in segments.get_segments()])
    return found


def test_axes_of_the_conditions():
    friction, grade = condition_axes(FACTS)
    assert dict(friction.places) == {"reference": 0.0, "mu018": 1.0, "mu008": 2.0}
    assert dict(grade.places) == pytest.approx({"down": -4.5, "reference": 0.0, "up": 3.0})
    assert [axis.label for axis in condition_axes(FACTS[:2])] == ["friction \u03bc of the patch"]
    assert [axis.label for axis in condition_axes([FACTS[0], FACTS[3]])] == ["grade [%]"]
    assert condition_axes(FACTS[:1]) == []


def test_passage_is_the_tables(passage):
    figure = charts.plot_passage(passage, FACTS)
    left, right = figure.axes
    for agent in AGENTS:
        own = passage.filter((pl.col("agent") == agent) & (pl.col("lane") == "all"))
        rows = {row["condition"]: row for row in own.to_dicts()}
        base = own["reference_rate"][0]
        _, y, bars = lines(left)[agent]
        assert y == pytest.approx([base, rows["mu018"]["rate"], rows["mu008"]["rate"]])
        assert [bars[1][0][1], bars[1][1][1]] == pytest.approx([rows["mu018"]["rate_low"], rows["mu018"]["rate_high"]])
        x, y, _ = lines(right)[agent]
        assert y == pytest.approx([rows["down"]["rate"], base, rows["up"]["rate"]])
        assert (np.diff(x) > 2.0).all()
    assert [text.get_text() for text in left.get_legend().get_texts()] == list(AGENTS)
    one = charts.plot_passage(passage.filter(pl.col("agent") == "one"), FACTS)
    assert one.axes[0].get_legend() is None


def test_changes_are_the_tables_by_lane(passage):
    figure = charts.plot_change(passage, FACTS)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == SLUGS[1:]
    for ax, lane in zip(figure.axes, ("closing", "open"), strict=True):
        for agent in AGENTS:
            own = passage.filter((pl.col("agent") == agent) & (pl.col("lane") == lane))
            x, y, _ = lines(ax)[agent]
            assert list(x) == own["change"].to_list()
            assert [SLUGS[1 + round(place)] for place in y] == own["condition"].to_list()


def test_rates_leave_gaps_where_there_is_no_value(rates):
    gone = (pl.col("condition") == "mu018") & (pl.col("agent") == "one")
    holes = rates.with_columns(
        pl.when(gone).then(float("nan")).otherwise(pl.col(name)).alias(name)
        for name in ("value", "value_low", "value_high")
    )
    full, holed = (charts.plot_ttc(frame, FACTS).axes[0] for frame in (rates, holes))
    assert len(lines(full)["one"][1]) == 3
    assert len(lines(holed)["one"][1]) == 2
    assert len(lines(holed)["two"][1]) == 3
    # Both panels of a row share their scale, whichever of them has the larger values.
    shown = full.get_ylim()
    assert shown[0] == 0.0
    assert (
        shown[1]
        >= rates.filter(pl.col("rate") == "ttc_below_1_5s_vehicles", pl.col("lane") == "all")["value_high"].max()
    )


def test_entry_speeds_are_told_apart(rates):
    figure = charts.plot_entry_speed(rates, FACTS)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["one, 20 m", "two, 20 m", "one, 40 m", "two, 40 m"]
    one = charts.plot_entry_speed(rates.filter(pl.col("agent") == "one"), FACTS)
    assert [t.get_text() for t in one.legends[0].get_texts()] == ["at 20 m", "at 40 m"]


def test_additivity_shows_its_three_parts(vehicles):
    found = stats.interactions(vehicles, {"down-mu018": ("mu018", "down")}, agent="one").frame()
    (ax,) = charts.plot_additivity(found).axes
    row = found.filter(pl.col("lane") == "all").row(0, named=True)
    drawn = {name: x[0] for name, (x, _, _) in lines(ax).items()}
    assert drawn == pytest.approx(
        {
            "measured": row["change"],
            "sum of single changes": row["sum_of_parts"],
            "difference of both": row["interaction"],
        }
    )


def bar_lengths(ax):
    """Sum of all bars of each row."""
    rows: dict[int, float] = {}
    for bar in ax.patches:
        rows[round(bar.get_y() + bar.get_height() / 2)] = rows.get(round(bar.get_y() + 0.36), 0.0) + bar.get_width()
    return [rows[i] for i in sorted(rows)]


def test_losses_fill_up_to_the_vehicles_without_a_passage(vehicles, passage):
    losses = stats.losses_by_patch(vehicles, agent="one", conditions=SLUGS).frame()
    figure = event_charts.plot_losses(losses, FACTS)
    for ax, lane in zip(figure.axes, ("closing", "open"), strict=True):
        own = passage.filter((pl.col("agent") == "one") & (pl.col("lane") == lane))
        rates = {row["condition"]: row["rate"] for row in own.to_dicts()} | {"reference": own["reference_rate"][0]}
        assert bar_lengths(ax) == pytest.approx([1.0 - rates[slug] for slug in SLUGS])
        hatched = {SLUGS[round(bar.get_y() + 0.36)] for bar in ax.patches if bar.get_hatch() and bar.get_width() > 0}
        assert hatched == {"mu018", "mu008", "down-mu018"}


def test_the_parts_fill_every_bar(vehicles):
    parts = stats.decomposition(vehicles, agent="two", conditions=SLUGS).frame()
    (ax,) = event_charts.plot_decomposition(parts, FACTS).axes
    assert bar_lengths(ax) == pytest.approx([1.0] * 5)


def test_a_hazard_of_few_vehicles_is_not_drawn(vehicles):
    hazard = stats.hazard(vehicles, agent="one", conditions=["reference", "mu018"]).frame()
    figure = event_charts.plot_hazard(hazard, ["reference", "mu018"])
    own = hazard.filter(pl.col("condition") == "mu018", pl.col("lane") == "all", pl.col("failure") == "own").sort(
        "second"
    )
    drawn = figure.axes[0].lines[1].get_ydata()
    enough = own["at_risk"].to_numpy() >= event_charts.FEW_AT_RISK
    assert 0 < enough.sum() < len(enough)
    assert np.array_equal(drawn[enough], own["hazard"].to_numpy()[enough])
    assert np.isnan(drawn[~enough]).all()


def test_nothing_to_draw_is_said(passage, rates, vehicles):
    with pytest.raises(NothingToDraw, match="no condition with friction or grade alone"):
        charts.plot_passage(passage, FACTS[:1])
    with pytest.raises(NothingToDraw, match="no condition beside the reference"):
        charts.plot_change(passage, FACTS[:1])
    with pytest.raises(NothingToDraw, match="no rate of the time to collision"):
        charts.plot_ttc(rates.filter(pl.col("rate") == "speed_at_20m"), FACTS)
    with pytest.raises(NothingToDraw, match="20 vehicles at risk"):
        few = stats.hazard(
            vehicles.filter(pl.col("scenario_seed") == pl.col("scenario_seed").min()), agent="one"
        ).frame()
        event_charts.plot_hazard(few, ["reference"])
    with pytest.raises(ValueError, match=r"lacks the columns \['change', 'change_low', 'change_high'\]"):
        charts.plot_change(passage.drop("change", "change_low", "change_high"), FACTS)


def test_drawings_are_bytes_of_their_table_and_do_not_collide(passage):
    drawn = {name: svg(charts.plot_passage(passage, FACTS), name, title='a "<b>"') for name in ("first one", "second")}
    assert svg(charts.plot_passage(passage, FACTS), "second", title='a "<b>"') == drawn["second"]
    ids = {}
    for name, text in drawn.items():
        ids[name] = set(re.findall(r'\bid="([^"]+)"', text))
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert used
        assert {one or other for one, other in used} <= ids[name]
        assert 'aria-label="a &quot;&lt;b&gt;&quot;"' in text
        assert text.startswith("<svg role")
    assert not ids["first one"] & ids["second"]


def test_eight_agents_stay_apart(vehicles):
    many = pl.concat(
        [vehicles.filter(pl.col("agent") == "one").with_columns(agent=pl.lit(f"agent-{i}")) for i in range(8)]
    )
    frames = pl.concat([stats.sensitivity(many, agent=f"agent-{i}", conditions=SLUGS).frame() for i in range(8)])
    ax = charts.plot_passage(frames, FACTS).axes[0]
    looks = {(bars.lines[0].get_color(), bars.lines[0].get_marker()) for bars in ax.containers}
    assert len(looks) == 8
    firsts = sorted(x[0] for x, _, _ in lines(ax).values())
    assert min(np.diff(firsts)) > 0.05
    assert firsts[-1] < 0.5
