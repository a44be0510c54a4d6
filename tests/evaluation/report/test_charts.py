"""Charts show what their tables hold."""

from __future__ import annotations

import itertools
import re

import numpy as np
import polars as pl
import pytest
from evaluation.stats.tables import random_table

from sf3d_envs.evaluation import stats
from sf3d_envs.evaluation.report import charts, event_charts
from sf3d_envs.evaluation.report.drawing import NothingToDraw, svg
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
def hazard(vehicles):
    config = stats.BootstrapConfig(replicates=200)
    return stats.hazard(vehicles, agent="one", conditions=SLUGS, by_lane=False, config=config).frame()


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
        found[bars.get_label()] = (
            data.get_xdata(),
            data.get_ydata(),
            [np.reshape(s, (-1, 2)) for s in segments.get_segments()],
        )
    return found


def legend(figure):
    """Labels of the legends outside the axes."""
    return [text.get_text() for held in figure.legends for text in held.get_texts()]


def emptied(frame, value, where, by=None):
    """The frame with a value and its limits taken out of some rows."""
    names = (value, f"{value}_low", f"{value}_high")
    return frame.with_columns(pl.when(where).then(pl.lit(by)).otherwise(pl.col(name)).alias(name) for name in names)


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
    assert legend(figure) == list(AGENTS)
    assert left.get_legend() is None, "a legend inside the axes covers curves"
    one = charts.plot_passage(passage.filter(pl.col("agent") == "one"), FACTS)
    assert legend(one) == []


def test_changes_are_the_tables_by_lane(passage):
    figure = charts.plot_change(passage, FACTS)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == SLUGS[1:]
    for ax, lane in zip(figure.axes, ("closing", "open"), strict=True):
        for agent in AGENTS:
            own = passage.filter((pl.col("agent") == agent) & (pl.col("lane") == lane))
            x, y, _ = lines(ax)[agent]
            assert list(x) == own["change"].to_list()
            assert [SLUGS[1 + round(place)] for place in y] == own["condition"].to_list()


@pytest.mark.parametrize("by", [None, float("nan"), float("inf")])
def test_rates_leave_gaps_where_there_is_no_value(rates, by):
    gone = (pl.col("condition") == "mu018") & (pl.col("agent") == "one")
    full, holed = (charts.plot_ttc(frame, FACTS).axes[0] for frame in (rates, emptied(rates, "value", gone, by)))
    # A hole in the line, not a straight line across it.
    assert list(np.isnan(lines(holed)["one"][1])) == [False, True, False]
    for agent in AGENTS:
        kept = np.isfinite(lines(holed)[agent][1])
        assert kept.sum() == (2 if agent == "one" else 3)
        assert lines(holed)[agent][1][kept] == pytest.approx(lines(full)[agent][1][kept])


def test_a_value_without_limits_is_a_point(passage):
    bare = passage.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in ("change_low", "change_high"))
    for frame, count in ((passage, 5), (bare, 0)):
        x, _, bars = lines(charts.plot_change(frame, FACTS).axes[0])["one"]
        assert len(x) == 5
        assert sum(len(bar) == 2 and np.isfinite(bar).all() for bar in bars) == count


def test_shares_of_time_have_one_scale(rates):
    full = charts.plot_ttc(rates, FACTS).axes[0]
    # Both panels of a row share their scale, whichever of them has the larger values.
    shown = full.get_ylim()
    assert shown[0] == 0.0
    assert (
        shown[1]
        >= rates.filter(pl.col("rate") == "ttc_below_1_5s_vehicles", pl.col("lane") == "all")["value_high"].max()
    )


def test_entry_speeds_are_told_apart(rates):
    figure = charts.plot_entry_speed(rates, FACTS)
    assert legend(figure) == ["one", "two", "at 20 m", "at 40 m"]
    one = charts.plot_entry_speed(rates.filter(pl.col("agent") == "one"), FACTS)
    assert legend(one) == ["at 20 m", "at 40 m"]
    for ax, lane in zip(one.axes[::2], ("closing", "open"), strict=True):
        for bars, at, style in zip(ax.containers, (20, 40), ("--", "-"), strict=True):
            own = rates.filter(
                pl.col("agent") == "one", pl.col("lane") == lane, pl.col("rate") == f"speed_at_{at}m"
            ).to_dicts()
            expected = {row["condition"]: row["value"] for row in own}
            line = bars.lines[0]
            assert line.get_ydata() == pytest.approx([expected[slug] for slug in SLUGS[:3]])
            assert (line.get_linestyle(), line.get_markerfacecolor() == "white") == (style, at == 20)


def test_the_legend_does_not_depend_on_which_speeds_there_are(rates):
    gone = (pl.col("agent") == "one") & (pl.col("rate") == "speed_at_40m")
    figure = charts.plot_entry_speed(rates.filter(~gone), FACTS)
    assert legend(figure) == ["one", "two", "at 20 m", "at 40 m"]


def test_conditions_that_were_not_run_have_no_panel(passage, rates):
    grades = pl.col("condition").is_in(["up", "down", "down-mu018"])
    for figure, count in (
        (charts.plot_passage(passage.filter(~grades), FACTS), 1),
        (charts.plot_ttc(rates.filter(~grades), FACTS), 2),
        (charts.plot_entry_speed(rates.filter(~grades), FACTS), 2),
    ):
        assert [ax.get_xlabel() for ax in figure.axes] == ["friction \u03bc of the patch"] * count
    changes = charts.plot_change(passage.filter(~grades & (pl.col("lane") != "open")), FACTS)
    assert [ax.get_title(loc="left") for ax in changes.axes] == ["closing lane"]
    assert [label.get_text() for label in changes.axes[0].get_yticklabels()] == ["mu018", "mu008"]


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


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_interactions_of_many_agents_stay_readable(vehicles, count):
    found = stats.interactions(vehicles, {"down-mu018": ("mu018", "down")}, agent="one").frame()
    frame = pl.concat([found.with_columns(agent=pl.lit(f"agent-{i}")) for i in range(count)])
    figure = charts.plot_additivity(frame)
    figure.canvas.draw()
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") for ax in shown] == [f"agent-{i}" for i in range(count)]
    labels = [ax.xaxis.label for ax in shown if ax.get_xlabel() and ax.xaxis.label.get_visible()]
    boxes = sorted((b.x0, b.x1, b.y0) for b in (label.get_window_extent() for label in labels))
    assert len(boxes) == min(count, 2)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(boxes))


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
        assert ax.get_xlim()[1] > max(bar_lengths(ax)), "the longest bar ends at the edge"
    assert legend(figure)[-1] == "never on the patch"
    flat = losses.filter(pl.col("condition").is_in(["reference", "up"]))
    assert "never on the patch" not in legend(event_charts.plot_losses(flat, FACTS))


def test_the_parts_fill_every_bar(vehicles):
    parts = stats.decomposition(vehicles, agent="two", conditions=SLUGS).frame()
    (ax,) = event_charts.plot_decomposition(parts, FACTS).axes
    assert bar_lengths(ax) == pytest.approx([1.0] * 5)


def test_a_hazard_of_few_vehicles_is_not_drawn(hazard):
    figure = event_charts.plot_hazard(hazard, ["reference", "mu018"])
    own = hazard.filter(pl.col("condition") == "mu018", pl.col("lane") == "all", pl.col("failure") == "own").sort(
        "second"
    )
    drawn, edges, _ = figure.axes[0].patches[1].get_data()
    assert list(edges) == [*own["second"], own["second"].max() + 1.0]
    enough = own["at_risk"].to_numpy() >= event_charts.FEW_AT_RISK
    assert 0 < enough.sum() < len(enough)
    assert np.array_equal(drawn[enough], own["hazard"].to_numpy()[enough])
    assert np.isnan(drawn[~enough]).all()
    assert np.array_equal(figure.axes[2].patches[1].get_data().values, own["at_risk"].to_numpy())
    assert legend(figure) == ["reference", "mu018"]


def test_conditions_of_a_hazard(vehicles, hazard):
    assert legend(event_charts.plot_hazard(hazard)) == ["reference", "mu018", "mu008"]
    others = hazard.filter(pl.col("condition").is_in(["up", "down"]))
    assert legend(event_charts.plot_hazard(others)) == ["up", "down"]
    for wrong in (["reference", "mu999"], "mu018"):
        with pytest.raises(ValueError, match=r"conditions is .*mu.*the table, which holds \['reference', 'mu018'"):
            event_charts.plot_hazard(hazard, wrong)
    wide = stats.hazard(vehicles, agent="one", conditions=SLUGS[:2], bin_s=2.0).frame()
    figure = event_charts.plot_hazard(wide)
    assert figure.axes[0].get_ylabel() == "own failure\nper 2 s"
    assert figure.axes[0].patches[0].get_data().edges[1] == 2.0


def test_charts_of_one_agent_refuse_several(vehicles, hazard):
    one = {"agent": "one", "conditions": SLUGS[:2]}
    frames = {
        event_charts.plot_losses: stats.losses_by_patch(vehicles, **one).frame(),
        event_charts.plot_decomposition: stats.decomposition(vehicles, **one).frame(),
        event_charts.plot_hazard: hazard,
    }
    for plot, frame in frames.items():
        both = pl.concat([frame, frame.with_columns(agent=pl.lit("two"))])
        with pytest.raises(ValueError, match=r"holds the agents \['one', 'two'\]"):
            plot(both, FACTS if plot is not event_charts.plot_hazard else ["reference"])


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
    nothing = pl.lit(True)
    with pytest.raises(NothingToDraw, match="no passage that is a number"):
        empty = emptied(emptied(passage, "rate", nothing), "reference_rate", nothing)
        charts.plot_passage(empty, FACTS)
    with pytest.raises(NothingToDraw, match="no change that is a number"):
        charts.plot_change(emptied(passage, "change", nothing), FACTS)
    with pytest.raises(NothingToDraw, match="no rate of the time to collision"):
        charts.plot_ttc(emptied(rates, "value", nothing), FACTS)
    with pytest.raises(NothingToDraw, match="no vehicle crossed"):
        charts.plot_entry_speed(emptied(rates, "value", nothing), FACTS)
    found = stats.interactions(vehicles, {"down-mu018": ("mu018", "down")}, agent="one").frame()
    for part in ("change", "sum_of_parts", "interaction"):
        found = emptied(found, part, nothing)
    with pytest.raises(NothingToDraw, match="no interaction that is a number"):
        charts.plot_additivity(found)
    with pytest.raises(NothingToDraw, match="no row of all vehicles"):
        charts.plot_passage(passage.filter(pl.col("lane") != "all"), FACTS)
    with pytest.raises(NothingToDraw, match="no condition beside"):
        event_charts.plot_decomposition(
            stats.decomposition(vehicles, agent="one", conditions=SLUGS).frame().with_columns(share=float("nan")), FACTS
        )
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
    figure = charts.plot_passage(passage, FACTS)
    assert svg(figure, "again") == svg(figure, "again")
    assert 'aria-label="again"' in svg(figure, "again")
    with pytest.raises(ValueError, match="name is empty"):
        svg(figure, "")


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
    # A row of changes holds the values of its own condition alone.
    figure = charts.plot_change(frames, FACTS)
    for ax in figure.axes:
        for _, y, _ in lines(ax).values():
            assert [round(place) for place in y] == list(range(len(SLUGS) - 1))
        places = np.concatenate([y for _, y, _ in lines(ax).values()])
        low, high = sorted(ax.get_ylim())
        assert low < places.min() and places.max() < high
    rendered = figure.canvas.get_width_height()[0]
    (box,) = [held.get_window_extent() for held in figure.legends]
    assert 0 <= box.x0 and box.x1 <= rendered


def test_long_names_fit_into_the_legend(passage):
    names = {agent: f"checkpoint-of-a-policy-trained-for-long-{agent}" for agent in AGENTS}
    figure = charts.plot_passage(passage.with_columns(pl.col("agent").replace(names)), FACTS)
    figure.canvas.draw()
    (box,) = [held.get_window_extent() for held in figure.legends]
    assert 0 <= box.x0 and box.x1 <= figure.canvas.get_width_height()[0]
