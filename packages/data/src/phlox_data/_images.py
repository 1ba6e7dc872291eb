"""A folder of pictures, in a folder for each class."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from phlox_tensor import ArgumentError

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._items import Draw, Items

ENDINGS: Final = frozenset(
    (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
_MODES: Final = ("L", "RGB", "RGBA")


@final
class Pictures(Items):
    """Pictures by their files, decoded when they are asked for."""

    def __init__(
        self, files: list[Path], labels: list[int], size: tuple[int, int] | None, mode: str
    ) -> None:
        self._files, self._labels = files, np.array(labels, np.int64)
        self._size, self._mode = size, mode

    def __len__(self) -> int:
        return len(self._files)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        file = self._files[index]
        image = decoded(file, str(file), self._size, self._mode)
        return {"image": image, "label": self._labels[index]}


def decoded(
    file: Path | BinaryIO, name: str, size: tuple[int, int] | None = None, mode: str = "RGB"
) -> NDArray[np.uint8]:
    """Return a picture as (channels, height, width); errors say its name."""
    try:
        with Image.open(file) as opened:
            if opened.mode.startswith(("I", "F")):
                what = f"{name} has more than 8 bits a pixel"
                raise DataError("images", what, got=opened.mode, expected="8 bits")
            image = ImageOps.exif_transpose(opened).convert(mode)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, (DataError, FileNotFoundError, PermissionError)):
            raise
        raise DataError("images", f"{name} is no whole picture", got=error) from error
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(image)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels[None])


def images(
    folder: str | PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    mode: Literal["L", "RGB", "RGBA"] = "RGB",
) -> Dataset[Any]:
    """Return the pictures of a folder that has a folder for each class.

    Items are ``{"image": uint8 (channels, height, width), "label": int64}``, turned as their
    cameras say. Classes are the sorted names of the folders, ``dataset.classes``. Files that do
    not end like pictures are left out.

    Args:
        folder: with folders of pictures, which may have folders again.
        size: (height, width) that all are resized to; without one they keep theirs.
        mode: of Pillow: ``"L"`` is gray, ``"RGBA"`` keeps transparency.

    Raises:
        DataError: for a folder without classes, for a class without pictures; from an item, for
            a file that is no whole picture.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("cat", "dog"):
        ...         Path(folder, name).mkdir()
        ...         Image.new("RGB", (30, 20)).save(Path(folder, name, "one.png"))
        ...     pets = images(folder)
        ...     pets.classes, pets[1]["image"].shape, int(pets[1]["label"])
        (('cat', 'dog'), (3, 20, 30), 1)
    """
    if mode not in _MODES:
        raise ArgumentError("images", "no such mode", got=repr(mode), expected=", ".join(_MODES))
    root = Path(checked_path(folder, "images"))
    classes = sorted(each.name for each in root.iterdir() if _shown(each) and each.is_dir())
    if not classes:
        got, expected = f"{root}", "a folder for each class"
        raise DataError("images", "the folder has no classes", got=got, expected=expected)
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        found = sorted(file for file in (root / name).rglob("*") if _is_picture(file))
        if not found:
            what = f"the class {name!r} has no pictures"
            raise DataError("images", what, got=f"{root / name}", expected=".jpg, .png, …")
        files += found
        labels += [label] * len(found)
    return Dataset(Pictures(files, labels, size, mode), tuple(classes))


def _shown(path: Path) -> bool:
    return not path.name.startswith(".")


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and _shown(path) and path.is_file()
