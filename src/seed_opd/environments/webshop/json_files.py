"""Reading the published JSON files: small ones whole, an array of a million products one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seed_opd.errors import UserError

BLOCK = 1 << 22
"""Characters read at a time; the largest product is far smaller."""

_SPACE = " \t\r\n"


def read_object(path: Path) -> dict[str, Any]:
    """A file that holds one JSON object; raises UserError for one that is missing, cut short or something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"webshop: {path} cannot be read ({error.strerror}); put the file there.") from error
    except ValueError as error:
        raise UserError(f"webshop: {path} is not whole JSON ({error}); fetch the file again.") from error
    if not isinstance(data, dict):
        raise UserError(f"webshop: {path} holds a {type(data).__name__} and no object; give the published file.")
    return data


def read_array(path: Path) -> Iterator[Any]:
    """The elements of a file that holds one JSON array, without ever holding the file; raises UserError as above."""
    decoder = json.JSONDecoder()
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(BLOCK).lstrip()
            if not text.startswith("["):
                raise UserError(f"webshop: {path} holds no JSON array of products; give the published file.")
            position, count = 1, 0
            while True:
                position = _skip(text, position, "," + _SPACE if count else _SPACE)
                if text[position : position + 1] == "]":
                    return
                element, end, trouble = _decode(decoder, text, position)
                if end == len(text):  # it may go on in the next block
                    block = stream.read(BLOCK)
                    if not block:
                        raise UserError(
                            f"webshop: {path} is not whole JSON: after product {count} it breaks off ({trouble}); "
                            "fetch the file again."
                        )
                    text, position = text[position:] + block, 0
                    continue
                position = end
                count += 1
                yield element
    except OSError as error:
        raise UserError(f"webshop: {path} cannot be read ({error.strerror}); put the file there.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"webshop: {path} is not UTF-8 text ({error.reason}); fetch the file again.") from error


def _decode(decoder: json.JSONDecoder, text: str, position: int) -> tuple[Any, int, str]:
    """An element, where it ends, and what is wrong with it; one that cannot be read ends with the text."""
    try:
        return *decoder.raw_decode(text, position), "no end of the array"
    except ValueError as error:
        return None, len(text), str(error)


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position
