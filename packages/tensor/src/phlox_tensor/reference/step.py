"""Optimizer steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..shapes.step import LEAST_NORM
from ._precision import wide64, widen

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]


def _wide(arrays: Arrays, count: int) -> list[Array]:
    """The arrays, widened; zeros for those that are not there."""
    return [widen(a) for a in arrays] if arrays else [np.zeros((), np.float32)] * count


def adam_step(  # noqa: PLR0913, PLR0917 - what the op takes
    tensors: Arrays,
    grads: Arrays,
    firsts: Arrays,
    seconds: Arrays,
    largest: Arrays,
    lr: float,
    time: int,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
) -> Arrays:
    count = len(tensors)
    lists = [_wide(x, count) for x in (tensors, grads, firsts, seconds, largest)]
    out: list[list[Array]] = [[], [], [], []]
    for x, given, old_m, old_v, old_top in zip(*lists, strict=True):
        g = given if decoupled or not weight_decay else given + x * weight_decay
        m = old_m * beta_1 + g * (1 - beta_1)
        v = old_v * beta_2 + g * g * (1 - beta_2)
        top = np.maximum(v, old_top) if amsgrad else v
        move = m / (1 - beta_1**time) / (np.sqrt(top / (1 - beta_2**time)) + epsilon)
        kept = x * (1 - lr * weight_decay) if decoupled and weight_decay else x
        for values, value in zip(out, (kept - lr * move, m, v, top), strict=True):
            values.append(value)
    return tuple(a for values in out[: 4 if amsgrad else 3] for a in values)


def clip_norms(grads: Arrays, threshold: float, joint: bool) -> Arrays:
    squares = [(wide64(g) ** 2).sum() for g in grads]
    norms = [np.sqrt(sum(squares) if joint else each) for each in squares]
    factors = [np.minimum(threshold / (norm + LEAST_NORM), 1.0) for norm in norms]
    return tuple(g * f for g, f in zip(map(wide64, grads), factors, strict=True))


def sgd_step(
    tensors: Arrays,
    grads: Arrays,
    velocities: Arrays,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> Arrays:
    count = len(tensors)
    lists = [_wide(x, count) for x in (tensors, grads, velocities)]
    out, moves = [], []
    for x, given, old in zip(*lists, strict=True):
        g = given + x * weight_decay if weight_decay else given
        v = old * momentum + g * (1 - dampening) if velocities else g
        move = g if not momentum else g + v * momentum if nesterov else v
        out.append(x - lr * move)
        moves.append(v)
    return (*out, *moves) if momentum else tuple(out)
