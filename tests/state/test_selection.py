"""Which worlds a call means: every form against a NumPy model, checked by the host or by the device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from sf3d_envs import Simulator
from sf3d_envs.sim.selection import Choice, Refusals, choose

from .worlds import UP, changed, make, mixed, rows

CPU = torch.device("cpu")
E, V = 6, 4
VEHICLES = st.one_of(st.none(), st.integers(-1, V), st.lists(st.integers(0, V - 1), unique=True), st.just(range(1, V)))
INTS = st.lists(st.integers(-2, E + 1), max_size=E + 1)
MASKS = st.lists(st.booleans(), min_size=E, max_size=E)
HOST_FORMS = {
    "list": lambda ints: ints,
    "tuple": tuple,
    "int64": lambda ints: np.array(ints, dtype=np.int64),
    "int8": lambda ints: np.array(ints, dtype=np.int8),
    "torch int64": lambda ints: torch.tensor(ints, dtype=torch.int64),
    "torch int32": lambda ints: torch.tensor(ints, dtype=torch.int32),
}
MASK_FORMS = {"list": lambda mask: mask, "tuple": tuple, "numpy": np.array, "torch": torch.tensor}


def written(choice: Choice, allowed: torch.Tensor | None = None) -> np.ndarray:
    """Which elements [E, V] get which row of the value, -1 where none does."""
    target = torch.full((E, V), -1.0)
    choice.write(target, torch.arange(choice.rows, dtype=torch.float32)[:, None], allowed)
    return target.numpy().astype(int)


def model(worlds: list[int], value_rows: list[int], vehicles) -> np.ndarray:
    """As :func:`written`, by NumPy."""
    expected = np.full((E, V), -1)
    columns = np.arange(V) if vehicles is None else np.atleast_1d(np.array(vehicles, dtype=int))
    for world, row in zip(worlds, value_rows, strict=True):
        expected[world, columns] = row
    return expected


def is_valid(ints, count: int) -> bool:
    return len(set(ints)) == len(ints) and all(0 <= number < count for number in ints)


@settings(max_examples=200, deadline=None)
@given(ints=INTS, form=st.sampled_from(sorted(HOST_FORMS)), vehicles=VEHICLES, deferred=st.booleans())
def test_indices(ints: list[int], form: str, vehicles, deferred: bool) -> None:
    worlds, refusals = HOST_FORMS[form](ints), Refusals(CPU, deferred)
    if isinstance(vehicles, int) and not 0 <= vehicles < V:
        with pytest.raises(ValueError, match=rf"vehicles must lie in \[0, {V - 1}\], got {vehicles}"):
            choose(worlds, vehicles, (E, V), refusals)
        return
    if is_valid(ints, E):
        choice = choose(worlds, vehicles, (E, V), refusals)
        assert choice.rows == len(ints)
        assert np.array_equal(written(choice, choice.allowed), model(ints, list(range(len(ints))), vehicles))
        refusals.check()
    elif deferred and isinstance(worlds, torch.Tensor):
        choice = choose(worlds, vehicles, (E, V), refusals)
        assert (written(choice, choice.allowed) == -1).all()
        with pytest.raises(ValueError, match=r"worlds must.*earlier call"):
            refusals.check()
        refusals.check()
    else:
        with pytest.raises(ValueError, match="worlds must"):
            choose(worlds, vehicles, (E, V), refusals)


@settings(max_examples=100, deadline=None)
@given(mask=MASKS, form=st.sampled_from(sorted(MASK_FORMS)), vehicles=st.sampled_from([None, 2, [3, 0], []]))
def test_masks(mask: list[bool], form: str, vehicles) -> None:
    for deferred in (False, True):
        choice = choose(MASK_FORMS[form](mask), vehicles, (E, V), Refusals(CPU, deferred))
        assert choice.rows == E
        chosen = np.flatnonzero(mask).tolist()
        assert np.array_equal(written(choice, choice.allowed), model(chosen, chosen, vehicles))


@settings(max_examples=60, deadline=None)
@given(start=st.integers(0, E), stop=st.integers(0, E), one=st.integers(0, E - 1))
def test_ranges_and_single_worlds(start: int, stop: int, one: int) -> None:
    refusals = Refusals(CPU)
    named = list(range(start, stop))
    assert np.array_equal(
        written(choose(range(start, stop), None, (E, V), refusals)), model(named, list(range(len(named))), None)
    )
    for form in (one, np.int64(one), np.array(one), torch.tensor(one)):
        for deferred in (False, True):
            choice = choose(form, None, (E, V), Refusals(CPU, deferred))
            assert np.array_equal(written(choice, choice.allowed), model([one], [0], None))


WRONG = [
    True,
    np.True_,
    "0",
    1.0,
    [0.5],
    np.array([1.0]),
    [0, True],
    (False, 3),
    [[0]],
    [None],
    [2**70],
    {0},
    object(),
    torch.zeros(2),
    torch.zeros(0),
    torch.tensor([1], dtype=torch.int16),
    torch.tensor([1, 0, 1, 0, 1], dtype=torch.uint8),
    torch.tensor(True),
    torch.zeros(1, 1, dtype=torch.int64),
    torch.tensor([1, 2]).to_sparse(),
]


@pytest.mark.parametrize("worlds", WRONG, ids=lambda worlds: repr(worlds)[:40])
@pytest.mark.parametrize("deferred", [False, True])
def test_what_is_no_choice_is_a_type_error(worlds, deferred: bool) -> None:
    with pytest.raises(TypeError, match="worlds must"):
        choose(worlds, None, (E, V), Refusals(CPU, deferred))


@pytest.mark.parametrize("worlds", WRONG, ids=lambda worlds: repr(worlds)[:40])
def test_saving_refuses_the_same(sim: Simulator, worlds) -> None:
    saved = sim.save()
    for call in (sim.save, lambda choice: sim.restore(saved, worlds=choice)):
        with pytest.raises(TypeError, match="worlds must"):
            call(worlds)


@pytest.mark.parametrize("mask", [[True], np.ones(9, bool), torch.ones(9, dtype=torch.bool), np.zeros(0, bool)])
def test_masks_of_another_length(mask) -> None:
    for deferred in (False, True):
        with pytest.raises(ValueError, match=rf"mask must be bool of shape \({E},\), got shape"):
            choose(mask, None, (E, V), Refusals(CPU, deferred))


@pytest.mark.parametrize("vehicles", [True, [True, False, True, False], torch.tensor([0]), 1.0, "0", [0.5], [[0]]])
def test_what_is_no_choice_of_vehicles(vehicles) -> None:
    with pytest.raises(TypeError, match="vehicles must"):
        choose(None, vehicles, (E, V), Refusals(CPU))


@pytest.fixture(scope="module")
def shared() -> Simulator:
    return make()


@pytest.fixture
def sim(shared: Simulator) -> Simulator:
    shared.state._refusals = Refusals(CPU, deferred=True)
    shared.reset()
    return mixed(shared, steps=1)


class Waits(TorchDispatchMode):
    """Fails where torch on a GPU would wait for the device."""

    OPERATIONS = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "_unique2", "equal")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        masks = name.startswith("index") and isinstance(args[1], (list, tuple))
        masks = masks and any(index is not None and index.dtype == torch.bool for index in args[1])
        assert name not in self.OPERATIONS and not masks, f"{func} waits for the device"
        return func(*args, **(kwargs or {}))


ROW = torch.tensor([3, 1])
MASK = torch.tensor([True, False, False, True, False])
CALLS = {
    "driver": lambda s, **where: s.commands.driver(torch.zeros(2), **where),
    "pedals": lambda s, **where: s.commands.pedals(torch.zeros(3), **where),
    "wheel_torque": lambda s, **where: s.commands.wheel_torque(torch.ones(4), torch.zeros(()), **where),
    "steer_pd": lambda s, **where: s.commands.steer_pd(
        torch.zeros(()), torch.zeros(()), torch.ones(3), torch.ones(3), **where
    ),
    "clear": lambda s, **where: s.commands.clear(**where),
    "set_root_state": lambda s, **where: s.state.set_root_state(torch.ones(3), UP, **where),
    "set_wheel_state": lambda s, **where: s.state.set_wheel_state(torch.ones(4), torch.full((), 0.3), **where),
    "set_suspension": lambda s, **where: s.state.set_suspension(torch.full((4,), 0.1), torch.zeros(4), **where),
    "set_wrench": lambda s, **where: s.state.set_wrench(torch.ones(3), torch.ones(3), **where),
    "reset": lambda s, **where: s.reset(**where),
}


@pytest.mark.parametrize(
    "worlds", [None, ROW, ROW.int(), MASK, torch.tensor(2)], ids=["all", "64", "32", "mask", "0-d"]
)
@pytest.mark.parametrize("name", CALLS)
def test_no_setter_waits_for_the_device(sim: Simulator, name: str, worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, Waits():
        patched.setattr(torch, "tensor", None)  # data from the host's pageable memory
        CALLS[name](sim, worlds=worlds)
    sim.state.check()


def test_the_spy_sees_what_would_wait() -> None:
    numbers = torch.arange(3)
    for wait in (lambda: numbers[numbers.argmax()], lambda: bool(numbers.any()), lambda: numbers[numbers > 0]):
        with pytest.raises(AssertionError, match="waits"), Waits():
            wait()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("worlds", "words"), [([0, 7], r"\[0, 4\], got 7"), ([-1], "got -1"), ([2, 2], "once, got 2")])
def test_the_device_refuses_in_every_setter(sim: Simulator, name: str, worlds, words: str) -> None:
    before = rows(sim)
    CALLS[name](sim, worlds=torch.tensor(worlds))
    assert not changed(before, rows(sim)).any()
    with pytest.raises(ValueError, match=words):
        sim.save()
    sim.save()


def test_the_first_refusal_is_the_one_that_is_raised(sim: Simulator) -> None:
    sim.commands.driver(torch.tensor([0.0, 1.5]))
    sim.state.set_root_state(rotation=torch.ones(4))
    saved = make().save()
    with pytest.raises(ValueError, match=r"command must be .* got 1.5 \(an earlier call; it wrote nothing\)"):
        sim.restore(saved)
    sim.restore(saved)
