"""The small files that stand beside weights, read as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ._errors import TextError

# A tokenizer of 256,000 pieces is 35 MB of JSON; what is larger is none.
MOST_BYTES: Final = 256 << 20


def read_bytes(file: Path, op: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        TextError: for a file that is too large or cannot be read.
    """
    try:
        size = file.stat().st_size
        if size > MOST_BYTES:
            expected = f"at most {MOST_BYTES:,}"
            raise TextError(op, f"{file} is too large", got=f"{size:,} bytes", expected=expected)
        return file.read_bytes()
    except OSError as error:
        raise TextError(op, f"{file} cannot be read", got=error.strerror) from None


def read_json(file: Path, op: str) -> dict[str, Any]:
    """Return the object of a JSON file, empty where there is no file.

    Raises:
        TextError: for another file.
    """
    if not file.exists():
        return {}
    try:
        found = json.loads(read_bytes(file, op))
    except (ValueError, RecursionError) as error:
        raise TextError(op, f"{file} is no JSON", got=error) from None
    if not isinstance(found, dict):
        got = type(found).__name__
        raise TextError(op, f"{file} holds no settings", got=got, expected="an object")
    return found


def ids_of(found: Any) -> Iterator[int]:
    """Tokens of a setting that is a token, several, or none."""
    for each in found if isinstance(found, list) else [found]:
        if type(each) is int:
            yield each
