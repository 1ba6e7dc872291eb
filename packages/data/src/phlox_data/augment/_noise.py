"""Blur, noise and holes, and numbers as models take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from phlox_tensor import ArgumentError, ShapeError, Tensor, asarray

from ._geometry import sides
from ._item import Array, between, chance, is_whole, picture, replaced, size_of


@final
@dataclass(frozen=True)
class GaussianBlur:
    """Blur with a random width.

    Args:
        kernel_size: odd, one number or that along x and that along y.
        sigma: the range of the standard deviation in pixels.

    Example:
        >>> GaussianBlur(3)(np.full((1, 4, 4), 7, np.uint8), np.random.default_rng(0)).max()
        np.uint8(7)
    """

    kernel_size: int | Sequence[int]
    sigma: float | Sequence[float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        if any(each % 2 == 0 for each in size_of("GaussianBlur", self.kernel_size)):
            got, expected = self.kernel_size, "odd numbers"
            raise ArgumentError("GaussianBlur", "no middle", got=got, expected=expected)
        between("GaussianBlur", 1e-6, 1e6, sigma=self.sigma)

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with a blurred picture."""
        image = picture("GaussianBlur", item)
        low, high = (self.sigma,) * 2 if isinstance(self.sigma, (int, float)) else self.sigma
        sigma = rng.uniform(low, high)
        across, down = size_of("GaussianBlur", self.kernel_size)
        out = image.astype(np.float32)
        for axis, size in ((-1, across), (-2, down)):
            if size // 2 >= image.shape[axis]:
                got, expected = image.shape, f"more than {size // 2} pixels along the axis"
                raise ArgumentError("GaussianBlur", "too small", got=got, expected=expected)
            out = _blurred(out, axis, size, sigma)
        return replaced(
            item, (np.rint(out) if image.dtype.kind in "iu" else out).astype(image.dtype)
        )


def _blurred(image: Array, axis: int, size: int, sigma: float) -> Array:
    places = np.arange(size) - size // 2
    weights = np.exp(-0.5 * (places / sigma) ** 2)
    weights = (weights / weights.sum()).astype(np.float32)
    widths = [(0, 0)] * image.ndim
    widths[axis] = (size // 2, size // 2)
    padded = np.moveaxis(np.pad(image, widths, "reflect"), axis, -1)
    count = image.shape[axis]
    out = sum(weight * padded[..., at : at + count] for at, weight in enumerate(weights))
    return np.moveaxis(np.asarray(out), -1, axis)


@final
@dataclass(frozen=True)
class RandomErasing:
    """Make a hole of random size with a probability (Zhong et al. 2017).

    Args:
        p: the probability.
        scale: the share of the area that is erased.
        ratio: the height of the hole over its width, uniform in the logarithm.
        value: what is in it: a number, one for each channel, or ``"random"`` numbers: normal ones,
            or any bytes among bytes.

    Example:
        >>> image = np.ones((3, 8, 8), np.uint8)
        >>> int(RandomErasing(1.0)(image, np.random.default_rng(0)).min())
        0
    """

    p: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    value: float | Sequence[float] | Literal["random"] = 0.0

    def __post_init__(self) -> None:
        between("RandomErasing", p=self.p, scale=self.scale)
        between("RandomErasing", 1e-3, 1e3, ratio=self.ratio)

    def __call__(self, item: Any, rng: np.random.Generator) -> Any:
        """Return the item, with a hole in its picture or as it is."""
        image = picture("RandomErasing", item)
        high, wide = image.shape[-2:]
        if not chance(rng, self.p):
            return item
        found = sides(high * wide, self.scale, self.ratio, rng)
        fitting = next(((h, w) for h, w in found if h < high and w < wide), None)
        if fitting is None:
            return item
        height, width = fitting
        top, left = rng.integers(high - height + 1), rng.integers(wide - width + 1)
        out = image.copy()
        hole = out[..., top : top + height, left : left + width]
        if self.value != "random":
            hole[...] = np.asarray(self.value, image.dtype).reshape(-1, *[1] * (image.ndim - 1))
        elif image.dtype == np.uint8:
            hole[...] = rng.integers(0, 256, hole.shape, np.uint8)
        else:
            hole[...] = rng.standard_normal(hole.shape)
        return replaced(item, out)


@final
@dataclass(frozen=True)
class Normalize:
    """Take the mean of each channel away, and divide by its standard deviation.

    Whole numbers are bytes, and divided by 255 first. Takes pictures, and batches of them: arrays,
    or tensors on their device: ``DataLoader(..., transform=Normalize(...))``.

    Example:
        >>> Normalize((0.5,), (0.5,))(np.array([[[0, 255]]], np.uint8)).tolist()
        [[[-1.0, 1.0]]]
    """

    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or min(self.std) <= 0:
            got, expected = f"{self.mean}, {self.std}", "as many, and standard deviations above 0"
            raise ArgumentError("Normalize", "no such numbers", got=got, expected=expected)

    def __call__(self, item: Any) -> Any:
        """Return the item, with float32 as its picture."""
        image: Any = picture("Normalize", item, batch=True)
        channels = image.shape[-3] if image.ndim > 2 else 1
        if len(self.mean) not in (1, channels):
            what, got = f"mean and std are of {len(self.mean)} channels", f"shape {image.shape}"
            expected = f"({len(self.mean)}, height, width), or one number for all channels"
            raise ShapeError("Normalize", what, got=got, expected=expected)
        unit = 255.0 if is_whole(image) else 1.0
        std: Any = np.array(self.std, np.float32).reshape(-1, 1, 1) * np.float32(unit)
        mean: Any = np.array(self.mean, np.float32).reshape(-1, 1, 1) * np.float32(unit)
        if isinstance(image, Tensor):
            device = image.device
            mean, std = asarray(mean, device=device), asarray(std, device=device)
        return replaced(item, (image.astype("float32") - mean) / std)
