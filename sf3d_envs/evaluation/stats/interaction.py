"""Additivity of grade and friction: what a composition loses beyond its two parts (paper, app. I, Table 16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from .bootstrap import BootstrapConfig, Interval, rate_interval
from .frames import columns_of, interval_columns
from .matched import matched


class RoadFacts(Protocol):
    """What tells a composition from its parts (a registry condition, or a row of the summary table)."""

    @property
    def slug(self) -> str:
        """Name."""
        ...

    @property
    def friction(self) -> float | None:
        """Friction of the patch; None or 1 without a patch."""
        ...

    @property
    def grade(self) -> float:
        """Grade as a fraction."""
        ...


def find_compositions(conditions: Iterable[RoadFacts]) -> dict[str, tuple[str, str]]:
    """Compositions whose two parts are among the conditions: slug -> (friction slug, grade slug)."""
    facts = [(c.slug, None if c.friction in (None, 1.0) else c.friction, c.grade) for c in conditions]
    by_friction = {friction: slug for slug, friction, grade in facts if friction is not None and not grade}
    by_grade = {grade: slug for slug, friction, grade in facts if friction is None and grade}
    return {
        slug: (by_friction[friction], by_grade[grade])
        for slug, friction, grade in facts
        if friction in by_friction and grade in by_grade
    }


@dataclass(frozen=True)
class Interactions:
    """Interaction contrasts of K compositions in L groups.

    Attributes:
        agent: Name of the agent.
        reference: Slug of the reference.
        compositions: Slugs (composition, friction part, grade part), length K.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        change: Change of the composition from the reference, [K, L].
        sum_of_parts: Change of the friction part plus change of the grade part, [K, L].
        interaction: Their difference, [K, L].
        config: How the intervals were made.
    """

    agent: str
    reference: str
    compositions: tuple[tuple[str, str, str], ...]
    lanes: tuple[str, ...]
    worlds: int
    change: Interval
    sum_of_parts: Interval
    interaction: Interval
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per composition and group.

        Columns: agent, condition, friction_part, grade_part, lane, worlds, change, sum_of_parts, interaction (each
        with _low and _high), excludes_zero.
        """
        shape = self.interaction.estimate.shape
        slugs, frictions, grades = zip(*self.compositions, strict=True)
        axes = {"condition": (0, slugs), "friction_part": (0, frictions), "grade_part": (0, grades)}
        return pl.DataFrame(
            {
                **columns_of(shape, self.agent, **axes, lane=(1, self.lanes)),
                "worlds": [self.worlds] * int(np.prod(shape)),
                **interval_columns("change", self.change, shape),
                **interval_columns("sum_of_parts", self.sum_of_parts, shape),
                **interval_columns("interaction", self.interaction, shape),
                "excludes_zero": self.interaction.excludes_zero.ravel(),
            }
        )


def interactions(
    vehicles: pl.DataFrame,
    compositions: Mapping[str, tuple[str, str]],
    reference: str = "reference",
    *,
    column: str = "valid_passage",
    agent: str | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> Interactions:
    """Interaction contrasts with paired intervals over worlds (paper, Table 16).

    I = VP(g, μ) − VP(μ) − VP(g) + VP(ref), per world, then averaged; all four cells of a world are drawn together.
    Zero: the losses add up. Negative: the composition loses more than the sum of the single losses.

    Args:
        vehicles: Vehicle table.
        compositions: Composition -> (friction part, grade part), for example from `find_compositions`.
        reference: Slug of the reference.
        column: Boolean column.
        agent: Name; None where the table holds one agent.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings.

    Returns:
        The contrasts; `frame()` makes the table.

    Raises:
        ValueError: If there is no composition, one does not differ from its parts, or the table is not a matched one.
    """
    config = config or BootstrapConfig()
    if not compositions:
        raise ValueError("compositions is empty; give composition -> (friction part, grade part)")
    for slug, parts in compositions.items():
        if len({slug, *parts, reference}) != 4:
            raise ValueError(
                f"compositions[{slug!r}] is {parts!r} with reference {reference!r}; it needs four different conditions"
            )
    wanted = list(dict.fromkeys([reference, *(c for slug, parts in compositions.items() for c in (slug, *parts))]))
    table = matched(vehicles, [column], agent=agent, conditions=wanted, by_lane=by_lane)
    counts = table.counts(table.flags(column))
    both, friction, grade = (
        counts[[table.index(name) for name in names]]
        for names in zip(*((slug, *parts) for slug, parts in compositions.items()), strict=True)
    )
    base = counts[0]
    return Interactions(
        table.agent,
        reference,
        tuple((slug, *parts) for slug, parts in compositions.items()),
        table.lanes,
        table.worlds,
        rate_interval(both - base, table.trials, config),
        rate_interval(friction + grade - 2 * base, table.trials, config),
        rate_interval(both - friction - grade + base, table.trials, config),
        config,
    )
