"""Freeze manifests that were read: whether an evaluation, and the cells it computed, are the frozen ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .matching import PER_WORLD, RECORDING, said
from .store import differences

FREEZE_SCHEMA = "sf3d.freeze/1"


class FrozenMismatch(RuntimeError):
    """An evaluation, or one of its cells, that is not what was frozen.

    Attributes:
        fields: Field -> (frozen value, value of the evaluation).
    """

    def __init__(self, source: str, fields: Mapping[str, tuple[Any, Any]]) -> None:
        """Describe `fields`; `source` is the frozen file."""
        self.fields = dict(fields)
        listed = "; ".join(
            f"{name} is not frozen" if old is None else f"{name}: {said(old)} frozen, {said(new)} now"
            for name, (old, new) in fields.items()
        )
        super().__init__(f"the evaluation disagrees with {source} ({listed})")


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """A freeze manifest that was read and found intact.

    Attributes:
        source: Where it came from, for messages.
        manifest: Its content.
    """

    source: str
    manifest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over everything else in the manifest."""
        return self.manifest["digest"]

    @property
    def seeds(self) -> range:
        """Frozen scenario seeds."""
        identity = self.manifest["identity"]
        return range(identity["seed0"], identity["seed0"] + identity["worlds"])

    def check_identity(self, identity: Mapping[str, Any], cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse an evaluation that is not the frozen one or a part of it; nothing is computed for that.

        Args:
            identity: Global fields of the evaluation.
            cells: `<agent>/<condition>` -> fields of the cell.

        Raises:
            FrozenMismatch: Naming fields, cells that are not frozen, and worlds beyond the frozen ones.
        """
        free = ("worlds", "seed0", *RECORDING)
        there = {name: value for name, value in self.manifest["identity"].items() if name not in free}
        found = differences(there, {name: value for name, value in _json(identity).items() if name not in free})
        first, last = identity["seed0"], identity["seed0"] + identity["worlds"] - 1
        if first not in self.seeds or last not in self.seeds:
            found["seeds"] = (f"{self.seeds[0]} ... {self.seeds[-1]}", f"{first} ... {last}")
        for name, cell in _json(cells).items():
            frozen = self.manifest["cells"].get(name)
            if frozen is None:
                found[f"cells.{name}"] = (None, cell)
            else:
                found |= differences(frozen, cell, f"cells.{name}")
        if found:
            raise FrozenMismatch(self.source, found)

    def check_record(self, cell: str, record: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
        """Compare the digests that a cell has recorded with the frozen ones.

        Args:
            cell: `<agent>/<condition>`.
            record: Digests `scenario` and `initial_state` (per world), `terrain` and `route`.
            seeds: Scenario seeds of the cell's worlds, inside the frozen ones.

        Returns:
            The record with the digest of the freeze manifest as `frozen`.

        Raises:
            FrozenMismatch: Naming the cell, the fields, and how many worlds and which first one differ.
        """
        digests, found = self.manifest["record"], {}
        expected = {"route": digests["route"], "terrain": digests["terrain"].get(cell.partition("/")[2])}
        for name, value in expected.items():
            if record.get(name) != value:
                found[f"{cell}: {name}"] = (value, record.get(name))
        for name in PER_WORLD:
            there = [digests[name][self.seeds.index(seed)] for seed in seeds]
            now = list(record.get(name) or [None] * len(there))
            unequal = [i for i, (x, y) in enumerate(zip(there, now, strict=False)) if x != y]
            if unequal:
                many = f"{len(unequal)} of {len(there)} worlds, first seed {seeds[unequal[0]]}"
                found[f"{cell}: {name} ({many})"] = (there[unequal[0]], now[unequal[0]])
            elif len(there) != len(now):
                found[f"{cell}: worlds"] = (len(there), len(now))
        if found:
            raise FrozenMismatch(self.source, found)
        return {**record, "frozen": self.digest}


def read_frozen(path: str | Path) -> Frozen:
    """Read a freeze manifest and check that it is whole.

    Args:
        path: File from `write_frozen`.

    Raises:
        ValueError: If it cannot be read, is truncated, has another schema, or was edited.
    """
    what = f"--frozen is {str(path)!r}"
    try:
        manifest = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"{what}, which cannot be read ({error.strerror}); give a file written by freeze") from error
    except ValueError as error:
        raise ValueError(f"{what}, which is damaged or no freeze manifest: {error}") from error
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != FREEZE_SCHEMA:
        raise ValueError(f"{what}, of schema {schema!r}; this version reads {FREEZE_SCHEMA!r}")
    digest = manifest.pop("digest", None)
    if digest != manifest_digest(manifest):
        raise ValueError(f"{what}, whose content does not have its digest: it was changed after it was written")
    if not _is_whole(manifest):
        raise ValueError(f"{what}, which lacks identity, cells or record of a freeze manifest, or holds others")
    return Frozen(source=str(path), manifest={**manifest, "digest": digest})


def _is_whole(manifest: Mapping[str, Any]) -> bool:
    """Whether the parts that are read are there and of their types."""
    parts: list[Any] = [manifest.get(name) for name in ("identity", "cells", "record")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    identity, _, record = parts
    worlds = identity.get("worlds")
    if any(type(identity.get(name)) is not int for name in ("worlds", "seed0")) or worlds < 1:
        return False
    lists = [record.get(name) for name in PER_WORLD]
    return (
        all(isinstance(held, list) and len(held) == worlds for held in lists)
        and isinstance(record.get("terrain"), dict)
        and "route" in record
    )


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def manifest_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a freeze manifest without its digest."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
