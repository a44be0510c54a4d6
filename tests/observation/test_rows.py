"""Random scenes against the float64 reference, and rows that do not depend on their batch."""

from __future__ import annotations

import numpy as np
import warp as wp
from observation.observation64 import observe64
from observation.worlds import random_scene

from sf3d_envs.launches import LaunchList, Shards
from sf3d_envs.observation import ObservationSpec
from sf3d_envs.observation.view import Observer


def test_random_scenes_agree_with_float64():
    scene = random_scene(np.random.default_rng(5), 6)
    obs = scene.view().observation(preview=True).numpy()
    names = ObservationSpec(preview=True).names
    for w, v in np.ndindex(6, 12):
        error = np.abs(obs[w, v] - observe64(scene, w, v))
        assert error.max() < 3e-5, (w, v, names[int(error.argmax())], error.max())


def test_rows_are_bitwise_independent_of_batch_and_place():
    scene = random_scene(np.random.default_rng(6), 5)
    whole = scene.view().observation(preview=True).numpy().copy()
    for order in ([3, 1, 4, 0, 2], [2], [4, 4, 1]):
        part = scene.worlds(order).view().observation(preview=True).numpy()
        assert part.tobytes() == whole[order].tobytes()


def test_shards_write_the_same_rows_as_one_launch():
    view = random_scene(np.random.default_rng(7), 9).view()
    whole = view.observation().numpy().copy()
    observer = Observer(view, range(12))
    shards = Shards(9, wp.get_device("cpu"), threads=2)
    launches = LaunchList(shards)
    observer.record(launches)
    launches.run()
    shards.close()
    assert observer.tensor.numpy().tobytes() == whole.tobytes()


def test_observation_without_preview_is_its_first_112_channels():
    view = random_scene(np.random.default_rng(8), 2).view()
    assert (view.observation() == view.observation(preview=True)[..., :112]).all()


def test_observation_is_one_buffer():
    view = random_scene(np.random.default_rng(9), 1).view()
    assert view.observation().data_ptr() == view.observation().data_ptr()
