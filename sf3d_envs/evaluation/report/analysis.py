"""All statistics of a result folder as tables, on the functions of `evaluation.stats`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from .. import stats
from ..stats.arms import check_families
from ..table import ConditionFacts
from .headline import headline
from .results import Results

NEED, NEED_EARLY = "need above capacity", "need above capacity, TTC above 1.5 s"
"""Indicators of the hazard ratio (paper, Table 17)."""
_TTC_LIMIT = 1.5


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Tables of a report; those of single agents stand one below the other.

    Attributes:
        headline: One row per agent (`headline.headline_row`).
        passage: `stats.Sensitivity.frame`.
        rates: `stats.ExposureRates.frame`.
        losses: `stats.Losses.frame`.
        decomposition: `stats.Decomposition.frame`.
        lost_to: `stats.Decomposition.lost_frame`.
        additivity: `stats.Interactions.frame`; None without a composition and its parts.
        hazard: `stats.Hazard.frame`, bins of one second.
        hazard_ratio: `stats.HazardRatio.frame` with a column `indicator`; None without trajectories.
        families: `stats.FamilySummary.frame`; None if no family was named.
        ranks: `stats.rank_by_condition`; None with fewer than four agents.
    """

    headline: pl.DataFrame
    passage: pl.DataFrame
    rates: pl.DataFrame
    losses: pl.DataFrame
    decomposition: pl.DataFrame
    lost_to: pl.DataFrame
    additivity: pl.DataFrame | None
    hazard: pl.DataFrame
    hazard_ratio: pl.DataFrame | None
    families: pl.DataFrame | None
    ranks: pl.DataFrame | None

    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that there are, by name."""
        return {name: frame for name in self.__dataclass_fields__ if (frame := getattr(self, name)) is not None}


def check_members(families: Mapping[str, Sequence[str]], agents: Sequence[str]) -> None:
    """Refuse families that overlap or name an agent that the results do not hold.

    Raises:
        ValueError: Naming the family.
    """
    if not isinstance(families, Mapping):
        raise ValueError(f"families is {families!r}; give a mapping of family -> agent names in seed order")
    if families:
        check_families(families)
    for name, members in families.items():
        if unknown := [agent for agent in members if agent not in agents]:
            raise ValueError(f"family {name!r} names {unknown}; the results hold {list(agents)}")


def analyse(
    results: Results,
    *,
    families: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Analysis:
    """Compute every table.

    Args:
        results: From `read_results`.
        families: Name -> agents in order of their training seed; adds their summary, and pools their hazard ratios.
        progress: Called with the name of each part before it is computed.

    Returns:
        The tables; their intervals use the bootstrap settings of the evaluation.

    Raises:
        ValueError: For a wrong family, or results that do not pair.
        DamagedCell: If a file of trajectories was changed.
    """
    families = families or {}
    check_members(families, results.agents)
    vehicles, config = results.vehicles, results.bootstrap
    tell = progress or (lambda _: None)
    slugs = list(results.slugs)

    def of_all(compute: Callable[[str], pl.DataFrame]) -> pl.DataFrame:
        return pl.concat([compute(agent) for agent in results.agents])

    tell("passage")
    passage = of_all(lambda a: stats.sensitivity(vehicles, agent=a, conditions=slugs, config=config).frame())
    heads = headline(vehicles, results.agents, results.conditions, config)
    tell("safety rates")
    rates = of_all(lambda a: stats.exposure_rates(vehicles, agent=a, conditions=slugs, config=config).frame())
    tell("losses")
    losses = of_all(lambda a: stats.losses_by_patch(vehicles, agent=a, conditions=slugs, config=config).frame())
    parts = [stats.decomposition(vehicles, agent=a, conditions=slugs, config=config) for a in results.agents]
    compositions = stats.find_compositions(results.conditions)
    additivity = None
    if compositions:
        additivity = of_all(lambda a: stats.interactions(vehicles, compositions, agent=a, config=config).frame())
    tell("hazard")
    horizon = float(results.identity["horizon_s"])
    hazard = of_all(
        lambda a: stats.hazard(vehicles, agent=a, conditions=slugs, horizon_s=horizon, config=config).frame()
    )
    tell("hazard ratios")
    ratios = _hazard_ratios(results, families)
    ranks = stats.rank_by_condition(passage) if len(results.agents) > 3 else None
    summaries = [stats.family_summary(vehicles, families, name, config=config).frame() for name in families]
    return Analysis(
        headline=heads,
        passage=passage,
        rates=rates,
        losses=losses,
        decomposition=pl.concat([p.frame() for p in parts]),
        lost_to=pl.concat([p.lost_frame() for p in parts]),
        additivity=additivity,
        hazard=hazard,
        hazard_ratio=ratios,
        families=pl.concat(summaries) if summaries else None,
        ranks=ranks,
    )


def hazard_conditions(conditions: Sequence[ConditionFacts]) -> list[str]:
    """The reference and the conditions with friction alone: those of the hazard analysis."""
    return [c.slug for c in conditions if not c.grade]


def _hazard_ratios(results: Results, families: Mapping[str, Sequence[str]]) -> pl.DataFrame | None:
    count = int(results.identity.get("rich", 0))
    if not count:
        return None
    pooled = {agent: name for name, members in families.items() for agent in members}
    groups: dict[str, list[str]] = {}
    for agent in results.agents:
        groups.setdefault(pooled.get(agent, agent), []).append(agent)
    last = pl.lit(int(results.identity["seed0"]) + count, dtype=pl.UInt64)
    vehicles = results.vehicles.filter(pl.col("scenario_seed") < last)
    horizon = float(results.identity["horizon_s"])
    rows = []
    for name, members in groups.items():
        for slug in hazard_conditions(results.conditions):
            flags = _indicators(results, members, slug)
            for indicator, seconds in flags.items():
                ratio = stats.hazard_ratio(
                    vehicles, seconds, slug, agents=members, horizon_s=horizon, config=results.bootstrap
                )
                rows.append(
                    ratio.frame().select(pl.lit(name).alias("group"), pl.lit(indicator).alias("indicator"), "*")
                )
    return pl.concat(rows)


def _indicators(results: Results, agents: Sequence[str], slug: str) -> dict[str, pl.DataFrame]:
    """Per indicator one row per vehicle-second of the recorded worlds."""
    found: dict[str, list[pl.DataFrame]] = {NEED: [], NEED_EARLY: []}
    for agent in agents:
        path = results.rich_file(agent, slug)
        if path is None:
            raise ValueError(f"cell {agent}/{slug} has no trajectories, although the evaluation recorded some")
        columns = ["step", "scenario_seed", "vehicle", "ttc", "need_ratio"]
        steps = pl.read_parquet(path, columns=columns).with_columns(
            agent=pl.lit(agent), condition=pl.lit(slug), **{NEED: pl.col("need_ratio") > 1.0}
        )
        steps = steps.with_columns((pl.col(NEED) & (pl.col("ttc") > _TTC_LIMIT)).alias(NEED_EARLY))
        for indicator, frames in found.items():
            frames.append(stats.indicator_seconds(steps, indicator))
    return {indicator: pl.concat(frames) for indicator, frames in found.items()}
