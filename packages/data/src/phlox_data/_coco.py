"""Annotations of COCO: boxes, classes and masks of the objects in pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._images import decoded
from ._items import Draw, Items


@final
class Objects(Items):
    """Pictures with the objects in them, which were read and checked before."""

    def __init__(
        self, folder: Path, pictures: list[Any], found: list[Any], *, masks: bool, mode: str
    ) -> None:
        self._folder, self._pictures, self._found = folder, pictures, found
        self._masks, self._mode = masks, mode

    def __len__(self) -> int:
        return len(self._pictures)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        told, (boxes, labels, areas, crowds, shapes) = self._pictures[index], self._found[index]
        file = self._folder / told["file_name"]
        image = decoded(file, str(file), mode=self._mode)
        high, wide = image.shape[1:]
        if (high, wide) != (told.get("height", high), told.get("width", wide)):
            got, expected = f"{high}×{wide}", f"{told['height']}×{told['width']}"
            raise DataError("coco", f"{file} has another size", got=got, expected=expected)
        item = {"image": image, "boxes": boxes, "labels": labels, "areas": areas, "crowds": crowds}
        if self._masks:
            drawn = [_mask(shape, high, wide, str(file)) for shape in shapes]
            item["masks"] = np.stack(drawn) if drawn else np.zeros((0, high, wide), np.uint8)
        return item | {"id": np.int64(told["id"])}


def _mask(shape: Any, high: int, wide: int, where: str) -> NDArray[np.uint8]:
    """A mask of polygons, or of lengths of runs down the columns."""
    if isinstance(shape, Mapping):
        counts = shape["counts"]
        runs = np.array(_unpacked(counts) if isinstance(counts, str) else counts, np.int64)
        if [*shape["size"]] != [high, wide] or runs.sum() != high * wide or (runs < 0).any():
            got, expected = f"{runs.sum()} pixels of {shape['size']}", f"{high}×{wide}"
            raise DataError("coco", f"a mask of {where} does not fit", got=got, expected=expected)
        flat = np.repeat(np.arange(len(runs), dtype=np.uint8) % 2, runs)
        return flat.reshape(wide, high).T
    image = Image.new("L", (wide, high))
    for points in shape:
        ImageDraw.Draw(image).polygon([*zip(points[::2], points[1::2], strict=True)], 1, 1)
    return np.array(image)


def _unpacked(text: str) -> list[int]:
    """Lengths of runs out of COCO's text: five bits a sign, from the third on as differences."""
    runs: list[int] = []
    value = shift = 0
    for sign in text.encode("ascii"):
        bits = sign - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (bits & 16) << (shift - 4) if bits & 16 else 0
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    return runs


def _objects(some: list[Any], places: Mapping[int, int]) -> tuple[Any, ...]:
    boxes = np.array([each["bbox"] for each in some], np.float32).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    labels = np.array([places[each["category_id"]] for each in some], np.int64)
    areas = np.array([each.get("area", 0.0) for each in some], np.float32)
    crowds = np.array([each.get("iscrowd", 0) for each in some], np.bool_)
    return boxes, labels, areas, crowds, [each.get("segmentation", []) for each in some]


def coco(
    annotations: str | PathLike[str],
    images: str | PathLike[str],
    *,
    masks: bool = False,
    mode: str = "RGB",
) -> Dataset[Any]:
    """Return the pictures of a dataset in COCO's format, with the objects in them.

    Items are ``{"image": uint8 (channels, height, width), "boxes": float32 (n, 4), "labels": int64
    (n,), "areas": float32 (n,), "crowds": bool (n,), "id": int64}``. Boxes are left, top, right and
    bottom; labels are places in ``dataset.classes``, in the order of COCO's ids, which have gaps.
    Numbers of objects differ, so that a loader takes ``collate=list``.

    Args:
        annotations: the JSON file.
        images: the folder of its pictures.
        masks: whether items have ``masks`` too, uint8 (n, height, width). Polygons are drawn by
            Pillow: pycocotools may say otherwise of pixels at their edges.
        mode: of Pillow.

    Raises:
        DataError: for a file that lacks what the format has; from an item, for a picture or a mask
            of another size than it says.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Image.new("RGB", (30, 20)).save(f"{folder}/a.png")
        ...     cat = {"image_id": 7, "category_id": 17, "bbox": [1, 2, 10, 5]}
        ...     told = {"images": [{"id": 7, "file_name": "a.png"}], "annotations": [cat]}
        ...     told["categories"] = [{"id": 17, "name": "cat"}]
        ...     size = Path(folder, "a.json").write_text(json.dumps(told))
        ...     pets = coco(f"{folder}/a.json", folder)
        ...     pets[0]["boxes"].tolist(), pets.classes[pets[0]["labels"][0]]
        ([[1.0, 2.0, 11.0, 7.0]], 'cat')
    """
    path, folder = checked_path(annotations, "coco"), Path(checked_path(images, "coco"))
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        kinds = sorted(told["categories"], key=lambda kind: kind["id"])
        places = {kind["id"]: place for place, kind in enumerate(kinds)}
        pictures = told["images"]
        by_picture: dict[Any, list[Any]] = {each["id"]: [] for each in pictures}
        for each in told["annotations"]:
            by_picture[each["image_id"]].append(each)
        found = [_objects(by_picture[each["id"]], places) for each in pictures]
        names = [each["file_name"] for each in pictures]
        classes = tuple(kind["name"] for kind in kinds)
    except (KeyError, TypeError, ValueError) as error:
        what, got = f"{path} is no such file", f"{type(error).__name__}: {error}"
        expected = "images, annotations and categories that know each other"
        raise DataError("coco", what, got=got, expected=expected) from error
    outside = [name for name in names if ".." in Path(name).parts or Path(name).is_absolute()]
    if outside:
        what, expected = f"{path} names files outside of the folder", "names in it"
        raise DataError("coco", what, got=outside[0], expected=expected)
    return Dataset(Objects(folder, pictures, found, masks=masks, mode=mode), classes)
