"""Draws one picture: a board with what the detector finds on it, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from examples.onnx.data import SIDE

_PAPER, _INK, _BOX = "#ffffff", "#222222", "#2fbf4f"
_HEAD, _GAP, _SHOWN = 34, 16, 448


def draw(path: Path, picture: NDArray[Any], titled: dict[str, NDArray[Any]]) -> None:
    """Write the picture as PNG.

    Args:
        path: where to.
        picture: what the detector saw, (1, 3, 640, 640).
        titled: boxes (n, 4) by what is written above.
    """
    width = len(titled) * (_SHOWN + _GAP) - _GAP
    image = Image.new("RGB", (width, _HEAD + _SHOWN), _PAPER)
    pen = ImageDraw.Draw(image)
    seen = Image.fromarray(picture[0].transpose(1, 2, 0)[..., ::-1].astype(np.uint8))
    for i, (title, boxes) in enumerate(titled.items()):
        left = i * (_SHOWN + _GAP)
        pen.text((left, 8), title, _INK, font=ImageFont.load_default(16))
        image.paste(_boxed(seen, boxes), (left, _HEAD))
    image.quantize(64).save(path, optimize=True)


def _boxed(seen: Image.Image, boxes: NDArray[Any]) -> Image.Image:
    shown = seen.resize((_SHOWN, _SHOWN))
    pen = ImageDraw.Draw(shown)
    for box in boxes * (_SHOWN / SIDE):
        pen.rectangle([float(v) for v in box], outline=_BOX, width=2)
    return shown
