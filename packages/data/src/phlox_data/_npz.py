"""Arrays of a file of NumPy as a dataset."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from typing import Any

import numpy as np

from ._arrays import arrays
from ._dataset import Dataset
from ._errors import DataError, checked_path


def npz(path: str | PathLike[str]) -> Dataset[Any]:
    """Return the rows of all arrays of an ``.npz`` file, by name. Nothing of it is run.

    Raises:
        DataError: for a file that is no such archive, and for arrays of Python objects.
        ShapeError: for arrays of different lengths.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(pathlib.Path(folder, "a.npz"), x=np.eye(2), y=[3, 4])
        ...     int(npz(pathlib.Path(folder, "a.npz"))[1]["y"])
        4
    """
    try:
        # Opened here, as np.load leaves the file of a broken archive open.
        with open(checked_path(path, "npz"), "rb") as opened:
            found = np.load(opened, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise DataError("npz", f"{path} holds one array", hint="data.arrays(np.load(path))")
            if not found.files:
                raise DataError("npz", f"{path} holds no arrays")
            columns = {name: found[name] for name in found.files}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        what = f"{path} is no archive of plain arrays"
        raise DataError("npz", what, got=str(error).partition("\n")[0]) from error
    return arrays(columns)
