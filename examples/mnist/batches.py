"""From stored digits to batches on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phlox as px
from examples.mnist.data import MEAN, STD, Split
from phlox import Backend, Float, Int, Tensor


def normalized(split: Split) -> NDArray[np.float32]:
    """Return the images as (n, 1, 28, 28) with mean 0 and standard deviation 1."""
    scaled = split.images.astype(np.float32) * np.float32(1 / (255 * STD))
    scaled -= np.float32(MEAN / STD)
    return scaled[:, None]


def shuffled(
    images: NDArray[np.float32], labels: NDArray[Any], size: int, seed: int, device: Backend
) -> Iterator[tuple[Tensor[Float], Tensor[Int]]]:
    """Yield whole batches in an order that follows from the seed; the rest is left out."""
    order = np.random.default_rng(seed).permutation(len(images))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield (
            px.asarray(images[chosen], device=device),
            px.asarray(labels[chosen].astype(np.int64), device=device),
        )


def in_order(images: NDArray[np.float32], size: int, device: Backend) -> Iterator[Tensor[Float]]:
    """Yield all images in batches."""
    for start in range(0, len(images), size):
        yield px.asarray(images[start : start + size], device=device)
