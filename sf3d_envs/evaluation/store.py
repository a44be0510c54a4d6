"""Result folders: atomic files, cells that can be resumed, and a manifest that is written last.

```
DIR/cells/<agent>/<condition>/{vehicles.parquet, worlds.parquet, [rich.parquet], manifest.json}
DIR/{vehicles.parquet, worlds.parquet, table.csv, table.txt, ...}
DIR/manifest.json                       (commit mark: it exists only when everything it lists is in place)
DIR/run.json                            (times and machine of each run; never compared, never hashed)
```
A cell is one agent on one condition; its manifest is its own commit mark. No file but `run.json` knows a time, host or
path, so equal runs give equal bytes. Files under way have names that end in `.partial`, or lie in `DIR/.partial`; a
process that is killed leaves them, and the next run sweeps them away.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from .files import (
    PARTIAL,
    FolderInUse,
    check_file,
    check_writable,
    file_digest,
    locked,
    move_file,
    parquet_bytes,
    write_bytes,
    write_json,
    write_parquet,
)

__all__ = [
    "CELL_SCHEMA",
    "MANIFEST_SCHEMA",
    "DamagedCell",
    "FolderInUse",
    "ManifestConflict",
    "ResultStore",
    "check_file",
    "check_writable",
    "differences",
    "file_digest",
    "parquet_bytes",
    "write_bytes",
    "write_json",
    "write_parquet",
]

CELL_SCHEMA = "sf3d.cell/2"
MANIFEST_SCHEMA = "sf3d.evaluation/2"
RUN_SCHEMA = "sf3d.run/1"

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
        what = "a different evaluation"
        if any(name.split(".")[0] == "schema" for name in differences):
            what = "results of another version of this package"
        elif {name.removeprefix("identity.").split(".")[0] for name in differences} <= {"code", "packages", "metrics"}:
            what = "results of other code"
        super().__init__(f"out folder {where} holds {what} ({listed}), which do not mix; choose another folder")


class DamagedCell(RuntimeError):
    """Finished cells or merged files that no longer match their manifest.

    Attributes:
        cells: Names `<agent>/<condition>`, and names of merged files such as `table.csv`.
        files: Cell or merged file -> the files that are missing or changed.
    """

    def __init__(self, root: Path, damaged: Mapping[str, Iterable[str]]) -> None:
        """Name the damaged cells and files below `root`."""
        self.files = {name: tuple(files) for name, files in damaged.items()}
        self.cells = tuple(self.files)
        again = " ".join(f"--recompute {name}" for name in self.cells)
        listed = ", ".join(f"{name} ({', '.join(files)})" if files else name for name, files in self.files.items())
        super().__init__(f"damaged cells or files in {root}: {listed}; to compute them again add {again}")


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
        self.complete = False

    def cell_folder(self, cell: str) -> Path:
        """Folder of a cell `<agent>/<condition>`."""
        return self.root / "cells" / cell

    def _cell_identity(self, agent: str, condition: str) -> dict[str, Any]:
        return {**self.identity, "cell": self.cells[f"{agent}/{condition}"]}

    def check(self, recompute: Iterable[str] = (), merged: Iterable[str] = ()) -> list[str]:
        """Compare the folder with this evaluation and list the cells that need no computing.

        Args:
            recompute: Cells and merged files to make again whatever is there.
            merged: Names of merged files.

        Returns:
            Finished, intact cells. `complete` tells afterwards whether nothing at all is left to do.

        Raises:
            ValueError: If `recompute` names neither a cell of this evaluation nor a merged file.
            ManifestConflict: If the folder belongs to another evaluation, or to another version of the package.
            DamagedCell: If files of a finished cell, or merged files of a finished evaluation, are missing or changed.
        """
        again, known = set(recompute), {*self.cells, *merged}
        for name in sorted(again - known):
            raise ValueError(
                f"--recompute is {name!r}; it must be one of the cells {', '.join(self.cells)}"
                + (f" or of the files {', '.join(merged)}" if merged else "")
            )
        committed = self._committed(again)
        finished, damaged = [], {}
        for path in sorted(self.root.glob("cells/*/*/manifest.json")):
            cell = path.parent.relative_to(self.root / "cells").as_posix()
            if cell not in self.cells:
                raise ManifestConflict(self.root, {f"cells.{cell}": ("present", "absent")})
            if cell in again:
                continue
            wrong = self._wrong_files(path)
            if committed and not wrong and committed["cell_manifests"].get(cell) != file_digest(path):
                wrong = ["manifest.json"]
            if wrong:
                damaged[cell] = wrong
            else:
                finished.append(cell)
        if committed:
            for cell in self.cells:
                if cell not in finished and cell not in damaged and cell not in again:
                    damaged[cell] = ["manifest.json"]
            for name, digest in committed["files"].items():
                path = self.root / name
                if name not in again and not (path.is_file() and file_digest(path) == digest):
                    damaged[name] = []
        elif (self.root / "manifest.json").exists() and "manifest.json" not in again:
            damaged["manifest.json"] = []
        if damaged:
            raise DamagedCell(self.root, damaged)
        self.complete = committed is not None and not again
        return finished

    def _committed(self, again: set[str]) -> dict[str, Any] | None:
        """The folder's manifest if there is a readable one, after comparing it with this evaluation."""
        manifest = _read_manifest(self.root / "manifest.json")
        if manifest is None or "manifest.json" in again:
            return None
        _check_schema(self.root, manifest, MANIFEST_SCHEMA)
        asked = {"identity": self.identity, "cells": self.cells}
        there = {"identity": manifest.get("identity"), "cells": manifest.get("cells")}
        if found := differences(there, asked):
            raise ManifestConflict(self.root, found)
        whole = all(isinstance(manifest.get(key), dict) for key in ("files", "cell_manifests", "record"))
        return manifest if whole else None

    def _wrong_files(self, path: Path) -> list[str]:
        """Files of a finished cell that are missing or changed."""
        manifest = _read_manifest(path)
        if manifest is None:
            return [path.name]
        _check_schema(path.parent, manifest, CELL_SCHEMA)
        folder = path.parent
        if found := differences(manifest.get("identity"), self._cell_identity(folder.parent.name, folder.name)):
            raise ManifestConflict(folder, found)
        files = manifest.get("files")
        if not isinstance(files, dict) or not isinstance(manifest.get("record"), dict):
            return [path.name]
        return [f for f, h in files.items() if not (folder / f).is_file() or file_digest(folder / f) != h]

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Keep other writers out and sweep away what a killed one left; removes its scratch folder at the end.

        Yields:
            Folder for files under way.

        Raises:
            FolderInUse: If another process is writing here.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        scratch = self.root / PARTIAL
        with locked(self.root):
            for path in [*self.root.glob(f".*{PARTIAL}"), *self.root.glob(f"cells/*/*/.*{PARTIAL}")]:
                if path.is_file():
                    path.unlink(missing_ok=True)
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def write_cell(
        self, cell: str, files: Mapping[str, pl.DataFrame | bytes | Path], record: Mapping[str, Any]
    ) -> None:
        """Write one finished cell; its manifest goes last.

        Args:
            cell: `<agent>/<condition>`.
            files: File stem, for example `vehicles`, -> frame, content, or a complete file to be moved here.
            record: Digests and errors that describe the run (JSON values); never compared.
        """
        folder = self.cell_folder(cell)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").unlink(missing_ok=True)
        digests = {}
        for stem, content in files.items():
            path = folder / f"{stem}.parquet"
            if isinstance(content, Path):
                digests[path.name] = move_file(content, path)
            elif isinstance(content, bytes):
                digests[path.name] = write_bytes(path, content)
            else:
                digests[path.name] = write_parquet(path, content)
        for path in folder.glob("*.parquet"):
            if path.name not in digests:
                path.unlink()
        manifest = {
            "schema": CELL_SCHEMA,
            "identity": self._cell_identity(*cell.split("/")),
            "record": dict(record),
            "files": digests,
        }
        write_json(folder / "manifest.json", manifest)

    def read_record(self, cell: str) -> dict[str, Any]:
        """What :meth:`write_cell` was told about a finished cell."""
        return dict((_read_manifest(self.cell_folder(cell) / "manifest.json") or {}).get("record", {}))

    def read_manifest(self) -> dict[str, Any]:
        """The folder's manifest; empty without one."""
        return _read_manifest(self.root / "manifest.json") or {}

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
            "cell_manifests": {cell: file_digest(self.cell_folder(cell) / "manifest.json") for cell in self.cells},
            "record": dict(record),
            "files": dict(files),
        }
        write_json(self.root / "manifest.json", manifest)
        return json.loads(json.dumps(manifest))

    def write_run(self, run: Mapping[str, Any]) -> None:
        """Put a run into `DIR/run.json`, in the place of the entry with the same `started`, or at the end."""
        path = self.root / "run.json"
        runs = (_read_manifest(path) or {}).get("runs")
        kept = [r for r in runs if r.get("started") != run["started"]] if isinstance(runs, list) else []
        write_json(path, {"schema": RUN_SCHEMA, "runs": [*kept, dict(run)]})


def _check_schema(folder: Path, manifest: Mapping[str, Any], schema: str) -> None:
    if manifest.get("schema") != schema:
        raise ManifestConflict(folder, {"schema": (manifest.get("schema"), schema)})
