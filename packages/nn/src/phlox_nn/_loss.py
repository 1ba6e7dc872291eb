"""Losses: from predictions and targets to one number, or one per example."""

from __future__ import annotations

from typing import Any, Literal

from phlox_tensor import (
    Backend,
    Float,
    Int,
    KindError,
    ShapeError,
    Tensor,
    asarray,
    log_softmax,
    take,
    take_along_axis,
    where,
)

from ._config import Config
from ._module import Module

Reduction = Literal["mean", "sum", "none"]


def reduce(losses: Tensor[Float], reduction: Reduction) -> Tensor[Float]:
    """Return the mean, the sum, or the losses as they are."""
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


class CrossEntropyLossConfig(Config):
    """Settings of ``CrossEntropyLoss``.

    Attributes:
        weights: factor per class, or None.
        smoothing: share of the target that is spread over all classes.
        pad_tokens: targets that do not count.
        reduction: ``"mean"`` (weighted, over what counts), ``"sum"`` or ``"none"``.
    """

    weights: tuple[float, ...] | None = None
    smoothing: float = 0.0
    pad_tokens: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    def init(self, device: Backend | str | None = None) -> CrossEntropyLoss:
        """Return the loss; it has no parameters."""
        del device
        return CrossEntropyLoss.from_fields(settings=self)


class CrossEntropyLoss(Module):
    """Negative log-likelihood of classes: ``-ln softmax(logits)[target]``."""

    config = CrossEntropyLossConfig
    settings: CrossEntropyLossConfig

    def forward(self, logits: Tensor[Float], targets: Tensor[Int]) -> Tensor[Float]:
        """Return the loss of logits (…, classes) for class indices (…).

        Raises:
            ShapeError: when targets do not have the shape of logits without the last axis.
            KindError: when targets are not integers.
        """
        if targets.dtype.kind != "Int":
            raise KindError(
                "cross_entropy",
                "targets are not class indices",
                got=targets.dtype,
                expected="Int",
                hint="targets.astype(px.int64)",
            )
        if logits.ndim < 1 or targets.shape != logits.shape[:-1]:
            raise ShapeError(
                "cross_entropy",
                "targets do not fit the logits",
                got=f"logits {logits.shape}, targets {targets.shape}",
                expected=f"targets {logits.shape[:-1]}",
            )
        s = self.settings
        log_p = log_softmax(logits, axis=-1)
        losses = -take_along_axis(log_p, targets[..., None], axis=-1).squeeze(-1)
        weights = None if s.weights is None else _like(s.weights, logits)
        counts = None if weights is None else take(weights, targets, axis=0)
        if counts is not None:
            losses = losses * counts
        if s.smoothing:
            spread = log_p if weights is None else log_p * weights
            losses = losses * (1 - s.smoothing) - spread.mean(axis=-1) * s.smoothing
        return self._reduce(losses, counts, targets)

    def _reduce(
        self, losses: Tensor[Float], counts: Tensor[Float] | None, targets: Tensor[Int]
    ) -> Tensor[Float]:
        for token in self.settings.pad_tokens:
            real = targets != token
            losses = where(real, losses, 0.0)
            ones = losses.detach() * 0 + 1 if counts is None else counts
            counts = where(real, ones, 0.0)
        if self.settings.reduction == "mean" and counts is not None:
            return losses.sum() / counts.sum()
        return reduce(losses, self.settings.reduction)


def _like(values: tuple[float, ...], x: Tensor[Any]) -> Tensor[Any]:
    return asarray(list(values), dtype=x.dtype, device=x.device)


class MseLossConfig(Config):
    """Settings of ``MseLoss``: ``"mean"``, ``"sum"`` or ``"none"``."""

    reduction: Reduction = "mean"

    def init(self, device: Backend | str | None = None) -> MseLoss:
        """Return the loss; it has no parameters."""
        del device
        return MseLoss.from_fields(reduction=self.reduction)


class MseLoss(Module):
    """Squared distance: ``(prediction - target)²``."""

    config = MseLossConfig
    reduction: Reduction

    def forward(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        """Return the loss of two tensors of one shape.

        Raises:
            ShapeError: when the shapes differ.
        """
        if prediction.shape != target.shape:
            raise ShapeError(
                "mse_loss",
                "shapes differ",
                got=f"{prediction.shape} and {target.shape}",
                expected="one shape",
                hint="target.reshape(prediction.shape)",
            )
        return reduce((prediction - target).square(), self.reduction)
