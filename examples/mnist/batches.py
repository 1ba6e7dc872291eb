"""From stored digits to a dataset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from examples.mnist.data import MEAN, STD, Split
from phlox import data


def normalized(split: Split) -> NDArray[np.float32]:
    """Return the images as (n, 1, 28, 28) with mean 0 and standard deviation 1."""
    scaled = split.images.astype(np.float32) * np.float32(1 / (255 * STD))
    scaled -= np.float32(MEAN / STD)
    return scaled[:, None]


def rows(split: Split) -> data.Dataset[dict[str, NDArray[np.generic]]]:
    """Return images and labels as a dataset."""
    return data.arrays(image=normalized(split), label=split.labels.astype(np.int64))
