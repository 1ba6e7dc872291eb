"""Lanes of products: batches of matrices, which matmul takes."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import Tensor

from .._lanes import Call, LanesRule, NoLanes
from ._classes import first_only


def _matmul(call: Call) -> Tensor[Any]:
    """One product over the lanes; where a matrix is the same in all, the lanes are its rows."""
    x1, x2 = call.operands
    left, right = (len(call.shape(i)) for i in (0, 1))
    if not call.mapped[1] and right == 2:
        out: Tensor[Any] = call.run(x1, x2)  # (lanes, …, n, k) @ (k, m)
        return out
    if not call.mapped[0] and left == 2 and right == 1:
        return call.run(x2, x1.mT)
    rank = max(left, right, 2)
    x1 = call.full(0) if call.mapped[0] else x1
    x2 = call.full(1) if call.mapped[1] else x2
    x1 = x1.expand_dims(-2) if left == 1 else x1
    x2 = x2.expand_dims(-1) if right == 1 else x2
    out = call.run(_lined_up(x1, rank, call.mapped[0]), _lined_up(x2, rank, call.mapped[1]))
    if left == 1:
        out = out.squeeze(-2)
    return out.squeeze(-1) if right == 1 else out


def _lined_up(x: Tensor[Any], rank: int, mapped: bool) -> Tensor[Any]:
    """The tensor with axes of size 1 after the lanes, so that batches of a lane meet."""
    missing = rank + 1 - x.ndim
    if not mapped or not missing:
        return x
    return x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))


def _fused_linear(call: Call) -> Any:
    """Lanes of x and of the residual are more rows."""
    _x, weight, bias, _ = call.operands
    return call.run(call.full(0), weight, bias, call.full(3)) if call.only(0, 3) else None


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "fused_linear": _fused_linear,
    "linear": first_only,
    "matmul": _matmul,
}
