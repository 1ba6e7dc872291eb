"""Draws one picture: the training curve, and test digits with what the model says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from examples.mnist.data import Split
from phlox.train import Fitted

_PAPER, _INK, _GRID = "#ffffff", "#222222", "#dddddd"
_CURVE, _SMOOTH, _WRONG, _RIGHT = "#f3c9b5", "#c8451b", "#d62728", "#2a7f3f"
_SIZE = (1200, 560)
_PLOT = (70, 60, 560, 500)
_CELL, _COLUMNS, _ROWS = 66, 8, 6
_ORIGIN = (630, 78)
_DECADES = (-3, 1)  # powers of ten on the loss axis


def draw(path: Path, done: Fitted[Any], test: Split, logits: NDArray[Any]) -> None:
    """Write the picture as PNG."""
    image = Image.new("RGB", _SIZE, _PAPER)
    pen = ImageDraw.Draw(image)
    _curve(pen, done)
    _digits(image, pen, test, logits)
    image.save(path, optimize=True)


def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _curve(pen: ImageDraw.ImageDraw, done: Fitted[Any]) -> None:
    left, top, right, bottom = _PLOT
    history, epochs = done.history("train/loss"), done.history("valid/accuracy")
    title = f"training loss, {len(history):,} steps; test accuracy {epochs.values[-1]:.2%}"
    pen.text((left, 24), title, _INK, font=_font(18))
    low, high = _DECADES
    for power in range(low, high + 1):
        y = bottom - (power - low) / (high - low) * (bottom - top)
        pen.line((left, y, right, y), _GRID)
        pen.text((left - 8, y), f"{10.0**power:g}", _INK, anchor="rm", font=_font(13))
    losses = np.clip(history.values, 10.0**low, 10.0**high)
    if len(losses) < 2:
        return
    pen.line(_points(losses), _CURVE, width=1)
    window = min(50, len(losses))
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    pen.line(_points(smooth, len(losses)), _SMOOTH, width=3)
    seconds = np.diff(epochs.seconds, prepend=0.0)
    for i, (step, share) in enumerate(zip(epochs.steps, epochs.values, strict=True)):
        x = float(left + (right - left) * step / len(losses))
        pen.line((x, top, x, bottom), _GRID)
        label = f"epoch {i + 1}\n{share:.2%}\n{seconds[i]:.1f} s"
        pen.multiline_text(
            (x - 6, top + 4), label, _INK, anchor="ra", align="right", font=_font(13)
        )
    pen.rectangle(_PLOT, outline=_INK)


def _points(values: NDArray[Any], steps: int | None = None) -> list[tuple[float, float]]:
    left, top, right, bottom = _PLOT
    low, high = _DECADES
    total = steps or len(values)
    first = total - len(values)
    heights = (np.log10(values) - low) / (high - low)
    return [
        (left + (right - left) * (first + i) / total, bottom - float(h) * (bottom - top))
        for i, h in enumerate(heights)
    ]


def _digits(
    image: Image.Image, pen: ImageDraw.ImageDraw, test: Split, logits: NDArray[Any]
) -> None:
    guesses = logits.argmax(axis=1)
    wrong = np.flatnonzero(guesses != test.labels[: len(guesses)])
    right = np.flatnonzero(guesses == test.labels[: len(guesses)])
    cells = _COLUMNS * _ROWS
    mistakes = wrong[: cells // 2]
    shown = np.concatenate([mistakes, right[: cells - len(mistakes)]])
    x0, y0 = _ORIGIN
    title = f"{len(wrong)} mistakes in {len(guesses):,} test digits (red: guess, was)"
    pen.text((x0, 24), title, _INK, font=_font(18))
    for cell, index in enumerate(shown):
        x = x0 + cell % _COLUMNS * _CELL
        y = y0 + cell // _COLUMNS * (_CELL + 8)
        picture = Image.fromarray(255 - test.images[index]).resize((46, 46))
        image.paste(picture.convert("RGB"), (x + 4, y))
        guess, label = int(guesses[index]), int(test.labels[index])
        good = guess == label
        text = str(guess) if good else f"{guess}, was {label}"
        pen.rectangle((x + 3, y - 1, x + 50, y + 46), outline=_RIGHT if good else _WRONG)
        pen.text((x + 27, y + 49), text, _RIGHT if good else _WRONG, anchor="ma", font=_font(13))
