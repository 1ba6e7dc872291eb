"""Loads the saved classifier in a process of its own and runs it on three backends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phlox as px
from examples.mnist.batches import normalized
from examples.mnist.data import load
from examples.mnist.model import Digits, DigitsConfig
from phlox.record import HalfPrecision, NamedMsgpackRecorder

_SLOW = 2_000
"""Images for the backends that are slow: the reference, and GPUs that are emulated."""


def restore(folder: Path, device: px.Backend) -> Digits:
    """Return the saved model on ``device``; no parameter is initialized on the way."""
    record = NamedMsgpackRecorder(HalfPrecision).load(folder / "digits", device=device)
    model: Digits = DigitsConfig.load(folder / "digits.json").init_with(record)
    return model


def backends(everything: int) -> list[tuple[px.Backend, int]]:
    """Return the three backends and how many test images each gets."""
    gpu = px.Wgpu()
    return [
        (px.Numpy(), _SLOW),
        (gpu, _SLOW if gpu.is_software else everything),
        (px.Cpu(), everything),
    ]


def predict(
    model: Callable[[px.Tensor[px.Float]], px.Tensor[px.Float]],
    images: NDArray[np.float32],
    device: px.Backend,
) -> NDArray[np.float32]:
    """Return the logits of all images, of which a batch has 500."""
    batches = (images[start : start + 500] for start in range(0, len(images), 500))
    parts = [model(px.asarray(batch, device=device)).numpy() for batch in batches]
    return np.concatenate(parts).astype(np.float32)


def accuracy(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the share of images whose largest logit is the label's."""
    return float((logits.argmax(axis=1) == labels).mean())


def timed(
    model: Callable[[px.Tensor[px.Float]], px.Tensor[px.Float]],
    images: NDArray[np.float32],
    device: px.Backend,
) -> tuple[NDArray[np.float32], float]:
    """Return logits and images per second, after a run that builds what a first run builds."""
    predict(model, images[:500], device)
    start = time.perf_counter()
    logits = predict(model, images, device)
    return logits, len(images) / (time.perf_counter() - start)


def main(folder: Path) -> NDArray[Any]:
    """Print the table and return the logits of the whole test set."""
    test = load().test
    images = normalized(test)
    rows = []
    reference: NDArray[np.float32] | None = None
    logits = np.empty((0, 10), np.float32)
    for device, count in backends(len(images)):
        model = restore(folder, device)
        logits, rate = timed(model, images[:count], device)
        replayed, compiled = timed(px.compile(model), images[:count], device)
        if reference is None:
            reference = logits
        common = min(len(reference), count)
        both = np.abs(
            [logits[:common] - reference[:common], replayed[:common] - reference[:common]]
        )
        gap = float(both.max())
        name = repr(device) + (" (software)" if getattr(device, "is_software", False) else "")
        rows.append((name, count, accuracy(logits, test.labels[:count]), rate, compiled, gap))
    heads = f"{'images/s':>9} {'compiled':>9} {'gap to NumPy':>13}"
    print(f"{'backend':<20} {'images':>7} {'accuracy':>9} {heads}")
    for name, count, share, rate, compiled, gap in rows:
        print(f"{name:<20} {count:>7,} {share:>9.2%} {rate:>9,.0f} {compiled:>9,.0f} {gap:>13.1e}")
    return logits


if __name__ == "__main__":
    target = Path(sys.argv[1])
    np.save(target / "logits.npy", main(target))
