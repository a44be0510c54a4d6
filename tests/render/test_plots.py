from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from PIL import Image
from render.worlds import road

from sf3d_envs.registry import load_suite
from sf3d_envs.render.plots import plot_passage, plot_trajectories, side_by_side


def passage_table() -> pl.DataFrame:
    rows = [
        (c.slug, c.friction, c.grade, c.group, 0.8 * (c.friction or 1.0) ** 0.25, 0.3, 0.9)
        for c in load_suite("ucx-conditions-1").conditions
    ]
    columns = ["condition", "friction", "grade", "group", "passage", "low", "high"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def texts(axes) -> list[str]:
    return [item.get_text() for item in axes.get_legend().get_texts()]


def test_passage_plot_shows_every_condition_of_the_suite(tmp_path):
    path = tmp_path / "passage.png"
    figure = plot_passage(passage_table(), path)
    left, right = figure.axes
    ticks = [label.get_text() for label in left.get_xticklabels()]
    assert ticks == ["1.00", "0.70", "0.50", "0.35", "0.25", "0.18", "0.12", "0.08", "0.05"]
    assert len(left.containers[0].lines[0].get_xdata()) == 9
    assert len(right.containers[0].lines[0].get_xdata()) == 9
    assert len(right.containers) == 3
    assert {"reference", "\u03bc 1.00", "\u03bc 0.35", "\u03bc 0.18"} == set(texts(right))
    with Image.open(path) as picture:
        assert picture.size[0] > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_passage_plot_takes_parts_of_a_suite_and_missing_bounds():
    table = passage_table().with_columns(low=pl.lit(None, dtype=pl.Float64), high=pl.lit(None, dtype=pl.Float64))
    for part in (["reference"], ["mu018", "mu012"], ["gradeP030-mu035"]):
        plot_passage(table.filter(pl.col("condition").is_in(part)))


def test_passage_plot_refuses_what_it_can_not_show():
    table = passage_table()
    with pytest.raises(ValueError, match=r"table lacks the columns \['low'\]"):
        plot_passage(table.drop("low"))
    with pytest.raises(ValueError, match="table is empty"):
        plot_passage(table.clear())
    two = pl.concat([table.with_columns(agent=pl.lit(name)) for name in ("idm17", "random")])
    with pytest.raises(ValueError, match="table must hold one agent"):
        plot_passage(two)


def test_side_by_side_keeps_both_pictures():
    left, right = np.full((90, 160, 3), 40, np.uint8), np.full((90, 100, 3), 200, np.uint8)
    image = side_by_side(left, right, ["reference", "mu018"])
    assert image.dtype == np.uint8
    assert image.shape[1] == 160 + 100 + 4
    assert (image[-90:, :160] == 40).all()
    assert (image[-90:, -100:] == 200).all()
    assert (image[:20, :100] < 100).any()
    assert image.flags.writeable
    with pytest.raises(ValueError, match="frames must have one height, got 90 and 80"):
        side_by_side(left, right[:80], ["", ""])
    with pytest.raises(ValueError, match="frame_b must be uint8"):
        side_by_side(left, right.astype(float), ["", ""])
    with pytest.raises(ValueError, match="titles must be two, got 1"):
        side_by_side(left, right, [""])


def test_trajectories_of_a_matched_pair_share_axes_and_shade_the_patch(tmp_path):
    x = np.linspace(0.0, 200.0, 30)
    paths = np.stack([np.stack([x - 10.0 * v, np.full(30, -26.25)], axis=1) for v in range(12)], axis=1)
    cut = paths.copy()
    cut[20:, 3] = np.nan
    path = tmp_path / "pair.png"
    figure = plot_trajectories({"reference": paths, "mu018": cut}, path, variants={"mu018": road("mu018")})
    first, second = figure.axes
    assert len(first.patches) == 0
    assert second.patches[0].get_x() == pytest.approx(40.0)
    assert second.patches[0].get_width() == pytest.approx(140.0)
    assert first.get_xlim() == second.get_xlim()
    assert path.exists()
    with pytest.raises(ValueError, match="worlds is empty"):
        plot_trajectories({})
    with pytest.raises(ValueError, match=r"positions of 'a' must have shape \[T, V, 2\]"):
        plot_trajectories({"a": paths[0]})


def test_plots_do_not_touch_pyplot():
    code = "import sys, sf3d_envs.render.plots as p; import numpy as np\n"
    code += "p.plot_trajectories({'a': np.zeros((4, 12, 2))}); assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
