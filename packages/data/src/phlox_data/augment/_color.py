"""Colors: what becomes of pixels where they are. All of it is Pillow's, on bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from ._item import between, chance, colored, uniform

_Change = Callable[[Image.Image], Image.Image]
_Rng = np.random.Generator


@final
@dataclass(frozen=True, repr=False)
class Sometimes:
    """A change of colors that happens with a probability."""

    op: str
    p: float
    change: _Change

    def __post_init__(self) -> None:
        between(self.op, p=self.p)

    def __repr__(self) -> str:
        settings = {**getattr(self.change, "keywords", {}), "p": self.p}
        return f"{self.op}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with another picture or as it is."""
        return colored(self.op, item, self.change if chance(rng, self.p) else _same)


def _same(image: Image.Image) -> Image.Image:
    return image


def brightness(image: Image.Image, factor: float) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(factor)


def contrast(image: Image.Image, factor: float) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(factor)


def saturation(image: Image.Image, factor: float) -> Image.Image:
    return ImageEnhance.Color(image).enhance(factor)


def sharpness(image: Image.Image, sharpness_factor: float) -> Image.Image:
    return ImageEnhance.Sharpness(image).enhance(sharpness_factor)


def hue(image: Image.Image, factor: float) -> Image.Image:
    """Turn hues by a share of the circle; gray has none."""
    if image.mode == "L":
        return image
    hues, colors, values = image.convert("HSV").split()
    turned = (np.asarray(hues) + np.int64(factor * 255)).astype(np.uint8)  # goes around
    return Image.merge("HSV", (Image.fromarray(turned), colors, values)).convert("RGB")


def solarize(image: Image.Image, threshold: float) -> Image.Image:
    return ImageOps.solarize(image, threshold)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - compares


def posterize(image: Image.Image, bits: int) -> Image.Image:
    return ImageOps.posterize(image, bits)


def gray(image: Image.Image) -> Image.Image:
    return image.convert("L").convert(image.mode)


@final
@dataclass(frozen=True)
class ColorJitter:
    """Change brightness, contrast, saturation and hue, in a random order.

    Args:
        brightness: the range of the factor, or how far it goes from 1 to both sides.
        contrast: the same.
        saturation: the same.
        hue: the range of the turn, or how far it goes; half a circle is 0.5.

    Example:
        >>> image = np.full((3, 2, 2), 100, np.uint8)
        >>> ColorJitter(brightness=(2, 2))(image, np.random.default_rng(0))[0].tolist()
        [[200, 200], [200, 200]]
    """

    brightness: float | Sequence[float] = 0.0
    contrast: float | Sequence[float] = 0.0
    saturation: float | Sequence[float] = 0.0
    hue: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            between("ColorJitter", 0.0, float("inf"), **{name: getattr(self, name)})
        hue = self.hue
        between("ColorJitter", -0.5, 0.5, hue=(-hue, hue) if isinstance(hue, (int, float)) else hue)

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with a picture of other colors."""
        order = rng.permutation(4).tolist()
        drawn = [
            (brightness, _around(rng, self.brightness)),
            (contrast, _around(rng, self.contrast)),
            (saturation, _around(rng, self.saturation)),
            (hue, _around(rng, self.hue, 0.0)),
        ]

        def change(image: Image.Image) -> Image.Image:
            for place in order:
                function, factor = drawn[place]
                if factor is not None:
                    image = function(image, factor)
            return image

        return colored("ColorJitter", item, change)


def _around(rng: _Rng, value: float | Sequence[float], middle: float = 1.0) -> float | None:
    """A random factor; None where there is nothing to change."""
    if isinstance(value, (int, float)):
        low = middle - value
        value = (max(0.0, low) if middle else low, middle + value)
    return None if value[0] == value[1] == middle else uniform(rng, value)


def RandomGrayscale(p: float = 0.1) -> Sometimes:
    """Make pictures gray with a probability; they keep their channels.

    Example:
        >>> red = np.array([200, 0, 0], np.uint8).reshape(3, 1, 1)
        >>> RandomGrayscale(1.0)(red, np.random.default_rng(0)).ravel().tolist()
        [60, 60, 60]
    """
    return Sometimes("RandomGrayscale", p, gray)


def RandomInvert(p: float = 0.5) -> Sometimes:
    """Turn light into dark with a probability.

    Example:
        >>> RandomInvert(1.0)(np.array([[0, 55]], np.uint8), np.random.default_rng(0)).tolist()
        [[255, 200]]
    """
    return Sometimes("RandomInvert", p, ImageOps.invert)


def RandomPosterize(bits: int, p: float = 0.5) -> Sometimes:
    """Keep so many bits of each pixel, with a probability.

    Example:
        >>> RandomPosterize(1, 1.0)(np.array([[99, 200]], np.uint8), np.random.default_rng(0))
        array([[  0, 128]], dtype=uint8)
    """
    between("RandomPosterize", 1, 8, bits=bits)
    return Sometimes("RandomPosterize", p, partial(posterize, bits=bits))


def RandomSolarize(threshold: float, p: float = 0.5) -> Sometimes:
    """Invert the pixels from a threshold on, with a probability.

    Example:
        >>> RandomSolarize(128, 1.0)(np.array([[99, 200]], np.uint8), np.random.default_rng(0))
        array([[99, 55]], dtype=uint8)
    """
    between("RandomSolarize", 0, 256, threshold=threshold)
    return Sometimes("RandomSolarize", p, partial(solarize, threshold=threshold))


def RandomAutocontrast(p: float = 0.5) -> Sometimes:
    """Stretch each channel to the whole range, with a probability.

    Example:
        >>> RandomAutocontrast(1.0)(np.array([[50, 60]], np.uint8), np.random.default_rng(0))
        array([[  0, 255]], dtype=uint8)
    """
    return Sometimes("RandomAutocontrast", p, ImageOps.autocontrast)


def RandomEqualize(p: float = 0.5) -> Sometimes:
    """Make all values of each channel equally frequent, with a probability.

    Example:
        >>> image = np.array([[7, 9] * 600], np.uint8)
        >>> RandomEqualize(1.0)(image, np.random.default_rng(0))[0, :2].tolist()
        [0, 255]
    """
    return Sometimes("RandomEqualize", p, ImageOps.equalize)


def RandomAdjustSharpness(sharpness_factor: float, p: float = 0.5) -> Sometimes:
    """Sharpen by a factor with a probability; 0 blurs, 1 changes nothing.

    Example:
        >>> dots = np.eye(3, dtype=np.uint8) * 130
        >>> RandomAdjustSharpness(0.0, 1.0)(dots, np.random.default_rng(0))[1, 1]
        np.uint8(70)
    """
    between("RandomAdjustSharpness", 0.0, float("inf"), sharpness_factor=sharpness_factor)
    change = partial(sharpness, sharpness_factor=sharpness_factor)
    return Sometimes("RandomAdjustSharpness", p, change)
