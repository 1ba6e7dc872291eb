"""Derivatives of Fourier transforms: the other direction, without a factor."""

from __future__ import annotations

from typing import Final

import numpy as np

from phlox_tensor import Tensor, asarray, ops

from .._rule import Joint, Rule

Shape = tuple[int, ...]


def _dft(
    g_real: Tensor | None,
    g_imag: Tensor | None,
    re_shape: Shape,
    axis: int,
    inverse: bool,
    half: bool,
) -> tuple[Tensor, Tensor | None]:
    """The matrix of a transform is symmetric, so that its adjoint is its conjugate."""
    given = g_real if g_real is not None else g_imag
    assert given is not None
    real, imag = (given.zeros() if g is None else g for g in (g_real, g_imag))
    if half:
        n = re_shape[axis]
        shares = 1.0 / _shares(given, axis, n)
        back: Tensor = ops.irdft(real * shares, imag * (-shares if inverse else shares), axis, n)
        return back, None
    return ops.dft(real, imag, axis, not inverse, False)


def _irdft(g: Tensor, axis: int, n: int) -> tuple[Tensor, Tensor]:
    real, imag = ops.dft(g, None, axis, False, True)
    shares = _shares(real, axis, n)
    return real * shares, imag * shares


def _shares(half: Tensor, axis: int, n: int) -> Tensor:
    """For how many of n frequencies each of the first half stands: 2, or 1 of those at the ends."""
    counts = np.full(n // 2 + 1, 2.0, np.float32)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    shape = (n // 2 + 1, *(1,) * (half.ndim - axis - 1))
    return asarray(counts.reshape(shape), dtype=half.dtype, device=half.device)


RULES: Final[dict[str, Rule]] = {
    "dft": Joint(_dft),
    "irdft": Joint(_irdft),
}
