"""One verified statement: what was measured, what was expected, and whether it holds."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELATIONS = ("within", "at most", "at least")


@dataclass(frozen=True, kw_only=True)
class Check:
    """Result of one check. The measured value comes from a run of the simulator.

    Attributes:
        name: Short name, unique in its group.
        group: Group it belongs to.
        states: What holds if it passes, in words.
        source: Where the expected value comes from: an equation, a section of the specification or a standard.
        measured: Measured value.
        expected: Expected value or bound.
        unit: Unit of the three values; "" for counts and ratios.
        tolerance: Allowed distance from ``expected``; 0 for bounds.
        relation: "within" (|measured - expected| <= tolerance), "at most" or "at least".
        plot: File name of the plot that shows it, or None.
        note: What went wrong in a check that could not be measured.
    """

    name: str
    group: str
    states: str
    source: str
    measured: float
    expected: float
    unit: str = ""
    tolerance: float = 0.0
    relation: str = "within"
    plot: str | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the statement holds; a value that is not finite never does."""
        if not (math.isfinite(self.measured) and math.isfinite(self.expected)):
            return False
        if self.relation == "at most":
            return self.measured <= self.expected
        if self.relation == "at least":
            return self.measured >= self.expected
        return abs(self.measured - self.expected) <= self.tolerance

    @property
    def expectation(self) -> str:
        """Expected value as text, for example `0.66 ± 0.1` or `≤ 0.02`."""
        if self.relation == "within":
            return f"{self.expected:.5g}" + (f" ± {self.tolerance:.2g}" if self.tolerance else "")
        return f"{'≤' if self.relation == 'at most' else '≥'} {self.expected:.5g}"

    def as_dict(self) -> dict[str, str | float | bool | None]:
        """Plain values for JSON and CSV; a measured value that is not finite becomes None."""
        finite = math.isfinite(self.measured)
        return {
            "group": self.group,
            "name": self.name,
            "states": self.states,
            "source": self.source,
            "measured": float(self.measured) if finite else None,
            "relation": self.relation,
            "expected": float(self.expected),
            "tolerance": float(self.tolerance),
            "unit": self.unit,
            "passed": self.passed,
            "plot": self.plot,
            "note": self.note,
        }


@dataclass(frozen=True)
class Plot:
    """A plot of the report.

    Attributes:
        file: File name below `plots/`.
        caption: What it shows.
        png: Content.
    """

    file: str
    caption: str
    png: bytes


class Record:
    """Where a group puts its checks and plots while it runs.

    Attributes:
        group: Name of the group.
        full: Whether the long form was asked for.
        checks: Checks so far.
        plots: Plots so far.
        remarks: Sentences of the report about this run, such as what was left out.
    """

    def __init__(self, group: str, *, full: bool = False):
        self.group = group
        self.full = full
        self.checks: list[Check] = []
        self.plots: list[Plot] = []
        self.remarks: list[str] = []

    def add(
        self,
        name: str,
        measured: SupportsFloat,
        expected: SupportsFloat,
        tolerance: SupportsFloat = 0.0,
        unit: str = "",
        *,
        states: str,
        source: str,
        relation: str = "within",
        plot: str | None = None,
    ) -> Check:
        """Append a check; see :class:`Check` for the fields.

        Raises:
            ValueError: If the relation is unknown, a tolerance is negative or the name is taken.
        """
        if relation not in RELATIONS:
            raise ValueError(f"relation {relation!r} is unknown; known: {', '.join(RELATIONS)}")
        if not float(tolerance) >= 0.0:
            raise ValueError(f"tolerance of {name!r} must be >= 0, got {tolerance}")
        if any(check.name == name for check in self.checks):
            raise ValueError(f"check name {name!r} appears twice in group {self.group!r}")
        check = Check(
            name=name,
            group=self.group,
            states=states,
            source=source,
            measured=float(measured),
            expected=float(expected),
            unit=unit,
            tolerance=float(tolerance),
            relation=relation,
            plot=None if plot is None else f"{plot}.png",
        )
        self.checks.append(check)
        return check

    def at_most(self, name: str, measured: SupportsFloat, bound: SupportsFloat, unit: str = "", **words: str) -> Check:
        """Append a check that ``measured <= bound``; ``words`` are states, source and plot."""
        return self.add(name, measured, bound, 0.0, unit, relation="at most", **words)  # type: ignore[arg-type]

    def at_least(self, name: str, measured: SupportsFloat, bound: SupportsFloat, unit: str = "", **words: str) -> Check:
        """Append a check that ``measured >= bound``; ``words`` are states, source and plot."""
        return self.add(name, measured, bound, 0.0, unit, relation="at least", **words)  # type: ignore[arg-type]

    def draw(self, name: str, figure: Figure, caption: str) -> None:
        """Keep a matplotlib figure as `plots/<name>.png`."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
        self.plots.append(Plot(f"{name}.png", caption, buffer.getvalue()))
