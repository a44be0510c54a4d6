"""The observation table: the one source of names, units, scales, order and documentation.

The kernel, the shells' docstrings and the tests all read this table. Layout and sizes follow the paper (appendix D,
table 7); the scales are ours and fixed. No channel carries a condition label, a terrain id or a future state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

NUM_NEIGHBOURS = 8
NUM_PLANNER_CHANNELS = 24
LOOK_AHEAD_M = (0, 8, 16, 24, 32, 40)
"""Arc length ahead of the projected route sample [m] of the route points and of the preview."""

CLIP = 10.0
"""Scaled channels are clipped to plus or minus this value."""


@dataclass(frozen=True)
class Channel:
    """One observation channel.

    Attributes:
        name: ``block.quantity``; unique in the table.
        unit: Unit of the unscaled value; ``"1"`` if it has none.
        scale: The written value is ``clip(value / scale, -10, 10)``.
        doc: What the value is, with its sign.
    """

    name: str
    unit: str
    scale: float
    doc: str

    @property
    def block(self) -> str:
        """Block of the channel: the part of the name before the first dot."""
        return self.name.split(".", 1)[0]


def _route_points() -> Iterator[Channel]:
    for ahead in LOOK_AHEAD_M:
        yield Channel(
            f"route.preview_lateral_{ahead:02d}", "m", 10.0, f"Ego-frame y of the route point {ahead} m ahead."
        )
        yield Channel(
            f"route.preview_heading_{ahead:02d}", "rad", 1.0, f"Route heading {ahead} m ahead minus the vehicle's yaw."
        )


def _traffic() -> Iterator[Channel]:
    for slot in range(NUM_NEIGHBOURS):
        who = f"neighbour {slot} (nearest first, ties by vehicle index)"
        yield Channel(f"traffic.{slot}.present", "1", 1.0, f"1 if there is a {who}; an empty slot is all zero.")
        yield Channel(f"traffic.{slot}.dx", "m", 50.0, f"Ego-frame x of {who}, centre to centre.")
        yield Channel(f"traffic.{slot}.dy", "m", 10.0, f"Ego-frame y of {who}, centre to centre.")
        yield Channel(f"traffic.{slot}.dvx", "m/s", 20.0, f"Ego-frame x velocity of {who} minus the vehicle's.")
        yield Channel(f"traffic.{slot}.dvy", "m/s", 10.0, f"Ego-frame y velocity of {who} minus the vehicle's.")
        yield Channel(f"traffic.{slot}.heading_sin", "1", 1.0, f"Sine of the yaw of {who} minus the vehicle's.")
        yield Channel(f"traffic.{slot}.heading_cos", "1", 1.0, f"Cosine of the yaw of {who} minus the vehicle's.")


def _planner() -> Iterator[Channel]:
    for index in range(NUM_PLANNER_CHANNELS):
        yield Channel(
            f"planner.{index:02d}", "1", 1.0, "Planner semantics, held at zero: keeps the paper's input layout."
        )


def _preview() -> Iterator[Channel]:
    for ahead in LOOK_AHEAD_M:
        yield Channel(
            f"preview.friction_{ahead:02d}", "1", 1.0, f"Surface friction at the route point {ahead} m ahead, exact."
        )
        yield Channel(
            f"preview.grade_{ahead:02d}", "m/m", 0.1, f"Slope along the route {ahead} m ahead, uphill positive, exact."
        )


OBSERVATION: tuple[Channel, ...] = (
    Channel("ego.speed_long", "m/s", 20.0, "Forward speed in the body frame."),
    Channel("ego.speed_lat", "m/s", 5.0, "Sideways speed in the body frame, positive to the left."),
    Channel("ego.yaw_rate", "rad/s", 1.0, "Turn rate about the body's up axis, positive to the left."),
    Channel("ego.accel_long", "m/s^2", 10.0, "Change of the forward speed over the last control step, per second."),
    Channel("ego.roll", "rad", 0.5, "Roll angle, positive with the left side up."),
    Channel("ego.pitch", "rad", 0.5, "Pitch angle, positive with the nose down."),
    Channel("ego.steering_angle", "rad", 0.6, "Actual front steering angle, positive to the left."),
    Channel("ego.previous_acceleration", "m/s^2", 4.0, "Acceleration requested by the previous action."),
    Channel("ego.previous_steering", "1", 1.0, "Steering requested by the previous action, positive to the left."),
    Channel("ego.desired_speed", "m/s", 20.0, "Desired speed of the scenario."),
    Channel("ego.driven_slip", "1", 1.0, "Mean slip of the rear wheels, (R w - v) / max(|v|, 1), v the forward speed."),
    Channel("ego.valid", "1", 1.0, "1 until the vehicle's first event, then 0."),
    Channel("route.lateral_offset", "m", 3.5, "Offset from the own route, positive to the left of it."),
    Channel("route.heading_sin", "1", 1.0, "Sine of the yaw minus the route heading."),
    Channel("route.heading_cos", "1", 1.0, "Cosine of the yaw minus the route heading."),
    Channel("route.curvature", "1/m", 0.0139, "Route curvature, positive to the left."),
    Channel(
        "route.distance_merge_start", "m", 100.0, "Arc length to the merge's start, negative past it; 0 if not owed."
    ),
    Channel("route.distance_merge_end", "m", 100.0, "Arc length to the merge's end, negative past it; 0 if not owed."),
    Channel("route.distance_counting_line", "m", 100.0, "Arc length to the counting line, negative past it."),
    Channel(
        "route.owes_merge", "1", 1.0, "1 while the route merges and the footprint is not entirely in the open lane."
    ),
    *_route_points(),
    *_traffic(),
    *_planner(),
)
"""The 112 channels that every learned policy reads."""

PREVIEW: tuple[Channel, ...] = tuple(_preview())
"""The 12 channels of ``preview=True``, appended to `OBSERVATION`."""


class ObservationSpec:
    """Named access to the observation vector.

    Args:
        preview: Whether the vector carries the 12 preview channels.

    Example:
        >>> spec = ObservationSpec(preview=True)
        >>> spec.size, spec["ego.yaw_rate"], spec.slice("preview")
        (124, 2, slice(112, 124, None))
    """

    def __init__(self, preview: bool = False) -> None:
        self.preview = preview
        self.channels: tuple[Channel, ...] = OBSERVATION + PREVIEW if preview else OBSERVATION
        self._index = {channel.name: i for i, channel in enumerate(self.channels)}

    @property
    def size(self) -> int:
        """Number of channels: 112, or 124 with the preview."""
        return len(self.channels)

    @property
    def names(self) -> tuple[str, ...]:
        """Channel names in order."""
        return tuple(channel.name for channel in self.channels)

    @property
    def scales(self) -> tuple[float, ...]:
        """Channel scales in order, each in its channel's unit."""
        return tuple(channel.scale for channel in self.channels)

    def __getitem__(self, name: str) -> int:
        """Return the index of a channel.

        Raises:
            KeyError: If no channel has this name.
        """
        if name not in self._index:
            raise KeyError(_unknown("channel", name, self._index))
        return self._index[name]

    def slice(self, block: str) -> slice:
        """Return the range of a block: ``ego``, ``route``, ``traffic``, ``planner`` or (with the preview) ``preview``.

        Raises:
            KeyError: If the vector has no such block.
        """
        members = [i for i, channel in enumerate(self.channels) if channel.block == block]
        if not members:
            raise KeyError(_unknown("block", block, dict.fromkeys(channel.block for channel in self.channels)))
        return slice(members[0], members[-1] + 1)

    def markdown_table(self) -> str:
        """Return the table as Markdown: index, name, unit, scale, meaning."""
        lines = ["| index | name | unit | scale | meaning |", "|---|---|---|---|---|"]
        for i, channel in enumerate(self.channels):
            lines.append(f"| {i} | `{channel.name}` | {channel.unit} | {channel.scale:g} | {channel.doc} |")
        return "\n".join(lines)


def observation_docs(preview: bool = False) -> str:
    """Return the observation section of an environment's documentation, in Markdown.

    Args:
        preview: Whether the 12 preview channels are included.
    """
    spec = ObservationSpec(preview)
    head = (
        f"Observation: {spec.size} channels, float32. Each value is divided by its scale and clipped to "
        f"[-{CLIP:g}, {CLIP:g}]. Lateral positions, traffic and route are given in the vehicle's planar yaw frame "
        "(x forward, y left); a row that is no longer active is all zero."
    )
    return f"{head}\n\n{spec.markdown_table()}\n"


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{kind} {name!r} is not in the observation{hint} Known {kind}s: {', '.join(list(known)[:40])}"
