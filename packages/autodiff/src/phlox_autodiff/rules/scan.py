"""Derivatives of scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor import Tensor

from .._rule import Rule

if TYPE_CHECKING:
    pass


def _cumsum(g: Tensor, axis: int) -> Tensor:
    return g.flip(axis=axis).cumsum(axis=axis).flip(axis=axis)


SCAN: Final[dict[str, Rule]] = {
    "cumsum": _cumsum,
}
