"""How near rows are to each other."""

from __future__ import annotations

from phlox_tensor import Float, Tensor, broadcast_arrays, cosine_similarity
from phlox_tensor.linalg import vector_norm

from ..module.layer import Stateless


def pairwise_distance(
    x: Tensor[Float], y: Tensor[Float], p: float, epsilon: float, keepdims: bool = False
) -> Tensor[Float]:
    """The p-norm of ``x - y + epsilon`` over the last axis; its slope at 0 is 0."""
    far = x.to_full_precision() - y.to_full_precision() + epsilon
    return vector_norm(far, axis=-1, keepdims=keepdims, ord=p).astype(x.dtype)


class CosineSimilarity(Stateless):
    """The cosine of the angle between rows of two tensors: ``Σ a·b / (|a|·|b|)``.

    Args:
        axis: along which rows are.
        epsilon: the least norm.
    """

    axis: int = 1
    epsilon: float = 1e-8

    def forward(self, x: Tensor[Float], y: Tensor[Float]) -> Tensor[Float]:
        """Map two tensors that broadcast to one without the axis."""
        x, y = broadcast_arrays(x, y)
        return cosine_similarity(x, y, axis=self.axis, epsilon=self.epsilon)


class PairwiseDistance(Stateless):
    """The p-norm of the difference of rows of two tensors: ``(Σ |a - b|ᵖ)^(1/p)``.

    Args:
        p: the norm; may be infinite.
        epsilon: added to differences, so that the norm of 0 has a gradient.
        keepdims: whether the last axis stays, with size 1.
    """

    p: float = 2.0
    epsilon: float = 1e-6
    keepdims: bool = False

    def _check(self) -> None:
        self.require("p", self.p > 0, "> 0")

    def forward(self, x: Tensor[Float], y: Tensor[Float]) -> Tensor[Float]:
        """Map two tensors (…, D) to (…)."""
        s = self.settings
        return pairwise_distance(x, y, s.p, s.epsilon, s.keepdims)
