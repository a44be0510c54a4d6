"""IDM-17's Stanley law on the full vehicle: how near it keeps to the merge route."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from alone import project_to_routes

from sf3d_envs.agents import make_agent
from sf3d_envs.observation.view import WorldView
from sf3d_envs.registry import load_condition
from sf3d_envs.scenario.kernels import project_to_routes_global
from sf3d_envs.scenario.route import RouteTable
from sf3d_envs.sim.simulator import Simulator
from sf3d_envs.terrain.lane_closure import lane_closure_terrain


@pytest.mark.parametrize(("speed", "bound"), [(5.0, 0.013), (8.0, 0.008), (12.0, 0.03), (17.0, 0.10), (20.0, 0.17)])
def test_largest_offset_on_the_merge_route(speed, bound):
    """Float64 reference: 0.011, 0.005, 0.025, 0.088 and 0.148 m at 5, 8, 12, 17 and 20 m/s."""
    sim = Simulator(1, [lane_closure_terrain(load_condition("reference"))], num_vehicles=1, device="cpu", threads=1)
    place = np.array([[[20.0, -29.75, sim.vehicles[0].rest_height]]], np.float32)
    sim.place(np.ones(1, bool), place, np.zeros((1, 1), np.float32), np.full((1, 1), speed, np.float32))
    routes = RouteTable()
    index = wp.zeros((1, 1, 2), dtype=wp.int32, device="cpu")
    presets = ("headway", "min_gap", "accel_max", "comfort_decel")
    view = WorldView(
        num_worlds=1,
        num_vehicles=1,
        device="cpu",
        body_q=sim.body_q,
        body_qd=sim.body_qd,
        wheel_spin=sim.wheel_spin,
        steer_angle=sim.steer_angle,
        forward_accel=sim.forward_accel,
        command=sim.command,
        valid=wp.full((1, 1), 1, dtype=wp.int8, device="cpu"),
        stepping=sim.stepping,
        step=wp.zeros(1, dtype=wp.int32, device="cpu"),
        seed=wp.zeros(1, dtype=wp.uint64, device="cpu"),
        own_route=wp.array([1], dtype=wp.int32, device="cpu"),
        routes=routes,
        route_index=index,
        scenario=SimpleNamespace(**{name: wp.full((1, 1), 1.5, dtype=float, device="cpu") for name in presets}),
        vehicles=tuple(sim.vehicles),
        terrain=sim.terrain,
    )
    agent = make_agent("idm17", desired_speed=speed)
    agent.bind(view)
    table = [sim.body_q, 1, 2, routes.points, routes.count]
    everywhere = wp.full(1, True, dtype=wp.bool, device="cpu")
    wp.launch(project_to_routes_global, dim=1, inputs=[*table, everywhere, index, 0], device="cpu")
    route, largest = routes.routes[1], 0.0
    x, y = place[0, 0, :2]
    while x < 140.0:
        sim.command.numpy()[:] = agent.act(view).numpy()
        sim.control_step()
        wp.launch(project_to_routes, dim=1, inputs=[*table, routes.reach, sim.stepping, index, 0], device="cpu")
        x, y = sim.body_q.numpy()[0, :2].tolist()
        largest = max(largest, abs(float(np.interp(x, route.x, route.y)) - y))
    sim.close()
    assert largest < bound
