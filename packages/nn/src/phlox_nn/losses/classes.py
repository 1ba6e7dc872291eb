"""Losses: from predictions and targets to one number, or one per example."""

from __future__ import annotations

from math import nan
from typing import Any, Literal, cast

from phlox_tensor import (
    ArgumentError,
    Bool,
    Float,
    IndexOutOfRangeError,
    Int,
    KindError,
    ShapeError,
    Tensor,
    asarray,
    cross_entropy,
    log_softmax,
    take,
    where,
)

from ..module.layer import Stateless

Reduction = Literal["mean", "sum", "none"]


def reduce(losses: Tensor[Float], reduction: Reduction) -> Tensor[Float]:
    """Return the mean, the sum, or the losses as they are."""
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def check_same(
    op: str, prediction: Tensor[Float], target: Tensor[Any], *, kinds: bool = True
) -> None:
    """Refuse to broadcast, which would hide that two tensors do not belong together."""
    if prediction.shape != target.shape:
        raise ShapeError(
            op,
            "shapes differ",
            got=f"{prediction.shape} and {target.shape}",
            expected="one shape",
            hint="target.reshape(prediction.shape)",
        )
    if kinds and prediction.dtype.kind != target.dtype.kind:
        raise KindError(
            op,
            "predictions and targets are of different kinds",
            got=f"{prediction.dtype} and {target.dtype}",
            expected="floats",
            hint=f"target.astype({prediction.dtype.name!r})",
        )


def check_classes(op: str, targets: Tensor[Any]) -> None:
    """Refuse targets that are no class indices."""
    if targets.dtype.kind != "Int":
        raise KindError(
            op,
            "targets are not class indices",
            got=targets.dtype,
            expected="Int",
            hint="targets.astype(px.int64)",
        )


class OfClasses(Stateless, shared=True):
    """Settings of losses of classes.

    Args:
        weights: factor per class, or None.
        smoothing: share of the target that is spread over all classes.
        pad_tokens: targets that do not count; of class indices alone.
        reduction: ``"mean"`` (weighted, over what counts), ``"sum"`` or ``"none"``.
    """

    weights: tuple[float, ...] | None = None
    smoothing: float = 0.0
    pad_tokens: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("smoothing", 0.0 <= self.smoothing <= 1.0, "a share: 0 <= smoothing <= 1")

    def _each(
        self, logits: Tensor[Float], targets: Tensor[Int]
    ) -> tuple[Tensor[Float], Tensor[Float] | None]:
        """The loss of each class index, and how much it counts in a mean; None for all alike."""
        s = self.settings
        classes = _check(logits, targets, s.weights)
        wide = targets.device.default_int
        if targets.dtype is not wide:  # uint8 may not hold a pad token
            targets = targets.astype(wide)
        counts = _real(targets, s.pad_tokens)
        # A negative index would count from the end; without its sign it is past the last class.
        index = targets & ((1 << (8 * wide.itemsize - 1)) - 1)
        if counts is not None:
            index = where(counts, index, 0)
        try:
            losses = cross_entropy(logits, index).to_full_precision()
        except IndexOutOfRangeError as error:
            raise no_class("cross_entropy", targets, counts, classes, pads=True) or error from None
        # Narrow types hold neither a sum of many losses nor how many there are.
        weights = None if s.weights is None else like(s.weights, losses)
        shares = None if weights is None else take(weights, index, axis=0)
        if shares is not None:
            losses = losses * shares
        if s.smoothing:
            log_p = log_softmax(logits, axis=-1)
            spread = log_p if weights is None else log_p * weights
            losses = losses * (1 - s.smoothing) - spread.mean(axis=-1) * s.smoothing
        if counts is not None:
            losses = where(counts, losses, 0.0)
            shares = where(counts, 1.0 if shares is None else shares, 0.0).astype(losses.dtype)
        return losses, shares

    def _reduced(self, losses: Tensor[Float], shares: Tensor[Float] | None) -> Tensor[Float]:
        """One number of the losses, or the losses as they are."""
        if self.settings.reduction == "mean" and shares is not None:
            return losses.sum() / shares.sum()
        return reduce(losses, self.settings.reduction)


class CrossEntropyLoss(OfClasses):
    """Negative log-likelihood of classes: ``-ln softmax(logits)[target]``.

    Targets may be probabilities of all classes as well: ``-Σ target · ln softmax(logits)``.
    """

    def forward(self, logits: Tensor[Float], targets: Tensor[Int] | Tensor[Float]) -> Tensor[Float]:
        """Return the loss of logits (…, classes) for class indices (…).

        Floats are probabilities (…, classes), of which one below 0 gives nan. Their mean is over
        examples, whatever the weights, as in PyTorch.

        Raises:
            ShapeError: when targets do not have the shape of logits without the last axis, or
                there are not as many weights as classes.
            KindError: when targets are neither integers nor probabilities of all classes.
            IndexOutOfRangeError: when a target is no class and no pad token.
            ArgumentError: for probabilities beside pad tokens.
        """
        if targets.dtype.kind == "Float" and targets.shape == logits.shape and logits.shape:
            return self._of_shares(logits, cast("Tensor[Float]", targets))
        each = self._each(logits, cast("Tensor[Int]", targets))
        return self._reduced(*each).astype(logits.dtype)

    def _of_shares(self, logits: Tensor[Float], targets: Tensor[Float]) -> Tensor[Float]:
        """The loss for probabilities."""
        s, classes = self.settings, logits.shape[-1]
        if s.pad_tokens:
            raise ArgumentError(
                "cross_entropy",
                "pad tokens are class indices",
                got="targets that are probabilities",
                expected="pad_tokens=()",
                hint='nn.CrossEntropyLoss(reduction="none"), and a mean over what counts',
            )
        _check_weights(s.weights, classes)
        if s.smoothing:
            targets = targets * (1 - s.smoothing) + s.smoothing / classes
        log_p = log_softmax(logits, axis=-1)
        log_p = log_p if s.weights is None else log_p * like(s.weights, logits)
        losses = where(targets >= 0, targets * log_p, nan).sum(axis=-1)
        return reduce(-losses, s.reduction)


def no_class(
    op: str, targets: Tensor[Int], counts: Tensor[Bool] | None, classes: int, *, pads: bool = False
) -> IndexOutOfRangeError | None:
    """Return the error of a target that is no class, by the number that was given.

    Args:
        op: whose error it is.
        targets: class indices, as they came.
        counts: where they count; None for everywhere.
        classes: how many there are.
        pads: whether negative targets may be left out.
    """
    real = targets if counts is None else where(counts, targets, 0)
    low, high = int(real.min()), int(real.max())
    if low >= 0 and high < classes:
        return None
    got, hint = (low if low < 0 else high), None
    if pads and low < 0:
        hint = f"nn.CrossEntropyLoss(pad_tokens=({got},)) leaves such places out"
    return IndexOutOfRangeError(
        op, "a target is out of range", got=got, expected=f"0 to {classes - 1}", hint=hint
    )


def _check(logits: Tensor[Float], targets: Tensor[Int], weights: tuple[float, ...] | None) -> int:
    """Return the number of classes, when all fits."""
    if targets.dtype.kind != "Int":
        raise KindError(
            "cross_entropy",
            "targets are not class indices",
            got=targets.dtype,
            expected="Int",
            hint="targets.astype(px.int64)"
            if targets.shape == logits.shape[:-1]
            else f"probabilities are of the shape of the logits, {logits.shape}",
        )
    shape, examples = logits.shape, targets.shape
    if not shape or examples != shape[:-1]:
        raise ShapeError(
            "cross_entropy",
            "targets do not fit the logits",
            got=f"logits {shape}, targets {examples}",
            expected=f"targets {shape[:-1]}, classes on the last axis of the logits",
            hint="logits.moveaxis(1, -1), where classes are on axis 1 as in PyTorch"
            if examples == shape[:1] + shape[2:]
            else None,
        )
    _check_weights(weights, shape[-1])
    return shape[-1]


def _check_weights(weights: tuple[float, ...] | None, classes: int) -> None:
    if weights is not None and len(weights) != classes:
        raise ShapeError(
            "cross_entropy",
            "weights do not fit the logits",
            got=f"{len(weights)} weights",
            expected=f"{classes}, one per class",
        )


def _real(targets: Tensor[Int], pad_tokens: tuple[int, ...]) -> Tensor[Bool] | None:
    """Where targets count; None when all do."""
    real: Tensor[Bool] | None = None
    for token in pad_tokens:
        other = targets != token
        real = other if real is None else real & other
    return real


def like(values: tuple[float, ...], x: Tensor[Any]) -> Tensor[Any]:
    """Return numbers as a tensor of the type and on the device of another."""
    return asarray(list(values), dtype=x.dtype, device=x.device)
