"""The observation table: sizes, order, names and documentation."""

from __future__ import annotations

import pytest

from sf3d_envs.observation import OBSERVATION, PREVIEW, ObservationSpec, observation_docs


def test_table_has_the_published_sizes():
    spec = ObservationSpec(preview=True)
    sizes = {
        block: spec.slice(block).stop - spec.slice(block).start for block in ("ego", "route", "traffic", "planner")
    }
    assert sizes == {"ego": 12, "route": 20, "traffic": 56, "planner": 24}
    assert (len(OBSERVATION), len(PREVIEW)) == (112, 12)
    assert (ObservationSpec().size, spec.size, spec.slice("preview")) == (112, 124, slice(112, 124))


def test_names_are_unique_and_blocks_are_contiguous():
    spec = ObservationSpec(preview=True)
    assert len(set(spec.names)) == spec.size
    covered = [
        i for block in ("ego", "route", "traffic", "planner", "preview") for i in range(spec.size)[spec.slice(block)]
    ]
    assert covered == list(range(spec.size))
    assert all(spec.names[spec[name]] == name for name in spec.names)
    assert all(scale > 0.0 for scale in spec.scales)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(KeyError, match=r"did you mean 'ego.yaw_rate'"):
        ObservationSpec()["ego.yawrate"]
    with pytest.raises(KeyError, match="preview"):
        ObservationSpec().slice("preview")


@pytest.mark.parametrize("preview", [False, True])
def test_docs_have_one_line_per_channel(preview):
    text = observation_docs(preview)
    spec = ObservationSpec(preview)
    assert f"{spec.size} channels" in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert [line.split("`")[1] for line in rows] == list(spec.names)
    assert ObservationSpec(preview).markdown_table() in text
