"""Small drawings with smooth edges: everything is drawn several times as large and scaled down. Needs Pillow."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from seed_opd.errors import UserError

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise UserError("pictures need the package Pillow; run pip install 'seed-opd[vision]'.") from error

Colour = str | tuple[int, int, int]
Picture = NDArray[np.uint8]
"""(height, width, 3), red, green and blue."""

LARGER = 4
"""How many times as large a drawing is made."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """A drawing in the making; all positions and lengths are shares of its width, from the top left."""

    image: Image.Image
    unit: int  # its width in pixels of the large drawing

    @property
    def _draw(self) -> ImageDraw.ImageDraw:
        return ImageDraw.Draw(self.image)

    def box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        fill: Colour,
        edge: Colour | None = None,
        line: float = 0.0,
    ) -> None:
        self._draw.rectangle(self._pixels((left, top, right, bottom)), fill, edge, self._line(line))

    def rounded(
        self, left: float, top: float, right: float, bottom: float, radius: float, fill: Colour, edge: Colour, line: float
    ) -> None:
        corners = self._pixels((left, top, right, bottom))
        self._draw.rounded_rectangle(corners, radius * self.unit, fill, edge, self._line(line))

    def oval(self, x: float, y: float, across: float, down: float, fill: Colour) -> None:
        """An ellipse by its centre and its two radii."""
        self._draw.ellipse(self._pixels((x - across, y - down, x + across, y + down)), fill)

    def polygon(self, points: Sequence[tuple[float, float]], fill: Colour) -> None:
        self._draw.polygon([(x * self.unit, y * self.unit) for x, y in points], fill)

    def line(self, points: Sequence[tuple[float, float]], fill: Colour, width: float) -> None:
        self._draw.line([(x * self.unit, y * self.unit) for x, y in points], fill, self._line(width), joint="curve")

    def text(self, x: float, y: float, text: str, size: float, fill: Colour, bold: float = 0.0) -> None:
        """Text with its middle at a point; `bold` is how much wider each stroke is on either side."""
        self._draw.text(
            (x * self.unit, y * self.unit),
            text,
            fill,
            font_of(size * self.unit),
            anchor="mm",
            stroke_width=round(bold * self.unit),
        )

    def _pixels(self, shares: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        left, top, right, bottom = (share * self.unit for share in shares)
        return left, top, right - 1, bottom - 1  # the last pixel of a shape belongs to it

    def _line(self, share: float) -> int:
        return max(1, round(share * self.unit)) if share else 0


def render(width: int, height: int, ground: Colour, *layers: Callable[[Canvas], None]) -> Picture:
    """The picture, (height, width, 3), of layers that are drawn one over the other."""
    image = Image.new("RGB", (width * LARGER, height * LARGER), ground)
    canvas = Canvas(image, width * LARGER)
    for draw in layers:
        draw(canvas)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


@cache
def font_of(size: float) -> ImageFont.FreeTypeFont:
    """The font that comes with Pillow, at a size in pixels."""
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise UserError("pictures need a Pillow with FreeType; install the wheel of Pillow from PyPI.")
    return font


def png(picture: Picture) -> bytes:
    """The picture as a PNG file."""
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, format="PNG")
    return stream.getvalue()
