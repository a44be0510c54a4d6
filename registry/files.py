"""Reading and checking TOML: packaged entries by name, user files by path, unknown keys refused."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Collection, Mapping
from importlib import resources
from typing import Any

_PACKAGE = "sf3d_envs.registry"


def is_path(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether a text means a file: a path object, a ``.toml`` name, or anything with a path separator."""
    if not isinstance(name_or_path, str):
        return True
    return name_or_path.endswith(".toml") or "/" in name_or_path or os.sep in name_or_path


def list_entries(folder: str) -> tuple[str, ...]:
    """Names of the packaged TOML files of a folder, sorted."""
    files = resources.files(_PACKAGE).joinpath(folder).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def read_toml(folder: str, kind: str, name_or_path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Parse a packaged entry or a user file.

    Args:
        folder: Packaged folder to look names up in.
        kind: What the entry is, for error texts ("suite", "vehicle").
        name_or_path: Packaged name or TOML path.

    Returns:
        The entry's source for error texts (name or path), and the parsed table.

    Raises:
        ValueError: No such name or file, or the file is not TOML.
    """
    if is_path(name_or_path):
        source = os.fspath(name_or_path)
        try:
            with open(source, "rb") as stream:
                return source, _parse(source, stream.read())
        except OSError as error:
            raise ValueError(f"{kind} file '{source}' cannot be read: {error.strerror or error}") from error
    name = str(name_or_path)
    known = list_entries(folder)
    if name not in known:
        raise ValueError(f"{kind} '{name}' is not in the registry{suggest(name, known)} (or a path to a TOML file)")
    return name, _parse(name, resources.files(_PACKAGE).joinpath(folder, f"{name}.toml").read_bytes())


def _parse(source: str, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"'{source}' is not a TOML file: {error}") from error


def suggest(name: str, known: Collection[str]) -> str:
    """Tail of an unknown-name error: the nearest known name if there is one, then all of them."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else "."
    return f"{hint} Known: {', '.join(known)}"


def check_keys(where: str, table: Mapping[str, Any], allowed: Collection[str], required: Collection[str] = ()) -> None:
    """Raise ValueError where a table holds a key that means nothing, or lacks one that must be there."""
    for key in table:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else "."
            raise ValueError(f"{where}: unknown key '{key}'{hint} Allowed: {', '.join(allowed)}")
    missing = [key for key in required if key not in table]
    if missing:
        raise ValueError(f"{where}: missing key '{missing[0]}'. Required: {', '.join(required)}")


def number(where: str, key: str, value: Any) -> float:
    """A finite TOML number as float; ValueError names the place and the value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{where}: {key} must be a finite number, got {value!r}")
    return float(value)


def text(where: str, key: str, value: Any) -> str:
    """A TOML string; ValueError names the place and the value."""
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key} must be a string, got {value!r}")
    return value


def tables(where: str, key: str, value: Any) -> list[dict[str, Any]]:
    """An array of TOML tables; ValueError names the place."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"{where}: {key} must be a list of tables ([[{key}]]), got {value!r}")
    return value
