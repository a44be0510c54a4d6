"""A contract test for Gymnasium vector environments, which Gymnasium itself has none of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

Outcome = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


def check_vector_env(env_factory: Callable[[], VectorEnv], *, steps: int = 16, seed: int = 0) -> None:
    """Check that a vector environment keeps Gymnasium's vector API, seeds and the rules of its autoreset mode.

    Rows may belong to groups that reset together: ``env.unwrapped.rows_per_world`` rows each, 1 if there is no such
    attribute. Episodes must be short: at least one has to end within ``steps`` steps of random actions.

    Args:
        env_factory: Makes a new environment; called several times, each must be like the others.
        steps: Steps of a rollout.
        seed: Seed of resets and actions.

    Raises:
        AssertionError: At the first breach of the contract; the message says which.
    """
    env = env_factory()
    try:
        _check_attributes(env)
        first = list(_rollout(env, steps, seed))
        _check_types(env, first)
        _check_fresh_memory(first)
        _check_autoreset(env, first)
        _equal(first, list(_rollout(env, steps, seed)), "a second rollout with the same seed")
        _check_seeds(env, seed)
        _check_reset_mask(env, seed)
        _check_render(env)
    finally:
        env.close()
    env.close()
    other = env_factory()
    try:
        _equal(first, list(_rollout(other, steps, seed)), "a second environment with the same seed")
    finally:
        other.close()


def _rollout(env: VectorEnv, steps: int, seed: int) -> Iterator[Outcome]:
    """The reset and each step of a seeded rollout; a mode without autoreset is reset by hand."""
    none = np.zeros(env.num_envs, dtype=bool)
    obs, infos = env.reset(seed=seed)
    yield obs, np.zeros(env.num_envs), none, none, infos
    env.action_space.seed(seed)
    ended = none
    for _ in range(steps):
        outcome = env.step(env.action_space.sample())
        assert isinstance(outcome, tuple) and len(outcome) == 5, "step() must return five values"
        yield outcome
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
            groups = _groups(env)
            active = outcome[4].get("active")
            ended = (ended | outcome[2] | outcome[3]) if active is None else ~active
            over = np.repeat(ended.reshape(-1, groups).all(axis=1), groups)
            if over.any():
                env.reset(options={"reset_mask": over})
                ended = ended & ~over


def _groups(env: VectorEnv) -> int:
    return getattr(env.unwrapped, "rows_per_world", 1)


def _check_attributes(env: VectorEnv) -> None:
    assert isinstance(env, VectorEnv), f"not a gymnasium.vector.VectorEnv but {type(env).__name__}"
    assert isinstance(env.num_envs, int) and env.num_envs > 0, f"num_envs must be a positive int, got {env.num_envs!r}"
    for kind in ("observation", "action"):
        single, batched = getattr(env, f"single_{kind}_space"), getattr(env, f"{kind}_space")
        assert batched == batch_space(single, env.num_envs), f"{kind}_space is not single_{kind}_space, num_envs times"
    mode = env.metadata.get("autoreset_mode")
    assert isinstance(mode, AutoresetMode), f"metadata['autoreset_mode'] must be an AutoresetMode, got {mode!r}"
    base = env.unwrapped
    assert base.metadata is not type(base).metadata, "metadata must be the instance's own: its mode differs by instance"


def _check_types(env: VectorEnv, rollout: list[Outcome]) -> None:
    n = env.num_envs
    for t, (obs, reward, terminated, truncated, infos) in enumerate(rollout):
        where = f"step {t}" if t else "reset"
        assert obs in env.observation_space, f"{where}: the observation is outside of its space"
        assert isinstance(reward, np.ndarray) and reward.shape == (n,), f"{where}: rewards must have shape ({n},)"
        finite = np.issubdtype(reward.dtype, np.floating) and np.isfinite(reward).all()
        assert finite, f"{where}: rewards must be finite floats"
        for name, flags in (("terminated", terminated), ("truncated", truncated)):
            ok = isinstance(flags, np.ndarray) and flags.shape == (n,) and flags.dtype == np.bool_
            assert ok, f"{where}: {name} must be bool of shape ({n},)"
        _check_infos(infos, n, where)


def _check_infos(infos: Mapping[str, Any], n: int, where: str) -> None:
    assert isinstance(infos, dict), f"{where}: infos must be a dict, got {type(infos).__name__}"
    for name, value in infos.items():
        if isinstance(value, dict):
            _check_infos(value, n, f"{where}, infos[{name!r}]")
            continue
        ok = isinstance(value, np.ndarray) and len(value) == n
        assert ok, f"{where}: infos[{name!r}] must be an array of {n} rows"
        assert value.dtype != object, f"{where}: infos[{name!r}] must be dense, not an object array"
        mask = value if name.startswith("_") else infos.get(f"_{name}")
        ok = mask is None or (isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (n,))
        assert ok, f"{where}: the mask of infos[{name!r}] must be bool of shape ({n},)"


def _check_fresh_memory(rollout: list[Outcome]) -> None:
    def arrays(outcome: Outcome) -> list[np.ndarray]:
        return [*outcome[:4], *(value for value in outcome[4].values() if isinstance(value, np.ndarray))]

    # The reset's reward and flags are this checker's own.
    for before, after in pairwise(rollout[1:]):
        for a in arrays(before):
            assert not any(np.shares_memory(a, b) for b in arrays(after)), "two steps returned the same memory"


def _check_autoreset(env: VectorEnv, rollout: list[Outcome]) -> None:
    mode, groups = env.metadata["autoreset_mode"], _groups(env)
    steps = rollout[1:]
    assert any((o[2] | o[3]).any() for o in steps), f"no episode ended within {len(steps)} steps; make episodes shorter"
    for t, (obs, _, terminated, truncated, infos) in enumerate(steps):
        done = terminated | truncated
        if mode == AutoresetMode.SAME_STEP and done.any():
            assert "final_obs" in infos and "final_info" in infos, "same-step: infos lack final_obs or final_info"
            final, mask = infos["final_obs"], infos["_final_obs"]
            ok = final.shape == obs.shape and final.dtype == obs.dtype
            assert ok, "same-step: final_obs must have the shape and dtype of the observation"
            assert not (mask & ~done).any(), "same-step: final_obs is given for a row that did not end"
            assert not (truncated & ~mask).any(), "same-step: a truncated row has no final_obs"
            if groups == 1:
                assert (mask == done).all(), "same-step: a row that ended has no final_obs"
            assert all(final[row] in env.single_observation_space for row in np.flatnonzero(mask)), "final_obs: space"
            ok = not any(np.array_equal(final[row], obs[row]) for row in np.flatnonzero(mask))
            assert ok, "same-step: final_obs equals the observation after the reset"
        if mode == AutoresetMode.NEXT_STEP and t + 1 < len(steps):
            _, reward, terminated_after, truncated_after, _ = steps[t + 1]
            quiet = (reward[done] == 0).all() and not (terminated_after | truncated_after)[done].any()
            assert quiet, "next-step: the step after an end must have reward 0 and no flags"


def _check_seeds(env: VectorEnv, seed: int) -> None:
    n, groups = env.num_envs, _groups(env)
    first, _ = env.reset(seed=seed)
    seeds: Any = [seed + row // groups for row in range(n)]
    again, _ = env.reset(seed=seeds)
    assert np.array_equal(first, again), "seed=s must be the list s, s + 1, ... of seeds"
    other, _ = env.reset(seed=seed + 1_000_003)
    assert not np.array_equal(first, other), "another seed gave the same observation"
    env.reset(seed=seed)
    continued, _ = env.reset()
    assert not np.array_equal(first, continued), "reset() without a seed repeated the episode"


def _check_reset_mask(env: VectorEnv, seed: int) -> None:
    groups = _groups(env)
    env.reset(seed=seed)
    env.action_space.seed(seed)
    before = env.step(env.action_space.sample())[0]
    mask = np.zeros(env.num_envs, dtype=bool)
    mask[:groups] = True
    options = {"reset_mask": mask}
    after, _ = env.reset(options=options)
    assert options.get("reset_mask") is mask, "reset() must leave the caller's options as they are"
    assert np.array_equal(before[~mask], after[~mask]), "reset_mask: a row outside of the mask changed"
    assert not np.array_equal(before[mask], after[mask]), "reset_mask: the masked rows were not reset"


def _check_render(env: VectorEnv) -> None:
    if env.render_mode != "rgb_array":
        return
    env.reset(seed=0)
    frames = env.render()
    assert frames is not None and len(frames) == env.num_envs, "render() must return one frame per row"
    frame = frames[0]
    ok = isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] == 3
    assert ok, "a frame must be uint8 [height, width, 3]"


def _equal(a: list[Outcome], b: list[Outcome], what: str) -> None:
    for t, (one, two) in enumerate(zip(a, b, strict=True)):
        for name, x, y in zip(("observation", "reward", "terminated", "truncated"), one[:4], two[:4], strict=True):
            assert np.array_equal(x, y), f"{what} differs in {name} at step {t}"
        assert _same(one[4], two[4]), f"{what} differs in infos at step {t}"


def _same(a: Any, b: Any, mask: np.ndarray | None = None) -> bool:
    """Equality of infos; an array counts only where its mask is True."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k], a.get(f"_{k}")) for k in a)
    return np.array_equal(a, b) if mask is None else np.array_equal(a[mask], b[mask])
