"""The results of factorizations: tensors by name."""

from __future__ import annotations

from typing import NamedTuple

from .._values.kinds import Int
from .._values.tensor import Tensor


class EighResult(NamedTuple):
    """What ``eigh`` gives: eigenvalues in ascending order, and eigenvectors, a column each."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    """What ``lstsq`` gives.

    Attributes:
        solution: the smallest of the best ones.
        residuals: sums of squares of what is left, for each column.
        rank: the rank of each matrix.
        singular_values: the singular values of each matrix, in descending order.
    """

    solution: Tensor
    residuals: Tensor
    rank: Tensor[Int]
    singular_values: Tensor


class LuResult(NamedTuple):
    """What ``lu`` gives: a permutation, a lower triangle with ones, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


class QrResult(NamedTuple):
    """What ``qr`` gives: orthonormal columns and an upper triangle."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What ``slogdet`` gives: the sign, and the logarithm of the absolute value."""

    sign: Tensor
    logabsdet: Tensor


class SvdResult(NamedTuple):
    """What ``svd`` gives: singular vectors on both sides of singular values in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor
