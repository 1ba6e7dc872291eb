"""Derivatives of scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor import Tensor

from .._rule import Rule

if TYPE_CHECKING:
    from phlox_tensor import DType


def _cumsum(g: Tensor, x_dtype: DType, axis: int) -> Tensor:
    return g.astype(x_dtype).flip(axis=axis).cumsum(axis=axis).flip(axis=axis)


SCAN: Final[dict[str, Rule]] = {
    "cumsum": _cumsum,
}
