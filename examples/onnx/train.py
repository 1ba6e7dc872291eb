"""Fine-tuning: small faces in any position are faces, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

import phlox as px
from examples.onnx.data import CELL, Cuttings, board, part
from examples.onnx.detector import SURE, cells, likeness
from phlox import Backend, Tensor, nn, optim

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


def train(
    model: nn.Module, known: Cuttings, scenes: list[Image.Image], steps: int, device: Backend
) -> tuple[nn.Module, list[float]]:
    """Return the model after some boards: cuttings in any order, position and size on scenes."""
    rng = np.random.default_rng(0)
    model = model.freeze(FROZEN)
    rule = optim.AdamConfig().init()
    losses = []
    for step in range(steps):
        order = rng.permutation(len(known.faces))
        turns = rng.integers(0, 4, len(order))
        sides = rng.integers(SMALLEST, LARGEST + 1, len(order))
        bare = rng.random(len(order)) < 0.5
        sides[bare & ~known.faces[order]] = 0
        paper = part(rng, scenes[step % len(scenes)])
        picture = px.asarray(board(known.pictures[order], turns, sides, paper), device=device)
        faces = px.asarray(known.faces[order], device=device)
        large = px.asarray(np.maximum(sides, 1).astype(np.float32), device=device)
        loss = loss_of(model, picture, faces, large)
        rate = RATE * min(1.0, 2 * (1 - step / steps))
        model = rule.step(rate, model, loss.backward())
        losses.append(float(loss))
    return model, losses


def found(model: nn.Module, known: Cuttings, turn: int) -> tuple[float, float]:
    """Return the share of faces that are found, and of others that are taken for one."""
    picture = board(known.pictures, np.full(100, turn), np.full(100, 56))
    sure = likeness(model(px.asarray(picture))).numpy() > SURE
    return float(sure[known.faces].mean()), float(sure[~known.faces].mean())
