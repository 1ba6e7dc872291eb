"""Elementwise ops of the CPU backend against NumPy: dtypes, layouts, special values, rejections."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import ArgumentError, Rejected, as_dtype

Array = np.ndarray[Any, Any]
DEVICE = Cpu()
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -100.0],
    np.float32,
)


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def special(name: str) -> Array:
    with np.errstate(over="ignore"):
        return SPECIAL.astype(numpy_type(name))


def up(array: Array) -> Any:
    return DEVICE.upload(array, as_dtype(array.dtype))


def down(primitive: Any) -> Array:
    return DEVICE.read(primitive)


def same(got: Any, expected: Array) -> None:
    array = down(got)
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


def numbers(name: str, shape: tuple[int, ...] = (7, 9), seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if name.startswith("u") else -9
    values = rng.integers(low, 10, shape)
    scaled = values / 2 if name in FLOATS else values
    return scaled.astype(numpy_type(name))


@pytest.mark.parametrize("name", [*FLOATS, *INTS])
@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("equal", np.equal),
        ("not_equal", np.not_equal),
        ("less", np.less),
        ("less_equal", np.less_equal),
        ("greater", np.greater),
        ("greater_equal", np.greater_equal),
    ],
)
def test_binary_ops_equal_numpy_for_every_dtype(name: str, op: str, function: Any) -> None:
    a, b = numbers(name), numbers(name, seed=1)
    entry = getattr(_native, op)
    expected = function(a, b)
    same(entry(up(a), up(b)), expected)
    same(entry(up(a), up(b[:1])), function(a, b[:1]))
    same(entry(up(a[:, :1]), up(b)), function(a[:, :1], b))
    same(entry(up(a), 2), function(a, a.dtype.type(2)))
    same(entry(2, up(a)), function(a.dtype.type(2), a))


@pytest.mark.parametrize("name", INTS)
def test_integer_division_follows_the_spec(name: str) -> None:
    dtype = np.dtype(name)
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.min + 1], dtype)
    if info.min < 0:
        values = np.concatenate([values, np.array([-1, -2, -3, -7], dtype)])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        same(_native.floor_divide(up(a), up(b)), np.floor_divide(a, b))
        same(_native.remainder(up(a), up(b)), np.remainder(a, b))
        same(_native.fmod(up(a), up(b)), np.fmod(a, b))
        same(_native.multiply(up(a), up(b)), a * b)
        same(_native.abs(up(a)), np.abs(a))
        same(_native.negative(up(a)), np.negative(a))
        same(_native.sign(up(a)), np.sign(a))
        same(_native.divide(up(a), up(b)), a.astype(np.float32) / b.astype(np.float32))


@pytest.mark.parametrize("name", INTS)
def test_shifts_saturate_at_the_width(name: str) -> None:
    a = numbers(name, (40,))
    width = np.dtype(name).itemsize * 8
    by = np.arange(40).astype(name)
    wide = by >= width
    left = np.where(wide, 0, a << np.where(wide, 0, by)).astype(name)
    right = np.where(wide, np.where(a < 0, -1, 0), a >> np.where(wide, 0, by)).astype(name)
    same(_native.bitwise_left_shift(up(a), up(by)), left)
    same(_native.bitwise_right_shift(up(a), up(by)), right)


@pytest.mark.parametrize("name", [*INTS, "bool"])
def test_bit_operations(name: str) -> None:
    a, b = numbers(name), numbers(name, seed=1)
    same(_native.bitwise_and(up(a), up(b)), a & b)
    same(_native.bitwise_or(up(a), up(b)), a | b)
    same(_native.bitwise_xor(up(a), up(b)), a ^ b)
    same(_native.bitwise_invert(up(a)), ~a)


def test_logical_operations() -> None:
    a, b = numbers("bool"), numbers("bool", seed=1)
    same(_native.logical_and(up(a), up(b)), a & b)
    same(_native.logical_or(up(a), up(b)), a | b)
    same(_native.logical_xor(up(a), up(b)), a ^ b)
    same(_native.logical_not(up(a)), ~a)
    same(_native.equal(up(a), True), a)


def test_integer_power_wraps_and_refuses_negative_exponents() -> None:
    a, b = np.array([2, 3, -3, 0, 10], np.int32), np.array([31, 4, 3, 0, 20], np.int32)
    same(_native.pow(up(a), up(b)), a**b)
    with pytest.raises(ArgumentError, match="negative exponent"):
        _native.pow(up(a), -1)
    with pytest.raises(ArgumentError, match="negative exponent"):
        _native.pow(2, up(np.array([3, -1])))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["ceil", "floor", "round", "trunc", "sign", "abs", "square"])
def test_rounding_keeps_signs_and_special_values(name: str, op: str) -> None:
    x = special(name)
    function = {"round": np.rint, "abs": np.abs}.get(op) or getattr(np, op)
    with np.errstate(all="ignore"):
        expected = function(x)
    got = down(getattr(_native, op)(up(x)))
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    if op in ("ceil", "floor", "round", "trunc"):
        number = ~np.isnan(x.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


def test_tests_for_special_values() -> None:
    for name in FLOATS:
        x = special(name)
        same(_native.isnan(up(x)), np.isnan(x))
        same(_native.isinf(up(x)), np.isinf(x))
        same(_native.isfinite(up(x)), np.isfinite(x))
    whole = numbers("int32")
    same(_native.isnan(up(whole)), np.zeros(whole.shape, bool))
    same(_native.isfinite(up(whole)), np.ones(whole.shape, bool))


def test_maximum_propagates_nan_from_either_side() -> None:
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    for op, function in (("maximum", np.maximum), ("minimum", np.minimum)):
        same(getattr(_native, op)(up(a), up(b)), function(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_remainders_follow_numpy(dtype: type) -> None:
    values: Array = np.array(
        [0.0, -0.0, 1, -1, 5.5, -5.5, 3, -3, np.inf, -np.inf, np.nan, 0.3], dtype
    )
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.remainder(a, b)
        got = down(_native.remainder(up(a), up(b)))
        np.testing.assert_array_equal(got, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
        same(_native.fmod(up(a), up(b)), np.fmod(a, b))
        same(_native.floor_divide(up(a), up(b)), np.floor_divide(a, b))


@pytest.mark.parametrize("name", FLOATS)
def test_power_follows_ieee(name: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, np.inf, -np.inf, np.nan], np.float64)
    a, b = (x.ravel().astype(numpy_type(name)) for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    got = down(_native.pow(up(a), up(b)))
    # A square is a product: the last bit may differ, 0, inf and nan may not.
    step = 2.0**-52 if name == "float64" else 2.0**-23
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=step)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["exp", "tanh", "sqrt", "log", "sin"])
def test_narrow_floats_are_computed_in_float32(name: str, op: str) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    x = bits.view(numpy_type(name))
    with np.errstate(all="ignore"):
        exact = getattr(np, op)(x.astype(np.float64)).astype(np.float32)
        rounded = exact.astype(x.dtype)
        expected = rounded.astype(np.float64)
        got = down(getattr(_native, op)(up(x))).astype(np.float64)
        # Two roundings: the last bit may differ where the float32 value lies next to a tie.
        step = np.spacing(np.abs(rounded)).astype(np.float64)
        close = (got == expected) | (np.isnan(got) & np.isnan(expected))
        close |= np.abs(got - expected) <= step
    assert close.all()
    assert (got == expected)[~np.isnan(expected)].mean() > 0.999


def test_where_mixes_arrays_and_scalars() -> None:
    c = numbers("bool")
    for name in (*FLOATS, *INTS, "bool"):
        a, b = numbers(name), numbers(name, seed=1)
        same(_native.where(up(c), up(a), up(b)), np.where(c, a, b))
        same(_native.where(up(c[:, :1]), up(a), up(b[0])), np.where(c[:, :1], a, b[0]))
        same(_native.where(up(c), up(a), True), np.where(c, a, a.dtype.type(1)))
        same(_native.where(True, up(a), up(b)), a)
    with pytest.raises(Rejected):
        _native.where(up(numbers("int32")), up(c), up(c))


def test_clip_keeps_nan_and_open_sides() -> None:
    with np.errstate(invalid="ignore"):
        same(_native.clip(up(SPECIAL), -1.0, 2.0), np.clip(SPECIAL, -1, 2))
        same(_native.clip(up(SPECIAL), None, 2), np.minimum(SPECIAL, np.float32(2)))
        same(_native.clip(up(SPECIAL), 0, None), np.maximum(SPECIAL, np.float32(0)))
    whole = numbers("int8", (50,))
    same(_native.clip(up(whole), -300, 4), np.minimum(whole, 4))


def test_activations_saturate_instead_of_overflowing() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 200.0, -200.0], np.float32)
    expected = {
        "gelu": [np.inf, 0, np.nan, 200, 0],
        "gelu_tanh": [np.inf, 0, np.nan, 200, 0],
        "log_sigmoid": [0, -np.inf, np.nan, 0, -200],
        "relu": [np.inf, 0, np.nan, 200, 0],
        "sigmoid": [1, 0, np.nan, 1, 0],
        "silu": [np.inf, 0, np.nan, 200, 0],
        "softplus": [np.inf, 0, np.nan, 200, 0],
        "tanh": [1, -1, np.nan, 1, -1],
    }
    for name, values in expected.items():
        for wide in (np.float32, np.float64):
            got = down(getattr(_native, name)(up(x.astype(wide))))
            np.testing.assert_allclose(got, np.array(values), rtol=0, atol=1e-30, err_msg=name)
    for name in ("gelu_backward", "gelu_tanh_backward", "silu_backward"):
        got = down(getattr(_native, name)(1.0, up(x)))
        np.testing.assert_allclose(got, [1, 0, np.nan, 1, 0], rtol=0, atol=1e-30, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_backward_rows_match_differences(dtype: type) -> None:
    x = np.linspace(-8, 8, 4001)
    h = 1e-5
    for name in ("gelu", "gelu_tanh", "silu"):
        up_side = down(getattr(_native, name)(up(x + h)))
        down_side = down(getattr(_native, name)(up(x - h)))
        slope = (up_side - down_side) / (2 * h)
        got = down(getattr(_native, f"{name}_backward")(2.0, up(x.astype(dtype))))
        np.testing.assert_allclose(got, 2 * slope, rtol=0, atol=1e-6)


@pytest.mark.parametrize("source", [*FLOATS, *INTS, "bool"])
@pytest.mark.parametrize("target", [*FLOATS, *INTS, "bool"])
def test_casts(source: str, target: str) -> None:
    x = numbers(source)
    if target == "bool":
        expected = x != 0
    elif source in FLOATS and target in INTS:
        info = np.iinfo(target)
        expected = np.clip(np.trunc(x.astype(np.float64)), info.min, info.max).astype(target)
    else:
        expected = x.astype(numpy_type(target))
    same(_native.cast(up(x), target), expected)


def test_casts_saturate_wrap_and_round_once() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e10, -3e10, 2.9, -2.9], np.float32)
    limits = np.iinfo(np.int32)
    expected = np.array([0, limits.max, limits.min, limits.max, limits.min, 2, -2], np.int32)
    same(_native.cast(up(x), "int32"), expected)
    same(_native.cast(up(np.array([300, -1])), "uint8"), np.array([44, 255], np.uint8))
    # Just above the tie between two halves: rounding to float32 first would lose the difference.
    tie = np.array([1 + 2.0**-11 + 2.0**-40])
    same(_native.cast(up(tie), "float16"), tie.astype(np.float16))
    same(_native.cast(up(tie), as_dtype("float16")), tie.astype(np.float16))


def test_creation() -> None:
    for name in (*FLOATS, *INTS):
        same(_native.full((2, 3), 5, name), np.full((2, 3), 5, numpy_type(name)))
        same(_native.arange(3, 2, 5, name), np.arange(3, 13, 2).astype(numpy_type(name)))
    same(_native.full((), True, "bool"), np.array(True))
    same(_native.full((0, 2), 1.5, "float64"), np.full((0, 2), 1.5))
    same(_native.arange(0.5, 0.25, 4, "float32"), np.array([0.5, 0.75, 1.0, 1.25], np.float32))
    same(_native.arange(7, -2, 4, "int64"), np.array([7, 5, 3, 1]))
    same(_native.full((2,), 2**64 - 1, "uint64"), np.full(2, 2**64 - 1, np.uint64))


def test_what_does_not_fit_is_rejected() -> None:
    f, i, b = numbers("float32"), numbers("int32"), numbers("bool")
    cases = [
        (_native.add, up(f), up(i)),
        (_native.add, up(f), up(f[:3])),
        (_native.add, up(i), 1.5),
        (_native.add, up(numbers("uint8")), 300),
        (_native.add, up(b), up(b)),
        (_native.add, up(f), "x"),
        (_native.add, up(f), f),
        (_native.add, 1.0, 2.0),
        (_native.less, up(b), up(b)),
        (_native.logical_and, up(f), up(f)),
        (_native.bitwise_and, up(f), up(f)),
        (_native.atan2, up(i), up(i)),
    ]
    for entry, x1, x2 in cases:
        with pytest.raises(Rejected):
            entry(x1, x2)
    for entry, x in ((_native.exp, up(i)), (_native.abs, up(b)), (_native.logical_not, up(f))):
        with pytest.raises(Rejected):
            entry(x)


def test_threads_do_not_change_results() -> None:
    x = np.linspace(-10, 10, 300_001).astype(np.float32)
    before = _native._num_threads()
    results = []
    try:
        for count in (1, 2, 5):
            _native._set_num_threads(count)
            results.append(down(_native.gelu(up(x))).tobytes())
    finally:
        _native._set_num_threads(before)
    assert results[0] == results[1] == results[2]
