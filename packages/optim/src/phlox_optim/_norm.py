"""The norm of all gradients of a step, for logs."""

from __future__ import annotations

from phlox_nn import Module
from phlox_tensor import Float, GradientError, Tensor

from ._clipping import joint_norm
from ._found import find
from ._optimizer import AnyGradients


def gradient_norm(module: Module, grads: AnyGradients) -> Tensor[Float]:
    """Return the Euclidean norm of all gradients of a module's trained parameters together.

    It is the norm before clipping, which ``ClipByGlobalNorm`` holds; in float32 at least. A 0-d
    tensor: nothing is read from the device until it is.

    Args:
        module: the module whose loss gave the gradients.
        grads: what a step takes: ``loss.backward()``, ``grad(...)(module)``, or a dict by id.

    Raises:
        ArgumentError: for a module or gradients that are none.
        GradientError: when no gradient belongs to a trained parameter of the module.

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim, phlox_tensor as pt
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> optim.gradient_norm(layer, {layer.weight.id: pt.asarray([[3.0], [4.0]])}).item()
        5.0
    """
    found = find(module, grads, strict=True)[1]
    if not found:  # new values for state alone
        raise GradientError("gradient_norm", "no gradient belongs to a trained parameter")
    return joint_norm(found)
