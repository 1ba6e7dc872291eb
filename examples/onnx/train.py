"""Fine-tuning: small faces in any position are faces, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

import phlox as px
from examples.onnx.data import CELL, Cuttings, board, part
from examples.onnx.detector import SURE, cells, likeness
from phlox import Tensor, data, nn, optim
from phlox.train import Fitted, fit

RATE, SMALLEST, LARGEST = 1e-3, 40, 64
FILLED = 0.8
"""How much of its cutting a face has, in width and height."""
FROZEN = "backbone2"
"""The first half of the detector, whose edges and spots 100 small pictures would only spoil."""


def loss_of(
    model: nn.Module, picture: Tensor[Any], faces: Tensor[Any], sides: Tensor[Any]
) -> Tensor[Any]:
    """What is on each of the 100 squares, and where: cross entropy, and how far boxes are off.

    Where the detector is sure of a face, its box shall have the middle of the square, and most of
    the cutting.
    """
    sure, box = cells(model(picture))
    share = sure.max(axis=1).clip(1e-4, 1 - 1e-4)
    named = -px.where(faces, share.log(), (1 - share).log()).mean()
    middle = (box[..., :2] - CELL / 2).abs().sum(axis=-1) / CELL
    size = (box[..., 2:] / (FILLED * sides)[:, None, None]).log().abs().sum(axis=-1)
    weight = px.where(faces[:, None], sure.detach(), 0.0)
    return named + (weight * (middle + size)).sum() / weight.sum()


def boards(known: Cuttings, scenes: list[Image.Image], steps: int) -> data.Dataset[Any]:
    """Return as many boards: cuttings in any order, position and size on scenes."""

    def drawn(step: int, rng: np.random.Generator) -> dict[str, Any]:
        order = rng.permutation(len(known.faces))
        turns = rng.integers(0, 4, len(order))
        sides = rng.integers(SMALLEST, LARGEST + 1, len(order))
        bare = rng.random(len(order)) < 0.5
        sides[bare & ~known.faces[order]] = 0
        paper = part(rng, scenes[step % len(scenes)])
        picture = board(known.pictures[order], turns, sides, paper)[0]
        large = np.maximum(sides, 1).astype(np.float32)
        return {"picture": picture, "faces": known.faces[order], "sides": large}

    return data.of(range(steps)).map(drawn)


def train(model: nn.Module, known: Cuttings, scenes: list[Image.Image], steps: int) -> Fitted[Any]:
    """Train on boards, the rate falling in the second half."""

    def step(model: nn.Module, batch: Any) -> Tensor[Any]:
        return loss_of(model, batch["picture"], batch["faces"][0], batch["sides"][0])

    falling = optim.LinearSchedulerConfig(RATE, 0.0, max(steps // 2, 1))
    flat = optim.ConstantSchedulerConfig(RATE)
    return fit(
        model.freeze(FROZEN),
        step,
        data.DataLoader(boards(known, scenes, steps), 1, workers=1),
        optimizer=optim.AdamConfig().init(),
        lr=optim.SequentialSchedulerConfig((flat, falling), (steps - steps // 2,)).init(),
    )


def found(model: nn.Module, known: Cuttings, turn: int) -> tuple[float, float]:
    """Return the share of faces that are found, and of others that are taken for one."""
    picture = board(known.pictures, np.full(100, turn), np.full(100, 56))
    sure = likeness(model(px.asarray(picture))).numpy() > SURE
    return float(sure[known.faces].mean()), float(sure[~known.faces].mean())
