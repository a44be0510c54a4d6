"""A terrain variant: one heightfield, its friction patches, and a digest that identifies the physical road."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..numbers import finite_number
from .friction import Disc, Rectangle
from .heightfield import Heightfield

Patch = Disc | Rectangle


@dataclass(frozen=True)
class TerrainVariant:
    """One road surface, shared by every world that is mapped to it.

    Attributes:
        name: Label for messages; not part of the digest.
        heightfield: Absolute heights.
        patches: Friction patches; where they overlap the later one wins.
        base_friction: Surface friction outside all patches [-], at least 0.

    Raises:
        ValueError: The base friction is negative or not finite.
        TypeError: The heightfield or a patch has another type.
    """

    name: str
    heightfield: Heightfield
    patches: Sequence[Patch] = ()
    base_friction: float = 1.0

    def __post_init__(self) -> None:
        """Check parts and freeze the patch list."""
        if not isinstance(self.heightfield, Heightfield):
            raise TypeError(f"terrain '{self.name}': heightfield must be a Heightfield, got {type(self.heightfield)}")
        if not isinstance(self.patches, Sequence) or isinstance(self.patches, str):
            raise TypeError(
                f"terrain '{self.name}': patches must be a sequence of Disc and Rectangle, got {self.patches!r}"
            )
        for index, patch in enumerate(self.patches):
            if not isinstance(patch, Patch):
                raise TypeError(f"terrain '{self.name}': patches[{index}] must be Disc or Rectangle, got {type(patch)}")
        if finite_number(f"terrain '{self.name}': base_friction", self.base_friction) < 0.0:
            raise ValueError(f"terrain '{self.name}': base_friction must be at least 0, got {self.base_friction}")
        object.__setattr__(self, "patches", tuple(self.patches))

    def friction_at(self, x: npt.ArrayLike, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Surface friction [-] at points x, y [m]; float64 of the broadcast shape."""
        x, y = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        friction = np.full(x.shape, self.base_friction, dtype=np.float64)
        for patch in self.patches:
            friction = np.where(patch.contains(x, y), patch.friction, friction)
        return friction

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over grid, heights, patches, base friction (little-endian); equal roads have equal digests."""
        grid = self.heightfield.grid
        sha = hashlib.sha256(b"sf3d-terrain-1")
        sha.update(_pack(grid.x0, grid.y0, grid.dx, grid.dy) + struct.pack("<2q", grid.nx, grid.ny))
        sha.update((self.heightfield.heights + np.float32(0.0)).astype("<f4").tobytes(order="C"))
        sha.update(struct.pack("<q", len(self.patches)))
        for p in self.patches:
            if isinstance(p, Disc):
                sha.update(b"D" + _pack(p.x, p.y, p.radius, p.friction))
            else:
                sha.update(b"R" + _pack(p.x, p.y, p.length, p.width, p.yaw, p.friction))
        sha.update(_pack(self.base_friction))
        return sha.hexdigest()


def _pack(*values: float) -> bytes:
    """Little-endian float64 bytes; adding 0.0 makes -0.0 and 0.0 the same bytes."""
    return struct.pack(f"<{len(values)}d", *(float(v) + 0.0 for v in values))
