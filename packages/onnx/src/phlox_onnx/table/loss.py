"""Losses, for files of training graphs."""

from __future__ import annotations

from typing import Any, Final, Literal

import phlox_tensor as px
from phlox_tensor import Tensor

from ._row import Row, row

T = Tensor[Any]
LossReduction = Literal["none", "sum", "mean"]


def _nll(
    log_p: T, target: T, weight: T | None, reduction: LossReduction, ignore_index: int | None
) -> T:
    """Negative log-likelihood of the classes along axis 1."""
    kept = None
    if ignore_index is not None:
        kept = target != ignore_index
        target = kept.where(target, 0)
    picked = log_p.take_along_axis(target.expand_dims(axis=1), axis=1).squeeze(1)
    if weight is None:
        weights = picked.zeros() + 1.0
    else:
        weights = weight.take(target.flatten(), axis=0).reshape(target.shape)
    if kept is not None:
        weights = kept.where(weights, 0.0)
    losses = -picked * weights
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / weights.sum()


def likelihood(
    input: T,
    target: T,
    weight: T | None = None,
    *,
    ignore_index: int | None = None,
    reduction: LossReduction = "mean",
) -> T:
    return _nll(input, target, weight, reduction, ignore_index)


def cross_entropy(
    scores: T,
    labels: T,
    weights: T | None = None,
    *,
    ignore_index: int | None = None,
    reduction: LossReduction = "mean",
) -> tuple[T, T]:
    log_p = px.log_softmax(scores, axis=1)
    return _nll(log_p, labels, weights, reduction, ignore_index), log_p


ROWS: Final[dict[str, Row]] = {
    "NegativeLogLikelihoodLoss": row(22, likelihood, scalar=True),
    "SoftmaxCrossEntropyLoss": row(13, cross_entropy, scalar=True),
}
