"""Vehicle-steps per second of our physics beside other models of twelve cars, one process, one thread.

A vehicle-step is one vehicle over 1/60 s of simulated time, whatever step a model takes for it. Every model starts from
the same twelve cars (places and speeds of one benchmark scenario) and drives each with its own constant command for two
seconds, again and again; the rows are measured in turn, round after round, and a figure is the median over rounds.
Rates are per second of processor time, which on an idle machine is the time on the clock, as everything runs on one
thread; other load would lengthen the clock time of the slower models more.

The models differ in what they compute, so the table ranks no one's quality:

* ours: rigid chassis on four raycast legs with tyre forces on a heightfield, 240 Hz, contact between chassis;
* MuJoCo: a plain car of our own in MJCF (chassis box, sprung and steered wheels as cylinders, 16 degrees of freedom),
  whose wheels meet a plane or our heightfield in MuJoCo's contact solver;
* highway-env: its kinematic bicycle in the plane without tyres or road surface, at its own 15 Hz, with its collision
  test, in Python objects: a step of 1/15 s counts as four vehicle-steps for each car.

What is not installed is left out with a word (``pip install mujoco highway-env``, or the extra ``peers``).
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sf3d_envs.evaluation.identity import machine
from sf3d_envs.evaluation.store import write_json
from sf3d_envs.registry import load_condition
from sf3d_envs.scenario.lane_closure import sample_lane_closure
from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.sim.vehicle import VehicleParams
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

SCHEMA = "sf3d.peers/1"
CARS = 12
STRETCH_S = 2.0
CAR = VehicleParams()
START = sample_lane_closure(100_000)
PHASE = np.linspace(0.0, 2.0 * np.pi, CARS, endpoint=False)
ACCEL, STEER = np.cos(PHASE), 0.02 * np.sin(PHASE) * CAR.max_steer
"""Constant commands of the cars: acceleration [m/s²] and road-wheel angle [rad], as in ``sf3d bench``."""


@dataclass(frozen=True, kw_only=True)
class PeerResult:
    """One row.

    Attributes:
        model: Name and version.
        road: What the cars drive on.
        step_s: The model's own physics step [s].
        worlds: Worlds of twelve cars that are stepped together.
        vehicle_steps_per_s: Median over rounds, per second of processor time [1/s].
    """

    model: str
    road: str
    step_s: float
    worlds: int
    vehicle_steps_per_s: float


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A model to measure: how to start it afresh, advance it by so many of its steps, and read the speeds of its cars.

    Speeds are those of one world, [CARS] m/s; the other fields are as in the result.
    """

    model: str
    road: str
    step_s: float
    worlds: int = 1
    reset: Callable[[], object]
    advance: Callable[[int], object]
    speeds: Callable[[], np.ndarray]

    def rate(self, seconds: float) -> float:
        """Vehicle-steps/s over stretches that take at least ``seconds`` together.

        Raises:
            RuntimeError: If the cars did not drive on as commanded; the figure would then mean nothing.
        """
        steps = round(STRETCH_S / self.step_s)
        spent, stretches = 0.0, 0
        while spent < seconds or not stretches:
            self.reset()
            started = time.process_time()
            self.advance(steps)
            spent += time.process_time() - started
            stretches += 1
        off = np.abs(self.speeds() - START.start_speed - ACCEL * steps * self.step_s)
        if not (off < 0.5).all():
            raise RuntimeError(f"{self.model}: speeds are off by {off.round(2)} m/s after {STRETCH_S} s")
        return 60.0 * CARS * self.worlds * stretches * steps * self.step_s / spent


def our_peer(worlds: int) -> Peer:
    """Our physics, the same twelve cars in every world."""
    sim = Simulator(worlds, [lane_closure_terrain(load_condition("reference"))], threads=1)
    place = np.stack([START.start_x, START.start_y, np.full(CARS, CAR.rest_height)], axis=-1)
    places, speeds = np.broadcast_to(place, (worlds, CARS, 3)), np.broadcast_to(START.start_speed, (worlds, CARS))
    command = np.stack([ACCEL, STEER / CAR.max_steer], axis=-1).astype(np.float32)

    def reset() -> None:
        sim.place(np.ones(worlds, dtype=bool), places, 0.0, speeds)
        sim.command.assign(np.broadcast_to(command, (worlds, CARS, 2)).copy())

    return Peer(
        model="SF3D",
        road="heightfield",
        step_s=1.0 / 240.0,
        worlds=worlds,
        reset=reset,
        advance=lambda steps: sim.control_step(steps // 4),
        speeds=lambda: np.linalg.norm(sim.body_qd.numpy()[-CARS:, :2], axis=-1),
    )


def mujoco_peer(road: str, step_s: float) -> Peer:
    """Twelve cars in MuJoCo on a `plane` or on our `heightfield`.

    Raises:
        ImportError: Without MuJoCo.
    """
    import mujoco

    heightfield = lane_closure_terrain(load_condition("reference")).heightfield
    grid, heights = heightfield.grid, heightfield.heights
    half = 0.5 * (grid.x1 - grid.x0), 0.5 * (grid.y1 - grid.y0)
    rise = max(float(np.ptp(heights)), 1e-3)
    model = mujoco.MjModel.from_xml_string(
        f"""
<mujoco>
  <option timestep="{step_s!r}" integrator="implicitfast"/>
  <default>
    <default class="chassis"><geom type="box" contype="2" conaffinity="3" friction="0.5"/></default>
    <default class="wheel"><geom type="cylinder" contype="0" conaffinity="1" friction="1" mass="20"/></default>
    <default class="leg"><joint type="slide" axis="0 0 1" stiffness="{CAR.suspension_stiffness}"
      damping="{CAR.suspension_damping}"/></default>
    <default class="steer"><joint type="hinge" axis="0 0 1" damping="10"/></default>
    <default class="spin"><joint type="hinge" axis="0 1 0"/></default>
  </default>
  <asset><hfield name="road" nrow="{grid.ny}" ncol="{grid.nx}" size="{half[0]} {half[1]} {rise} 1"/></asset>
  <worldbody>
    {'<geom type="plane" size="0 0 1"' if road == "plane" else '<geom type="hfield" hfield="road"'}
      pos="{grid.x0 + half[0]} {grid.y0 + half[1]} {heights.min()}" contype="1" conaffinity="0"/>
    {"".join(map(_mjcf_car, range(CARS)))}
  </worldbody>
  <actuator>{"".join(map(_mjcf_actuators, range(CARS)))}</actuator>
</mujoco>"""
    )
    model.hfield_data[:] = ((heights.T - heights.min()) / rise).ravel()
    data = mujoco.MjData(model)
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    for car in range(CARS):
        base = model.joint(f"body{car}")
        ground = float(heightfield.height_at(START.start_x[car], START.start_y[car]))
        place = START.start_x[car], START.start_y[car], ground + CAR.rest_height, 1, 0, 0, 0
        qpos[base.qposadr[0] : base.qposadr[0] + 7] = place
        qvel[base.dofadr[0]] = START.start_speed[car]
        for wheel in range(4):
            qpos[model.joint(f"leg{car}_{wheel}").qposadr[0]] = _compression()
            qvel[model.joint(f"spin{car}_{wheel}").dofadr[0]] = START.start_speed[car] / CAR.wheel_radius
    torque = 0.5 * CAR.mass * ACCEL * CAR.wheel_radius
    control = np.stack([STEER, STEER, torque, torque], axis=-1).ravel()
    speed_rows = [model.joint(f"body{car}").dofadr[0] for car in range(CARS)]

    def reset() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, control

    return Peer(
        model=f"MuJoCo {mujoco.__version__}",
        road=road,
        step_s=step_s,
        reset=reset,
        advance=lambda steps: mujoco.mj_step(model, data, nstep=steps),
        speeds=lambda: np.hypot(data.qvel[speed_rows], data.qvel[np.array(speed_rows) + 1]),
    )


def _compression() -> float:
    """Compression of a leg that carries a quarter of the car [m]."""
    return CAR.suspension_rest_length + CAR.wheel_radius - CAR.anchor_height - CAR.rest_height


def _mjcf_car(car: int) -> str:
    """A car of the benchmark car's sizes and masses; a wheel hangs at the end of its spring's free length."""
    wheels = ""
    hub = CAR.anchor_height - CAR.suspension_rest_length
    for wheel in range(4):
        front, left = wheel < 2, wheel % 2 == 0
        x, y = (0.5 if front else -0.5) * CAR.wheelbase, (0.5 if left else -0.5) * CAR.track
        steer = f'<joint name="steer{car}_{wheel}" class="steer"/>' if front else ""
        wheels += f"""
      <body pos="{x} {y} {hub}">
        <inertial pos="0 0 0" mass="5" diaginertia="0.1 0.1 0.1"/>
        <joint name="leg{car}_{wheel}" class="leg"/>{steer}
        <body>
          <joint name="spin{car}_{wheel}" class="spin"/>
          <geom class="wheel" size="{CAR.wheel_radius} 0.1" euler="90 0 0"/>
        </body>
      </body>"""
    inertia = " ".join(map(str, CAR.inertia))
    return f"""
    <body>
      <freejoint name="body{car}"/>
      <inertial pos="0 0 0" mass="{CAR.mass - 100.0}" diaginertia="{inertia}"/>
      <geom class="chassis" size="{0.5 * CAR.length} {0.5 * CAR.width} {0.5 * CAR.height}"/>{wheels}
    </body>"""


def _mjcf_actuators(car: int) -> str:
    steering = "".join(f'<position joint="steer{car}_{wheel}" kp="2000" dampratio="1"/>' for wheel in (0, 1))
    return steering + "".join(f'<motor joint="spin{car}_{wheel}"/>' for wheel in (2, 3))


def highway_env_peer() -> Peer:
    """Twelve kinematic bicycles of highway-env on a straight road of two lanes, at its default frequency.

    Raises:
        ImportError: Without highway-env.
    """
    from importlib.metadata import version

    from highway_env.envs.highway_env import HighwayEnv
    from highway_env.road.road import Road, RoadNetwork
    from highway_env.vehicle.kinematics import Vehicle

    step_s = 1.0 / HighwayEnv.default_config()["simulation_frequency"]
    road = Road(RoadNetwork.straight_road_network(2, start=-300.0, length=2560.0))

    def reset() -> None:
        road.vehicles = []
        for x, y, speed, accel, steer in zip(
            START.start_x, START.start_y - START.start_y.min(), START.start_speed, ACCEL, STEER, strict=True
        ):
            vehicle = Vehicle(road, np.array([x, y]), 0.0, float(speed))
            vehicle.act({"acceleration": accel, "steering": steer})
            road.vehicles.append(vehicle)

    def advance(steps: int) -> None:
        for _ in range(steps):
            road.step(step_s)

    def speeds() -> np.ndarray:
        return np.array([vehicle.speed for vehicle in road.vehicles])

    return Peer(
        model=f"highway-env {version('highway-env')}",
        road="none",
        step_s=step_s,
        reset=reset,
        advance=advance,
        speeds=speeds,
    )


def available_peers() -> list[Peer]:
    """The peers that are installed; says on stderr which are not."""
    peers = []
    for name, build in (
        ("mujoco", functools.partial(mujoco_peer, "plane", 0.002)),
        ("mujoco", functools.partial(mujoco_peer, "plane", 1.0 / 240.0)),
        ("mujoco", functools.partial(mujoco_peer, "heightfield", 1.0 / 240.0)),
        ("highway-env", highway_env_peer),
    ):
        try:
            peers.append(build())
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return peers


def compare(worlds: list[int], rounds: int, seconds: float) -> list[PeerResult]:
    """Measure ours at each number of worlds, and all installed peers, in interleaved rounds after a warm-up."""
    peers = [our_peer(count) for count in worlds] + available_peers()
    found: list[list[float]] = []
    for number in range(rounds + 1):
        print(f"round {number} of {rounds} ..." if number else "warm-up ...", file=sys.stderr, flush=True)
        found.append([peer.rate(seconds) for peer in peers])
    medians = [statistics.median(rates) for rates in zip(*found[1:], strict=True)]
    return [
        PeerResult(
            model=peer.model,
            road=peer.road,
            step_s=peer.step_s,
            worlds=peer.worlds,
            vehicle_steps_per_s=round(rate, 1),
        )
        for peer, rate in zip(peers, medians, strict=True)
    ]


def main() -> None:
    """Measure, print the table, write the JSON file if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="1,64", help="numbers of worlds of our physics, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="least processor time per row and round [s]")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    results = compare([int(item) for item in arguments.worlds.split(",")], arguments.rounds, arguments.seconds)
    table = Table(title="Twelve cars per world, one thread; other models, no ranking of quality")
    for name in ("model", "road", "own step", "worlds", "vehicle-steps/s"):
        table.add_column(name, justify="left" if name in ("model", "road") else "right", no_wrap=True)
    for row in results:
        step = f"{1e3 * row.step_s:.2f} ms"
        table.add_row(row.model, row.road, step, str(row.worlds), f"{row.vehicle_steps_per_s:,.0f}")
    Console().print(table)
    if arguments.json is not None:
        report = {"schema": SCHEMA, "machine": machine(), "results": [asdict(row) for row in results]}
        write_json(arguments.json, report)


if __name__ == "__main__":
    main()
