"""The loss of labels whose places in a sequence are unknown."""

from __future__ import annotations

from phlox_tensor import Float, Int, ShapeError, Tensor, ctc_loss, log_softmax, where

from ..module.layer import Stateless
from .classes import Reduction, reduce


class CtcLoss(Stateless):
    """Negative log-likelihood of labels by all their alignments.

    Graves et al., 2006, https://doi.org/10.1145/1143844.1143891

    Args:
        blank: the class that stands for no label.
        zero_infinity: whether a loss without any alignment becomes 0.
    """

    blank: int = 0
    reduction: Reduction = "mean"
    zero_infinity: bool = False

    def forward(
        self,
        logits: Tensor[Float],
        targets: Tensor[Int],
        input_lengths: Tensor[Int],
        target_lengths: Tensor[Int],
    ) -> Tensor[Float]:
        """Return the loss of logits or logarithms of shares (N, T, classes) for labels (N, S).

        The batch comes first, as everywhere in ``nn``; PyTorch and ``px.ctc_loss`` have
        (T, N, classes), which nothing can tell apart where N and T are equal.

        Args:
            logits: what a softmax makes shares of; shares already made stay as they are.
            targets: labels, padded by any class.
            input_lengths: (N,), steps that count, at most T.
            target_lengths: (N,), labels that count, at most S.

        Raises:
            ShapeError: when the shapes do not fit.
            IndexOutOfRangeError: for a label that is no class, and for more steps or labels than
                there are.
        """
        _check_ctc(logits, targets, input_lengths, target_lengths)
        log_probs = log_softmax(logits, axis=-1)
        losses = ctc_loss(
            log_probs.permute_dims((1, 0, 2)),
            targets,
            input_lengths,
            target_lengths,
            blank=self.blank,
        )
        if self.zero_infinity:
            losses = where(losses.isfinite(), losses, 0.0)
        if self.reduction == "mean":
            wide = losses.to_full_precision()  # which holds all lengths
            counts = target_lengths.clip(min=1).astype(wide.dtype)
            return (wide / counts).mean().astype(losses.dtype)
        return reduce(losses, self.reduction)


def _check_ctc(
    log_probs: Tensor[Float],
    targets: Tensor[Int],
    input_lengths: Tensor[Int],
    target_lengths: Tensor[Int],
) -> None:
    n = log_probs.shape[:1]
    fits = log_probs.ndim == 3 and targets.ndim == 2 and targets.shape[:1] == n
    if not fits or input_lengths.shape != n or target_lengths.shape != n:
        shapes = (log_probs.shape, targets.shape, input_lengths.shape, target_lengths.shape)
        raise ShapeError(
            "ctc_loss",
            "the four do not fit",
            got=", ".join(map(str, shapes)),
            expected="(N, T, classes), (N, S), (N,), (N,)",
            hint="logits.permute_dims((1, 0, 2)), where time is the first axis as in PyTorch"
            if log_probs.ndim == 3 and log_probs.shape[1:2] == target_lengths.shape
            else None,
        )
