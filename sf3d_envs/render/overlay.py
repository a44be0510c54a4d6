"""Text on pictures: lines of text, vehicle numbers, and the legend of colours."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from . import palette

if TYPE_CHECKING:
    from ..terrain.variants import TerrainVariant

_PAD = 6
_BACK = (16, 20, 26, 176)
_TEXT = (240, 243, 246, 255)


@dataclass(frozen=True)
class LegendEntry:
    """One line of the legend: a colour and what it means."""

    color: palette.Color
    text: str


def legend_entries(
    variant: TerrainVariant, num_vehicles: int, merging: Sequence[int], ego: int | None, closed_lane: bool
) -> list[LegendEntry]:
    """What a picture of this world shows: each friction coefficient, the closed lane and the kinds of vehicles."""
    entries = []
    frictions = {float(patch.friction) for patch in variant.patches} | {float(variant.base_friction)}
    for friction in sorted(frictions, reverse=True):
        entries.append(LegendEntry(palette.friction_color(friction), printable(f"\u03bc {friction:.2f}")))
    if closed_lane:
        entries.append(LegendEntry(palette.CLOSED_LANE, "closed"))
    if ego is not None:
        entries.append(LegendEntry(palette.EGO, "ego"))
    kinds = {vehicle in set(merging) for vehicle in range(num_vehicles) if vehicle != ego}
    if True in kinds:
        entries.append(LegendEntry(palette.MERGING[0], "merging (warm)"))
    if False in kinds:
        entries.append(LegendEntry(palette.FOLLOWING[0], "following (cool)" if True in kinds else "vehicles"))
    return entries


def draw_legend(image: np.ndarray, entries: Iterable[LegendEntry]) -> None:
    """Draw the legend into the lower left corner of ``image`` (uint8 [H, W, 3]), in place."""
    panel = _legend_panel(tuple(entries), _text_size(image.shape[0]), image.shape[1])
    height, width = panel.shape[:2]
    if height > image.shape[0]:
        return
    _blend(image[image.shape[0] - height :, :width], panel)


def draw_text(image: np.ndarray, lines: Sequence[str]) -> None:
    """Draw lines of text into the upper left corner of ``image`` (uint8 [H, W, 3]), in place."""
    panel = _text_panel(tuple(printable(line) for line in lines), _text_size(image.shape[0]))
    height, width = min(panel.shape[0], image.shape[0]), min(panel.shape[1], image.shape[1])
    _blend(image[:height, :width], panel[:height, :width])


def draw_labels(image: np.ndarray, pixels: np.ndarray, texts: Sequence[str], colors: Sequence[palette.Color]) -> None:
    """Draw short labels centred at pixel positions, in place; those outside the picture are left out.

    Args:
        image: uint8 [H, W, 3].
        pixels: Columns and rows of the label centres [px], shape [N, 2]; not finite means no label.
        texts: N labels.
        colors: Colour of each label's frame.
    """
    size = _text_size(image.shape[0]) - 2
    for (column, row), text, color in zip(pixels, texts, colors, strict=True):
        if not (np.isfinite(column) and np.isfinite(row)):
            continue
        panel = _label_panel(text, color, size)
        top, left = round(float(row) - panel.shape[0] / 2), round(float(column) - panel.shape[1] / 2)
        bottom, right = top + panel.shape[0], left + panel.shape[1]
        if top >= 0 and left >= 0 and bottom <= image.shape[0] and right <= image.shape[1]:
            _blend(image[top:bottom, left:right], panel)


def label_height(height: int) -> int:
    """Height of a vehicle label [px] in a picture of ``height`` [px]."""
    return _text_size(height) + 3


def _text_size(height: int) -> int:
    return max(9, round(height / 28))


@functools.lru_cache(maxsize=8)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Font of that size [px]."""
    path = _dejavu()
    return ImageFont.load_default(size=size) if path is None else ImageFont.truetype(path, size)


@functools.lru_cache(maxsize=1)
def _dejavu() -> str | None:
    """Path of the font that ships with matplotlib, or None without it; Pillow's own font has no Greek letters."""
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    return str(path) if path.exists() else None


def printable(text: str) -> str:
    """The text in characters that the font has."""
    if _dejavu() is not None:
        return text
    return text.replace("\u03bc", "mu").replace("\u00b2", "^2").encode("ascii", "replace").decode()


@functools.lru_cache(maxsize=64)
def _text_panel(lines: tuple[str, ...], size: int) -> np.ndarray:
    face, step = font(size), round(1.35 * size)
    width = max((int(face.getlength(line)) for line in lines), default=0) + 2 * _PAD
    panel = Image.new("RGBA", (width, step * len(lines) + _PAD), _BACK)
    draw = ImageDraw.Draw(panel)
    for row, line in enumerate(lines):
        draw.text((_PAD, _PAD // 2 + row * step), line, font=face, fill=_TEXT)
    return np.asarray(panel)


@functools.lru_cache(maxsize=16)
def _legend_panel(entries: tuple[LegendEntry, ...], size: int, max_width: int) -> np.ndarray:
    face, step = font(size), round(1.5 * size)
    places, x, y, width = [], _PAD, _PAD // 2, 0
    for entry in entries:
        advance = size + 5 + int(face.getlength(entry.text)) + 12
        if x + advance > max_width and x > _PAD:
            x, y = _PAD, y + step
        places.append((x, y))
        x += advance
        width = max(width, x)
    panel = Image.new("RGBA", (min(width, max_width), y + step), _BACK)
    draw = ImageDraw.Draw(panel)
    for entry, (left, top) in zip(entries, places, strict=True):
        draw.rectangle((left, top + 2, left + size, top + 2 + size), fill=entry.color, outline=(240, 243, 246))
        draw.text((left + size + 5, top), entry.text, font=face, fill=_TEXT)
    return np.asarray(panel)


@functools.lru_cache(maxsize=64)
def _label_panel(text: str, color: palette.Color, size: int) -> np.ndarray:
    face = font(size)
    width, height = int(face.getlength(text)) + 7, size + 5
    panel = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    draw = ImageDraw.Draw(panel)
    draw.rounded_rectangle((0, 0, width - 1, height - 1), radius=3, fill=(16, 20, 26, 205), outline=color)
    draw.text((width / 2, height / 2), text, font=face, fill=_TEXT, anchor="mm")
    return np.asarray(panel)


def _blend(target: np.ndarray, panel: np.ndarray) -> None:
    alpha = panel[..., 3:4].astype(np.uint16)
    target[...] = ((panel[..., :3] * alpha + target * (255 - alpha)) // 255).astype(np.uint8)
