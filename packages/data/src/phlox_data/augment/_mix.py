"""Mixtures of the items of a batch, and of their labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, final

import numpy as np

from phlox_tensor import ArgumentError, Tensor, asarray, one_hot, where

from ._item import between, is_whole


@final
@dataclass(frozen=True)
class MixUp:
    """Mix each picture of a batch with the one before it, and their labels (Zhang et al. 2017).

    For batches, arrays or tensors: ``DataLoader(..., transform=MixUp(num_classes=10))``. Labels
    become float32 (batch, classes); bytes stay bytes. The share is Beta(alpha, alpha).

    Example:
        >>> batch = {"image": np.zeros((4, 3, 8, 8), np.uint8), "label": np.array([0, 1, 2, 0])}
        >>> MixUp(num_classes=3)(batch, np.random.default_rng(0))["label"].shape
        (4, 3)
    """

    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        between("MixUp", 1e-9, 1e9, alpha=self.alpha)

    def __call__(self, batch: Any, rng: np.random.Generator) -> Any:
        """Return the batch, mixed."""
        share = float(rng.beta(self.alpha, self.alpha))

        def mixed(images: Any) -> Any:
            floats = images.astype("float32")
            out = floats * share + _rolled(floats) * (1.0 - share)
            return (out.round() if is_whole(images) else out).astype(images.dtype)

        return _mixed("MixUp", batch, mixed, share, self.num_classes)


@final
@dataclass(frozen=True)
class CutMix:
    """Put a part of the picture before it into each one of a batch (Yun et al. 2019).

    Labels are mixed by the area. Settings and batches are those of ``MixUp``.

    Example:
        >>> batch = {"image": np.zeros((4, 3, 8, 8), np.uint8), "label": np.array([0, 1, 2, 0])}
        >>> CutMix(num_classes=3)(batch, np.random.default_rng(0))["image"].shape
        (4, 3, 8, 8)
    """

    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        between("CutMix", 1e-9, 1e9, alpha=self.alpha)

    def __call__(self, batch: Any, rng: np.random.Generator) -> Any:
        """Return the batch, mixed."""
        images, _ = _parts("CutMix", batch)
        high, wide = images.shape[-2:]
        half = 0.5 * sqrt(1.0 - float(rng.beta(self.alpha, self.alpha)))
        x, y = int(rng.integers(wide)), int(rng.integers(high))
        inside = np.zeros((high, wide), np.bool_)
        across, down = int(half * wide), int(half * high)
        inside[max(0, y - down) : y + down, max(0, x - across) : x + across] = True
        share = 1.0 - float(inside.mean())

        def mixed(images: Any) -> Any:
            if isinstance(images, Tensor):
                return where(asarray(inside, device=images.device), _rolled(images), images)
            return np.where(inside, _rolled(images), images)

        return _mixed("CutMix", batch, mixed, share, self.num_classes)


def _mixed(
    op: str, batch: Any, change: Callable[[Any], Any], share: float, classes: int | None
) -> Any:
    images, labels = _parts(op, batch)
    if labels.ndim == 1:
        if classes is None:
            what, hint = "labels are numbers of classes", f"augment.{op}(num_classes=10)"
            raise ArgumentError(op, what, got="num_classes=None", hint=hint)
        labels = _one_hot(op, labels, classes)
    labels = labels * share + _rolled(labels) * (1.0 - share)
    if isinstance(batch, tuple):
        return (change(images), labels, *batch[2:])
    return {**batch, "image": change(images), "label": labels}


def _parts(op: str, batch: Any) -> tuple[Any, Any]:
    """Images and labels of a batch, which has them by name or as a pair."""
    if isinstance(batch, tuple) and len(batch) > 1:
        images, labels = batch[:2]
    elif isinstance(batch, dict) and {"image", "label"} <= set(batch):
        images, labels = batch["image"], batch["label"]
    else:
        got = ", ".join(map(str, batch)) if isinstance(batch, dict) else type(batch).__name__
        expected = "image and label, by name or as a pair"
        raise ArgumentError(op, "the batch has no pictures and labels", got=got, expected=expected)
    if images.ndim != 4 or labels.shape[0] != images.shape[0]:
        got, expected = f"{images.shape}, {labels.shape}", "(batch, channels, height, width)"
        raise ArgumentError(op, "no batch of pictures", got=got, expected=expected)
    return images, labels


def _one_hot(op: str, labels: Any, classes: int) -> Any:
    if isinstance(labels, Tensor):
        return one_hot(labels, classes).astype("float32")
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        got, expected = f"{labels.min()} to {labels.max()}", f"0 to {classes - 1}"
        raise ArgumentError(op, "labels of other classes", got=got, expected=expected)
    return (labels.reshape(-1, 1) == np.arange(classes)).astype(np.float32)


def _rolled(array: Any) -> Any:
    return array.roll(1, axis=0) if isinstance(array, Tensor) else np.roll(array, 1, axis=0)
