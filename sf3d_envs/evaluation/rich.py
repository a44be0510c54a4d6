"""Trajectories of chosen worlds as Parquet, written while the simulation runs.

A file is a sequence of row groups, one per second of control steps (`WINDOW_STEPS`), rows ordered by step, world,
vehicle; a world has no rows after it stopped. So its bytes depend on the rows alone, not on how the worlds were
batched: a cell whose worlds were simulated in several slices is written in parts, which are merged second by second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .columns import RICH_SCHEMA
from .measures import TRAJECTORY

WINDOW_STEPS = 60
"""Control steps of a row group: 46,080 rows with 64 worlds of twelve vehicles."""

_IDS = ("step", "scenario_seed", "vehicle")
_FLOATS = [measure.name for measure in TRAJECTORY]
_COMPRESSION = "lz4"
"""Chosen on 47 MB of IDM trajectories, written in 0.10 s to 20 MB; zstd at level -1 takes 0.14 s to 18 MB, none at all
0.09 s to 48 MB. Byte-stream split saves 18 % of the bytes for a fifth more time."""


def _schema() -> Any:
    import pyarrow as pa

    types = {"step": pa.int32(), "scenario_seed": pa.uint64(), "vehicle": pa.uint8()}
    assert tuple(RICH_SCHEMA) == (*_IDS, *_FLOATS)
    # Columns that cannot be null are written in two thirds of the time.
    return pa.schema([pa.field(name, types.get(name, pa.float32()), nullable=False) for name in RICH_SCHEMA])


class RichWriter:
    """Writes the trajectories of N worlds to one file, a window of steps at a time.

    Args:
        path: File to write; its folder exists.
    """

    def __init__(self, path: str | Path) -> None:
        import pyarrow.parquet as pq

        self.path = Path(path)
        self._arrow_schema = _schema()
        options: dict[str, Any] = {
            "compression": _COMPRESSION,
            "use_dictionary": False,
            "use_byte_stream_split": _FLOATS,
            "write_statistics": list(_IDS),
        }
        self._file = pq.ParquetWriter(os.fspath(path), self._arrow_schema, **options)

    def write(self, step: np.ndarray, seed: np.ndarray, data: np.ndarray) -> None:
        """Append one window of at most `WINDOW_STEPS` control steps.

        Args:
            step: Step count of each world, -1 where it was not stepped, int32 [T, N].
            seed: Scenario seed of each world, uint64 [T, N].
            data: Rows of `measures.TRAJECTORY`, float32 [T, N, V, 22].
        """
        stepped = step >= 0
        vehicles = data.shape[2]
        rows = data if stepped.all() else data[stepped]
        index = np.tile(np.arange(vehicles, dtype=np.uint8), np.count_nonzero(stepped))
        ids = [np.repeat(step[stepped], vehicles), np.repeat(seed[stepped], vehicles), index]
        self.write_rows([*ids, *np.ascontiguousarray(rows.reshape(-1, data.shape[3]).T)])

    def write_rows(self, columns: Sequence[np.ndarray]) -> None:
        """Append the rows of one window, given as one array per column; no rows leave no row group."""
        import pyarrow as pa

        if len(columns[0]):
            arrays = [pa.array(column) for column in columns]
            table = pa.Table.from_arrays(arrays, schema=self._arrow_schema)
            self._file.write_table(table, row_group_size=len(columns[0]))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class _Part:
    """Row groups of one part file, in turn."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self._next = 0
        self._held: list[np.ndarray] | None = None

    def window(self) -> int | None:
        """Window of the next row group; None at the end."""
        if self._held is None and self._next < self._file.num_row_groups:
            table = self._file.read_row_group(self._next)
            self._held = [column.to_numpy() for column in table.columns]
            self._next += 1
        return None if self._held is None else (int(self._held[0][0]) - 1) // WINDOW_STEPS

    def take(self) -> list[np.ndarray]:
        """The next row group."""
        assert self._held is not None
        held, self._held = self._held, None
        return held

    def close(self) -> None:
        self._file.close()


def merge_parts(paths: Sequence[Path], target: Path) -> None:
    """Join files of disjoint worlds, in world order, into the file that one writer of all worlds would have written.

    Args:
        paths: Parts; they are removed.
        target: File to write; the only part is moved there.
    """
    if len(paths) == 1:
        os.replace(paths[0], target)
        return
    parts = [_Part(path) for path in paths]
    writer = RichWriter(target)
    try:
        while windows := [w for w in (part.window() for part in parts) if w is not None]:
            now = min(windows)
            groups = [part.take() for part in parts if part.window() == now]
            columns = [np.concatenate(group) for group in zip(*groups, strict=True)]
            order = np.argsort(columns[0], kind="stable")
            writer.write_rows([column[order] for column in columns])
    finally:
        writer.close()
        for part in parts:
            part.close()
    for path in paths:
        path.unlink()
