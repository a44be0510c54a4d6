"""Result folders: atomic files, cells that can be resumed, and a manifest that is written last.

```
DIR/cells/<agent>/<condition>/{vehicles.parquet, worlds.parquet, manifest.json}
DIR/{vehicles.parquet, worlds.parquet, table.csv, table.txt, ...}
DIR/manifest.json                       (commit mark: it exists only when everything it lists is in place)
```
A cell is one agent on one condition. Parquet files carry no time, host or path, so equal runs give equal bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

CELL_SCHEMA = "sf3d.cell/1"
MANIFEST_SCHEMA = "sf3d.evaluation/1"

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


class ManifestConflict(ValueError):
    """A result folder holds a different evaluation.

    Attributes:
        fields: Dotted names of the fields that differ.
    """

    def __init__(self, where: Path, differences: Mapping[str, tuple[Any, Any]]) -> None:
        """Describe `differences`: field -> (value on disk, value asked for)."""
        self.fields = tuple(differences)
        listed = "; ".join(
            f"{name}: {_short(old)} there, {_short(new)} asked" for name, (old, new) in differences.items()
        )
        super().__init__(f"out folder {where} holds a different evaluation ({listed}); choose another folder")


class DamagedCell(RuntimeError):
    """Finished cells whose files no longer match their manifest.

    Attributes:
        cells: Names `<agent>/<condition>`.
    """

    def __init__(self, root: Path, cells: Iterable[str]) -> None:
        """Name the damaged cells below `root`."""
        self.cells = tuple(cells)
        again = " ".join(f"--recompute {cell}" for cell in self.cells)
        super().__init__(f"damaged cells in {root}: {', '.join(self.cells)}; to compute them again add {again}")


def _short(value: Any, limit: int = 60) -> str:
    text = json.dumps(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def differences(on_disk: Any, asked: Any, name: str = "") -> dict[str, tuple[Any, Any]]:
    """Fields in which two JSON values differ.

    Args:
        on_disk: One value.
        asked: The other value.
        name: Dotted prefix of the field names.

    Returns:
        Dotted field name -> (on disk, asked); a missing field reads as None.
    """
    if isinstance(on_disk, dict) and isinstance(asked, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in sorted({*on_disk, *asked}):
            found |= differences(on_disk.get(key), asked.get(key), f"{name}.{key}" if name else key)
        return found
    return {} if on_disk == asked else {name: (on_disk, asked)}


def write_bytes(path: Path, data: bytes) -> str:
    """Write a file so that it is either absent, old or complete.

    Args:
        path: Target; its folder exists.
        data: Content.

    Returns:
        SHA-256 of the content, hexadecimal.

    Raises:
        OSError: If the target is a folder, a device or another thing that is no regular file, or cannot be written.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():
        raise OSError(f"{str(path)!r} is no regular file")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return hashlib.sha256(data).hexdigest()


def write_json(path: Path, value: Any) -> str:
    """Write JSON atomically, keys sorted; returns its SHA-256."""
    return write_bytes(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def write_parquet(path: Path, frame: pl.DataFrame) -> str:
    """Write a frame atomically (zstd); equal frames give equal bytes. Returns its SHA-256."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return write_bytes(path, buffer.getvalue())


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: str | Path, argument: str) -> Path:
    """Make sure that a file can be written, before anything is computed; leaves nothing behind.

    Args:
        path: File that exists or can be made, its folders too.
        argument: Name used in the error.

    Returns:
        The path.

    Raises:
        ValueError: If it is a folder, a device or another thing that is no regular file, or its folder takes no file.
    """
    file = Path(path)
    if not file.name or file.is_dir():
        raise ValueError(f"{argument} is {str(path)!r}, a folder; give a file name")
    if file.exists() and not file.is_file():
        raise ValueError(f"{argument} is {str(path)!r}, which is no regular file; give a file name")
    try:
        check_writable(file.parent, argument)
    except ValueError as error:
        raise ValueError(f"{argument} is {str(path)!r}: {error}") from None
    return file


def check_writable(path: str | Path, argument: str = "--out") -> Path:
    """Make sure files can be written below `path`, before anything is computed; leaves nothing behind.

    Args:
        path: Folder that exists or can be made.
        argument: Name used in the error.

    Returns:
        The path.

    Raises:
        ValueError: If it is a file, or neither it nor its nearest existing parent takes a new file.
    """
    folder = Path(path)
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise ValueError(
            f"{argument} is {str(path)!r}, but {str(nearest)!r} is not a folder; give a folder that is new or writable"
        )
    try:
        with tempfile.NamedTemporaryFile(prefix=".sf3d-", dir=nearest):
            pass
    except OSError as error:
        raise ValueError(
            f"{argument} is {str(path)!r}, but {str(nearest)!r} cannot be written ({error.strerror}); "
            f"give a writable folder"
        ) from error
    return folder


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


class ResultStore:
    """The result folder of one evaluation.

    Args:
        root: The folder; made on the first write.
        identity: What decides the results and is the same for all cells (JSON values).
        cells: `<agent>/<condition>` -> what decides the results of that cell alone.
    """

    def __init__(self, root: str | Path, identity: Mapping[str, Any], cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep names only; nothing is read or written."""
        for cell in cells:
            agent, _, condition = cell.partition("/")
            for part in (agent, condition):
                if not _SAFE_NAME.fullmatch(part):
                    raise ValueError(
                        f"cell name {cell!r} is no folder name; agents and conditions use letters, digits and . _ + -"
                    )
        self.root = Path(root)
        self.identity = json.loads(json.dumps(identity))
        self.cells = {name: json.loads(json.dumps(value)) for name, value in cells.items()}

    def cell_folder(self, cell: str) -> Path:
        """Folder of a cell `<agent>/<condition>`."""
        return self.root / "cells" / cell

    def _cell_identity(self, cell: str) -> dict[str, Any]:
        return {**self.identity, "cell": self.cells[cell]}

    def check(self, recompute: Iterable[str] = ()) -> list[str]:
        """Compare the folder with this evaluation and list the cells that need no computing.

        Args:
            recompute: Cells to compute again whatever is there.

        Returns:
            Finished, intact cells.

        Raises:
            ValueError: If `recompute` names a cell that is not part of this evaluation.
            ManifestConflict: If the folder belongs to another evaluation.
            DamagedCell: If files of a finished cell are missing or changed.
        """
        again = set(recompute)
        for cell in sorted(again - set(self.cells)):
            raise ValueError(f"--recompute is {cell!r}; it must be one of the cells {', '.join(self.cells)}")
        committed = _read_manifest(self.root / "manifest.json")
        if committed is not None:
            asked = {"identity": self.identity, "cells": self.cells}
            there = {"identity": committed.get("identity"), "cells": committed.get("cells")}
            if found := differences(there, asked):
                raise ManifestConflict(self.root, found)
        finished, damaged = [], []
        for path in sorted(self.root.glob("cells/*/*/manifest.json")):
            cell = path.parent.relative_to(self.root / "cells").as_posix()
            if cell not in self.cells:
                raise ManifestConflict(self.root, {f"cells.{cell}": ("present", "absent")})
            manifest = _read_manifest(path)
            if cell in again:
                continue
            if manifest is None or not isinstance(manifest.get("files"), dict):
                damaged.append(cell)
                continue
            if found := differences(manifest.get("identity"), self._cell_identity(cell)):
                raise ManifestConflict(path.parent, found)
            intact = all(
                (path.parent / f).is_file() and file_digest(path.parent / f) == h for f, h in manifest["files"].items()
            )
            (finished if intact else damaged).append(cell)
        if damaged:
            raise DamagedCell(self.root, damaged)
        return finished

    def write_cell(self, cell: str, frames: Mapping[str, pl.DataFrame], record: Mapping[str, Any]) -> None:
        """Write one finished cell; its manifest goes last.

        Args:
            cell: `<agent>/<condition>`.
            frames: File stem -> frame, for example `vehicles`.
            record: Digests and timings that describe the run (JSON values); never compared.
        """
        folder = self.cell_folder(cell)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").unlink(missing_ok=True)
        files = {f"{stem}.parquet": write_parquet(folder / f"{stem}.parquet", frame) for stem, frame in frames.items()}
        manifest = {
            "schema": CELL_SCHEMA,
            "identity": self._cell_identity(cell),
            "record": dict(record),
            "files": files,
        }
        write_json(folder / "manifest.json", manifest)

    def read_record(self, cell: str) -> dict[str, Any]:
        """What :meth:`write_cell` was told about a finished cell."""
        return dict((_read_manifest(self.cell_folder(cell) / "manifest.json") or {}).get("record", {}))

    def read_cells(self, stem: str) -> pl.DataFrame:
        """All cells of one kind of frame under each other, in the order of the cells."""
        return pl.concat([pl.read_parquet(self.cell_folder(cell) / f"{stem}.parquet") for cell in self.cells])

    def begin_commit(self) -> None:
        """Take the commit mark away before merged files are replaced."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "manifest.json").unlink(missing_ok=True)

    def commit(self, files: Mapping[str, str], record: Mapping[str, Any]) -> dict[str, Any]:
        """Write `DIR/manifest.json`, the commit mark.

        Args:
            files: Merged file name -> SHA-256.
            record: What describes the run without deciding its results (JSON values).

        Returns:
            The manifest.
        """
        manifest = {
            "schema": MANIFEST_SCHEMA,
            "identity": self.identity,
            "cells": self.cells,
            "record": dict(record),
            "files": dict(files),
        }
        write_json(self.root / "manifest.json", manifest)
        return manifest
