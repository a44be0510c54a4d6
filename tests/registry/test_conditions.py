"""The condition registry: the 21 entries, user files, and errors that tell the way out."""

import subprocess
import sys

import pytest

from sf3d_envs.registry import (
    DEFAULT_SUITE,
    Condition,
    Suite,
    Tier,
    list_conditions,
    list_suites,
    load_condition,
    load_suite,
)
from sf3d_envs.terrain import Disc, Rectangle, lane_closure_terrain

# The paper, app. E: slug -> (friction, grade, group).
EXPECTED = {
    "reference": (None, 0.0, "reference"),
    "mu070": (0.70, 0.0, "friction"),
    "mu050": (0.50, 0.0, "friction"),
    "mu035": (0.35, 0.0, "friction"),
    "mu025": (0.25, 0.0, "friction"),
    "mu018": (0.18, 0.0, "friction"),
    "mu012": (0.12, 0.0, "friction"),
    "mu008": (0.08, 0.0, "friction"),
    "mu005": (0.05, 0.0, "friction"),
    "gradeP015": (None, 0.015, "grade"),
    "gradeP030": (None, 0.030, "grade"),
    "gradeP040": (None, 0.040, "grade"),
    "gradeN015": (None, -0.015, "grade"),
    "gradeN030": (None, -0.030, "grade"),
    "gradeN045": (None, -0.045, "grade"),
    "gradeN060": (None, -0.060, "grade"),
    "gradeN080": (None, -0.080, "grade"),
    "gradeN045-mu035": (0.35, -0.045, "composition"),
    "gradeN045-mu018": (0.18, -0.045, "composition"),
    "gradeP030-mu035": (0.35, 0.030, "composition"),
    "gradeP030-mu018": (0.18, 0.030, "composition"),
}


def write(tmp_path, text, name="own.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_21_conditions():
    suite = load_suite("ucx-conditions-1")
    assert {c.slug: (c.friction, c.grade, c.group) for c in suite.conditions} == EXPECTED
    assert suite.slugs == tuple(EXPECTED) == list_conditions()
    assert len({c.label for c in suite.conditions}) == 21
    assert not any(c.patches for c in suite.conditions)


def test_extreme_severity_group():
    assert [c.slug for c in load_suite().conditions if c.extreme] == ["mu008", "mu005"]


def test_lookups():
    assert list_suites() == (DEFAULT_SUITE,)
    condition = load_condition("gradeN045-mu018")
    assert load_condition(condition) is condition
    assert load_suite()["gradeN045-mu018"] == condition
    assert load_suite(load_suite()) is load_suite()


def test_suite_digest_is_stable_and_sees_content_but_not_labels():
    suite = load_suite()
    assert suite.digest == "d030fa5acc0d0c704832f335087e8ed282c18bb18ba6e4ad39a1717412113794"
    relabelled = tuple(Condition(c.slug, c.friction, c.grade, c.group, "x", c.patches) for c in suite.conditions)
    assert Suite(suite.name, relabelled).digest == suite.digest
    assert Suite(suite.name, suite.conditions[:-1]).digest != suite.digest
    assert Suite(suite.name, suite.conditions[::-1]).digest != suite.digest
    assert Suite("other", suite.conditions).digest != suite.digest
    spot = Disc(x=0.0, y=0.0, radius=1.0, friction=0.5)
    first = Condition("reference", patches=(spot,))
    assert Suite(suite.name, (first, *suite.conditions[1:])).digest != suite.digest


def test_unknown_slug_suggests_the_nearest_and_lists_all():
    with pytest.raises(
        ValueError, match=r"condition 'mu0\.18' is not in suite 'ucx-conditions-1'; did you mean 'mu018'\?"
    ):
        load_condition("mu0.18")
    with pytest.raises(ValueError, match=r"Known: reference, mu070, .*gradeP030-mu018"):
        load_condition("qqqq")


def test_unknown_suite_suggests_the_nearest():
    with pytest.raises(
        ValueError, match="suite 'ucx-condition-1' is not in the registry; did you mean 'ucx-conditions-1'"
    ):
        load_suite("ucx-condition-1")
    with pytest.raises(ValueError, match="suite 'ucx-condition-1'"):
        load_condition("mu018", suite="ucx-condition-1")


def test_user_suite_with_patches(tmp_path):
    path = write(
        tmp_path,
        """
        name = "winter"
        [[conditions]]
        slug = "black-ice"
        friction = 0.3
        grade = -0.02
        [[conditions.patches]]
        kind = "disc"
        x = 100
        y = -29.75
        radius = 2.5
        friction = 0.05
        [[conditions.patches]]
        kind = "rectangle"
        x = 300.0
        y = -26.25
        length = 10.0
        width = 3.5
        yaw = 0.1
        friction = 0.2
        [[conditions]]
        slug = "dry"
        """,
    )
    suite = load_suite(path)
    assert suite.name == "winter"
    ice, dry = suite.conditions
    assert (ice.friction, ice.grade, ice.group, ice.label) == (0.3, -0.02, "composition", "black-ice")
    assert ice.patches == (
        Disc(x=100.0, y=-29.75, radius=2.5, friction=0.05),
        Rectangle(x=300.0, y=-26.25, length=10.0, width=3.5, yaw=0.1, friction=0.2),
    )
    assert (dry.friction, dry.grade, dry.group) == (None, 0.0, "reference")
    assert load_condition("dry", suite=path) == dry
    terrain = lane_closure_terrain(ice)
    assert terrain.friction_at([100.0, 104.0, 300.0], [-29.75, -29.75, -26.25]).tolist() == [0.05, 0.3, 0.2]


def test_user_condition_file(tmp_path):
    flat = write(
        tmp_path, "friction = 0.4\n[[patches]]\nkind='disc'\nx=1\ny=2\nradius=3\nfriction=0.1\n", "wet-lane.toml"
    )
    condition = load_condition(str(flat))
    assert (condition.slug, condition.friction, condition.group) == ("wet-lane", 0.4, "friction")
    assert condition.patches == (Disc(x=1.0, y=2.0, radius=3.0, friction=0.1),)
    only_patches = write(tmp_path, "slug='spot'\n[[patches]]\nkind='disc'\nx=1\ny=2\nradius=3\nfriction=0.1\n")
    assert load_condition(only_patches).group == "friction"
    single = write(tmp_path, "[[conditions]]\nslug='hill'\ngrade=0.05\n", "single.toml")
    assert load_condition(single) == Condition("hill", None, 0.05, "grade", "hill")
    assert load_suite(single).name == "single"
    both = write(tmp_path, "[[conditions]]\nslug='a'\n[[conditions]]\nslug='b'\n")
    with pytest.raises(ValueError, match=r"holds 2 conditions \(a, b\); load it as a suite"):
        load_condition(both)


PATCH = "slug = 'a'\n[[patches]]\nkind = 'disc'\nx = 1\ny = 2\nradius = 3\nfriction = 0.1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slug='a'\nfrction=0.3", r"unknown key 'frction'; did you mean 'friction'\? Allowed: slug, friction, grade"),
        ("slug='a'\nfriction='low'", "friction must be a finite number, got 'low'"),
        ("slug='a'\nfriction=true", "friction must be a finite number, got True"),
        ("slug='a'\nfriction=nan", "friction must be a finite number, got nan"),
        ("slug='a'\nfriction=-0.1", "condition 'a': friction must be at least 0, got -0.1"),
        ("slug='a'\ngrade=4.5", r"grade must be a fraction in \[-0.5, 0.5\] \(3 % is 0.03\), got 4.5"),
        ("slug='a'\ngroup='ice'", "group 'ice' is unknown. Allowed: reference, friction, grade, composition"),
        ("slug='mu0.3'", "slug 'mu0.3' must be letters and digits"),
        ("slug='../a'", "slug '../a' must be letters and digits"),
        ("slug=3", "slug must be a string, got 3"),
        ("slug='a'\npatches=3", "patches must be a list of tables"),
        ("slug='a'\n[[patches]]\nx=1", r"patches\[0\]: kind must be one of disc, rectangle, got None"),
        (PATCH.replace("'disc'", "'oval'"), r"patches\[0\]: kind must be one of disc, rectangle, got 'oval'"),
        (PATCH + "width = 2", r"patches\[0\]: unknown key 'width'. Allowed: kind, x, y, radius, friction"),
        (PATCH.replace("radius = 3\n", ""), r"patches\[0\]: missing key 'radius'. Required: x, y, radius, friction"),
        (PATCH.replace("radius = 3", "radius = 0"), r"patches\[0\]: disc radius must be above 0 m, got 0.0"),
        (PATCH.replace("0.1", "-0.1"), r"patches\[0\]: disc friction must be at least 0, got -0.1"),
        (PATCH.replace("x = 1", "x = inf"), r"patches\[0\]: x must be a finite number, got inf"),
        ("slug=", "is not a TOML file"),
    ],
)
def test_bad_condition_files_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_condition(write(tmp_path, text))
    assert "own.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name='s'", "missing key 'conditions'"),
        ("title='s'\nconditions=[]", "unknown key 'title'.* Allowed: name, conditions, tiers, agents"),
        ("name='s'\nconditions=[]", "suite 's' holds no conditions"),
        ("name=1\n[[conditions]]\nslug='a'", "name must be a string, got 1"),
        ("name='s'\n[[conditions]]\nslug='a'\n[[conditions]]\nslug='a'", "condition 'a' is there 2 times"),
        ("[[conditions]]\nfriction=0.3", r"conditions\[0\]: missing key 'slug'"),
        ("conditions=['a']", "conditions must be a list of tables"),
    ],
)
def test_bad_suite_files_are_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_suite(write(tmp_path, text))


def test_missing_file_is_named():
    with pytest.raises(ValueError, match=r"condition file 'no/such.toml' cannot be read"):
        load_condition("no/such.toml")
    with pytest.raises(ValueError, match=r"suite file 'none.toml' cannot be read"):
        load_suite("none.toml")


def test_registry_and_host_terrain_import_neither_warp_nor_torch():
    code = (
        "import sys, sf3d_envs.registry, sf3d_envs.terrain; "
        "print([m for m in ('warp', 'torch', 'newton', 'polars') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


TIERS = """
agents = ["idm17", "constant"]
[[tiers]]
name = "quick"
worlds = 4
seed0 = 7
[[tiers]]
name = "long"
worlds = 64
[[conditions]]
slug = "reference"
"""


def test_tiers_and_agents_of_a_suite(tmp_path):
    suite = load_suite(write(tmp_path, TIERS))
    assert suite.agents == ("idm17", "constant")
    assert suite.tier("quick") == Tier(name="quick", worlds=4, seed0=7)
    assert suite.tier("long") == Tier(name="long", worlds=64, seed0=100_000)
    assert suite.digest == Suite(suite.name, suite.conditions).digest
    with pytest.raises(
        ValueError, match=r"tier 'quik' is not in suite '.*'; did you mean 'quick'\? Known: quick, long"
    ):
        suite.tier("quik")
    with pytest.raises(ValueError, match=r"it has no \[\[tiers\]\], give the number of worlds"):
        Suite(suite.name, suite.conditions).tier("1")


def test_the_tiers_of_the_paper():
    """Tier 1 is the first 32 worlds of tier 2 (paper, sec. 5)."""
    suite = load_suite()
    assert [(t.name, t.worlds, t.seed0) for t in suite.tiers] == [("1", 32, 100_000), ("2", 1024, 100_000)]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("worlds = 4", "worlds = 0", r"tiers\[0\]: worlds must be at least 1, got 0"),
        ("worlds = 4", "worlds = 4.5", r"tiers\[0\]: worlds must be a whole number, got 4\.5"),
        ("worlds = 4", "", r"tiers\[0\]: missing key 'worlds'"),
        ("seed0 = 7", "seed0 = -7", r"tiers\[0\]: seed0 must be a scenario seed"),
        ("seed0 = 7", "seed = 7", r"tiers\[0\]: unknown key 'seed'; did you mean 'seed0'"),
        ('"quick"', "1", r"tiers\[0\]: name must be a string, got 1"),
        ('"quick"', '"long"', "tier 'long' is there 2 times"),
        ('"constant"', '"idm17"', "agent 'idm17' is there 2 times"),
        ('"constant"', "3", "agents must be a list of agent names"),
        ("[[tiers]]", "[tiers2]", "unknown key 'tiers2'"),
    ],
)
def test_bad_tiers_and_agents_are_named(tmp_path, before, after, message):
    with pytest.raises(ValueError, match=message):
        load_suite(write(tmp_path, TIERS.replace(before, after, 1)))
