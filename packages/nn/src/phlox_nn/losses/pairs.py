"""Losses between predictions and targets of one shape."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import KW_ONLY
from functools import cache
from math import log, nan, pi
from typing import Final, Literal

from phlox_tensor import Float, ShapeError, Tensor, finfo, log_sigmoid, softplus, where

from ..module.layer import Stateless
from .classes import Reduction, check_same, like, reduce

_LEAST: Final = 1e-12  # of a probability, in the derivative of its logarithm: that of PyTorch


class _PairLoss(Stateless, shared=True):
    def forward(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        """Return the loss of two tensors of one shape.

        Raises:
            ShapeError: when the shapes differ.
            KindError: when one holds floats and the other does not.
        """
        check_same(_op_of(self.settings.kind), prediction, target)
        return reduce(self._losses(prediction, target), self.settings.reduction)

    @abstractmethod
    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        """The loss of each element."""


@cache
def _op_of(kind: str) -> str:
    """What errors of a loss call it: ``smooth_l1_loss`` of ``SmoothL1Loss``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()


class MseLoss(_PairLoss):
    """Squared distance: ``(prediction - target)²``."""

    reduction: Reduction = "mean"

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        return (prediction - target).square()


class L1Loss(_PairLoss):
    """Absolute distance: ``|prediction - target|``."""

    reduction: Reduction = "mean"

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        return (prediction - target).abs()


class LpLoss(_PairLoss):
    """Distance to a power: ``|prediction - target|ᵖ``.

    Args:
        p: the power.
    """

    p: float = 2.0
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("p", self.p > 0, "> 0")

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        return (prediction - target).abs() ** self.p


def _squares(far: Tensor[Float], bound: float) -> tuple[Tensor[Float], Tensor[Float]]:
    """Sizes of differences, and squares of those below a bound: an infinite one has no slope."""
    size = far.abs()
    return size, where(size < bound, far, 0.0).square()


class SmoothL1Loss(_PairLoss):
    """Squared near 0, absolute beyond: ``½·d² / beta`` or ``|d| - ½·beta``.

    Girshick, 2015, https://arxiv.org/abs/1504.08083

    Args:
        beta: the distance where both meet; 0 for ``L1Loss``.
    """

    beta: float = 1.0
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("beta", self.beta >= 0, ">= 0")

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        beta = self.beta
        if not beta:
            return (prediction - target).abs()
        size, squares = _squares(prediction - target, beta)
        return where(size < beta, squares * (0.5 / beta), size - 0.5 * beta)


class HuberLoss(_PairLoss):
    """Squared near 0, linear beyond: ``½·d²`` or ``delta·(|d| - ½·delta)``.

    Huber, 1964, https://doi.org/10.1214/aoms/1177703732

    Args:
        delta: the distance where both meet.
    """

    delta: float = 1.0
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("delta", self.delta > 0, "> 0")

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        delta = self.delta
        size, squares = _squares(prediction - target, delta)
        return where(size < delta, squares * 0.5, (size - 0.5 * delta) * delta)


def _held_log(p: Tensor[Float]) -> Tensor[Float]:
    """``max(ln p, -100)``, with the slope of the least p that has one where p is below: as PyTorch.

    Of 0 neither is infinite, so that a probability of 0 or 1 gives no nan.
    """
    least = max(_LEAST, float(finfo(p.dtype).smallest_normal))
    log_p = (p + (least - p).relu().detach()).log()
    return log_p + (p.log().clip(min=-100.0) - log_p).detach()


class BinaryCrossEntropyLoss(_PairLoss):
    """Negative log-likelihood of yes or no, by default from logits x.

    ``-(weights · target · ln p + (1 - target) · ln(1 - p))`` with ``p = sigmoid(x)``, or p itself
    with ``from_logits=False``, whose logarithms are at least -100. Targets are shares from 0 to 1,
    which nothing looks at; of probabilities below 0 or above 1 the loss is nan. PyTorch has two
    classes, ``BCEWithLogitsLoss`` and ``BCELoss``; its ``pos_weight`` is ``weights``, its
    ``weight``, a factor of both sides, is not here.

    Args:
        weights: factor of the yes, per class on the last axis; None for 1.
        smoothing: share of the target that becomes one half.
        from_logits: whether predictions are logits; else probabilities.
    """

    weights: tuple[float, ...] | None = None
    smoothing: float = 0.0
    from_logits: bool = True
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("smoothing", 0.0 <= self.smoothing <= 1.0, "a share: 0 <= smoothing <= 1")

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        if self.smoothing:
            target = target * (1.0 - self.smoothing) + 0.5 * self.smoothing
        if self.from_logits:
            yes, no = log_sigmoid(prediction), log_sigmoid(-prediction)
        else:
            yes, no = _held_log(prediction), _held_log(1.0 - prediction)
        gained = target * yes
        if self.weights is not None:
            gained = gained * like(self.weights, prediction)
        return -(gained + (1.0 - target) * no)


class SoftMarginLoss(_PairLoss):
    """``ln(1 + exp(-target · prediction))`` for targets of 1 and -1, the two classes.

    Targets are factors: those of 0 say nothing.
    """

    reduction: Reduction = "mean"

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        return softplus(-(prediction * target))


class KlDivLoss(Stateless):
    """Kullback-Leibler divergence from predictions, as logarithms, to targets.

    ``target · (ln target - prediction)``, where 0 · ln 0 is 0; nan for negative targets. Of rows of
    probabilities ``"batch_mean"`` gives the divergence; ``"mean"`` divides by all elements, as
    PyTorch does by default, too. Kullback and Leibler, "On information and sufficiency", 1951,
    https://doi.org/10.1214/aoms/1177729694

    Args:
        log_target: whether targets are logarithms too.
        reduction: ``"mean"``, ``"sum"``, ``"none"``, or ``"batch_mean"``: the sum over the first
            size, which is the divergence.
    """

    _: KW_ONLY
    log_target: bool = False
    reduction: Literal["mean", "sum", "none", "batch_mean"] = "mean"

    def forward(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        """Return the loss of two tensors of one shape; nan for targets that are negative.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("kl_div_loss", prediction, target)
        if self.log_target:
            losses = target.exp() * (target - prediction)
        else:
            real = target != 0  # 0 · ln 0 is 0
            losses = target * (where(real, target, 1.0).log() - prediction)
        if self.reduction == "batch_mean":
            if not losses.ndim:
                expected = "a first axis, the batch"
                raise ShapeError("kl_div_loss", "no batch", got=losses.shape, expected=expected)
            share = 1.0 / losses.shape[0] if losses.shape[0] else nan
            return (losses.to_full_precision().sum() * share).astype(losses.dtype)
        return reduce(losses, self.reduction)


class PoissonNllLoss(_PairLoss):
    """Negative log-likelihood of counts by Poisson's distribution of rates r.

    ``r - target · ln r``, of the logarithms of rates ``exp(x) - target · x``. What depends on the
    target alone, ``ln target!``, is left out, or with ``full`` near
    ``target · ln target - target + ½·ln(2π · target)``. Nan for rates that are negative.
    Defaults and values are those of PyTorch.

    Args:
        log_input: whether predictions are logarithms of the rates.
        full: whether the part by Stirling's formula is added, for targets above 1.
        epsilon: added to rates before the logarithm.
    """

    log_input: bool = True
    full: bool = False
    epsilon: float = 1e-8
    reduction: Reduction = "mean"

    def _losses(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        if self.log_input:
            losses = prediction.exp() - target * prediction
        else:
            losses = prediction - target * (prediction + self.epsilon).log()
        if self.full:
            n = where(target > 1, target, 1.0)
            rest = n * n.log() - n + (n * (2 * pi)).log() * 0.5
            losses = losses + where(target > 1, rest, 0.0)
        return losses


class GaussianNllLoss(Stateless):
    """Negative log-likelihood by normal distributions of given variances v.

    ``½·(ln v + (prediction - target)² / v)``, and with ``full`` ``½·ln 2π``. Variances below
    ``epsilon`` count as that in the value, while their gradient is that of v itself. A negative one
    gives nan, where PyTorch raises an error. Nix and Weigend, "Estimating the mean and variance of
    the target probability distribution", 1994, https://doi.org/10.1109/ICNN.1994.374138

    Args:
        full: whether the constant ½·ln 2π is added.
        epsilon: the least variance; gradients ignore it.
    """

    full: bool = False
    epsilon: float = 1e-6
    reduction: Reduction = "mean"

    def forward(
        self, prediction: Tensor[Float], target: Tensor[Float], variance: Tensor[Float]
    ) -> Tensor[Float]:
        """Return the loss; the variance broadcasts to the shape of predictions and targets.

        Of a negative variance it is nan.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("gaussian_nll_loss", prediction, target)
        s = self.settings
        held = variance + (variance.detach().clip(min=s.epsilon) - variance.detach())
        held = where(variance < 0, nan, held)
        losses = (held.log() + (prediction - target).square() / held) * 0.5
        return reduce(losses + 0.5 * log(2 * pi) if s.full else losses, s.reduction)
