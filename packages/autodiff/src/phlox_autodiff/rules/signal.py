"""Derivatives of Fourier transforms: the other direction, without a factor."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Tensor, concat, ops

from .._rule import Joint, Rule

Shape = tuple[int, ...]


def _dft(
    g_real: Tensor | None,
    g_imag: Tensor | None,
    re_shape: Shape,
    axis: int,
    inverse: bool,
    half: bool,
) -> tuple[Tensor, Tensor]:
    """The matrix of a transform is symmetric, so that its adjoint is its conjugate."""
    given = g_real if g_real is not None else g_imag
    assert given is not None
    parts = [given.zeros() if g is None else g for g in (g_real, g_imag)]
    if half:
        rest = (*re_shape[:axis], re_shape[axis] - given.shape[axis], *re_shape[axis + 1 :])
        parts = [concat([g, g.zeros(rest)], axis=axis) for g in parts]
    back: tuple[Tensor, Tensor] = ops.dft(*parts, axis, not inverse, False)
    return back


SIGNAL: Final[dict[str, Rule]] = {
    "dft": Joint(_dft),
}
