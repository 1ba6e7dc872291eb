"""Transforms of the CPU backend along every axis, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_kernels import Cpu
from phlox_tensor import fft

# Columns beside each other: few, a register and a part of one, more than a task has.
SHAPES = [(3, 20, 3), (2, 48, 21), (64, 600), (2, 7, 40), (1, 1, 30), (2, 22, 33), (3, 1024)]


def on_cpu(array: np.ndarray[Any, Any]) -> Any:
    return pt.asarray(array, device=Cpu())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_axis_is_as_in_numpy(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(sum(shape))
    re, im = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for axis in range(len(shape)):
        pair = fft.Spectrum(on_cpu(re), on_cpu(im))
        found = {
            "fft": (fft.fft(pair, axis=axis), np.fft.fft(re + 1j * im, axis=axis)),
            "ifft": (fft.ifft(pair, axis=axis), np.fft.ifft(re + 1j * im, axis=axis)),
            "real": (fft.fft(on_cpu(re), axis=axis), np.fft.fft(re, axis=axis)),
            "rfft": (fft.rfft(on_cpu(re), axis=axis), np.fft.rfft(re, axis=axis)),
            "ihfft": (fft.ihfft(on_cpu(re), axis=axis), np.fft.ihfft(re, axis=axis)),
        }
        for n in (2 * shape[axis] - 2, 2 * shape[axis] - 1):
            back = fft.irfft(pair, n=max(n, 1), axis=axis)
            numpys = np.fft.irfft(re + 1j * im, n=max(n, 1), axis=axis)
            assert back.shape == numpys.shape
            size = tolerance * np.abs(numpys).max()
            np.testing.assert_allclose(back.numpy(), numpys, atol=size, err_msg=f"irfft {n}")
        for name, (got, wanted) in found.items():
            assert got.real.shape == wanted.shape, name
            size = tolerance * np.abs(wanted).max()
            np.testing.assert_allclose(got.real.numpy(), wanted.real, atol=size, err_msg=name)
            np.testing.assert_allclose(got.imag.numpy(), wanted.imag, atol=size, err_msg=name)


def test_views_are_transformed_as_their_copies() -> None:
    x = on_cpu(np.random.default_rng(1).standard_normal((4, 30, 32), np.float32))
    for view in (x.permute_dims((2, 0, 1)), x[:, ::2], x[..., 1:18]):
        for axis in range(3):
            got, wanted = fft.fft(view, axis=axis), fft.fft(on_cpu(view.numpy().copy()), axis=axis)
            np.testing.assert_allclose(got.real.numpy(), wanted.real.numpy(), atol=1e-4)
            np.testing.assert_allclose(got.imag.numpy(), wanted.imag.numpy(), atol=1e-4)


@pytest.mark.parametrize("n", [2, 64, 2048, 30, 7])
def test_what_is_not_finite_stays_in_its_line(n: int) -> None:
    x = np.random.default_rng(2).standard_normal((5, n)).astype(np.float32)
    whole = fft.rfft(on_cpu(x))
    x[2] = np.inf
    spoilt = fft.rfft(on_cpu(x))
    others = [0, 1, 3, 4]
    for got, wanted in zip(spoilt, whole, strict=True):
        np.testing.assert_array_equal(got.numpy()[others], wanted.numpy()[others])
    assert not spoilt.imag.numpy()[:, 0].any()
    lines = fft.irfft(whole, n=n).numpy()
    back = fft.irfft(spoilt, n=n).numpy()
    np.testing.assert_array_equal(back[others], lines[others])
    assert not np.isfinite(back[2]).any()


def test_imaginary_parts_of_the_ends_stand_for_nothing() -> None:
    for n in (6, 64, 7):
        real = np.arange(2.0 * (n // 2 + 1)).reshape(2, -1)
        imag = np.zeros_like(real)
        wanted = fft.irfft((on_cpu(real), on_cpu(imag)), n=n).numpy()
        imag[:, 0] = np.nan
        if n % 2 == 0:
            imag[:, -1] = np.inf
        found = fft.irfft((on_cpu(real), on_cpu(imag)), n=n).numpy()
        np.testing.assert_array_equal(found, wanted)
