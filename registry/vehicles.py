"""Vehicle parameter files: plain tables of numbers; the vehicle class checks the names."""

from __future__ import annotations

import os

from .files import list_entries, number, read_toml


def load_vehicle(name_or_path: str | os.PathLike[str]) -> dict[str, float | tuple[float, ...]]:
    """Load the parameters of a vehicle.

    Args:
        name_or_path: Packaged name or TOML path.

    Returns:
        Parameter name -> value (SI): a float, or a tuple of floats where the file holds a list. The names are fields of
        `sf3d_envs.sim.VehicleParams`, which refuses unknown ones; fields that a file leaves out keep their defaults.

    Raises:
        ValueError: Unknown name, unreadable file, or a value that is not a finite number or a list of them.
    """
    source, table = read_toml("vehicles", "vehicle", name_or_path)
    where = f"'{source}'"
    return {
        key: tuple(number(where, f"{key}[{i}]", item) for i, item in enumerate(value))
        if isinstance(value, list)
        else number(where, key, value)
        for key, value in table.items()
    }


def list_vehicles() -> tuple[str, ...]:
    """Names of the packaged vehicles."""
    return list_entries("vehicles")
