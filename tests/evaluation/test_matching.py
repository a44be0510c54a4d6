"""The matching check on the manifests of real runs."""

from __future__ import annotations

import copy
import functools
import json

import pytest

from sf3d_envs.agents import make_agent
from sf3d_envs.evaluation import AXES, UnmatchedPair, check_pair, evaluate, manifest_fields
from sf3d_envs.evaluation.finished import read_cells
from sf3d_envs.evaluation.matching import on_axis

SHORT = {"conditions": ["reference", "mu018"], "worlds": 3, "horizon_s": 1.0, "threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two agents on two conditions."""
    return evaluate(["constant", "random"], out=tmp_path_factory.mktemp("matching") / "out", **SHORT).out


@pytest.fixture
def manifests(folder):
    """Manifest by cell name; a test may change it."""
    return {cell.name: copy.deepcopy(cell.manifest) for cell in read_cells(folder)}


def set_field(manifest: dict, name: str, value) -> None:
    """Change a field where `manifest_fields` found it."""
    *path, last = name.split(".")
    for part in (manifest["identity"], manifest["identity"]["cell"], manifest["record"]):
        place = functools.reduce(lambda at, key: at.get(key, {}), path, part)
        if last in place:
            place[last] = value
            return
    raise KeyError(name)


def test_terrains_pair_and_only_condition_and_terrain_differ(manifests):
    found = check_pair(manifests["constant/reference"], manifests["constant/mu018"], "terrain")
    assert set(found) == {"condition", "terrain"}
    assert found["condition"] == ("reference", "mu018")


def test_agents_pair_on_one_road(manifests):
    found = check_pair(manifests["constant/mu018"], manifests["random/mu018"], "agent")
    assert {"agent", "agent_digest"} <= set(found)
    assert all(on_axis(name, "agent") for name in found)


def test_solvers_pair(manifests):
    other = copy.deepcopy(manifests["constant/mu018"])
    other["identity"]["solver"] = "xpbd"
    assert check_pair(manifests["constant/mu018"], other, "solver") == {"solver": ("vehicle", "xpbd")}


@pytest.mark.parametrize(
    ("axis", "field"),
    [
        ("agent", "checkpoint"),
        ("agent", "checkpoint_digest"),
        ("agent", "decision_hz"),
        ("terrain", "terrain_bank"),
    ],
)
def test_fields_of_an_axis_may_differ_along_it_and_not_along_another(manifests, axis, field):
    a, b = manifests["constant/mu018"], copy.deepcopy(manifests["constant/mu018"])
    a["identity"]["cell"][field], b["identity"]["cell"][field] = "1", "2"
    assert check_pair(a, b, axis) == {field: ("1", "2")}
    with pytest.raises(UnmatchedPair) as caught:
        check_pair(a, b, "solver")
    assert caught.value.fields == {field: ("1", "2")}


@pytest.mark.parametrize("axis", AXES)
def test_every_field_off_the_axis_is_refused_and_named_with_both_values(manifests, axis):
    pairs = {
        "terrain": ("constant/reference", "constant/mu018"),
        "agent": ("constant/mu018", "random/mu018"),
        "solver": ("constant/mu018", "constant/mu018"),
    }
    a, b = (manifests[name] for name in pairs[axis])
    names = [name for name in manifest_fields(a) if not on_axis(name, axis) and name not in ("worlds", "seed0", "rich")]
    assert {"code", "packages.numpy", "horizon_s", "device", "route", "scenario", "initial_state"} <= set(names)
    for name in names:
        changed = copy.deepcopy(b)
        new = ["0" * 64] * 3 if name in ("scenario", "initial_state") else "changed"
        set_field(changed, name, new)
        with pytest.raises(UnmatchedPair) as caught:
            check_pair(a, changed, axis)
        assert list(caught.value.fields) == [name]
        assert caught.value.fields[name][1] == new
        assert name in str(caught.value)


def test_what_is_recorded_besides_may_differ(manifests):
    a, b = manifests["constant/reference"], manifests["constant/mu018"]
    a["identity"]["rich"], b["identity"]["rich"] = 0, 2
    assert set(check_pair(a, b, "terrain")) == {"condition", "terrain"}


def test_all_differing_fields_are_listed_at_once(manifests):
    other = manifests["random/reference"]
    other["identity"] |= {"code": "1" * 64, "solver": "xpbd"}
    with pytest.raises(UnmatchedPair) as caught:
        check_pair(manifests["constant/mu018"], other, "terrain")
    assert set(caught.value.fields) == {"agent", "agent_digest", "code", "solver"}
    assert "solver: vehicle in A, xpbd in B" in str(caught.value)


def test_a_field_that_one_side_lacks_is_refused(manifests):
    manifests["constant/mu018"]["identity"]["metric_schema"] = "safety-9"
    with pytest.raises(UnmatchedPair, match="metric_schema: absent in A, safety-9 in B"):
        check_pair(manifests["constant/reference"], manifests["constant/mu018"], "terrain")


@pytest.mark.parametrize("field", ["scenario", "initial_state"])
def test_unequal_worlds_are_counted_and_the_first_is_named(manifests, field):
    manifests["constant/mu018"]["record"][field][1] = "f" * 64
    with pytest.raises(UnmatchedPair, match=rf"{field} \(1 of 3 worlds, first seed 100001\)"):
        check_pair(manifests["constant/reference"], manifests["constant/mu018"], "terrain")


def test_other_seeds_do_not_pair(manifests):
    manifests["constant/mu018"]["identity"]["seed0"] = 5
    with pytest.raises(UnmatchedPair, match=r"seed0: 100000 in A, 5 in B\. Their worlds do not pair"):
        check_pair(manifests["constant/reference"], manifests["constant/mu018"], "terrain")


def shortened(manifest: dict, worlds: int) -> dict:
    short = copy.deepcopy(manifest)
    short["identity"]["worlds"] = worlds
    for name in ("scenario", "initial_state"):
        short["record"][name] = short["record"][name][:worlds]
    return short


def test_a_prefix_of_the_worlds_is_offered_and_never_taken_silently(manifests):
    a, b = manifests["constant/reference"], shortened(manifests["constant/mu018"], 2)
    for pair in ((a, b), (b, a)):
        with pytest.raises(UnmatchedPair, match=r"--worlds 2 \(worlds=2\) compares those"):
            check_pair(*pair, "terrain")
        assert set(check_pair(*pair, "terrain", worlds=2)) == {"condition", "terrain"}
    for worlds in (0, 3):
        with pytest.raises(ValueError, match=f"worlds is {worlds}; A holds 3 and B 2, so it must be 1 ... 2"):
            check_pair(a, b, "terrain", worlds=worlds)


def test_nothing_is_offered_where_the_common_worlds_differ(manifests):
    a, b = manifests["constant/reference"], shortened(manifests["constant/mu018"], 2)
    b["record"]["scenario"][0] = "f" * 64
    with pytest.raises(UnmatchedPair, match="1 of 2 worlds, first seed 100000") as caught:
        check_pair(a, b, "terrain")
    assert "--worlds" not in str(caught.value)


def test_a_world_beyond_the_compared_ones_does_not_matter(manifests):
    manifests["constant/mu018"]["record"]["scenario"][2] = "f" * 64
    check_pair(manifests["constant/reference"], manifests["constant/mu018"], "terrain", worlds=2)


def test_a_pair_that_does_not_differ_along_the_axis_is_refused(manifests):
    same = manifests["constant/reference"]
    with pytest.raises(UnmatchedPair, match="nothing to compare"):
        check_pair(same, same, "agent")


@pytest.mark.parametrize(("axis", "text"), [("terain", "did you mean 'terrain'"), ("road", "terrain, agent, solver")])
def test_an_unknown_axis_is_refused(manifests, axis, text):
    with pytest.raises(ValueError, match=text):
        check_pair(manifests["constant/reference"], manifests["constant/mu018"], axis)


def test_another_agent_under_the_same_name_is_another_agent(folder, manifests, tmp_path):
    """Parameters change the digest: an agent contrast, and no terrain contrast."""
    evaluate(make_agent("constant", acceleration=1.0), out=tmp_path, **SHORT)
    other = {cell.condition: cell.manifest for cell in read_cells(tmp_path)}
    assert set(check_pair(manifests["constant/mu018"], other["mu018"], "agent")) == {"agent_digest"}
    with pytest.raises(UnmatchedPair, match="agent_digest"):
        check_pair(manifests["constant/reference"], other["mu018"], "terrain")


def test_fields_are_json_values(manifests):
    assert json.loads(json.dumps(manifest_fields(manifests["random/mu018"])))["agent"] == "random"
