"""The table of views: shapes, memory, generations, strictness."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sf3d_envs import Simulator
from sf3d_envs.sim.arrays import VehicleArrays
from sf3d_envs.sim.state import SimState, views
from sf3d_envs.sim.state_table import text_table

from .worlds import VEHICLES, WORLDS, make, mixed

SIZES = {"E": WORLDS, "V": VEHICLES}
INTERNAL = {
    "position_residual": "what a position lost to rounding",
    "forward_speed": "for forward_accel",
    "home_q": "where a reset goes",
    "previous_q": "of the contact solver",
    "params": "fixed",
    "params_index": "fixed",
    "body_q": "root_state",
    "body_qd": "root_state",
    "velocity_before": "read through accelerations()",
    "velocity_elapsed": "read through accelerations()",
    "contact_impulse": "read through contact sensors",
    "contact_count": "read through contact sensors",
    "contact_now": "of the contact solver",
    "contact_elapsed": "read through contact sensors",
    "raw_points": "read through raw_contacts()",
    "raw_pairs": "read through raw_contacts()",
    "raw_count": "read through raw_contacts()",
}


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return mixed(make())


@pytest.mark.parametrize("name", list(views()))
def test_metadata(sim: Simulator, name: str) -> None:
    spec, tensor = views()[name], getattr(sim.state, name)
    assert tuple(tensor.shape) == tuple(SIZES.get(size) or int(size) for size in spec.shape.split(", "))
    assert str(tensor.dtype) == f"torch.{spec.dtype}"
    assert tensor.device.type == "cpu" and tensor.layout == torch.strided
    assert spec.unit and spec.frame and spec.doc and spec.until
    assert getattr(SimState, name) is spec


def test_every_array_is_a_view_or_internal_for_a_reason() -> None:
    sources = {spec.source for spec in views().values()}
    assert {name for name in VehicleArrays.vars if name not in sources} == set(INTERNAL)


@pytest.mark.parametrize("name", [name for name, spec in views().items() if spec.part in (None, 0)])
def test_views_are_the_simulators_memory(sim: Simulator, name: str) -> None:
    spec = views()[name]
    own = {"root": sim.dynamics.root, "stepping": sim.stepping, "world_variant": sim.world_variant}
    array = own.get(spec.source)
    if spec.source == "gravity":
        array = sim.dynamics.gravity
    array = getattr(sim.arrays, spec.source) if array is None else array
    assert getattr(sim.state, name).data_ptr() == array.ptr


def test_root_state_is_newtons_memory(sim: Simulator) -> None:
    state = sim.state
    assert state.position.data_ptr() == sim.body_q.ptr == state.root_state.data_ptr()
    assert state.linear_velocity.data_ptr() == sim.body_qd.ptr
    together = [state.position, state.rotation, state.linear_velocity, state.angular_velocity]
    assert torch.equal(torch.cat(together, dim=-1), state.root_state)
    assert np.array_equal(sim.body_q.numpy(), state.root_state.reshape(-1, 13)[:, :7].numpy())


def test_views_stay_where_they_are(sim: Simulator) -> None:
    before = {name: getattr(sim.state, name).data_ptr() for name in views()}
    held = sim.state.position
    saved = sim.save()
    sim.control_step(200)
    sim.restore(saved)
    sim.reset(0)
    sim.control_step(3)
    assert {name: getattr(sim.state, name).data_ptr() for name in views()} == before
    assert torch.equal(held, sim.state.position)
    assert np.array_equal(held.reshape(-1, 3).numpy(), sim.body_q.numpy()[:, :3])


def test_generations_count_steps_resets_and_sets() -> None:
    sim = make(2, 1)
    state = sim.state
    seen = [state.generation]
    for act in (
        sim.control_step,
        sim.reset,
        lambda: sim.restore(sim.save()),
        lambda: sim.place(np.ones(2, bool), np.array([0.0, 0.0, 0.6454])),
        lambda: state.set_wrench(force=torch.zeros(3)),
        lambda: sim.commands.driver(torch.zeros(2)),
        lambda: sim.solver.step(sim.newton_state, sim.newton_state, None, None, 1 / 240),
    ):
        view = state.view("position")
        assert view.is_current and view.generation == seen[-1] and view.spec.unit == "m"
        act()
        assert not view.is_current
        seen.append(state.generation)
    assert seen == sorted(set(seen))
    sim.save(), sim.snapshot(), state.position
    assert state.generation == seen[-1]


def test_a_refused_call_begins_no_generation() -> None:
    sim = make(2, 1)
    before = sim.state.generation
    with pytest.raises(ValueError):
        sim.commands.driver(torch.full((2,), float("nan")))
    assert sim.state.generation == before


def test_names_cannot_be_rebound(sim: Simulator) -> None:
    with pytest.raises(AttributeError, match=r"state\.wheel_spin\[\.\.\.\] = value"):
        sim.state.wheel_spin = torch.zeros(1)
    with pytest.raises(AttributeError, match="for reading"):
        sim.state.wheel_load = torch.zeros(1)
    with pytest.raises(AttributeError):
        sim.state.wheelspin  # noqa: B018
    with pytest.raises(AttributeError, match="no 'wheelspin'"):
        sim.state.wheelspin = torch.zeros(1)
    with pytest.raises(AttributeError, match="for reading"):
        sim.snapshot().position = torch.zeros(1)


def test_unknown_views_are_listed(sim: Simulator) -> None:
    with pytest.raises(KeyError, match="wheel_spin"):
        sim.state.view("wheelspin")


def test_describe_prints_every_view(sim: Simulator, capsys: pytest.CaptureFixture) -> None:
    sim.state.describe()
    printed = capsys.readouterr().out
    assert f"E = {WORLDS} worlds, V = {VEHICLES} vehicles" in printed
    for name, spec in views().items():
        assert name in printed and spec.doc in printed
    assert max(map(len, text_table().splitlines())) <= 110


def test_use_after_close() -> None:
    sim = make(2, 1, contacts=True, raw_contacts=8, accelerations=True, dynamics=True)
    state, sensor, snapshot = sim.state, sim.state.contact_sensor(), sim.snapshot()
    held = state.position
    sim.close()
    for use in (
        lambda: sim.state,
        lambda: sim.commands,
        lambda: state.position,
        lambda: state.generation,
        lambda: state.view("position"),
        lambda: state.set_wrench(force=torch.zeros(3)),
        state.accelerations,
        state.dynamics,
        state.raw_contacts,
        state.contact_sensor,
        state.check,
        lambda: sensor.net_force,
        lambda: sensor.in_contact,
        lambda: snapshot.position,
        snapshot.refresh,
        sim.snapshot,
        sim.reset,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    assert state.closed and snapshot.is_stale
    snapshot.strict = False
    assert torch.equal(snapshot.position, held)  # copies and held tensors keep their memory


def test_topology_is_fixed() -> None:
    sim = make(2, 1)
    for name in ("num_worlds", "num_vehicles", "vehicles", "device"):
        with pytest.raises(AttributeError, match="fixed at construction"):
            setattr(sim, name, getattr(sim, name))
    assert not [name for name in dir(Simulator) if name.startswith("add")]


def test_bodies_have_logical_and_engine_rows() -> None:
    sim = make(4, 3)
    sim.state.position[2, 1, 1] = 7.0
    assert sim.body_index(2, 1) == 7
    assert sim.newton_state.body_q.numpy()[sim.body_index(2, 1), 1] == 7.0
    for arguments, error in (((4, 0), ValueError), ((0, 3), ValueError), ((0, -1), ValueError), ((True, 0), TypeError)):
        with pytest.raises(error, match="must be"):
            sim.body_index(*arguments)


def test_newtons_state_is_the_same_memory_and_feeds_its_viewers(tmp_path) -> None:
    import newton

    sim = mixed(make(2, 2))
    assert sim.newton_state.body_q.ptr == sim.body_q.ptr
    file = tmp_path / "run.json"
    viewer = newton.viewer.ViewerFile(str(file), auto_save=False)
    viewer.set_model(sim.model)
    places = []
    for frame in range(3):
        viewer.begin_frame(frame / 60.0)
        viewer.log_state(sim.newton_state)
        viewer.end_frame()
        places.append(sim.state.position.reshape(-1, 3).clone())
        sim.control_step(5)
    viewer.save_recording()
    again = newton.viewer.ViewerFile(str(file), auto_save=False)
    again.load_recording()
    model, state = newton.Model(), newton.State()
    again.load_model(model)
    for frame, expected in enumerate(places):
        again.load_state(state, frame)
        assert np.allclose(state.body_q.numpy()[:, :3], expected.numpy(), atol=1e-6)


def test_two_simulators_share_nothing() -> None:
    one, two = make(2, 1), make(2, 1)
    one.state.position[...] += 1.0
    assert not torch.equal(one.state.position, two.state.position)
    assert one.state.generation == two.state.generation
    one.control_step()
    assert one.state.generation != two.state.generation


def test_views_that_were_made_in_inference_mode_may_be_written() -> None:
    with torch.inference_mode():
        sim = make(2, 1)
        assert sim.state.position.shape == (2, 1, 3)
    sim.state.wrench_force.add_(1.0)
    assert not sim.state.position.is_inference()
