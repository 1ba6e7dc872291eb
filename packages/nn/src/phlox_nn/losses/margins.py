"""Losses between predictions and targets that want a margin."""

from __future__ import annotations

from typing import Literal

from phlox_tensor import (
    Float,
    IndexOutOfRangeError,
    Int,
    ShapeError,
    Tensor,
    arange,
    cosine_similarity,
    take,
    where,
)

from ..layers.similarity import pairwise_distance
from ..module.layer import Stateless
from .classes import Reduction, check_classes, check_same, like, no_class, reduce


class HingeEmbeddingLoss(Stateless):
    """The distance itself for a target of 1, ``max(0, margin - x)`` for -1.

    Args:
        margin: the distance that unlike pairs should have.
    """

    margin: float = 1.0
    reduction: Reduction = "mean"

    def forward(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        """Return the loss of distances and targets of one shape.

        Targets above 0 count as 1, all others as -1.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("hinge_embedding_loss", prediction, target, kinds=False)
        near = (self.margin - prediction).relu()
        return reduce(where(target > 0, prediction, near), self.reduction)


class MarginRankingLoss(Stateless):
    """``max(0, margin - target·(first - second))``: a target of 1 wants the first to be higher.

    Args:
        margin: how much higher.
    """

    margin: float = 0.0
    reduction: Reduction = "mean"

    def forward(
        self, first: Tensor[Float], second: Tensor[Float], target: Tensor[Float]
    ) -> Tensor[Float]:
        """Return the loss of three tensors of one shape.

        The target is 1 where the first should be larger, -1 where the second should; of 0 the loss
        is the margin, whatever they are.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("margin_ranking_loss", first, second)
        check_same("margin_ranking_loss", first, target)
        losses = (self.margin - target * (first - second)).relu()
        return reduce(losses, self.reduction)


class CosineEmbeddingLoss(Stateless):
    """One minus the cosine for a target of 1, ``max(0, cosine - margin)`` for -1.

    Args:
        margin: the cosine that unlike pairs may have.
    """

    margin: float = 0.0
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("margin", -1 <= self.margin <= 1, "-1 <= margin <= 1")

    def forward(
        self, first: Tensor[Float], second: Tensor[Float], target: Tensor[Float]
    ) -> Tensor[Float]:
        """Return the loss of rows (…, D) and targets (…).

        Targets above 0 count as 1, for rows that should be alike, all others as -1.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("cosine_embedding_loss", first, second)
        cosine = cosine_similarity(first, second, axis=-1, epsilon=1e-8)
        check_same("cosine_embedding_loss", cosine, target, kinds=False)
        apart = (cosine - self.margin).relu()
        return reduce(where(target > 0, 1.0 - cosine, apart), self.reduction)


class TripletMarginLoss(Stateless):
    """``max(0, margin + |anchor - positive| - |anchor - negative|)``.

    Balntas et al., 2016, https://doi.org/10.5244/C.30.119

    Args:
        margin: how much farther the negative should be.
        p: the norm.
        epsilon: added to differences, so that the norm of 0 has a gradient.
        swap: whether the distance of positive and negative counts, if it is less.
    """

    margin: float = 1.0
    p: float = 2.0
    epsilon: float = 1e-6
    swap: bool = False
    reduction: Reduction = "mean"

    def _check(self) -> None:
        self.require("p", self.p > 0, "> 0")

    def forward(
        self, anchor: Tensor[Float], positive: Tensor[Float], negative: Tensor[Float]
    ) -> Tensor[Float]:
        """Return the loss of rows (…, D) of one shape.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        check_same("triplet_margin_loss", anchor, positive)
        check_same("triplet_margin_loss", anchor, negative)
        s = self.settings
        near = pairwise_distance(anchor, positive, s.p, s.epsilon)
        far = pairwise_distance(anchor, negative, s.p, s.epsilon)
        if s.swap:
            far = far.minimum(pairwise_distance(positive, negative, s.p, s.epsilon))
        return reduce((s.margin + near - far).relu(), s.reduction)


class MultiMarginLoss(Stateless):
    """Mean over other classes of ``max(0, margin - x[target] + x[class])ᵖ``.

    Args:
        p: the power.
        margin: how much higher the target should be.
        weights: factor per class, or None.
    """

    p: Literal[1, 2] = 1
    margin: float = 1.0
    weights: tuple[float, ...] | None = None
    reduction: Reduction = "mean"

    def forward(self, prediction: Tensor[Float], target: Tensor[Int]) -> Tensor[Float]:
        """Return the loss of predictions (N, classes) for class indices (N,).

        Raises:
            IndexOutOfRangeError: for a target that is no class.
            ShapeError: when the shapes do not fit.
        """
        s = self.settings
        if prediction.ndim != 2 or target.shape != prediction.shape[:1]:
            raise ShapeError(
                "multi_margin_loss",
                "targets do not fit",
                got=f"{prediction.shape} and {target.shape}",
                expected="(N, classes) and (N,)",
            )
        check_classes("multi_margin_loss", target)
        # A negative index would count from the end; moved past the last class it is an error.
        given, target = target, where(target < 0, prediction.shape[1], target)
        try:
            own = prediction.take_along_axis(target[:, None], axis=-1)
        except IndexOutOfRangeError as error:
            wrong = no_class("multi_margin_loss", given, None, prediction.shape[1])
            raise wrong or error from None
        losses = (prediction - own + s.margin).relu()
        losses = losses if s.p == 1 else losses.square()
        if s.weights is not None:
            losses = losses * take(like(s.weights, prediction), target, axis=0)[:, None]
        classes = arange(prediction.shape[1], dtype=target.dtype, device=target.device)
        others = classes != target[:, None]
        losses = where(others, losses, 0.0).to_full_precision().sum(axis=-1)
        losses = (losses * (1.0 / max(prediction.shape[1], 1))).astype(prediction.dtype)
        return reduce(losses, s.reduction)


class MultiLabelMarginLoss(Stateless):
    """``max(0, 1 - (x[target] - x[other]))``, added over targets and others, per class."""

    reduction: Reduction = "mean"

    def forward(self, prediction: Tensor[Float], targets: Tensor[Int]) -> Tensor[Float]:
        """Return the loss of predictions (N, classes) for class indices (N, classes).

        The indices of an example end at the first -1. Each place of the targets is compared with
        each class, so that memory grows with the square of the classes.

        Raises:
            IndexOutOfRangeError: for a target that is no class.
            ShapeError: when the shapes do not fit.
        """
        if prediction.ndim != 2 or targets.shape != prediction.shape:
            raise ShapeError(
                "multi_label_margin_loss",
                "targets do not fit",
                got=f"{prediction.shape} and {targets.shape}",
                expected="(N, classes), both; -1 ends the targets of an example",
            )
        check_classes("multi_label_margin_loss", targets)
        counts = (targets == -1).astype(targets.dtype).cumulative_sum(axis=1) == 0
        # A negative index would count from the end; moved past the last class it is an error.
        index = where(counts, where(targets < 0, prediction.shape[1], targets), 0)
        classes = arange(prediction.shape[1], dtype=targets.dtype, device=targets.device)
        meant = (counts[:, :, None] & (index[:, :, None] == classes)).any(axis=1)
        try:
            own = prediction.take_along_axis(index, axis=1)
        except IndexOutOfRangeError as error:
            wrong = no_class("multi_label_margin_loss", targets, counts, prediction.shape[1])
            raise wrong or error from None
        losses = (1.0 - own[:, :, None] + prediction[:, None, :]).relu()
        losses = where(counts[:, :, None] & ~meant[:, None, :], losses, 0.0)
        losses = losses.to_full_precision().sum(axis=(1, 2)) * (1.0 / max(prediction.shape[1], 1))
        return reduce(losses.astype(prediction.dtype), self.reduction)
