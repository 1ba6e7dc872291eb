"""Losses of narrow types, whose sums, counts and lengths are out of the range of these types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import models
from phlox_tensor import Tensor

MANY = 70_000  # more than float16 has


def classes(rows: int, dtype: str) -> tuple[Tensor, Tensor]:
    """Logits by which the loss of each row is 20."""
    logits = pt.asarray([[20.0, 0.0]], dtype=dtype).broadcast_to((rows, 2))
    return logits, pt.ones(rows, dtype="int64")


def filled(dtype: str) -> Tensor:
    logits, targets = classes(MANY, dtype)
    return nn.CrossEntropyLoss(pad_tokens=(-1,))(logits, targets)


def few(dtype: str) -> Tensor:
    logits, targets = classes(8192, dtype)
    return nn.CrossEntropyLoss(pad_tokens=(-1,))(logits, targets)


def weighted(dtype: str) -> Tensor:
    return nn.CrossEntropyLoss((1.0, 10_000.0))(*classes(64, dtype))


def divergence(dtype: str) -> Tensor:
    shares = pt.full((8192, 2), 0.5, dtype=dtype)
    return nn.KlDivLoss(reduction="batch_mean")(shares.log() - 20.0, shares)


def margins(dtype: str) -> Tensor:
    return nn.MultiMarginLoss()(pt.zeros((1, MANY), dtype=dtype), pt.asarray([0])) * 20.0


def labels(dtype: str) -> Tensor:
    target = pt.asarray([[*range(300), *[-1] * 300]])
    return nn.MultiLabelMarginLoss()(pt.zeros((1, 600), dtype=dtype), target) / 7.5


def code(dtype: str) -> Tensor:
    zeros = pt.zeros((256, 2), dtype=dtype)
    found = models.VaeResult(pt.full((256, 784), -10.0, dtype=dtype), zeros, zeros)
    return found.loss(pt.ones((256, 784), dtype=dtype)) / 7840 * 20.0


LOSSES: list[Callable[[str], Tensor]] = [
    filled, few, weighted, divergence, margins, labels, code,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_a_loss_is_what_it_is_in_a_wide_type(loss: Any, dtype: str) -> None:
    found = loss(dtype)
    assert found.dtype.name == dtype
    assert loss("float32").item() == pytest.approx(20.0, rel=1e-4)
    assert found.item() == pytest.approx(20.0, rel=0.01)  # half of the last bit of bfloat16, thrice
