"""Where pixels go: crops, flips, turns, and what else masks and boxes have to follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any, Final, final

import numpy as np

from phlox_tensor import ArgumentError

from ._item import Fill, Fixed, Move, Moving, Size, between, chance, size_of, uniform
from ._moves import (
    MIRRORED,
    UPSIDE_DOWN,
    Mode,
    Sides,
    affine,
    bordered,
    both,
    cut,
    perspective,
    resampling,
    resized,
    sides_of,
    turned,
    warped,
)

Range = float | tuple[float, float]
_Rng = np.random.Generator

_TRIES: Final = 10


@final
@dataclass(frozen=True)
class Resize(Fixed):
    """Resize pictures; a single number is the shorter side, and the longer one follows.

    Example:
        >>> Resize(8)(np.zeros((3, 16, 32), np.uint8)).shape
        (3, 8, 16)
    """

    size: int | Sequence[int]
    interpolation: str = "bilinear"
    max_size: int | None = None

    def __post_init__(self) -> None:
        size_of("Resize", self.size)
        resampling("Resize", self.interpolation)
        if self.max_size is not None and not isinstance(self.size, int):
            what, expected = "max_size bounds the longer side", "one number as size"
            raise ArgumentError("Resize", what, got=self.size, expected=expected)

    def move(self, height: int, width: int) -> Move:
        return resized(self._size(height, width), (height, width), self.interpolation, "Resize")

    def _size(self, height: int, width: int) -> Size:
        if not isinstance(self.size, int):
            return size_of("Resize", self.size)
        short, long = self.size, int(self.size * max(height, width) / min(height, width))
        if self.max_size is not None and long > self.max_size:
            short, long = int(self.max_size * short / long), self.max_size
        return (long, short) if height > width else (short, long)


@final
@dataclass(frozen=True)
class CenterCrop(Fixed):
    """Cut out the middle; what is smaller gets a border of zeros.

    Example:
        >>> CenterCrop(2)(np.arange(16).reshape(1, 4, 4)).tolist()
        [[[5, 6], [9, 10]]]
    """

    size: int | Sequence[int]

    def __post_init__(self) -> None:
        size_of("CenterCrop", self.size)

    def move(self, height: int, width: int) -> Move:
        high, wide = size_of("CenterCrop", self.size)
        down, right = max(0, high - height), max(0, wide - width)
        sides = (right // 2, down // 2, (right + 1) // 2, (down + 1) // 2)
        top, left = round((height + down - high) / 2), round((width + right - wide) / 2)
        part = cut(top, left, high, wide)
        if not any(sides):
            return part
        return both(bordered("CenterCrop", sides, 0, 0, "constant"), part)


@final
@dataclass(frozen=True)
class Pad(Fixed):
    """Put a border around pictures.

    Args:
        padding: of all sides; of left and right, top and bottom; or of left, top, right, bottom.
        fill: what the border is, one number or one for each channel.
        padding_mode: ``"constant"``, or NumPy's ``"edge"``, ``"reflect"`` and ``"symmetric"``.
        mask_fill: what the border of masks is.

    Example:
        >>> Pad(1, fill=9)(np.zeros((1, 1, 2), np.uint8)).tolist()
        [[[9, 9, 9, 9], [9, 0, 0, 9], [9, 9, 9, 9]]]
    """

    padding: Sides
    fill: Fill = 0
    padding_mode: Mode = "constant"
    mask_fill: int = 0

    def __post_init__(self) -> None:
        sides_of("Pad", self.padding)

    def move(self, height: int, width: int) -> Move:
        del height, width
        sides = sides_of("Pad", self.padding)
        return bordered("Pad", sides, self.fill, self.mask_fill, self.padding_mode)


@final
@dataclass(frozen=True)
class RandomCrop(Moving):
    """Cut out a part at a random place, behind a border if one is asked for.

    Args:
        size: of the part, one number or height and width.
        padding: as of ``Pad``.
        pad_if_needed: whether a picture that is too small gets a border.
        fill: what the border is.
        padding_mode: as of ``Pad``.
        mask_fill: what the border of masks is.

    Example:
        >>> RandomCrop(32, padding=4)(np.ones((3, 32, 32)), np.random.default_rng(0)).shape
        (3, 32, 32)
    """

    size: int | Sequence[int]
    padding: Sides = 0
    pad_if_needed: bool = False
    fill: Fill = 0
    padding_mode: Mode = "constant"
    mask_fill: int = 0

    def __post_init__(self) -> None:
        size_of("RandomCrop", self.size)
        sides_of("RandomCrop", self.padding)

    def move(self, height: int, width: int, rng: _Rng) -> Move:
        high, wide = size_of("RandomCrop", self.size)
        left, top, right, bottom = sides_of("RandomCrop", self.padding)
        if self.pad_if_needed:
            down = max(0, high - height - top - bottom)
            across = max(0, wide - width - left - right)
            left, top, right, bottom = left + across, top + down, right + across, bottom + down
        room = height + top + bottom - high, width + left + right - wide
        if min(room) < 0:
            got, expected = f"{height}×{width}", f"{high}×{wide} or more with its border"
            hint = f"augment.RandomCrop({self.size}, pad_if_needed=True)"
            raise ArgumentError(
                "RandomCrop", "the picture is too small", got=got, expected=expected, hint=hint
            )
        part = cut(int(rng.integers(room[0] + 1)), int(rng.integers(room[1] + 1)), high, wide)
        if not any((left, top, right, bottom)):
            return part
        sides, mode = (left, top, right, bottom), self.padding_mode
        return both(bordered("RandomCrop", sides, self.fill, self.mask_fill, mode), part)


@final
@dataclass(frozen=True)
class RandomResizedCrop(Moving):
    """Cut out a part of random area and aspect, and resize it (Szegedy et al. 2014).

    Args:
        size: one number, or height and width.
        scale: the share of the area that is cut out.
        ratio: its width over its height, uniform in the logarithm.
        interpolation: ``"bilinear"``, ``"bicubic"``, ``"nearest"``, ``"box"``, ``"hamming"`` or
            ``"lanczos"``.

    Example:
        >>> image = np.zeros((3, 375, 500), np.uint8)
        >>> RandomResizedCrop(224)(image, np.random.default_rng(0)).shape
        (3, 224, 224)
    """

    size: int | Sequence[int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        size_of("RandomResizedCrop", self.size)
        resampling("RandomResizedCrop", self.interpolation)
        between("RandomResizedCrop", scale=self.scale)
        between("RandomResizedCrop", 1e-3, 1e3, ratio=self.ratio)

    def move(self, height: int, width: int, rng: _Rng) -> Move:
        box = self._part(height, width, rng)
        size = size_of("RandomResizedCrop", self.size)
        return both(cut(*box), resized(size, box[2:], self.interpolation, "RandomResizedCrop"))

    def _part(self, height: int, width: int, rng: _Rng) -> tuple[int, int, int, int]:
        for wide, tall in sides(height * width, self.scale, self.ratio, rng):
            if 0 < wide <= width and 0 < tall <= height:
                top, left = rng.integers(height - tall + 1), rng.integers(width - wide + 1)
                return int(top), int(left), tall, wide
        tall = min(height, round(width / self.ratio[0]))
        wide = min(width, round(height * self.ratio[1]))
        return (height - tall) // 2, (width - wide) // 2, tall, wide


def sides(
    area: int, scale: Sequence[float], ratio: Sequence[float], rng: _Rng
) -> Iterator[tuple[int, int]]:
    """Yield ten rectangles of random area and aspect: the side that the ratio multiplies first."""
    for _ in range(_TRIES):
        part = area * uniform(rng, scale)
        aspect = exp(rng.uniform(log(ratio[0]), log(ratio[1])))
        yield round(sqrt(part * aspect)), round(sqrt(part / aspect))


@final
@dataclass(frozen=True)
class RandomHorizontalFlip(Moving):
    """Swap left and right with a probability.

    Example:
        >>> RandomHorizontalFlip(1.0)(np.array([[1, 2, 3]]), np.random.default_rng(0)).tolist()
        [[3, 2, 1]]
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        between("RandomHorizontalFlip", p=self.p)

    def move(self, height: int, width: int, rng: _Rng) -> Move | None:
        return MIRRORED if chance(rng, self.p) else None


@final
@dataclass(frozen=True)
class RandomVerticalFlip(Moving):
    """Swap top and bottom with a probability.

    Example:
        >>> RandomVerticalFlip(1.0)(np.array([[1], [2]]), np.random.default_rng(0)).tolist()
        [[2], [1]]
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        between("RandomVerticalFlip", p=self.p)

    def move(self, height: int, width: int, rng: _Rng) -> Move | None:
        return UPSIDE_DOWN if chance(rng, self.p) else None


def _degrees(value: Range) -> tuple[float, float]:
    return (-value, value) if isinstance(value, (int, float)) else value


@final
@dataclass(frozen=True)
class RandomRotation(Moving):
    """Turn pictures by a random angle, in degrees against the clock.

    Args:
        degrees: the lowest and the highest, or one number for both directions.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
        expand: whether the picture grows, so that its corners stay in it.
        center: what it is turned around, (x, y); the middle by default.
        fill: what comes in from outside.
        mask_fill: the same of masks.

    Example:
        >>> quarter = RandomRotation((90, 90), expand=True)
        >>> quarter(np.array([[1, 2, 3]]), np.random.default_rng(0)).tolist()
        [[3], [2], [1]]
    """

    degrees: Range
    interpolation: str = "nearest"
    expand: bool = False
    center: tuple[float, float] | None = None
    fill: Fill = 0
    mask_fill: int = 0

    def __post_init__(self) -> None:
        resampling("RandomRotation", self.interpolation, warp=True)
        between("RandomRotation", -1e9, 1e9, degrees=_degrees(self.degrees))

    def move(self, height: int, width: int, rng: _Rng) -> Move:
        angle, old = uniform(rng, _degrees(self.degrees)), (height, width)
        given = (self.interpolation, self.fill, self.mask_fill, self.center)
        return turned("RandomRotation", angle, old, *given, expand=self.expand)


@final
@dataclass(frozen=True)
class RandomAffine(Moving):
    """Turn, shift, scale and shear pictures around their middle.

    Args:
        degrees: the lowest and the highest angle, or one number for both directions.
        translate: the largest shift as a share of width and of height.
        scale: the lowest and the highest factor.
        shear: degrees along x: one number, or two; four are the range of x and that of y.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
        fill: what comes in from outside.
        center: what stays in its place, (x, y); the middle by default.
        mask_fill: ``fill`` of masks.

    Example:
        >>> shifted = RandomAffine(10, translate=(0.1, 0.1), scale=(0.9, 1.1))
        >>> shifted(np.zeros((1, 28, 28), np.uint8), np.random.default_rng(0)).shape
        (1, 28, 28)
    """

    degrees: Range
    translate: tuple[float, float] | None = None
    scale: tuple[float, float] | None = None
    shear: float | Sequence[float] | None = None
    interpolation: str = "nearest"
    fill: Fill = 0
    center: tuple[float, float] | None = None
    mask_fill: int = 0

    def __post_init__(self) -> None:
        resampling("RandomAffine", self.interpolation, warp=True)
        between("RandomAffine", -1e9, 1e9, degrees=_degrees(self.degrees))
        for share in self.translate or ():
            between("RandomAffine", translate=share)
        between("RandomAffine", 1e-6, 1e6, scale=self.scale or 1.0)
        shear = self._shears()
        between("RandomAffine", -89.9, 89.9, shear=shear[:2])
        between("RandomAffine", -89.9, 89.9, shear=shear[2:])

    def _shears(self) -> Sequence[float]:
        shear = self.shear or 0.0
        given = (-shear, shear) if isinstance(shear, (int, float)) else tuple(shear)
        return given if len(given) == 4 else (*given, 0.0, 0.0)

    def move(self, height: int, width: int, rng: _Rng) -> Move:
        angle = uniform(rng, _degrees(self.degrees))
        across, down = self.translate or (0.0, 0.0)
        shift = (
            round(rng.uniform(-across * width, across * width)),
            round(rng.uniform(-down * height, down * height)),
        )
        scale = uniform(rng, self.scale or (1.0, 1.0))
        shear = self._shears()
        shears = uniform(rng, shear[:2]), uniform(rng, shear[2:])
        center = self.center or (width * 0.5, height * 0.5)
        numbers = affine(angle, shift, scale, shears, center)
        return warped("RandomAffine", numbers, self.interpolation, self.fill, self.mask_fill)


@final
@dataclass(frozen=True)
class RandomPerspective(Moving):
    """Look at pictures from a random side, with a probability.

    Args:
        distortion_scale: how far corners move, as a share of half the picture.
        p: the probability.
        interpolation: ``"bilinear"``, ``"bicubic"`` or ``"nearest"``.
        fill: what comes in from outside.
        mask_fill: the same of masks.

    Example:
        >>> RandomPerspective(p=1.0)(np.zeros((3, 8, 8), np.uint8), np.random.default_rng(0)).shape
        (3, 8, 8)
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: str = "bilinear"
    fill: Fill = 0
    mask_fill: int = 0

    def __post_init__(self) -> None:
        resampling("RandomPerspective", self.interpolation, warp=True)
        between("RandomPerspective", p=self.p, distortion_scale=self.distortion_scale)

    def move(self, height: int, width: int, rng: _Rng) -> Move | None:
        if not chance(rng, self.p):
            return None
        high = int(self.distortion_scale * (height // 2)) + 1
        wide = int(self.distortion_scale * (width // 2)) + 1
        old = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
        inwards = np.stack([rng.integers(wide, size=4), rng.integers(high, size=4)], 1)
        numbers = perspective(old, old + inwards * [[1, 1], [-1, 1], [-1, -1], [1, -1]])
        given = (self.interpolation, self.fill, self.mask_fill)
        return warped("RandomPerspective", numbers, *given)


@final
@dataclass(frozen=True)
class SanitizeBoundingBoxes:
    """Drop boxes that a move has left too small, with the labels and masks of the same places.

    Args:
        min_size: the shortest side that is kept.
        with_boxes: what else has an entry for each box; names that an item lacks are left out.

    Example:
        >>> item = {"boxes": np.array([[0, 0, 4, 4], [7, 0, 7, 4]]), "labels": np.array([3, 5])}
        >>> SanitizeBoundingBoxes()(item)["labels"].tolist()
        [3]
    """

    min_size: float = 1.0
    with_boxes: Sequence[str] = ("labels", "masks", "areas", "crowds")

    def __call__(self, item: Any) -> Any:
        """Return the item without those boxes."""
        boxes = np.asarray(item["boxes"])
        sides = boxes[:, 2:] - boxes[:, :2]
        kept = np.flatnonzero((sides >= self.min_size).all(axis=1))
        names = ("boxes", *(name for name in self.with_boxes if name in item))
        return {**item, **{name: np.asarray(item[name])[kept] for name in names}}
