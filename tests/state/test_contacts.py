"""Contact sensors and raw contacts, on both solvers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sf3d_envs import Simulator, StateConfig, TorchEnv

from .worlds import MASS, REST, ROOF, UP, changed, make, rows

G = 9.81
STEP = 1.0 / 60.0
ROOF_HEIGHT = 0.45
CASES = ("apart", "resting", "rear-end", "side-swipe")
"""One world each: two cars apart, one on its roof, one run into from behind, one brushed at an angle."""


def stage(solver: str = "vehicle", **options) -> Simulator:
    """The four cases; car 0 is the one that lies, or runs into car 1."""
    options = {"contacts": True, "raw_contacts": 200} | options
    sim = make(len(CASES), 2, solver=solver, **options)
    position = torch.zeros(4, 2, 3)
    position[..., 2] = REST
    rotation = UP.repeat(4, 2, 1)
    velocity = torch.zeros(4, 2, 3)
    position[:, 1, 0] = 60.0
    position[1, 0, 2], rotation[1, 0] = ROOF_HEIGHT + 0.0005, ROOF
    position[2, 1, :2], velocity[2, 0, 0] = torch.tensor([4.3, 0.3]), 12.0
    position[3, 1, :2] = torch.tensor([1.0, 1.84])
    velocity[3] = torch.tensor([[12.0, 0.0, 0.0], [8.0, -1.5, 0.0]])
    sim.state.set_root_state(position, rotation, velocity)
    sim.state.set_wheel_state((velocity[..., :1] / 0.32).expand(4, 2, 4).contiguous())
    return sim


@pytest.fixture(scope="module", params=["vehicle", "xpbd"])
def staged(request) -> tuple[str, Simulator]:
    return request.param, stage(request.param)


def impulses(sim: Simulator, steps: int, count: int = 1) -> torch.Tensor:
    """Impulses on all cars, summed over steps."""
    sensor = sim.state.contact_sensor()
    total = torch.zeros(sim.num_worlds, sim.num_vehicles, 3)
    for _ in range(steps):
        sim.control_step(count)
        total += sensor.net_impulse
    return total


@pytest.fixture(scope="module")
def totals() -> dict[str, torch.Tensor]:
    return {solver: impulses(stage(solver), 30) for solver in ("vehicle", "xpbd")}


def test_the_solvers_agree_within_five_percent(totals) -> None:
    ours, theirs = totals["vehicle"][:, 0], totals["xpbd"][:, 0]
    for case in (1, 2, 3):
        assert (ours[case] - theirs[case]).norm() <= 0.05 * theirs[case].norm(), CASES[case]
    assert ours[0].norm() == theirs[0].norm() == 0.0


def test_resting_impulse_is_weight_times_time(totals) -> None:
    for total in totals.values():
        assert total[1, 0, 2] == pytest.approx(MASS * G * 30 * STEP, rel=0.01)
        assert total[1, 0, :2].norm() < 0.01 * total[1, 0, 2]


@pytest.mark.parametrize("solver", ["vehicle", "xpbd"])
def test_impulse_is_the_change_of_momentum_off_the_ground(solver: str) -> None:
    sim = make(2, 2, solver=solver, contacts=True)
    position = torch.tensor([[0.0, 0.0, 40.0], [4.4, 0.2, 40.0]])
    velocity = torch.tensor([[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    sim.state.set_root_state(position, UP, velocity)
    before = sim.state.linear_velocity.clone()
    sensor = sim.state.contact_sensor()
    sim.control_step(6)
    fall = torch.tensor([0.0, 0.0, -G]) * sensor.elapsed[0]
    change = MASS * (sim.state.linear_velocity - before - fall)
    assert sensor.elapsed.tolist() == pytest.approx([0.1, 0.1])
    drag = 0.39 * 81.0 * 0.1
    assert torch.allclose(sensor.net_impulse, change, atol=1.5 * drag, rtol=0.03 if solver == "xpbd" else 1e-3)
    assert sensor.net_impulse[0, 0, 0] < -4000.0
    assert torch.allclose(sensor.net_force * 0.1, sensor.net_impulse, rtol=1e-5)


def test_action_is_minus_reaction(staged) -> None:
    _, sim = staged
    total = impulses(sim, 3)
    for case in (2, 3):
        assert torch.equal(total[case, 0], -total[case, 1])
        assert total[case].abs().sum() > 0.0


def test_points_sum_to_the_net_impulse(staged) -> None:
    _, sim = staged
    sensor, seen = sim.state.contact_sensor(), 0
    for _ in range(12):
        sim.control_step()
        raw = sim.state.raw_contacts()
        pairs, points = raw.packed()
        assert len(points) == int(raw.count.sum())
        net = torch.zeros(4, 2, 3)
        for (kind_a, world_a, a, kind_b, world_b, b), point in zip(pairs.tolist(), points, strict=True):
            assert kind_a == 0 and world_a == world_b and 0 <= a < 2
            assert (kind_b, b) in ((1, -1), (0, 1))
            net[world_a, a] += point[6:9]
            if kind_b == 0:
                net[world_b, b] -= point[6:9]
            assert point[3:6].norm() == pytest.approx(1.0, abs=1e-5)
            assert point[3:6] @ point[6:9] >= -1e-3  # contacts push
            seen += 1
        scale = sensor.net_impulse.abs().max() + 1.0
        assert torch.allclose(net, sensor.net_impulse, atol=1e-5 * float(scale))
        assert set(pairs[:, 1].tolist()) <= {1, 2, 3}
    assert seen > 50


def test_points_lie_where_the_cars_touch(staged) -> None:
    name, sim = staged
    fresh = stage(name) if name == "vehicle" else sim
    fresh.control_step()
    pairs, points = fresh.state.raw_contacts().packed()
    resting = points[pairs[:, 1] == 1]
    assert torch.allclose(resting[:, 2], torch.zeros(()), atol=0.01)
    assert torch.allclose(resting[:, 5], torch.ones(()), atol=1e-3)
    assert (resting[:, :2].abs() <= torch.tensor([2.2, 1.0])).all() and (resting[:, 9] < 1e-3).all()


def test_sources_and_counts(staged) -> None:
    _, sim = staged
    sim.control_step()
    sensor = sim.state.contact_sensor()
    assert torch.equal(sensor.net_impulse, sum(sensor.impulse_from(s) for s in ("vehicle", "road", "wall")))
    assert not sensor.impulse_from("wall").any()
    assert sensor.count_from("road")[1, 0] >= 4 and sensor.in_contact[1].tolist() == [True, False]
    assert not sensor.in_contact[0].any() and not sensor.contact_count[0].any()
    assert torch.equal(sensor.in_contact, sensor.contact_count > 0)
    assert sensor.force_from("road")[1, 0, 2] == pytest.approx(MASS * G, rel=0.01)
    with pytest.raises(ValueError, match="'vehicle', 'road', 'wall'"):
        sensor.impulse_from("tree")


def test_two_sensors_agree(staged) -> None:
    _, sim = staged
    sim.control_step()
    everything, second = sim.state.contact_sensor(), sim.state.contact_sensor(1, name="second")
    swapped = sim.state.contact_sensor([1, 0])
    assert second.name == "second" and second.vehicles == (1,) and swapped.vehicles == (1, 0)
    assert torch.equal(second.net_impulse[:, 0], everything.net_impulse[:, 1])
    assert torch.equal(swapped.net_impulse.flip(1), everything.net_impulse)
    assert torch.equal(swapped.contact_count.flip(1), everything.contact_count)


def test_a_reset_only_frame_is_zero_and_the_next_step_is_not() -> None:
    sim = stage()
    sim.control_step()
    sensor = sim.state.contact_sensor()
    before = sensor.net_impulse.clone()
    assert before[1, 0, 2] > 0 and before[2, 0, 0] < 0
    sim.reset([2])
    assert not sensor.net_impulse[2].any() and not sensor.net_force[2].any() and not sensor.in_contact[2].any()
    assert sim.state.raw_contacts().count.tolist()[2] == 0
    assert torch.equal(sensor.net_impulse[[0, 1, 3]], before[[0, 1, 3]])
    sim.state.set_root_state(torch.tensor([0.0, 0.0, ROOF_HEIGHT]), ROOF, worlds=2, vehicles=0)
    sim.control_step()
    assert sensor.net_impulse[2, 0, 2] > 0


def test_placement_and_restore_clear_the_sums() -> None:
    sim = stage()
    saved = sim.save()
    sim.control_step()
    sensor = sim.state.contact_sensor()
    sim.restore(saved, worlds=[1], source=[1])
    assert not sensor.net_impulse[1].any() and sensor.elapsed.tolist()[1] == 0.0 and sensor.elapsed[2] > 0.0
    mask = np.array([False, False, True, False])
    sim.place(mask, np.array([[0.0, 0.0, REST], [50.0, 0.0, REST]]))
    assert not sensor.net_impulse[2].any()
    sim.control_step()
    assert sensor.net_impulse[1].any()


def test_a_step_call_sums_over_its_control_steps() -> None:
    one, five = stage(), stage()
    total = impulses(one, 5)
    summed = impulses(five, 1, count=5)
    assert torch.allclose(total, summed, rtol=1e-5, atol=1e-3)
    assert five.state.contact_sensor().elapsed.tolist() == pytest.approx([5 * STEP] * 4)
    assert int(five.state.raw_contacts().count[1]) > int(one.state.raw_contacts().count[1])


def test_frozen_worlds_touch_nothing(staged) -> None:
    _, sim = staged
    sim.control_step()
    sim.state.stepping[1] = 0
    sim.control_step()
    sensor = sim.state.contact_sensor()
    assert not sensor.net_impulse[1].any() and sensor.elapsed[1] == 0.0 and not sensor.net_force[1].any()
    sim.state.stepping[1] = 1
    sim.control_step()
    assert sensor.net_impulse[1].any()


def test_a_full_list_raises_and_names_the_world() -> None:
    sim = stage(raw_contacts=6)
    sim.control_step()
    with pytest.raises(RuntimeError) as caught:
        sim.state.raw_contacts()
    for word in ("raw_contacts=6", "at most", "world 1", "StateConfig(raw_contacts="):
        assert word in str(caught.value)
    assert sim.state.contact_sensor().net_impulse[1, 0, 2] > 0  # sums need no list
    sim.reset()
    sim.control_step()
    assert sim.state.raw_contacts().count.tolist() == [0, 0, 0, 0]


def test_sensing_changes_no_bit_and_costs_no_memory_when_off() -> None:
    on, off = stage(), stage(contacts=False, raw_contacts=0)
    for sim in (on, off):
        sim.control_step(60)
    assert not changed(rows(on), rows(off)).any()
    for name in ("contact_impulse", "contact_count", "contact_now", "raw_points", "raw_pairs", "raw_count"):
        assert getattr(off.arrays, name).size == 0
    assert off.dynamics.rigid_contacts.impulse.size == 0


@pytest.mark.parametrize("options", [{"fused": False}, {"threads": 2}])
def test_every_launch_shape_gives_the_same_bits(options) -> None:
    one, other = stage(), stage(**options)
    for sim in (one, other):
        sim.control_step(3)
    a, b = one.state.contact_sensor(), other.state.contact_sensor()
    assert torch.equal(a.net_impulse, b.net_impulse) and torch.equal(a.contact_count, b.contact_count)
    first, second = one.state.raw_contacts(), other.state.raw_contacts()
    for x, y in zip(first.packed(), second.packed(), strict=True):
        assert torch.equal(x, y)


def test_what_was_not_opted_in_says_how() -> None:
    sim = make(2, 1)
    with pytest.raises(RuntimeError, match=r"state=StateConfig\(contacts=True\)"):
        sim.state.contact_sensor()
    with pytest.raises(RuntimeError, match=r"state=StateConfig\(raw_contacts=N\)"):
        sim.state.raw_contacts()


@pytest.mark.parametrize(
    ("vehicles", "error"), [(2, ValueError), ([0, 0], ValueError), ("a", TypeError), ([], ValueError)]
)
def test_wrong_vehicles(staged, vehicles, error) -> None:
    _, sim = staged
    with pytest.raises(error, match="vehicles"):
        sim.state.contact_sensor(vehicles)
    with pytest.raises(TypeError, match="name"):
        sim.state.contact_sensor(name=3)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"contacts": 1.5}, TypeError),
        ({"contacts": 1}, TypeError),
        ({"accelerations": "yes"}, TypeError),
        ({"raw_contacts": True}, TypeError),
        ({"raw_contacts": 2.0}, TypeError),
        ({"raw_contacts": -1}, ValueError),
        ({"raw_contacts": 10**9}, ValueError),
    ],
)
def test_wrong_configurations(fields, error) -> None:
    with pytest.raises(error, match=next(iter(fields))):
        StateConfig(**fields)
    with pytest.raises(TypeError, match="StateConfig"):
        Simulator(1, [], state={"contacts": True})


def test_environments_sum_over_a_decision() -> None:
    env = TorchEnv(3, state=StateConfig(contacts=True, raw_contacts=400), autoreset_mode="SameStep")
    env.reset(seed=0)
    sensor = env.sim.state.contact_sensor()
    action = torch.zeros(3, 12, 2)
    action[..., 0] = torch.tensor([-6.0, 5.0]).repeat(6)
    hit = torch.zeros(3, 12, dtype=torch.bool)
    for _ in range(80):
        generation = env.sim.state.generation
        env.step(action)
        assert env.sim.state.generation == generation + 1 and env.view.state is env.sim.state
        hit |= sensor.in_contact
        seconds = set(sensor.elapsed.mul(60).round().int().tolist())
        assert seconds <= {0, 6}  # a world that was reset in this step reports nothing
        total = sensor.impulse_from("vehicle").sum(dim=1)
        assert torch.allclose(total, torch.zeros(()), atol=0.5)
    assert hit.any()
    env.close()


def test_what_a_sensor_returns_is_a_copy(staged) -> None:
    _, sim = staged
    sim.control_step()
    sensor = sim.state.contact_sensor()
    before = sensor.net_impulse.clone()
    for read in (sensor.impulse_from("road"), sensor.count_from("road"), sensor.elapsed, sensor.net_force):
        read.zero_()
    assert torch.equal(sensor.net_impulse, before) and sensor.contact_count[1, 0] > 0 and sensor.elapsed[0] > 0
