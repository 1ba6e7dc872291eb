"""What an augmentation changes: a picture, alone or with the masks and boxes that lie on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phlox_tensor import ArgumentError, ShapeError, Tensor, WrongTypeError

Array = NDArray[Any]
Size = tuple[int, int]
Fill = float | Sequence[float]

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_MASKS: Final = ("mask", "masks")
# What Pillow keeps numbers of other types in, without loss for classes of pixels.
_PLANES: Final = {"b": np.uint8, "i": np.int32, "u": np.int32, "f": np.float32}


class Move(NamedTuple):
    """A change of places: what becomes of planes of pixels, and of points (…, x and y)."""

    pixels: Callable[[Array, bool], Array]  # planes, and whether they are masks
    points: Callable[[Array, Size], Array]  # points, and the new height and width


class Moving(ABC):
    """Moves pixels, and with them masks and boxes, by random numbers."""

    @abstractmethod
    def move(self, height: int, width: int, rng: np.random.Generator) -> Move | None:
        """Draw what becomes of a picture of this size; None leaves it as it is."""

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, moved."""
        move = self.move(*_sides(self, item), rng)
        return item if move is None else moved(item, move)


class Fixed(ABC):
    """Moves pixels, and with them masks and boxes, always alike."""

    @abstractmethod
    def move(self, height: int, width: int) -> Move:
        """Return what becomes of a picture of this size."""

    def __call__(self, item: Any) -> Any:
        """Return the item, moved."""
        return moved(item, self.move(*_sides(self, item)))


def _sides(change: object, item: Any) -> Size:
    height, width = picture(type(change).__name__, item).shape[-2:]
    return height, width


def picture(op: str, item: Any, *, batch: bool = False) -> Any:
    """Return the picture of an item: (channels, height, width), or (height, width)."""
    if isinstance(item, Mapping):
        if "image" not in item:
            got = ", ".join(map(str, item))
            raise ArgumentError(op, "the item has no image", got=got, expected="image among them")
        image = item["image"]
    else:
        image = item[0] if isinstance(item, tuple) else item
    if batch and isinstance(image, (Tensor, np.ndarray)):
        return image
    if not isinstance(image, np.ndarray):
        got, expected = type(image).__name__, "a NumPy array"
        pillow = "np.array(image).transpose(2, 0, 1)"
        raise WrongTypeError(op, "no picture", got=got, expected=expected, hint=pillow)
    last = image.ndim == 3 and image.shape[2] <= 4 < image.shape[0]
    if image.ndim not in (2, 3) or last:
        got, expected = image.shape, "(channels, height, width)"
        hint = "image.transpose(2, 0, 1)" if last else None
        raise ShapeError(op, "no picture", got=got, expected=expected, hint=hint)
    return image


def replaced(item: Any, image: Array, **others: Any) -> Any:
    """Return the item with another picture, and more that changed with it."""
    if isinstance(item, Mapping):
        return {**item, "image": image, **others}
    return (image, *item[1:]) if isinstance(item, tuple) else image


def is_whole(image: Any) -> bool:
    """Whether pixels are whole numbers: devices without bytes keep those in wider ones."""
    return str(image.dtype).startswith(("int", "uint"))


def colored(op: str, item: Any, function: Callable[[Image.Image], Image.Image]) -> Any:
    """Return an item with its picture through a function of Pillow, which sees L or RGB.

    Pixels have to be bytes: other numbers have no range that is known.
    """
    image = picture(op, item)
    if image.dtype != np.uint8:
        hint = f"dataset.map(augment.{op}(...)), in front of the map that makes floats"
        raise WrongTypeError(op, "no bytes", got=image.dtype, expected="uint8", hint=hint)
    clear = image.ndim == 3 and len(image) == 4  # transparency stays
    out = by_pillow(image[:3] if clear else image, function)
    return replaced(item, np.concatenate([out, image[3:]]) if clear else out)


def moved(item: Any, move: Move) -> Any:
    """Return an item with its picture, masks and boxes moved."""
    image = picture("augment", item)
    out = _planes(move, image, mask=False)
    if not isinstance(item, Mapping):
        return replaced(item, out)
    others: dict[str, Any] = {}
    for name in _MASKS:
        if name in item:
            mask = np.asarray(item[name])
            if mask.shape[-2:] != image.shape[-2:]:
                got, expected = mask.shape, f"(…, {image.shape[-2]}, {image.shape[-1]})"
                what = f"{name} does not lie on the image"
                raise ShapeError("augment", what, got=got, expected=expected)
            others[name] = _planes(move, mask, mask=True)
    if "boxes" in item:
        others["boxes"] = _boxes(np.asarray(item["boxes"]), move, out.shape[-2:])
    return replaced(item, out, **others)


def _planes(move: Move, array: Array, *, mask: bool) -> Array:
    return move.pixels(array[None], mask)[0] if array.ndim == 2 else move.pixels(array, mask)


def _boxes(boxes: Array, move: Move, size: Size) -> Array:
    """The boxes around the moved corners of boxes, within the picture."""
    if not boxes.size:
        return boxes
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        expected = "(boxes, 4): left, top, right, bottom"
        raise ShapeError("augment", "no boxes", got=boxes.shape, expected=expected)
    corners = boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]].astype(np.float64)
    found = move.points(corners, size)
    limits = np.array([size[1], size[0]] * 2)
    kept = np.concatenate([found.min(1), found.max(1)], 1).clip(0, limits)
    return (np.rint(kept) if boxes.dtype.kind in "iu" else kept).astype(boxes.dtype)


def by_pillow(array: Array, function: Callable[[Image.Image], Image.Image]) -> Array:
    """Return planes of pixels through a function of Pillow.

    Bytes of one, three or four planes are one picture to it; other planes go alone.
    """
    if array.ndim == 2:
        return by_pillow(array[None], function)[0]
    if array.dtype == np.uint8 and len(array) in _MODES:
        # Pictures that were decoded lie like this already, so that nothing is copied here.
        pixels = np.ascontiguousarray(array.transpose(1, 2, 0))
        image = Image.fromarray(pixels[:, :, 0] if len(array) == 1 else pixels)
        out = np.array(function(image))
        return out[None] if out.ndim == 2 else out.transpose(2, 0, 1)
    dtype = np.uint8 if array.dtype == np.uint8 else _PLANES[array.dtype.kind]
    planes = [np.ascontiguousarray(plane, dtype) for plane in array]
    found = [np.asarray(function(Image.fromarray(plane))) for plane in planes]
    return np.stack(found).astype(array.dtype)


def filled(fill: Fill, image: Image.Image, op: str) -> Any:
    """Return what Pillow is told to fill with: a number for each band of a picture."""
    bands = len(image.getbands())
    values = [*fill] if isinstance(fill, Sequence) else [fill] * bands
    if len(values) != bands:
        expected = f"a number, or {bands} of them"
        raise ArgumentError(op, "fill is of other channels", got=fill, expected=expected)
    kept = values if image.mode == "F" else [int(value) for value in values]
    return kept[0] if bands == 1 else tuple(kept)


def size_of(op: str, size: int | Sequence[int]) -> Size:
    """Return height and width, of one number or of both."""
    found = (size, size) if isinstance(size, int) else tuple(size)
    if len(found) != 2 or any(type(each) is not int or each < 1 for each in found):
        expected = "a whole number, or height and width"
        raise ArgumentError(op, "no size", got=size, expected=expected)
    return found


def between(op: str, low: float = 0.0, high: float = 1.0, **named: Any) -> None:
    """Refuse numbers, or pairs of them that rise, outside of a range."""
    for name, value in named.items():
        pair = (value, value) if isinstance(value, (int, float)) else tuple(value)
        if len(pair) != 2 or not low <= pair[0] <= pair[1] <= high:
            expected = f"{low} to {high}, from low to high"
            raise ArgumentError(op, f"{name} is out of range", got=value, expected=expected)


def uniform(rng: np.random.Generator, pair: Sequence[float]) -> float:
    """Return a random number of a range."""
    low, high = pair
    return float(rng.uniform(low, high))


def chance(rng: np.random.Generator, p: float) -> bool:
    """Whether something that happens with a probability happens."""
    return bool(rng.random() < p)
