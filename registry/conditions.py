"""Road conditions and suites of them.

A condition changes the lane-closure road downstream of x = 40 m: surface friction of the closing lane, grade, further
patches. The packaged suite ``ucx-conditions-1`` holds the paper's 21 conditions (app. E).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from typing import Any

from sf3d_envs.terrain.friction import Disc, Rectangle

from .files import check_keys, is_path, list_entries, number, read_toml, suggest, tables, text

DEFAULT_SUITE = "ucx-conditions-1"
GROUPS = ("reference", "friction", "grade", "composition")
MAX_GRADE = 0.5
"""Largest grade magnitude accepted: catches percent written where a fraction is meant."""

EXTREME_FRICTION = 0.08
"""Friction up to here is the extreme-severity group (paper, sec. 5)."""

MAX_SLUG = 64
"""Longest slug: it names folders and environment IDs."""

_SLUG = re.compile(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*")
_PATCHES: dict[str, type[Disc] | type[Rectangle]] = {"disc": Disc, "rectangle": Rectangle}


@dataclass(frozen=True)
class Condition:
    """One road condition.

    Attributes:
        slug: Name in IDs, tables and folders: letters and digits, parts joined by "-" or "_".
        friction: Surface friction of the closing-lane patch [-], at least 0; None leaves the patch out.
        grade: Grade of the constant-grade section (fraction, positive uphill).
        group: "reference", "friction", "grade" or "composition".
        label: Text for tables and plots.
        patches: Further friction patches; they come after the closing-lane patch and win over it.

    Raises:
        ValueError: A value is out of range; the text names it.
    """

    slug: str
    friction: float | None = None
    grade: float = 0.0
    group: str = "reference"
    label: str = ""
    patches: Sequence[Disc | Rectangle] = ()

    def __post_init__(self) -> None:
        """Check ranges and freeze the patch list."""
        if not _SLUG.fullmatch(self.slug) or len(self.slug) > MAX_SLUG:
            raise ValueError(
                f"condition slug '{self.slug}' must be letters and digits joined by '-' or '_', at most {MAX_SLUG}"
            )
        where = f"condition '{self.slug}'"
        if self.friction is not None and not (math.isfinite(self.friction) and self.friction >= 0.0):
            raise ValueError(f"{where}: friction must be at least 0, got {self.friction}")
        if not abs(self.grade) <= MAX_GRADE:
            raise ValueError(
                f"{where}: grade must be a fraction in [-{MAX_GRADE}, {MAX_GRADE}] (3 % is 0.03), got {self.grade}"
            )
        if self.group not in GROUPS:
            raise ValueError(f"{where}: group '{self.group}' is unknown. Allowed: {', '.join(GROUPS)}")
        object.__setattr__(self, "patches", tuple(self.patches))

    @property
    def extreme(self) -> bool:
        """Whether the condition belongs to the extreme-severity group (friction at most 0.08)."""
        return self.friction is not None and self.friction <= EXTREME_FRICTION


@dataclass(frozen=True, kw_only=True)
class Tier:
    """A number of worlds that a suite is run on.

    Attributes:
        name: Name of the tier in its suite.
        worlds: Scenario seeds per condition, at least 1.
        seed0: First scenario seed, at least 0.

    Raises:
        ValueError: A value is out of range; the text names it.
    """

    name: str
    worlds: int
    seed0: int = 100_000

    def __post_init__(self) -> None:
        """Check ranges."""
        if not self.name:
            raise ValueError("name must not be empty")
        if self.worlds < 1:
            raise ValueError(f"worlds must be at least 1, got {self.worlds}")
        if not 0 <= self.seed0 <= 2**64 - self.worlds:
            raise ValueError(f"seed0 must be a scenario seed, 0 ... 2**64 - worlds, got {self.seed0}")


@dataclass(frozen=True)
class Suite:
    """A named, ordered set of conditions, with what it is meant to be run on.

    Attributes:
        name: Suite name.
        conditions: The conditions, slugs unique.
        tiers: Numbers of worlds, names unique.
        agents: Names of the agents that are run where none is given.

    Raises:
        ValueError: There is no condition, or two share a slug, or two tiers a name.
    """

    name: str
    conditions: tuple[Condition, ...]
    tiers: tuple[Tier, ...] = ()
    agents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse empty suites and duplicate slugs, tiers and agents."""
        for key, names in (("tier", [tier.name for tier in self.tiers]), ("agent", list(self.agents))):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"suite '{self.name}': {key} '{name}' is there {names.count(name)} times")
        if not self.conditions:
            raise ValueError(f"suite '{self.name}' holds no conditions")
        slugs = self.slugs
        for slug in slugs:
            if slugs.count(slug) > 1:
                raise ValueError(f"suite '{self.name}': condition '{slug}' is there {slugs.count(slug)} times")

    @property
    def slugs(self) -> tuple[str, ...]:
        """Slugs in suite order."""
        return tuple(condition.slug for condition in self.conditions)

    def __getitem__(self, slug: str) -> Condition:
        """Condition of a slug.

        Raises:
            ValueError: The slug is not in the suite; the text suggests the nearest one.
        """
        for condition in self.conditions:
            if condition.slug == slug:
                return condition
        raise ValueError(f"condition '{slug}' is not in suite '{self.name}'{suggest(slug, self.slugs)}")

    def tier(self, name: str) -> Tier:
        """Tier of a name.

        Raises:
            ValueError: The suite has no such tier; the text lists those it has.
        """
        for tier in self.tiers:
            if tier.name == name:
                return tier
        known = [tier.name for tier in self.tiers]
        hint = suggest(name, known) if known else "; it has no [[tiers]], give the number of worlds"
        raise ValueError(f"tier '{name}' is not in suite '{self.name}'{hint}")

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over the name and each condition's slug, friction, grade, group and patches, without labels.

        Tiers and agents only choose what is run, and an evaluation records worlds, seeds and agents by themselves; so
        they are not part of it.
        """
        content = [
            [c.slug, c.friction, c.grade + 0.0, c.group, [[type(p).__name__, asdict(p)] for p in c.patches]]
            for c in self.conditions
        ]
        return hashlib.sha256(json.dumps(["sf3d-suite-1", self.name, content], sort_keys=True).encode()).hexdigest()


def load_suite(name_or_path: str | os.PathLike[str] | Suite = DEFAULT_SUITE) -> Suite:
    """Load a suite.

    Args:
        name_or_path: Packaged name, path of a TOML file with a ``[[conditions]]`` list, or a suite (returned as it is).

    Returns:
        The suite. A file without ``name`` is named after its stem; ``[[tiers]]`` (name, worlds, seed0) and ``agents``
        (list of names) may be left out.

    Raises:
        ValueError: Unknown name, unreadable file, unknown key or bad value; the text names it.
    """
    if isinstance(name_or_path, Suite):
        return name_or_path
    return _read_suite(name_or_path) if is_path(name_or_path) else _packaged_suite(name_or_path)


def load_condition(
    condition: str | os.PathLike[str] | Condition, suite: str | os.PathLike[str] | Suite = DEFAULT_SUITE
) -> Condition:
    """Load one condition.

    Args:
        condition: A slug of ``suite``, a condition (returned as it is), or the path of a TOML file that holds one
            condition: either its keys at the top level, or a single ``[[conditions]]`` entry.
        suite: Suite that slugs are looked up in.

    Returns:
        The condition.

    Raises:
        ValueError: Unknown slug, unreadable file, unknown key or bad value; the text names it.
    """
    if isinstance(condition, Condition):
        return condition
    if not is_path(condition):
        return load_suite(suite)[str(condition)]
    source, table = read_toml("suites", "condition", condition)
    if "conditions" not in table:
        return _condition(f"'{source}'", table, default_slug=_stem(source))
    conditions = _suite(source, table).conditions
    if len(conditions) != 1:
        slugs = ", ".join(c.slug for c in conditions)
        raise ValueError(f"condition file '{source}' holds {len(conditions)} conditions ({slugs}); load it as a suite")
    return conditions[0]


def list_conditions(suite: str | os.PathLike[str] | Suite = DEFAULT_SUITE) -> tuple[str, ...]:
    """Slugs of a suite, in its order."""
    return load_suite(suite).slugs


def list_suites() -> tuple[str, ...]:
    """Names of the packaged suites."""
    return list_entries("suites")


@cache
def _packaged_suite(name: str | os.PathLike[str]) -> Suite:
    return _read_suite(name)


def _read_suite(name_or_path: str | os.PathLike[str]) -> Suite:
    return _suite(*read_toml("suites", "suite", name_or_path))


def _suite(source: str, table: Mapping[str, Any]) -> Suite:
    where = f"'{source}'"
    check_keys(where, table, ("name", "conditions", "tiers", "agents"), ("conditions",))
    entries = tables(where, "conditions", table["conditions"])
    conditions = tuple(_condition(f"{where}, conditions[{i}]", entry) for i, entry in enumerate(entries))
    tiers = tuple(
        _tier(f"{where}, tiers[{i}]", entry) for i, entry in enumerate(tables(where, "tiers", table.get("tiers", [])))
    )
    agents = table.get("agents", [])
    if not isinstance(agents, list) or not all(isinstance(name, str) and name for name in agents):
        raise ValueError(f"{where}: agents must be a list of agent names, got {agents!r}")
    return Suite(text(where, "name", table.get("name", _stem(source))), conditions, tiers, tuple(agents))


def _tier(where: str, table: Mapping[str, Any]) -> Tier:
    check_keys(where, table, ("name", "worlds", "seed0"), ("name", "worlds"))
    for key in ("worlds", "seed0"):
        if key in table and (isinstance(table[key], bool) or not isinstance(table[key], int)):
            raise ValueError(f"{where}: {key} must be a whole number, got {table[key]!r}")
    try:
        return Tier(**{**table, "name": text(where, "name", table["name"])})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _condition(where: str, table: Mapping[str, Any], default_slug: str | None = None) -> Condition:
    keys = tuple(field.name for field in fields(Condition))
    check_keys(where, table, keys, () if default_slug else ("slug",))
    slug = text(where, "slug", table.get("slug", default_slug))
    friction = number(where, "friction", table["friction"]) if "friction" in table else None
    grade = number(where, "grade", table.get("grade", 0.0))
    entries = tables(where, "patches", table.get("patches", []))
    patches = tuple(_patch(f"{where}, patches[{i}]", entry) for i, entry in enumerate(entries))
    group = text(where, "group", table.get("group", _group(friction is not None or bool(patches), grade != 0.0)))
    label = text(where, "label", table.get("label", slug))
    try:
        return Condition(slug, friction, grade, group, label, patches)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _group(friction: bool, grade: bool) -> str:
    """Group of a condition that names none."""
    if friction and grade:
        return "composition"
    return "friction" if friction else "grade" if grade else "reference"


def _patch(where: str, table: Mapping[str, Any]) -> Disc | Rectangle:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _PATCHES:
        raise ValueError(f"{where}: kind must be one of {', '.join(_PATCHES)}, got {kind!r}")
    names = tuple(field.name for field in fields(_PATCHES[kind]))
    check_keys(where, table, ("kind", *names), tuple(name for name in names if name != "yaw"))
    values = {name: number(where, name, table[name]) for name in names if name in table}
    try:
        return _PATCHES[kind](**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _stem(source: str) -> str:
    return os.path.basename(source).removesuffix(".toml")
