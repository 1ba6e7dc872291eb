"""The loss of a transducer: labels between the steps of a sequence."""

from __future__ import annotations

from phlox_tensor import Float, Int, ShapeError, Tensor, log_softmax, rnnt_loss

from ..module.layer import Stateless
from .classes import Reduction, reduce


class RnntLoss(Stateless):
    """``-ln Σ`` of the likelihoods of labels by all ways through a transducer.

    Graves, 2012, https://arxiv.org/abs/1211.3711

    Args:
        blank: the class that goes on to the next step.
        reduction: ``"mean"`` over the sequences, ``"sum"`` or ``"none"``.
    """

    blank: int = 0
    reduction: Reduction = "mean"

    def forward(
        self,
        logits: Tensor[Float],
        targets: Tensor[Int],
        input_lengths: Tensor[Int],
        target_lengths: Tensor[Int],
    ) -> Tensor[Float]:
        """Return the loss of logits (N, T, S + 1, classes) for labels (N, S).

        Args:
            logits: what a softmax makes shares of, by step and by number of labels so far.
            targets: labels, padded by any class.
            input_lengths: (N,), steps that count, at least 1.
            target_lengths: (N,), labels that count.

        Raises:
            ShapeError: when the shapes do not fit.
        """
        n = logits.shape[:1]
        fits = logits.ndim == 4 and targets.shape == (*n, logits.shape[2] - 1)
        if not fits or input_lengths.shape != n or target_lengths.shape != n:
            parts = (logits, targets, input_lengths, target_lengths)
            raise ShapeError(
                "rnnt_loss",
                "the four do not fit",
                got=", ".join(str(part.shape) for part in parts),
                expected="(N, T, S + 1, classes), (N, S), (N,), (N,)",
            )
        s = self.settings
        blank = s.blank + logits.shape[-1] if s.blank < 0 else s.blank
        shares = log_softmax(logits, axis=-1)
        losses = rnnt_loss(shares, targets, input_lengths, target_lengths, blank)
        return reduce(losses, s.reduction)
