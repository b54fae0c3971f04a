"""Pictures among tokens, for models that see.

A picture is so many image tokens in a sequence. Here such a token is a negative number, the same for all tokens of a picture
and made from what it shows. Token sequences then stay plain integers: they are cut, counted, cached and compared like any
others, and only where a model reads them does an `Eye` turn the numbers into image tokens and pixels.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from seed_opd.errors import UserError

REMEMBERED = 65536
"""Pictures that are known by their number; the oldest are forgotten beyond it. An update needs a few thousand."""

_known: OrderedDict[int, str] = OrderedDict()
"""Pictures by number. The policy and its reference read the same sequences."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A picture as a vision tower reads it: patches (patches, values), counted along frames, rows and columns in `grid`."""

    patches: Tensor
    grid: tuple[int, int, int]


class Eye:
    """Turns pictures, PNG files in base64, into tokens, and tokens into what a vision-language model is given.

    `image_id`, `start_id` and `end_id` are the model's tokens for a piece of a picture, its start and its end.
    """

    def __init__(self, processor: Any, image_id: int, start_id: int, end_id: int) -> None:
        self.processor = processor  # a Hugging Face image processor, as for Qwen2-VL
        self.image_id = image_id
        self.start_id = start_id
        self.end_id = end_id
        self._seen = lru_cache(maxsize=256)(self._look)

    @staticmethod
    def fits(model: PreTrainedModel) -> bool:
        """Whether a model marks pictures and counts positions as Qwen's do."""
        known = all(
            hasattr(model.config, name) for name in ("image_token_id", "vision_start_token_id", "vision_end_token_id")
        )
        return known and hasattr(model.base_model, "get_rope_index")

    @classmethod
    def of(cls, model: PreTrainedModel, processor: Any) -> Eye:
        config = model.config
        return cls(processor, config.image_token_id, config.vision_start_token_id, config.vision_end_token_id)

    def ids(self, image: str) -> list[int]:
        """The token ids that stand for a picture."""
        mark = _remember(image)
        frames, rows, columns = self._seen(image).grid
        return [self.start_id, *[mark] * (frames * rows * columns // self.processor.merge_size**2), self.end_id]

    def grids(self, ids: Tensor) -> list[tuple[int, int, int]]:
        """The grids of the pictures in ids (rows, tokens), in order."""
        return [self._of(mark).grid for row in ids.tolist() for mark, _ in groupby(row) if mark < 0]

    def inputs(self, ids: Tensor) -> dict[str, Tensor]:
        """What the model is given for ids (rows, tokens): these for text; with pictures, patches and their grids too.

        An image token that the model itself drew has no picture; it is read as the token for a picture's start.
        """
        seen = [self._of(mark) for row in ids.tolist() for mark, _ in groupby(row) if mark < 0]
        text = ids.masked_fill(ids == self.image_id, self.start_id)
        if not seen:
            return {"input_ids": text}
        return {
            "input_ids": text.masked_fill(ids < 0, self.image_id),
            "pixel_values": torch.cat([one.patches for one in seen]).to(ids.device),  # (patches, values)
            "image_grid_thw": torch.tensor([one.grid for one in seen], device=ids.device),  # (pictures, 3)
        }

    def positions(self, model: PreTrainedModel, ids: Tensor) -> Tensor | None:
        """Where each of ids (rows, tokens) stands in time, height and width, (3, rows, tokens), as the model counts.

        None without pictures, where that is its column.
        """
        grids = self.grids(ids)
        if not grids:
            return None
        pictured = (ids < 0).int()
        found = cast(Any, model.base_model).get_rope_index(
            ids.clamp(min=0), mm_token_type_ids=pictured, image_grid_thw=torch.tensor(grids, device=ids.device)
        )
        positions: Tensor = found[0]
        return positions

    def _of(self, mark: int) -> Seen:
        if mark not in _known:
            raise UserError(f"pictures: number {mark} has been forgotten; score what was played before {REMEMBERED} others.")
        return self._seen(_known[mark])

    def _look(self, image: str) -> Seen:
        found: Any = self.processor(images=[decode(image)], return_tensors="pt")
        frames, rows, columns = found["image_grid_thw"][0].tolist()
        return Seen(found["pixel_values"], (frames, rows, columns))


def _remember(image: str) -> int:
    mark = mark_of(image)
    _known[mark] = image
    _known.move_to_end(mark)
    if len(_known) > REMEMBERED:
        _known.popitem(last=False)
    return mark


def mark_of(image: str) -> int:
    """The negative number that stands for a picture in token sequences."""
    return -1 - int.from_bytes(hashlib.blake2b(image.encode(), digest_size=7).digest())


def encode(pixels: Any) -> str:
    """Pixels (height, width, 3) of 8 bits as a PNG file in base64."""
    from seed_opd.environments.canvas import png  # only environments that are seen need Pillow

    return base64.b64encode(png(pixels)).decode()


def blank() -> str:
    """A small picture of nothing."""
    return encode(np.zeros((64, 64, 3), np.uint8))


def decode(image: str) -> Any:
    """The picture in a PNG file in base64."""
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(image)), formats=["PNG"]).convert("RGB")
