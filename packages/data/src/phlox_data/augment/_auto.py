"""Random changes out of a table: RandAugment and TrivialAugment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import atan, degrees
from typing import Any, Final, NamedTuple, final

import numpy as np
from PIL import Image, ImageOps

from phlox_tensor import ArgumentError

from . import _color as color
from ._item import Fill, between, colored, filled
from ._moves import affine, resampling

_Rng = np.random.Generator


class _Style(NamedTuple):
    """How what moves looks."""

    op: str
    method: Image.Resampling
    fill: Fill


_Change = Callable[[Image.Image, float, _Style], Image.Image]


def _sheared(x: float, y: float) -> _Change:
    def change(image: Image.Image, by: float, style: _Style) -> Image.Image:
        angle = degrees(atan(by))
        return _moved(image, affine(0.0, (0, 0), 1.0, (angle * x, angle * y), (0, 0)), style)

    return change


def _shifted(x: int, y: int) -> _Change:
    def change(image: Image.Image, by: float, style: _Style) -> Image.Image:
        center = image.width * 0.5, image.height * 0.5
        return _moved(image, affine(0.0, (int(by) * x, int(by) * y), 1.0, (0, 0), center), style)

    return change


def _moved(image: Image.Image, numbers: list[float], style: _Style) -> Image.Image:
    kind, fill = Image.Transform.AFFINE, filled(style.fill, image, style.op)
    return image.transform(image.size, kind, numbers, style.method, fillcolor=fill)


def _rotated(image: Image.Image, by: float, style: _Style) -> Image.Image:
    return image.rotate(by, style.method, fillcolor=filled(style.fill, image, style.op))


# Each change by its name in the paper; the number is how much.
_CHANGES: Final[Mapping[str, _Change]] = {
    "AutoContrast": lambda image, by, style: ImageOps.autocontrast(image),
    "Brightness": lambda image, by, style: color.brightness(image, 1.0 + by),
    "Color": lambda image, by, style: color.saturation(image, 1.0 + by),
    "Contrast": lambda image, by, style: color.contrast(image, 1.0 + by),
    "Equalize": lambda image, by, style: ImageOps.equalize(image),
    "Identity": lambda image, by, style: image,
    "Posterize": lambda image, by, style: color.posterize(image, 8 - round(by)),
    "Rotate": _rotated,
    "Sharpness": lambda image, by, style: color.sharpness(image, 1.0 + by),
    "ShearX": _sheared(1, 0),
    "ShearY": _sheared(0, 1),
    "Solarize": lambda image, by, style: color.solarize(image, round(255.0 * (1.0 - by), 6)),
    "TranslateX": _shifted(1, 0),
    "TranslateY": _shifted(0, 1),
}
# The largest number of each, of either sign but for those that have one only.
_ONE_SIGN: Final = frozenset({"AutoContrast", "Equalize", "Identity", "Posterize", "Solarize"})
_RAND: Final = dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), 0.9) | {
    "Posterize": 4,
    "Rotate": 30.0,
    "ShearX": 0.3,
    "ShearY": 0.3,
    "Solarize": 1.0,
}
_TRIVIAL: Final = dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), 0.99) | {
    "Posterize": 6,
    "Rotate": 135.0,
    "ShearX": 0.99,
    "ShearY": 0.99,
    "Solarize": 1.0,
    "TranslateX": 32.0,
    "TranslateY": 32.0,
}


def _any(
    image: Image.Image, rng: _Rng, most: Mapping[str, float], share: float, style: _Style
) -> Image.Image:
    """A picture after one change of all, at this share of the largest number."""
    name = sorted(_CHANGES)[rng.integers(len(_CHANGES))]
    sides = {"TranslateX": image.width, "TranslateY": image.height}
    limit = most.get(name, 150.0 / 331.0 * sides.get(name, 0))
    sign = -1 if name not in _ONE_SIGN and rng.random() <= 0.5 else 1
    return _CHANGES[name](image, sign * share * limit, style)


@final
@dataclass(frozen=True)
class RandAugment:
    """Some random changes of one strength (Cubuk et al. 2019, "RandAugment").

    Pictures alone: masks and boxes would not follow, so items with them are refused.

    Args:
        num_ops: how many changes.
        magnitude: how strong they are, of 0 to ``num_magnitude_bins`` - 1.
        num_magnitude_bins: how many strengths there are.
        interpolation: of what moves, ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
        fill: what comes in from outside.

    Example:
        >>> RandAugment()(np.zeros((3, 32, 32), np.uint8), np.random.default_rng(0)).shape
        (3, 32, 32)
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = 0

    def __post_init__(self) -> None:
        resampling("RandAugment", self.interpolation, warp=True)
        between("RandAugment", 2, 10**6, num_magnitude_bins=self.num_magnitude_bins)
        between("RandAugment", 0, self.num_magnitude_bins - 1, magnitude=self.magnitude)
        between("RandAugment", 0, 100, num_ops=self.num_ops)

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with a changed picture."""
        _alone("RandAugment", item)
        share = self.magnitude / (self.num_magnitude_bins - 1)
        style = _Style("RandAugment", resampling("RandAugment", self.interpolation), self.fill)

        def change(image: Image.Image) -> Image.Image:
            for _ in range(self.num_ops):
                image = _any(image, rng, _RAND, share, style)
            return image

        return colored("RandAugment", item, change)


@final
@dataclass(frozen=True)
class TrivialAugmentWide:
    """One random change of random strength (Müller and Hutter 2021, "TrivialAugment").

    Pictures alone, as of ``RandAugment``.

    Example:
        >>> TrivialAugmentWide()(np.zeros((3, 32, 32), np.uint8), np.random.default_rng(0)).shape
        (3, 32, 32)
    """

    num_magnitude_bins: int = 31
    interpolation: str = "nearest"
    fill: Fill = 0

    def __post_init__(self) -> None:
        resampling("TrivialAugmentWide", self.interpolation, warp=True)
        between("TrivialAugmentWide", 2, 10**6, num_magnitude_bins=self.num_magnitude_bins)

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with a changed picture."""
        op = "TrivialAugmentWide"
        _alone(op, item)
        share = int(rng.integers(self.num_magnitude_bins)) / (self.num_magnitude_bins - 1)
        style = _Style(op, resampling(op, self.interpolation), self.fill)
        return colored(op, item, lambda image: _any(image, rng, _TRIVIAL, share, style))


def _alone(op: str, item: Any) -> None:
    """Refuse items whose masks and boxes would not follow."""
    placed = {"boxes", "mask", "masks"} & {*(item if isinstance(item, Mapping) else ())}
    if placed:
        got, hint = ", ".join(sorted(placed)), "augment.RandomAffine(30)"
        raise ArgumentError(op, "masks and boxes would not follow", got=got, hint=hint)
