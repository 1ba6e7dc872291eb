"""Complex numbers: arithmetic of pairs beside NumPy, and what asks for complex tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import (
    ArgumentError,
    DTypeError,
    KindError,
    ShapeError,
    UnknownNameError,
    WrongTypeError,
    fft,
)

RANDOM = np.random.default_rng(3)
Z = RANDOM.standard_normal((2, 3)) + 1j * RANDOM.standard_normal((2, 3))
W = RANDOM.standard_normal((2, 3)) + 1j * RANDOM.standard_normal((2, 3))


def pair(z: Any) -> fft.Spectrum:
    return fft.Spectrum(pt.asarray(z.real.copy()), pt.asarray(z.imag.copy()))


@pytest.mark.parametrize("name", ["add", "mul", "sub", "truediv"])
@pytest.mark.parametrize("kind", ["pair", "real", "number", "complex"])
def test_pairs_calculate_as_complex_arrays(name: str, kind: str) -> None:
    call: Callable[[Any, Any], Any] = getattr(operator, name)
    there: Any = {"complex": 1.5 - 2j, "number": 3.0, "pair": W, "real": W.real.copy()}[kind]
    here = {"pair": pair(W), "real": pt.asarray(W.real.copy())}.get(kind, there)
    np.testing.assert_allclose(call(pair(Z), here).numpy(), call(Z, there), rtol=1e-12)
    np.testing.assert_allclose(call(here, pair(Z)).numpy(), call(there, Z), rtol=1e-12)


def test_parts_of_pairs() -> None:
    z = pair(Z)
    np.testing.assert_allclose(abs(z).numpy(), np.abs(Z), rtol=1e-12)
    np.testing.assert_allclose(z.angle().numpy(), np.angle(Z), rtol=1e-12)
    np.testing.assert_array_equal((-z).conj().numpy(), -Z.conj())
    np.testing.assert_array_equal(np.asarray(z), Z)


def test_arrays_of_numpy_keep_infinities_and_signs_of_zeros() -> None:
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5]
    real, imag = (part.ravel() for part in np.meshgrid(values, values))
    for dtype, want in (("float64", np.complex128), ("float32", np.complex64)):
        z = fft.Spectrum(*(pt.asarray(part, dtype=dtype) for part in (real, imag)))
        got = z.numpy()
        assert got.dtype == want
        for part, given in ((got.real, real), (got.imag, imag)):
            np.testing.assert_array_equal(part, given)
            np.testing.assert_array_equal(np.signbit(part), np.signbit(given))
    narrow = fft.Spectrum(pt.ones((), dtype="bfloat16"), pt.ones((), dtype="bfloat16"))
    assert (narrow.numpy().dtype, narrow.numpy().shape) == (np.complex64, ())


def test_an_array_of_both_parts_is_a_copy() -> None:
    with pytest.raises(ValueError, match=r"\[array\] a copy is needed"):
        np.asarray(pair(Z), copy=False)
    assert np.asarray(pair(Z), "complex64", copy=True).dtype == np.complex64


def test_pairs_are_equal_element_by_element() -> None:
    z, other = pair(Z), Z.copy()
    other[0, 1] = Z[0, 1].real
    other[1, 2] = np.nan
    for there in (Z, other, Z[0]):
        for call in (operator.eq, operator.ne):
            got = call(z, pair(there))
            assert got.dtype is pt.bool_
            np.testing.assert_array_equal(got.numpy(), call(Z, there))
    whole = fft.Spectrum(pt.asarray([1.0, 1.0, 2.0]), pt.asarray([0.0, 3.0, 0.0]))
    x: Any = pt.asarray([1.0, 1.0, 1.0])
    assert (whole == x).tolist() == (x == whole).tolist() == [True, False, False]
    assert (whole == 1).tolist() == (whole == 1 + 0j).tolist() == [True, False, False]
    assert (whole != 1 + 3j).tolist() == [True, False, True]
    nothing: Any = None
    assert [whole == "a", whole != nothing] == [False, True]
    assert len({whole, fft.Spectrum(*whole)}) == 2
    for wrong in (Z[0], [1.0, 2.0, 3.0], (x, x)):
        with pytest.raises(ArgumentError, match=r"\[equal\] not complex numbers"):
            bool(whole == wrong)


@pytest.mark.parametrize("name", ["ge", "gt", "le", "lt"])
def test_pairs_have_no_order(name: str) -> None:
    for other in (pair(W), pt.asarray(W.real.copy()), 1.0):
        for given in ((pair(Z), other), (other, pair(Z))):
            with pytest.raises(TypeError, match=r"complex numbers have no order(.|\n)*z\.abs\(\)"):
                getattr(operator, name)(*given)


def test_quotients_stay_within_the_range_of_numbers() -> None:
    large = fft.Spectrum(*(pt.asarray([n], dtype=pt.float64) for n in (1e200, -1e200)))
    assert (large / large).numpy().tolist() == [1.0]


def test_an_array_beside_a_pair_is_refused() -> None:
    for call in (lambda: pair(Z) * Z, lambda: Z * pair(Z)):
        with pytest.raises(ArgumentError, match=r"px\.fft\.Spectrum"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.astype("complex64"),
        lambda x: pt.zeros(2, dtype=complex),
        lambda x: pt.asarray(Z),
        lambda x: pt.from_numpy(Z),
        lambda x: pt.from_dlpack(Z),
        lambda x: pt.result_type(x, "complex64"),
        lambda x: pt.finfo("complex64"),
        lambda x: x + 1j,
        lambda x: 1j * x,
        lambda x: x == 1j,
        lambda x: fft.fft(Z),  # type: ignore[arg-type]
    ],
)
def test_what_would_be_complex_says_what_to_type(call: Callable[[Any], Any]) -> None:
    with pytest.raises(DTypeError, match=r"hint: px\.fft\.Spectrum"):
        call(pt.ones((2, 2)))


@pytest.mark.parametrize("name", ["angle", "is_complex", "polar", "view_as_real"])
def test_names_of_complex_numbers_say_what_to_type(name: str) -> None:
    with pytest.raises(UnknownNameError, match="hint"):
        getattr(pt, name)


def test_no_tensor_is_of_a_complex_kind() -> None:
    assert not pt.isdtype(pt.float32, "complex floating")
    assert pt.sqrt(pt.asarray([-1.0])).isnan().all()


def test_finite_numbers_by_infinite_ones_are_zeros() -> None:
    inf = pt.asarray([np.inf, -np.inf, np.inf, 1.0])
    other = pt.asarray([np.inf, np.inf, 2.0, -np.inf])
    out = pt.fft.Spectrum(pt.full(4, 3.0), pt.full(4, -2.0)) / pt.fft.Spectrum(inf, other)
    assert out.real.tolist() == [0.0] * 4
    assert out.imag.tolist() == [0.0] * 4


def test_an_index_takes_elements_of_both_parts() -> None:
    z = pair(Z)
    for index in (0, (slice(None), 0), (..., slice(1, None)), (..., None)):
        np.testing.assert_array_equal(z[index].numpy(), Z[index])
    real, imag = z
    assert (real.shape, imag.shape, len(z)) == ((2, 3), (2, 3), 2)


def test_sums_products_and_shapes_are_those_of_complex_arrays() -> None:
    z, w, real = pair(Z), pair(W).mT, W.real.T.copy()
    x, more = pt.asarray(real), np.ones((2, 1, 3))
    for got, want in (
        (z.sum(), Z.sum()), (z.sum(0), Z.sum(0)),
        (z.mean(axis=1, keepdims=True), Z.mean(1, keepdims=True)),
        (z.mT, Z.T), (z.reshape(3, 2), Z.reshape(3, 2)), (z**5, Z**5),
        (z @ w, Z @ W.T), (z @ x, Z @ real), (x @ z, real @ Z),
        (z[0] + pt.asarray(more), Z[0] + more), (z[0] - pt.asarray(more), Z[0] - more),
        (fft.fftshift(z), np.fft.fftshift(Z)),
        (fft.ifftshift(z, axes=1), np.fft.ifftshift(Z, axes=1)),
    ):  # fmt: skip
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    assert z.astype("float32").dtype is pt.float32
    assert (z.ndim, z.size, z.to_device(z.device).device) == (2, 6, z.device)


TAKING_FLOATS: dict[str, Callable[[Any], Any]] = {
    "fake_quantize": lambda x: pt.fake_quantize(x, 0.5),
    "ihfft": fft.ihfft,
    "matrix_norm": lambda x: pt.linalg.matrix_norm(x, ord=1),
    "mel_spectrogram": lambda x: fft.mel_spectrogram(x, pt.ones((3, 2)), 2),
    "rfft": fft.rfft,
    "rfftn": fft.rfftn,
    "stft": lambda x: fft.stft(x, 2),
    "vector_norm": pt.linalg.vector_norm,
}


@pytest.mark.parametrize("name", TAKING_FLOATS)
def test_what_is_no_tensor_is_told_before_its_type(name: str) -> None:
    call = TAKING_FLOATS[name]
    for given in (np.ones((2, 2)), [[1.0, 2.0]]):
        with pytest.raises(WrongTypeError, match=rf"\[{name}\] x is not a tensor") as caught:
            call(given)
        assert str(caught.value).endswith("hint: px.asarray(x)")
    with pytest.raises(WrongTypeError, match=r"hint: x\.abs\(\), x\.real or x\.imag"):
        call(pair(Z))
    with pytest.raises(KindError, match=rf"\[{name}\] not of floats: got Int \(int32\)"):
        call(pt.ones((4, 4), dtype="int32"))


def test_windows_and_filters_are_named() -> None:
    array: Any = np.ones(2)
    with pytest.raises(WrongTypeError, match=r"hint: px\.asarray\(window\)"):
        fft.stft(pt.ones(8), 2, window=array)
    with pytest.raises(WrongTypeError, match=r"hint: px\.asarray\(filters\)"):
        fft.mel_spectrogram(pt.ones(8), array, 2)


ns: Any = pt
ONE, TWO, COMPLEX = ns.ones(3), ns.ones(4), ns.fft.Spectrum(pt.ones(3), pt.ones(3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pt.asarray(COMPLEX), DTypeError, r"z\.abs\(\)"),
        (lambda: ns.exp(COMPLEX), ArgumentError, r"hint: x\.abs\(\), x\.real"),
        (lambda: COMPLEX.flip(0), UnknownNameError, r"Spectrum\(z\.real\.flip\(\), z\.imag\.flip"),
        (lambda: COMPLEX.exp().real, UnknownNameError, r"z\.real or z\.imag, then \.exp"),
        (lambda: COMPLEX ** 0.5, ArgumentError, "integer above 0"),
        (lambda: ns.fft.Spectrum(ONE, TWO), ShapeError, "parts differ"),
        (lambda: ns.fft.Spectrum(ONE, ONE.astype("float64")), DTypeError, "parts differ"),
        (lambda: ns.fft.Spectrum(1, 2), WrongTypeError, "real is not a tensor: got int"),
        (lambda: ns.fft.Spectrum(ONE), WrongTypeError, "imag is not a tensor: got NoneType"),
        (lambda: ns.fft.irfft((ONE, TWO)), ShapeError, r"\[irfft\] parts differ"),
        (lambda: ns.fft.fft((ONE, TWO), n=3), ShapeError, r"\[fft\] parts differ"),
    ],
)  # fmt: skip
def test_what_is_no_pair_says_so(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
