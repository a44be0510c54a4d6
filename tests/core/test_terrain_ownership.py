"""Wheels, preview and chassis read the one road of their own world; positions do not drift far from the origin."""

import numpy as np
import pytest

from sf3d_envs import Condition, Simulator, TorchEnv
from sf3d_envs.registry import load_condition
from sf3d_envs.terrain.friction import Rectangle
from sf3d_envs.terrain.lane_closure import lane_closure_terrain

REFERENCE = load_condition("reference")
CHANGED = Condition(
    slug="changed",
    grade=0.05,
    group="grade",
    patches=(Rectangle(x=0.0, y=-28.0, length=400.0, width=40.0, friction=0.3),),
)


def readings(conditions):
    """Per world: wheel friction and load, the rest pose of a car on its roof, and the preview channels."""
    variants = [lane_closure_terrain(c) for c in conditions]
    sim = Simulator(3, variants, [0, 1, 2], num_vehicles=2)
    position = np.zeros((3, 2, 3))
    position[..., 0] = [70.0, 158.0]
    position[..., 1] = -28.0
    position[..., 2] = [v.heightfield.height_at(position[0, :, 0], position[0, :, 1]) + 0.65 for v in variants]
    sim.place(np.ones(3, dtype=bool), position)
    pose = sim.body_q.numpy().reshape(3, 2, 7)
    pose[:, 1, 3:] = [1.0, 0.0, 0.0, 0.0]
    sim.body_q.assign(pose.reshape(-1, 7))
    sim.control_step(120)
    found = {
        "wheel friction": sim.wheel_friction.numpy()[:, 0],
        "wheel load": sim.wheel_load.numpy()[:, 0],
        "chassis on its roof": sim.body_q.numpy().reshape(3, 2, 7)[:, 1],
    }
    sim.close()
    env = TorchEnv(3, condition=conditions, preview=True)
    obs, _ = env.reset(options={"scenario_seed": [100000] * 3})
    found["preview"] = obs[..., env.observation_spec.slice("preview")].clone().numpy()
    found["start x"] = env.view.body_q.numpy()[0, 0]
    env.close()
    return found


def test_a_changed_variant_reaches_wheels_preview_and_chassis_of_its_worlds_only():
    before = readings([REFERENCE, REFERENCE, REFERENCE])
    after = readings([REFERENCE, CHANGED, REFERENCE])
    for name in ("wheel friction", "wheel load", "chassis on its roof", "preview"):
        assert np.array_equal(before[name][[0, 2]], after[name][[0, 2]]), name
        assert not np.array_equal(before[name][1], after[name][1]), name
    assert after["wheel friction"][1] == pytest.approx(0.3)
    # Vehicle 0 sees the road 40 m ahead, inside the transition whose grade rises from 0 at 40 m to 5 % at 60 m.
    ahead = after["start x"] + 40.0
    grade = 0.05 * np.clip((ahead - 40.0) / 20.0, 0.0, 1.0)
    assert after["preview"][1, 0, -2:] == pytest.approx([0.3, grade / 0.1], abs=0.07)  # facets are 5 m long
    # The roof stands on its own slope: half the box height above the facet, along its normal.
    x, y, z = after["chassis on its roof"][1, :3]
    height = lane_closure_terrain(CHANGED).heightfield.height_at(x, y)
    assert (z - height) / np.hypot(1.0, 0.05) == pytest.approx(0.45, abs=0.01)
    assert after["chassis on its roof"][0, 2] == pytest.approx(0.45, abs=0.01)


def test_positions_far_from_the_origin_do_not_drift():
    """Ten seconds of coasting travel the same distance at x = 100 m and x = 1,900 m, within 1 mm (0.1 mm/s)."""
    sim = Simulator(2, [lane_closure_terrain(REFERENCE)], num_vehicles=1)
    position = np.array([[[0.0, -28.0, 0.6454]], [[1900.0, -28.0, 0.6454]]])
    sim.place(np.ones(2, dtype=bool), position, 0.0, 15.0)
    start = sim.body_q.numpy()[:, 0].astype(np.float64)
    sim.control_step(600)
    travelled = sim.body_q.numpy()[:, 0] - start
    assert travelled[0] > 140.0
    assert travelled[1] == pytest.approx(travelled[0], abs=1e-3)
    sim.close()
