"""PettingZoo-style module: ``from sf3d_envs import lane_closure_v0; env = lane_closure_v0.parallel_env()``."""

from .envs.parallel_env import env, parallel_env

__all__ = ["env", "parallel_env"]
