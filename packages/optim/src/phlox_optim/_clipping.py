"""Gradient clipping: by value, by the norm of each tensor, by the norm of all together."""

from __future__ import annotations

from phlox_nn import Config
from phlox_tensor import ArgumentError, Float, Tensor

_TINY = 1e-6


class GradientClipping(Config):
    """Base of clippings."""

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        raise TypeError(f"{type(self).__name__} does not define clip()")


class ClipByValue(GradientClipping):
    """Each element into [-threshold, threshold]."""

    threshold: float

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        _positive(self.threshold)

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        return [g.clip(-self.threshold, self.threshold) for g in grads]


class ClipByNorm(GradientClipping):
    """Each tensor scaled down to a Euclidean norm of at most ``threshold``."""

    threshold: float

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        _positive(self.threshold)

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        return [_scaled(g, self.threshold, _squares(g)) for g in grads]


class ClipByGlobalNorm(GradientClipping):
    """All tensors scaled down together, so that their joint norm is at most ``threshold``.

    Pascanu et al., 2013.
    """

    threshold: float

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        _positive(self.threshold)

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        if not grads:
            return grads
        total = _squares(grads[0])
        for grad in grads[1:]:
            total = total + _squares(grad).to_device(total.device)
        return [_scaled(g, self.threshold, total.to_device(g.device)) for g in grads]


AnyClipping = ClipByValue | ClipByNorm | ClipByGlobalNorm | GradientClipping
"""What configs take: one of these, which files can name, or one of your own."""


def _positive(threshold: float) -> None:
    if not threshold > 0:
        raise ArgumentError("clip", "threshold is not above 0", got=threshold, expected="> 0")


def _squares(grad: Tensor[Float]) -> Tensor[Float]:
    return grad.to_full_precision().square().sum()


def _scaled(grad: Tensor[Float], threshold: float, squares: Tensor[Float]) -> Tensor[Float]:
    factor = (threshold / (squares.sqrt() + _TINY)).clip(max=1.0)
    return grad * factor.astype(grad.dtype)
