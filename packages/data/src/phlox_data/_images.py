"""Folders of pictures: one for each class, several labels for a picture, or masks beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from phlox_tensor import ArgumentError

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._folders import by_class, shown
from ._items import Draw, Items

ENDINGS: Final = frozenset(
    (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
_MODES: Final = ("L", "RGB", "RGBA")


class Look(NamedTuple):
    """How pictures are wanted."""

    size: tuple[int, int] | None
    mode: str
    draft: bool = False

    def checked(self, op: str) -> Look:
        """Refuse a size that is none before the first picture, and return the look itself."""
        size: Any = self.size
        sizes = size if isinstance(size, tuple | list) else ()
        if size is not None and not (
            len(sizes) == 2 and all(type(n) is int and n > 0 for n in sizes)
        ):
            hint = f"size=({size}, {size})" if type(size) is int else None
            expected = "(height, width) above 0"
            raise ArgumentError(op, "no such size", got=size, expected=expected, hint=hint)
        return self


@final
class Pictures(Items):
    """Pictures by their files, decoded when they are asked for, with masks beside them if given."""

    def __init__(
        self, files: list[Path], look: Look, labels: NDArray[Any] | None, masks: list[Path] | None
    ) -> None:
        self._files, self._look, self._labels, self._masks = files, look, labels, masks

    def __len__(self) -> int:
        return len(self._files)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        file = self._files[index]
        image = decoded(file, str(file), self._look.size, self._look.mode, draft=self._look.draft)
        item: dict[str, Any] = {"image": image}
        if self._labels is not None:
            item["label"] = self._labels[index]
        if self._masks is not None:
            item["mask"] = classes_in(self._masks[index], self._look.size)
            if item["mask"].shape != image.shape[1:]:
                what, got = f"{self._masks[index]} has another size", item["mask"].shape
                raise DataError("segmentation", what, got=got, expected=image.shape[1:])
        return item


@contextmanager
def _told(op: str, name: str) -> Iterator[None]:
    """Say which file is no picture, whatever Pillow raises."""
    try:
        yield
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, (DataError, FileNotFoundError, PermissionError)):
            raise
        raise DataError(op, f"{name} is no whole picture", got=error) from error


def decoded(
    file: Path | BinaryIO,
    name: str,
    size: tuple[int, int] | None = None,
    mode: str = "RGB",
    *,
    draft: bool = False,
) -> NDArray[np.uint8]:
    """Return a picture as (channels, height, width); errors say its name.

    Its memory is that of (height, width, channels), as it was decoded: a copy less for each.
    """
    with _told("images", name), Image.open(file) as opened:
        if opened.mode.startswith(("I", "F")):
            what = f"{name} has more than 8 bits a pixel"
            raise DataError("images", what, got=opened.mode, expected="8 bits")
        if draft and size is not None:
            opened.draft(None, (size[1], size[0]))
        # Both would copy the picture where there is nothing to change.
        ImageOps.exif_transpose(opened, in_place=True)
        image = opened if opened.mode == mode else opened.convert(mode)
        image.load()
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.array(image)
    return pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels[None]


def classes_in(file: Path, size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """Return a mask as (height, width): gray values, or places in a palette."""
    with _told("segmentation", str(file)), Image.open(file) as opened:
        if opened.mode not in ("1", "L", "P"):
            what, expected = f"{file} is no mask", "gray or a palette: a class for each pixel"
            raise DataError("segmentation", what, got=opened.mode, expected=expected)
        # Pillow makes 255 of 1 where it converts; the file says 1.
        bits = opened.mode == "1"
        image = Image.fromarray(np.array(opened, np.uint8)) if bits else opened.copy()
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.array(image)


def images(
    folder: str | PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    mode: Literal["L", "RGB", "RGBA"] = "RGB",
    labels: Mapping[str, Sequence[str]] | None = None,
    draft: bool = False,
) -> Dataset[Any]:
    """Return the pictures of a folder that has a folder for each class.

    Items are ``{"image": uint8 (channels, height, width), "label": int64}``, turned as their
    cameras say. Classes are the sorted names of the folders, ``dataset.classes``. Files that do
    not end like pictures are left out.

    Args:
        folder: with folders of pictures, which may have folders again.
        size: (height, width) that all are resized to; without one they keep theirs.
        mode: of Pillow: ``"L"`` is gray, ``"RGBA"`` keeps transparency.
        labels: all labels of each file, by its path in the folder, for pictures that have several:
            then ``label`` is float32 (classes,), with 1 for each of them.
        draft: whether JPEG may be decoded at a half, a quarter or an eighth, where ``size`` is
            smaller still: several times faster, and a little less sharp.

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
    if draft and size is None:
        what, hint = "a draft needs a size", 'data.images("folder", size=(64, 64), draft=True)'
        raise ArgumentError("images", what, got="draft=True", hint=hint)
    root = Path(checked_path(folder, "images"))
    look = Look(size, mode, draft).checked("images")
    if labels is not None:
        return _multilabel(root, labels, look)
    names, files, places = by_class(root, "images", is_picture)
    return Dataset(Pictures(files, look, np.array(places, np.int64), None), names)


def _multilabel(root: Path, labels: Mapping[str, Sequence[str]], look: Look) -> Dataset[Any]:
    wrong = [name for name, some in labels.items() if isinstance(some, str)]
    missing = [name for name in labels if not (root / name).is_file()]
    if wrong or missing or not labels:
        got = f"{wrong[0]}: {labels[wrong[0]]!r}" if wrong else ", ".join(missing[:3]) or "none"
        expected = "a list of labels for each file" if wrong else f"files in {root}"
        raise DataError("images", "labels of no pictures", got=got, expected=expected)
    classes = sorted({each for some in labels.values() for each in some})
    table = np.array([[name in some for name in classes] for some in labels.values()], np.float32)
    files = [root / name for name in labels]
    return Dataset(Pictures(files, look, table, None), tuple(classes))


def segmentation(
    images: str | PathLike[str],
    masks: str | PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    mode: Literal["L", "RGB", "RGBA"] = "RGB",
) -> Dataset[Any]:
    """Return the pictures of a folder with their masks, which have the same names in another one.

    Items are ``{"image": uint8 (channels, height, width), "mask": uint8 (height, width)}``. A mask
    is gray or has a palette, and its numbers are classes; names may end otherwise than those of
    pictures. Pictures are turned as their cameras say, and masks have to fit them then.

    Args:
        images: a folder of pictures, which may have folders again.
        masks: a folder of the same shape.
        size: (height, width) that all are resized to, masks without new classes.
        mode: of Pillow, for the pictures.

    Raises:
        DataError: for a picture without a mask, or a mask without a picture.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("images", "masks"):
        ...         Path(folder, name).mkdir()
        ...         Image.new("L", (30, 20), 2).save(Path(folder, name, "one.png"))
        ...     pair = segmentation(f"{folder}/images", f"{folder}/masks")[0]
        ...     pair["image"].shape, pair["mask"].shape, int(pair["mask"].max())
        ((3, 20, 30), (20, 30), 2)
    """
    roots = [Path(checked_path(each, "segmentation")) for each in (images, masks)]
    files, others = ({_stem(root, file): file for file in _pictures(root)} for root in roots)
    alone = sorted({*files} ^ {*others})
    if alone or not files:
        got, expected = ", ".join(alone[:3]) or "none", f"as many in {roots[0]} as in {roots[1]}"
        what = "pictures and masks do not go together"
        raise DataError("segmentation", what, got=got, expected=expected)
    names = sorted(files)
    pairs = [files[name] for name in names], [others[name] for name in names]
    return Dataset(Pictures(pairs[0], Look(size, mode).checked("segmentation"), None, pairs[1]))


def _pictures(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if is_picture(file)]


def _stem(root: Path, file: Path) -> str:
    return file.relative_to(root).with_suffix("").as_posix()


def is_picture(path: Path) -> bool:
    """Whether a path is a file that ends like a picture."""
    return path.suffix.lower() in ENDINGS and shown(path) and path.is_file()
