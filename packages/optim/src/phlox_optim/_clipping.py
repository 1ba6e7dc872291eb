"""Gradient clipping: by value, by the norm of each tensor, by the norm of all together."""

from __future__ import annotations

from abc import abstractmethod

from phlox_tensor import Float, Tensor
from phlox_tensor.capture import wrap

from ._checked import CheckedConfig
from ._rule import primitives

_TINY = 1e-6


class GradientClipping(CheckedConfig):
    """Base of clippings."""

    @abstractmethod
    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""


class _Threshold(GradientClipping):
    """A clipping with one setting."""

    threshold: float

    def validate(self) -> None:
        """Raise ConfigError for a threshold that makes no sense."""
        self.require("threshold", self.threshold > 0, "> 0")


class ClipByValue(_Threshold):
    """Each element into [-threshold, threshold].

    Example:
        >>> import phlox_optim as optim, phlox_tensor as pt
        >>> optim.ClipByValue(1.0).clip([pt.asarray([3.0, -4.0])])[0].tolist()
        [1.0, -1.0]
    """

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        return [g.clip(-self.threshold, self.threshold) for g in grads]


class ClipByNorm(_Threshold):
    """Each tensor scaled down to a Euclidean norm of at most ``threshold``.

    Example:
        >>> import phlox_optim as optim, phlox_tensor as pt
        >>> clipped = optim.ClipByNorm(1.0).clip([pt.asarray([3.0, 4.0]), pt.asarray([0.3])])
        >>> [[round(x, 3) for x in grad.tolist()] for grad in clipped]
        [[0.6, 0.8], [0.3]]
    """

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        return _of_norm(grads, self.threshold, joint=False)


class ClipByGlobalNorm(_Threshold):
    """All tensors scaled down together, so that their joint norm is at most ``threshold``.

    Pascanu et al., 2013.

    Example:
        >>> import phlox_optim as optim, phlox_tensor as pt
        >>> clipped = optim.ClipByGlobalNorm(1.0).clip([pt.asarray(3.0), pt.asarray(4.0)])
        >>> [round(grad.item(), 3) for grad in clipped]
        [0.6, 0.8]
    """

    def clip(self, grads: list[Tensor[Float]]) -> list[Tensor[Float]]:
        """Return the gradients of one step, clipped."""
        return _of_norm(grads, self.threshold, joint=True)


def _of_norm(grads: list[Tensor[Float]], threshold: float, *, joint: bool) -> list[Tensor[Float]]:
    """Gradients of at most this norm; one op for all where they are of one device and type."""
    if len({(g.device, g.dtype) for g in grads}) == 1:
        device, given = grads[0].device, primitives(grads, grads[0].dtype)
        return [wrap(p, device) for p in device.ops.clip_norms(given, threshold, joint)]
    if not joint or not grads:
        return [each for g in grads for each in _of_norm([g], threshold, joint=False)]
    total = joint_squares(grads)
    return [_scaled(g, threshold, total.to_device(g.device)) for g in grads]


def joint_squares(grads: list[Tensor[Float]]) -> Tensor[Float]:
    """Return the sum of the squares of at least one tensor, on the device of the first."""
    total = _squares(grads[0])
    for grad in grads[1:]:
        total = total + _squares(grad).to_device(total.device)
    return total


def _squares(grad: Tensor[Float]) -> Tensor[Float]:
    return grad.to_full_precision().square().sum()


def _scaled(grad: Tensor[Float], threshold: float, squares: Tensor[Float]) -> Tensor[Float]:
    factor = (threshold / (squares.sqrt() + _TINY)).clip(max=1.0)
    return grad * factor.astype(grad.dtype)
