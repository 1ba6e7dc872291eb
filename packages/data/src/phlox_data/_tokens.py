"""Files of tokens: numbers and nothing else, of which items are windows."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._items import Draw, Indices, Items


@final
class Tokens(Items):
    """Windows of a file, which is mapped into memory again in each process."""

    gathers = True

    def __init__(self, path: str, dtype: str, length: int, step: int) -> None:
        self._path, self._dtype, self._length, self._step = path, dtype, length, step
        self._file = _mapped(path, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_file": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._file = _mapped(self._path, self._dtype)

    def __len__(self) -> int:
        return max(0, (len(self._file) - self._length) // self._step + 1)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        return self.gather(np.array([index]))[0]

    def gather(self, indices: Indices) -> Any:
        places = indices[:, None] * self._step + np.arange(self._length)
        return self._file[places].astype(np.int64)


def _mapped(path: str, dtype: str) -> NDArray[Any]:
    with open(path, "rb") as file:
        numpy = file.read(6) == b"\x93NUMPY"
    try:
        found = np.load(path, mmap_mode="r") if numpy else np.memmap(path, dtype, "r")
    except ValueError as error:
        what, expected = f"{path} is no file of tokens", f"whole numbers of {dtype}, one or more"
        raise DataError("tokens", what, got=error, expected=expected) from error
    if found.ndim != 1 or found.dtype.kind not in "iu":
        got, expected = f"{found.dtype} {found.shape}", "a row of whole numbers"
        raise DataError("tokens", f"{path} holds no tokens", got=got, expected=expected)
    return found


def tokens(
    path: str | PathLike[str],
    length: int,
    *,
    step: int | None = None,
    dtype: Literal["uint16", "uint32", "int32", "int64", "uint8"] = "uint16",
) -> Dataset[Any]:
    """Return windows of a file of tokens, as int64 (length,); what is left at the end is left out.

    The file is mapped into memory, and a batch is one gather. For a model that says the next token
    take one more than it sees: ``x, y = batch[:, :-1], batch[:, 1:]``, and ``step=length - 1``.

    Args:
        path: numbers one after the other, as ``array.tofile`` writes them, or a ``.npy`` file.
        length: tokens in a window.
        step: from a window to the next one; as many as a window has by default.
        dtype: of the numbers in the file; a ``.npy`` file says it itself.

    Raises:
        DataError: for a file that holds something else.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.arange(10, dtype=np.uint16).tofile(f"{folder}/train.bin")
        ...     tokens(f"{folder}/train.bin", 4, step=3)[1].tolist()
        [3, 4, 5, 6]
    """
    for name, value in (("length", length), ("step", length if step is None else step)):
        if type(value) is not int or value < 1:
            what = f"{name} is no such number"
            raise ArgumentError("tokens", what, got=value, expected="1 or more")
    found = Tokens(checked_path(path, "tokens"), dtype, length, step or length)
    if not len(found):
        what, got = f"{path} is shorter than a window", f"{len(found._file)} tokens"
        raise DataError("tokens", what, got=got, expected=f"{length} or more")
    return Dataset(found)
