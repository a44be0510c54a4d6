"""`python -m sf3d_envs.cli`, the same as `sf3d`."""

from __future__ import annotations

from . import main

main()
