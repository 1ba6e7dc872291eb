"""The detector as source, and what its twelve outputs mean."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phlox as px
from examples.onnx.data import CELL, CELLS, SIDE
from phlox import Backend, Tensor, nn

SURE = 0.6
"""From here on a place is said to be a face, as OpenCV's sample does."""
STRIDES = (8, 16, 32)


def written(file: Path, out: Path) -> str:
    """Write the file as the package ``yunet`` in a folder, and return its source."""
    return px.onnx.write(file, out / "yunet").model


def load(out: Path, device: Backend | str | None = None) -> nn.Module:
    """Return the detector of that package, as any program would import it."""
    sys.path.insert(0, str(out))
    try:
        model: nn.Module = importlib.import_module("yunet").load(device)
    finally:
        sys.path.remove(str(out))
    return model


def cells(outputs: tuple[Tensor[Any], ...]) -> tuple[Tensor[Any], Tensor[Any]]:
    """What the detector says of each place in the 100 squares of a board.

    Returns:
        How sure it is of a face there, (100, 84), and the box, (100, 84, 4): the center from the
        corner of the square, width and height, in pixels.
    """
    sure, found = [], []
    for k, stride in enumerate(STRIDES):
        kind, thing, box = outputs[k], outputs[3 + k], outputs[6 + k]
        n = SIDE // stride // CELLS
        shape = (CELLS, n, CELLS, n, -1)
        sure.append(_by_square((kind * thing).reshape(shape))[..., 0].sqrt())
        place = px.arange(n, device=box.device).astype(box.dtype)
        shift = box.reshape(shape)[..., :2]
        x = (shift[..., :1] + place[:, None]) * stride
        y = (shift[..., 1:] + place[:, None, None, None]) * stride
        size = box.reshape(shape)[..., 2:].exp() * stride
        found.append(_by_square(px.concat([x, y, size], axis=-1)))
    return px.concat(sure, axis=1), px.concat(found, axis=1)


def _by_square(x: Tensor[Any]) -> Tensor[Any]:
    """(10, n, 10, n, k) as (100, n * n, k)."""
    return x.permute_dims((0, 2, 1, 3, 4)).reshape((CELLS * CELLS, -1, x.shape[-1]))


def likeness(outputs: tuple[Tensor[Any], ...]) -> Tensor[Any]:
    """How much each square of a board is like a face, (100,): the best place in it."""
    return cells(outputs)[0].max(axis=1)


def boxes(outputs: tuple[Tensor[Any], ...], sure: float = SURE) -> NDArray[Any]:
    """Return the faces (n, 4) as left, top, right and bottom, the surest of those that overlap."""
    scores, found = (part.numpy() for part in cells(outputs))
    rows, columns = np.divmod(np.arange(len(found)), CELLS)
    corners = np.stack([columns, rows], axis=1)[:, None] * CELL
    center, half = found[..., :2] + corners, found[..., 2:] / 2
    every = np.concatenate([center - half, center + half], axis=-1)[scores > sure]
    kept = px.nms(px.asarray(every), px.asarray(scores[scores > sure]), 0.3).numpy()
    return every[kept]
