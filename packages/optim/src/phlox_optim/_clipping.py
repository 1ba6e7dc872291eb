"""Gradient clipping: by value, by the norm of each tensor, by the norm of all together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from phlox_tensor import DType, Float, Tensor, stack
from phlox_tensor.capture import wrap

from ._checked import CheckedConfig


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
    """Gradients of at most this norm: one op for all of a device, or of a device and type."""
    groups: dict[Any, list[int]] = {}
    for place, grad in enumerate(grads):
        groups.setdefault((grad.device, None if joint else grad.dtype), []).append(place)
    norms = [_norm(grad) for grad in grads] if joint and len(groups) > 1 else []
    out = list(grads)
    for (device, _), places in groups.items():
        taken = [grads[i] for i in places]
        others = [norm.to_device(device) for i, norm in enumerate(norms) if i not in places]
        if others:  # they count as one more element
            taken.append(_joint(others))
        dtype = _widest(taken)
        given = tuple([x.astype(dtype).primitive for x in taken])
        clipped = device.ops.clip_norms(given, threshold, joint)
        for i, p in zip(places, clipped, strict=False):
            out[i] = wrap(p, device).astype(grads[i].dtype)
    return out


def joint_norm(grads: list[Tensor[Float]]) -> Tensor[Float]:
    """Return the norm of at least one tensor together, on the device of the first."""
    return _joint([_norm(grad).to_device(grads[0].device) for grad in grads])


def _norm(grad: Tensor[Float]) -> Tensor[Float]:
    return grad.to_full_precision().vector_norm()


def _joint(norms: list[Tensor[Float]]) -> Tensor[Float]:
    dtype = _widest(norms)
    return stack([norm.astype(dtype) for norm in norms]).vector_norm()


def _widest(tensors: list[Tensor[Float]]) -> DType:
    """The one type that all have, else one that holds all."""
    types = {x.dtype for x in tensors}
    if len(types) > 1:
        types = {x.to_full_precision().dtype for x in tensors}
    return max(types, key=lambda dtype: dtype.itemsize)
