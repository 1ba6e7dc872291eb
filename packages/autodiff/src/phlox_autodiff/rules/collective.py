"""Derivatives of collectives: of the sum of what all processes compute."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Tensor
from phlox_tensor.ops import collective as ops

from .._rule import Rule


def _all_reduce(g: Tensor) -> Tensor:
    return ops.all_reduce(g)


RULES: Final[dict[str, Rule]] = {
    "all_gather": lambda g, axis: ops.reduce_scatter(g, axis=axis),
    "all_reduce": _all_reduce,
    "broadcast": lambda g, root: ops.broadcast_backward(g, root=root),
    "broadcast_backward": lambda gg, root: ops.broadcast(gg, root=root),
    "reduce_scatter": lambda g, axis: ops.all_gather(g, axis=axis),
}
