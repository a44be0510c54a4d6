"""SceneFactory-3D driving environments: batched vehicle physics behind Gymnasium, PettingZoo, SB3 and torch.

Importing the package registers the environment IDs; everything heavy is imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from .registration import environment_ids, register

if TYPE_CHECKING:
    from ._warp import warmup
    from .envs.config import EnvConfig
    from .envs.contract import check_vector_env
    from .envs.gym_env import LaneClosureEnv
    from .envs.parallel_env import LaneClosureParallelEnv
    from .envs.randomization import DomainRandomization
    from .envs.torch_env import TorchEnv
    from .envs.vector_env import LaneClosureVectorEnv
    from .evaluation import evaluate
    from .observation.spec import ObservationSpec
    from .registry import Condition, list_conditions, load_condition, load_suite
    from .sim.commands import CommandMode
    from .sim.saved import SavedState
    from .sim.simulator import Simulator
    from .sim.snapshot import StaleSnapshotError
    from .sim.state import SimState
    from .sim.state_config import StateConfig
    from .sim.vehicle import VehicleParams
    from .task.events import Event
    from .task.reward import RewardConfig

_LAZY = {
    "CommandMode": ".sim.commands",
    "Condition": ".registry",
    "DomainRandomization": ".envs.randomization",
    "EnvConfig": ".envs.config",
    "Event": ".task.events",
    "LaneClosureEnv": ".envs.gym_env",
    "LaneClosureParallelEnv": ".envs.parallel_env",
    "LaneClosureVectorEnv": ".envs.vector_env",
    "ObservationSpec": ".observation.spec",
    "RewardConfig": ".task.reward",
    "SavedState": ".sim.saved",
    "SimState": ".sim.state",
    "Simulator": ".sim.simulator",
    "StaleSnapshotError": ".sim.snapshot",
    "StateConfig": ".sim.state_config",
    "TorchEnv": ".envs.torch_env",
    "VehicleParams": ".sim.vehicle",
    "check_vector_env": ".envs.contract",
    "evaluate": ".evaluation",
    "list_conditions": ".registry",
    "load_condition": ".registry",
    "load_suite": ".registry",
    "warmup": "._warp",
}

__all__ = [
    "CommandMode",
    "Condition",
    "DomainRandomization",
    "EnvConfig",
    "Event",
    "LaneClosureEnv",
    "LaneClosureParallelEnv",
    "LaneClosureVectorEnv",
    "ObservationSpec",
    "RewardConfig",
    "SavedState",
    "SimState",
    "Simulator",
    "StaleSnapshotError",
    "StateConfig",
    "TorchEnv",
    "VehicleParams",
    "__version__",
    "check_vector_env",
    "environment_ids",
    "evaluate",
    "list_conditions",
    "load_condition",
    "load_suite",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


register()
