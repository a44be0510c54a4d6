"""Exposure-normalized rates: sums of a measure over sums of its exposure, recomputed in every replicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from .bootstrap import FIXED_POINT, BootstrapConfig, RatioInterval, fixed_point, interval_of, ratio_replicates
from .frames import columns_of, interval_columns
from .matched import against_reference, check_columns, matched

STEPS_PER_SECOND = 60.0
_ONE = pl.lit(1.0)


@dataclass(frozen=True, kw_only=True)
class ExposureRate:
    """One rate: scale · sum of the numerator / sum of the denominator.

    Attributes:
        name: Name in tables.
        unit: Unit of the rate, "1" without one.
        numerator: Expression on a row of the vehicle table, finite.
        denominator: Exposure of that row, finite and >= 0.
        scale: Factor from the quotient of the two to the unit.
        doc: What it says.
    """

    name: str
    unit: str
    numerator: pl.Expr
    denominator: pl.Expr
    scale: float = 1.0
    doc: str = ""

    @property
    def columns(self) -> list[str]:
        """Columns of the vehicle table that it reads."""
        names = [*self.numerator.meta.root_names(), *self.denominator.meta.root_names()]
        return list(dict.fromkeys(names))


def _per_valid_step(name: str, column: str, doc: str) -> ExposureRate:
    return ExposureRate(name=name, unit="1", numerator=pl.col(column), denominator=pl.col("valid_steps"), doc=doc)


def _entry_speed(at: int) -> ExposureRate:
    speed = pl.col(f"speed_at_{at}m")
    read = speed.is_not_null() & speed.is_not_nan().fill_null(False)
    return ExposureRate(
        name=f"speed_at_{at}m",
        unit="m/s",
        numerator=pl.when(read).then(speed).otherwise(0.0),
        denominator=read,
        doc=f"Mean speed on crossing x = {at} m, over the vehicles that did.",
    )


EXPOSURE_RATES = (
    _per_valid_step("ttc_below_1_5s", "ttc_below_1_5s_steps", "Seconds below TTC 1.5 s per second of valid driving."),
    _per_valid_step("ttc_below_3s", "ttc_below_3s_steps", "Seconds below TTC 3 s per second of valid driving."),
    _per_valid_step("drac_above_limit", "drac_above_limit_steps", "Share of valid driving with DRAC > 3.35 m/s²."),
    _per_valid_step("hard_brake", "hard_brake_steps", "Share of valid driving with braking beyond 3 m/s²."),
    _per_valid_step("need_above_capacity", "need_above_capacity_steps", "Share of time need exceeds capacity."),
    _per_valid_step("on_patch", "patch_steps", "Share of valid driving with a wheel on the patch."),
    ExposureRate(
        name="hard_brake_onsets",
        unit="1/km",
        numerator=pl.col("hard_brake_onsets"),
        denominator=pl.col("distance"),
        scale=1000.0,
        doc="Times that hard braking began, per kilometre of valid driving.",
    ),
    ExposureRate(
        name="ttc_below_1_5s_vehicles",
        unit="1",
        numerator=pl.col("ttc_below_1_5s_steps") > 0,
        denominator=_ONE,
        doc="Share of vehicles that reached TTC < 1.5 s (the paper's TTC share).",
    ),
    ExposureRate(
        name="patch_contact",
        unit="1",
        numerator=pl.col("patch_steps") > 0,
        denominator=_ONE,
        doc="Share of vehicles with any wheel contact on the patch.",
    ),
    ExposureRate(
        name="valid_driving",
        unit="s",
        numerator=pl.col("valid_steps"),
        denominator=_ONE,
        scale=1.0 / STEPS_PER_SECOND,
        doc="Valid driving per vehicle.",
    ),
    ExposureRate(
        name="speed",
        unit="m/s",
        numerator=pl.col("distance"),
        denominator=pl.col("valid_steps"),
        scale=STEPS_PER_SECOND,
        doc="Distance over time of valid driving.",
    ),
    _entry_speed(20),
    _entry_speed(40),
    ExposureRate(
        name="realized_accel",
        unit="m/s²",
        numerator=pl.col("realized_accel_sum"),
        denominator=pl.col("valid_steps"),
        doc="Mean realized forward acceleration.",
    ),
    ExposureRate(
        name="requested_accel",
        unit="m/s²",
        numerator=pl.col("requested_accel_sum"),
        denominator=pl.col("valid_steps"),
        doc="Mean requested acceleration.",
    ),
    ExposureRate(
        name="accel_error_square",
        unit="m²/s⁴",
        numerator=pl.col("accel_error_square_sum"),
        denominator=pl.col("valid_steps"),
        doc="Mean of (realized − requested)².",
    ),
)
"""Rates of the safety measures that the vehicle table holds."""


@dataclass(frozen=True)
class ExposureRates:
    """K rates in C conditions (the reference first, where there is one) and L groups.

    Attributes:
        agent: Name of the agent.
        reference: Slug of the reference, or None.
        conditions: Slugs, length C.
        lanes: Groups, length L.
        worlds: Number of worlds S.
        rates: The rates, length K.
        numerator: Sums of the numerators, [C, L, K], before scaling.
        denominator: Sums of the exposures, [C, L, K].
        rate: Scaled ratio of the two, [C, L, K]; NaN without exposure.
        change: Rate minus that of the reference, paired by world, [C, L, K]; None without a reference. Its row of the
            reference itself is zero.
        config: How the intervals were made.
    """

    agent: str
    reference: str | None
    conditions: tuple[str, ...]
    lanes: tuple[str, ...]
    worlds: int
    rates: tuple[ExposureRate, ...]
    numerator: np.ndarray
    denominator: np.ndarray
    rate: RatioInterval
    change: RatioInterval | None
    config: BootstrapConfig

    def frame(self) -> pl.DataFrame:
        """One row per condition, group and rate.

        Columns: agent, condition, lane, rate, unit, worlds, numerator, denominator (sums), value, value_low,
        value_high, value_undefined (share of replicates without exposure), change (and the same), excludes_zero; the
        last five are missing without a reference, and null in its own rows.
        """
        shape = self.numerator.shape
        names, units = ([getattr(r, key) for r in self.rates] for key in ("name", "unit"))
        axes = {"condition": (0, self.conditions), "lane": (1, self.lanes), "rate": (2, names), "unit": (2, units)}
        columns = {
            **columns_of(shape, self.agent, **axes),
            "worlds": [self.worlds] * int(np.prod(shape)),
            "numerator": self.numerator.ravel(),
            "denominator": self.denominator.ravel(),
            **interval_columns("value", self.rate, shape),
        }
        if self.change is None:
            return pl.DataFrame(columns)
        changes = interval_columns("change", self.change, shape) | {"excludes_zero": self.change.excludes_zero.ravel()}
        own = pl.col("condition") == self.reference
        return pl.DataFrame(columns | changes).with_columns(
            pl.when(own).then(None).otherwise(pl.col(n)).alias(n) for n in changes
        )


def _check_rates(rates: Sequence[ExposureRate], vehicles: pl.DataFrame) -> None:
    check_columns(vehicles, ())
    if wrong := [rate for rate in rates if not isinstance(rate, ExposureRate)]:
        raise ValueError(f"rates holds {wrong[0]!r}; each must be an ExposureRate")
    names = [rate.name for rate in rates]
    if not names:
        raise ValueError("rates is empty; give at least one ExposureRate")
    if len(set(names)) != len(names):
        raise ValueError(f"rates holds the names {names}; each may appear once")
    for rate in rates:
        if missing := [name for name in rate.columns if name not in vehicles.columns]:
            raise ValueError(
                f"rate {rate.name!r} needs the columns {missing}, which vehicles lacks; a run without safety measures "
                "does not have them"
            )
        for name in rate.columns:
            kind = vehicles[name].dtype
            if not (kind.is_numeric() or kind == pl.Boolean):
                raise ValueError(f"rate {rate.name!r} reads vehicles[{name!r}], of type {kind}; it must hold numbers")


def available_rates(vehicles: pl.DataFrame) -> tuple[ExposureRate, ...]:
    """The `EXPOSURE_RATES` whose columns a vehicle table holds."""
    return tuple(rate for rate in EXPOSURE_RATES if set(rate.columns) <= set(vehicles.columns))


def exposure_rates(
    vehicles: pl.DataFrame,
    rates: Sequence[ExposureRate] = EXPOSURE_RATES,
    reference: str | None = "reference",
    *,
    agent: str | None = None,
    conditions: Sequence[str] | None = None,
    by_lane: bool = True,
    config: BootstrapConfig | None = None,
) -> ExposureRates:
    """Exposure-normalized rates with intervals (paper, app. "Statistics": ratios of sums over worlds).

    r = scale · Σ_w n_w / Σ_w d_w, recomputed in every replicate; a change is r_p − r_ref with both sides on the worlds
    of one replicate. All measures are over the valid-driving window.

    Args:
        vehicles: Vehicle table with safety measures.
        rates: Rates wanted; `available_rates` gives those that a table allows.
        reference: Slug that changes are measured against; None leaves changes out.
        agent: Name; None where the table holds one agent.
        conditions: Slugs; None takes all. The reference is always there, and first.
        by_lane: Whether to give the lanes beside `all`.
        config: Bootstrap settings.

    Returns:
        Rates and changes; `frame()` makes the table.

    Raises:
        ValueError: For a missing column, a numerator or exposure that is missing or not finite, a negative exposure,
            or a table that is not a matched one.
    """
    config = config or BootstrapConfig()
    rates = tuple(rates)
    _check_rates(rates, vehicles)
    wanted = conditions
    if reference is not None:
        held = [] if conditions is None else [c for c in conditions if c != reference]
        only = conditions is not None and not held
        wanted = [reference] if only else against_reference(reference, vehicles, agent, conditions)
    terms = [
        expression.cast(pl.Float64).alias(f"{word} of rate {rate.name}")
        for rate in rates
        for word, expression in (("numerator", rate.numerator), ("denominator", rate.denominator))
    ]
    names = [f"{word} of rate {rate.name}" for rate in rates for word in ("numerator", "denominator")]
    table = matched(vehicles.with_columns(terms), names, agent=agent, conditions=wanted, by_lane=by_lane)
    sums = []
    for word in ("numerator", "denominator"):
        values = [fixed_point(name, table.columns[name]) for name in names if name.startswith(word)]
        sums.append(np.stack([table.sums(v) for v in values], axis=2))  # [C, L, K, S]
    above, below = sums
    scale = np.array([rate.scale for rate in rates])
    rate_parts, change_parts, base = [], [], None
    for c in range(len(table.conditions)):
        real, drawn = ratio_replicates(above[c], below[c], config)
        if reference is not None:
            base = (real, drawn) if base is None else base
            change_parts.append(interval_of(real - base[0], drawn - base[1], config))
        rate_parts.append(interval_of(real, drawn, config))
    return ExposureRates(
        table.agent,
        reference,
        table.conditions,
        table.lanes,
        table.worlds,
        rates,
        above.sum(axis=-1) / FIXED_POINT,
        below.sum(axis=-1) / FIXED_POINT,
        _stacked(rate_parts, scale),
        _stacked(change_parts, scale) if change_parts else None,
        config,
    )


def _stacked(parts: Sequence[RatioInterval], scale: np.ndarray) -> RatioInterval:
    estimate, low, high = (np.stack([getattr(p, n) for p in parts]) * scale for n in ("estimate", "low", "high"))
    return RatioInterval(estimate, low, high, np.stack([p.undefined for p in parts]))
