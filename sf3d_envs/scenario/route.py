"""Canonical routes: planar paths planned once from the road, r(u) = c(u) + o(u) n(u) (paper, sec. 4.1).

c is the road's lane line, n its left normal, o a lateral offset: constant for lane following, a quintic blend for the
merge.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import warp as wp

from sf3d_envs.scenario.kernels import PROJECTION_WINDOW
from sf3d_envs.terrain.lane_closure import ROAD, LaneClosureRoad

FloatArray = npt.NDArray[np.float64]
OffsetProfile = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""u [m] -> lateral offset o [m], do/du [-] and d2o/du2 [1/m]."""

ROUTE_SPACING = 0.5
"""Arc length between route samples [m] (paper, sec. 4.1)."""

_PLANNING_STEP = 0.02
"""Step of u for the arc-length table [m]: with it a merge's samples lie within 1e-6 m of their arc length."""

_DIGEST_UNIT = 2.0**-20
"""Digest quantum (1 um, 1 urad): coarse enough that maths libraries, which differ in the last bit, agree."""


_ROUNDING = 1.0e-9
"""Slack of the checks, above float64 rounding: a route exactly at a limit passes."""


class RouteError(ValueError):
    """A route that fails a check; the text names the check."""


@dataclass(frozen=True, kw_only=True)
class RouteLimits:
    """What a route must keep (paper, sec. 4.1 and app. D).

    Attributes:
        closure_clearance: Least distance from the closed lane, where it is closed [m].
        max_curvature: Largest curvature magnitude [1/m]: half the steering authority at 12 m/s, capped at 2 m/s^2.
        spacing_error: Largest deviation of a sample distance from 0.5 m [m]; ours, far above an admitted curve's chord
            error.
        heading_error: Largest angle between a chord and the mean heading of its ends, and between a sample's turn and
            its curvature times 0.5 m [rad]; ours, as above.
    """

    closure_clearance: float = 1.2
    max_curvature: float = 0.0139
    spacing_error: float = 1.0e-3
    heading_error: float = 1.0e-3


@dataclass(frozen=True, eq=False)
class Route:
    """A planar path in samples of 0.5 m of arc length. Arrays have shape [N], float64, and are read-only.

    Attributes:
        name: Label for messages; not part of the digest.
        x: Sample x [m].
        y: Sample y [m].
        heading: Tangent direction [rad], 0 along x, positive to the left.
        curvature: Signed curvature [1/m], positive to the left.

    Raises:
        RouteError: Shapes differ, there are fewer than 2 samples, or a number is not finite.
    """

    name: str
    x: FloatArray
    y: FloatArray
    heading: FloatArray
    curvature: FloatArray

    def __post_init__(self) -> None:
        """Copy, check and freeze the arrays."""
        for field in ("x", "y", "heading", "curvature"):
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.ndim != 1 or len(array) < 2 or array.shape != np.shape(self.x):
                shapes = f"{field} {list(array.shape)}, x {list(np.shape(self.x))}"
                raise RouteError(f"route '{self.name}': shape check failed: want one [N] with N >= 2, got {shapes}")
            if not np.isfinite(array).all():
                index = int(np.flatnonzero(~np.isfinite(array))[0])
                raise RouteError(f"route '{self.name}': finite check failed: {field}[{index}] is {array[index]}")
            array.flags.writeable = False
            object.__setattr__(self, field, array)

    @property
    def s(self) -> FloatArray:
        """Arc length of the samples [m], shape [N]."""
        return ROUTE_SPACING * np.arange(len(self.x), dtype=np.float64)

    @property
    def points(self) -> FloatArray:
        """Sample positions [m], shape [N, 2]."""
        return np.stack((self.x, self.y), axis=-1)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over x, y, heading and curvature as little-endian integers of 2**-20 units."""
        table = np.stack((self.x, self.y, self.heading, self.curvature), axis=-1)
        units = np.rint(table / _DIGEST_UNIT).astype("<i8")
        return hashlib.sha256(b"sf3d-route-1" + units.tobytes(order="C")).hexdigest()

    def check(self, road: LaneClosureRoad = ROAD, limits: RouteLimits = RouteLimits()) -> None:
        """Check continuity, drivable bounds, clearance from the closed lane and curvature, in this order.

        Args:
            road: Where the pavement and the closed lane are.
            limits: What to keep.

        Raises:
            RouteError: A check fails; the text names the check, the value, the limit and where.
        """
        dx, dy = np.diff(self.x), np.diff(self.y)
        self._require("continuity", np.abs(np.hypot(dx, dy) - ROUTE_SPACING), limits.spacing_error, "m off the spacing")
        mean_heading = self.heading[:-1] + 0.5 * np.diff(self.heading)
        skew = _wrap(np.arctan2(dy, dx) - mean_heading)
        self._require("continuity", np.abs(skew), limits.heading_error, "rad between chord and heading")
        bend = 0.5 * ROUTE_SPACING * (self.curvature[1:] + self.curvature[:-1])
        skew = _wrap(np.diff(self.heading) - bend)
        self._require("continuity", np.abs(skew), limits.heading_error, "rad between turn and curvature")
        outside = np.maximum(road.paved_y_min - self.y, self.y - road.paved_y_max)
        self._require("drivable bounds", outside, 0.0, "m outside the pavement")
        closed = self.x >= road.closure_x
        intrusion = np.where(closed, limits.closure_clearance - (self.y - road.lane_line_y), 0.0)
        text = f"m short of {limits.closure_clearance} m from the closed lane"
        self._require("closed-lane clearance", intrusion, 0.0, text)
        self._require("curvature", np.abs(self.curvature), limits.max_curvature, "1/m")

    def _require(self, check: str, value: FloatArray, limit: float, meaning: str) -> None:
        worst = int(np.argmax(value))
        if value[worst] > limit + _ROUNDING:
            where = f"at x = {self.x[worst]:.1f} m, allowed {limit:.6g}"
            raise RouteError(f"route '{self.name}': {check} check failed: {value[worst]:.6g} {meaning} {where}")


def _wrap(angle: FloatArray) -> FloatArray:
    """Angle [rad] in [-pi, pi)."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def quintic_offset(start: float, end: float, begin_u: float, end_u: float) -> OffsetProfile:
    """Offset profile that blends two offsets [m] between two stations [m] with 10 t^3 - 15 t^4 + 6 t^5.

    Raises:
        ValueError: The stations are not in order.
    """
    length = end_u - begin_u
    if not length > 0.0:
        raise ValueError(f"a blend must end after it begins, got begin_u = {begin_u} and end_u = {end_u}")
    step = end - start

    def profile(u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        t = np.clip((u - begin_u) / length, 0.0, 1.0)
        offset = start + step * t**3 * (10.0 + t * (6.0 * t - 15.0))
        slope = step / length * 30.0 * (t * (1.0 - t)) ** 2
        bend = step / length**2 * 60.0 * t * (1.0 - t) * (1.0 - 2.0 * t)
        return offset, slope, bend

    return profile


def constant_offset(offset: float) -> OffsetProfile:
    """Offset profile that keeps one offset [m]."""
    return lambda u: (np.full_like(u, offset), np.zeros_like(u), np.zeros_like(u))


def plan_route(name: str, profile: OffsetProfile, road: LaneClosureRoad = ROAD) -> Route:
    """Sample the lane line plus a lateral offset every 0.5 m of arc length, over the road's whole length, and check it.

    Args:
        name: Route name.
        profile: Lateral offset from the lane line, positive to the left.
        road: The road.

    Returns:
        The checked route.

    Raises:
        RouteError: A check fails.
    """
    u = np.linspace(road.x_min, road.x_max, round((road.x_max - road.x_min) / _PLANNING_STEP) + 1)
    rate = np.hypot(1.0, profile(u)[1])
    arc = np.concatenate(([0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(u))))
    # The margin keeps a last sample that summing rounds to just beyond the end.
    samples = ROUTE_SPACING * np.arange(int((arc[-1] + 1.0e-6) / ROUTE_SPACING) + 1)
    x = np.interp(samples, arc, u)
    offset, slope, bend = profile(x)
    route = Route(name, x, road.lane_line_y + offset, np.arctan(slope), bend / np.hypot(1.0, slope) ** 3)
    route.check(road)
    return route


def lane_follow_route(y: float | None = None, road: LaneClosureRoad = ROAD) -> Route:
    """Route along a constant y [m], the open lane's centre unless given.

    Raises:
        RouteError: A check fails, e.g. the clearance check for the closing lane.
    """
    y = road.open_lane_y if y is None else y
    return plan_route("follow", constant_offset(y - road.lane_line_y), road)


def merge_route(start_x: float | None = None, end_x: float | None = None, road: LaneClosureRoad = ROAD) -> Route:
    """Route from the closing into the open lane's centre between two stations [m], the road's merge unless given.

    Raises:
        ValueError: The stations are not in order.
        RouteError: A check fails, e.g. the curvature check for a merge shorter than about 38 m.
    """
    start_x = road.merge_start_x if start_x is None else start_x
    end_x = road.merge_end_x if end_x is None else end_x
    start, end = road.closing_lane_y - road.lane_line_y, road.open_lane_y - road.lane_line_y
    return plan_route("merge", quintic_offset(start, end, start_x, end_x), road)


def lane_closure_routes(road: LaneClosureRoad = ROAD) -> tuple[Route, Route]:
    """The benchmark's routes in index order: 0 follows the open lane, 1 merges into it."""
    return lane_follow_route(road=road), merge_route(road=road)


class RouteTable:
    """Routes packed for kernels.

    Attributes:
        routes: The routes, in index order.
        spacing: Arc length between samples [m].
        points: Samples (x [m], y [m], cosine and sine of the heading), vec4, shape [R, N]; a shorter route repeats its
            last sample.
        curvature: Curvature of the samples [1/m], float32, shape [R, N].
        count: Number of samples of each route, int32, shape [R].
        reach: Distance from each route within which its nearest sample can be found by walking downhill [m], float32,
            shape [R].
    """

    def __init__(self, routes: Sequence[Route] | None = None, device: Any = "cpu") -> None:
        """Packs and uploads the routes.

        Args:
            routes: At least one route; the lane-closure routes unless given.
            device: Warp device.

        Raises:
            ValueError: There is no route.
        """
        self.routes = tuple(lane_closure_routes() if routes is None else routes)
        if not self.routes:
            raise ValueError("routes is empty; a route table needs at least one Route")
        self.spacing = ROUTE_SPACING
        counts = np.array([len(route.x) for route in self.routes], dtype=np.int32)
        table = np.empty((len(self.routes), counts.max(), 5), dtype=np.float32)
        for row, route in zip(table, self.routes, strict=True):
            columns = (route.x, route.y, np.cos(route.heading), np.sin(route.heading), route.curvature)
            samples = np.stack(columns, axis=-1)
            row[: len(samples)], row[len(samples) :] = samples, samples[-1]
        self.points = wp.array(np.ascontiguousarray(table[..., :4]), dtype=wp.vec4, device=device)
        self.curvature = wp.array(np.ascontiguousarray(table[..., 4]), dtype=float, device=device)
        self.count = wp.array(counts, dtype=int, device=device)
        reaches = [_descent_reach(route) for route in self.routes]
        self.reach = wp.array(np.array(reaches, dtype=np.float32), dtype=float, device=device)

    def __len__(self) -> int:
        """Number of routes."""
        return len(self.routes)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the routes' digests, in index order."""
        return hashlib.sha256("".join(route.digest for route in self.routes).encode()).hexdigest()


def _descent_reach(route: Route) -> float:
    """Distance within which the squared distance to the samples is convex over a projection window [m]; 0 if nowhere.

    Its second derivative along the arc is 2 (1 - κ·offset): half of it is kept as a margin, far above float32 rounding.
    Curvature is measured on the samples themselves.
    """
    if len(route.x) < 3:
        return 0.0
    heading = np.unwrap(np.arctan2(np.diff(route.y), np.diff(route.x)))
    curvature = float(np.abs(np.diff(heading)).max()) / ROUTE_SPACING
    window = (PROJECTION_WINDOW + 1) * ROUTE_SPACING
    return max(min(0.5 / max(curvature, 1.0e-6) - window, 100.0), 0.0)
