"""Values that every device has to agree on with Python, NumPy and the array API standard."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, IndexOutOfRangeError, Numpy, ShapeError, Wgpu

DEVICES: list[Backend] = [Cpu(), Numpy(), Wgpu(), Autodiff(Cpu())]
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)
FLOATS = ("bfloat16", "float16", "float32", "float64")
INTS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def typed(device: Backend, names: tuple[str, ...]) -> list[Any]:
    """The element types of these names that the device has."""
    found = [px.as_dtype(name) for name in names if px.as_dtype(name) in device.dtypes]
    assert found
    return found


# Quotients


@each_device
def test_floor_division_of_floats_is_that_of_python(device: Backend) -> None:
    if px.float64 in device.dtypes:
        pairs = [(1.0, 0.1), (-1.0, 0.1), (1.0, -0.1), (0.3, 0.1), (6.0, 0.1), (5.5, 0.5)]
        a, b = (px.asarray(np.array(side), device=device) for side in zip(*pairs, strict=True))
        assert (a // b).tolist() == [x // y for x, y in pairs]
        assert (a % b).tolist() == [x % y for x, y in pairs]
        assert (a // 0.1).tolist() == [x // 0.1 for x, _ in pairs]
        assert (1.0 // b).tolist() == [1.0 // y for _, y in pairs]


@each_device
def test_floor_division_is_exact_before_it_is_rounded_down(device: Backend) -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(-500, 500, (37, 61)).astype(np.float64)
    for dtype in typed(device, FLOATS):
        divisor = np.where(rng.random(whole.shape) < 0.5, 0.1, -0.7).astype(dtype.numpy)
        dividend = (whole * divisor.astype(np.float64)).astype(dtype.numpy)
        wide = dividend.astype(np.float64), divisor.astype(np.float64)
        expected = np.floor_divide(*wide).astype(dtype.numpy)
        x, y = px.asarray(dividend, device=device), px.asarray(divisor, device=device)
        for a, b in ((x, y), (x.T.contiguous().T, y), (x[::-1][::-1], y)):
            np.testing.assert_array_equal((a // b).numpy(), expected)


@each_device
def test_quotient_and_remainder_make_the_dividend(device: Backend) -> None:
    rng = np.random.default_rng(4)
    for dtype in typed(device, ("float32", "float64")):
        x = px.asarray(rng.normal(size=4000).astype(dtype.numpy) * 50, device=device)
        y = px.asarray(rng.normal(size=4000).astype(dtype.numpy), device=device)
        back = ((x // y) * y + x % y).numpy()
        size = np.abs(x.numpy()) + np.abs(y.numpy())
        assert np.all(np.abs(back - x.numpy()) <= 2 * px.finfo(dtype).eps * size)
        assert np.all((x % y).numpy() * np.sign(y.numpy()) >= 0)


@each_device
def test_division_by_the_largest_numbers_is_that_of_numpy(device: Backend) -> None:
    values = [1.0, -5.0, 4e37, 5e37, 8.6e37, -1.8e38, 3e38, 3.4028235e38, np.inf, np.nan]
    a, b = (side.ravel() for side in np.meshgrid(*[np.array(values, np.float32)] * 2))
    with np.errstate(all="ignore"):
        expected = a / b
    got = (px.asarray(a, device=device) / px.asarray(b, device=device)).numpy()
    denormal = 1.2e-38  # which GPUs may flush
    np.testing.assert_allclose(got, expected, rtol=4e-7, atol=denormal)


@each_device
def test_floor_division_at_the_edges_is_that_of_numpy(device: Backend) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-30, -1e-30, np.inf, -np.inf, np.nan]
    a, b = (side.ravel() for side in np.meshgrid(*[np.array(values, np.float32)] * 2))
    with np.errstate(all="ignore"):
        expected = np.floor_divide(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    got = (px.asarray(a, device=device) // px.asarray(b, device=device)).numpy()
    np.testing.assert_allclose(got, expected, rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(expected[got == 0]))


# Sums


@each_device
def test_sums_hold_what_their_type_holds(device: Backend) -> None:
    true = px.asarray([True] * 300, device=device)
    assert true.sum().item() == true.sum(dtype="float32").item() == 300
    for dtype in typed(device, INTS):
        most = np.iinfo(dtype.numpy).max
        x = px.asarray(np.array([most, 1, 2], dtype.numpy), device=device)
        wide = max(dtype.itemsize, device.default_int.itemsize)
        kind = "int" if dtype.signed else "uint"
        for total in (x.sum(), x.cumsum()[2], x.sum(axis=0, keepdims=True)[0]):
            assert total.dtype.name == f"{kind}{8 * wide}"
            bits = 8 * wide
            wrapped = (int(most) + 3) % 2**bits
            signed = wrapped - 2**bits if dtype.signed and wrapped >= 2 ** (bits - 1) else wrapped
            assert total.item() == signed
        assert x.sum(dtype="float32").item() == pytest.approx(float(most) + 3, rel=1e-6)
        assert x.prod(dtype="float32").item() == pytest.approx(float(most) * 2, rel=1e-6)
        assert x.sum(dtype=dtype).dtype is dtype


def test_sums_of_large_integers_take_no_way_over_floats() -> None:
    for device in (Cpu(), Numpy()):
        large = px.asarray([2**62, 3, -5], dtype="int64", device=device)
        assert large.sum().item() == 2**62 - 2
        twice = px.asarray([2**62] * 2, dtype="int64", device=device)
        assert twice.sum(dtype="float64").item() == 2.0**63
        assert (
            px.asarray([2**63] * 2, dtype="uint64", device=device).sum(dtype="float64") == 2.0**64
        )


def test_sums_of_many_narrow_integers_do_not_wrap_on_the_way() -> None:
    for name, most in (("uint8", 255), ("int8", -128), ("uint16", 65535), ("int16", -32768)):
        x = px.full((1 << 17, 160), most, dtype=name, device=Cpu())
        assert x.sum().item() == most * x.size
        assert x.sum(axis=0)[7].item() == most * x.shape[0]


# Comparisons

COMPARE: list[Callable[[Any, Any], Any]] = [
    operator.eq,
    operator.ge,
    operator.gt,
    operator.le,
    operator.lt,
    operator.ne,
]


@each_device
def test_integers_compare_by_value(device: Backend) -> None:
    for dtype in typed(device, INTS):
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
        elements = [low, 0, high]
        x = px.asarray(np.array(elements, dtype.numpy), device=device)
        numbers = [low - 1, low, -1, 0, 1, high, high + 1, 2**70, -(2**70)]
        for compare, number in product(COMPARE, numbers):
            assert compare(x, number).tolist() == [compare(e, number) for e in elements]
            assert compare(number, x).tolist() == [compare(number, e) for e in elements]
        assert px.less(high + 1, x).tolist() == [False] * 3
        assert px.less(px.asarray(high, dtype=dtype, device=device), high + 1).shape == ()


# Indices


@each_device
def test_no_unsigned_index_is_negative(device: Backend) -> None:
    last = px.asarray(np.array([2**64 - 1], np.uint64), device=Numpy())
    if px.uint64 not in device.dtypes:
        last = px.asarray(np.array([2**32 - 1], np.uint32), device=Numpy())
    last = last.to_device(device)
    x = px.asarray([1.0, 2.0, 3.0], device=device)
    grid = px.ones((3, 3), device=device)
    calls: list[Callable[[], Any]] = [
        lambda: x.take(last),
        lambda: x.take_along_axis(last, axis=0),
        lambda: x.scatter(last, x[:1], axis=0),
        lambda: x.index_add(last, x[:1], axis=0),
        lambda: x[last],
        lambda: grid[last, last],
        lambda: x.at[last].set(5.0),
    ]
    for call in calls:
        with pytest.raises(IndexOutOfRangeError):
            call().numpy()


# Shapes


@each_device
def test_pools_take_batches_of_nothing(device: Backend) -> None:
    x = px.zeros((0, 2, 6, 6), device=device)
    assert px.max_pool2d(x, 2).shape == (0, 2, 3, 3)
    assert px.avg_pool2d(x, 2).shape == (0, 2, 3, 3)
    if device.records:
        x = x.require_grad()
        found = x.grad(px.max_pool2d(x, 2).sum().backward())
        assert found is not None
        assert found.shape == x.shape


@each_device
def test_tensors_have_sixteen_axes_at_most(device: Backend) -> None:
    assert device.max_rank == 16
    x = px.asarray(np.arange(8.0, dtype=np.float32).reshape((2, 2, 2) + (1,) * 13), device=device)
    assert (x + x.flip()).sum(axis=(0, 15)).shape == (2, 2) + (1,) * 12
    assert px.tile(x, (1,) * 15 + (3,)).shape == (2, 2, 2) + (1,) * 12 + (3,)
    assert x.repeat(2, axis=15).shape[-1] == 2
    assert x.permute_dims(tuple(range(16))[::-1]).shape == x.shape[::-1]
    calls: list[Callable[[], Any]] = [
        lambda: x[None],
        lambda: px.expand_dims(x, 0),
        lambda: px.zeros((1,) * 17, device=device),
        lambda: px.asarray(np.zeros((1,) * 17, np.float32), device=device),
        lambda: px.random.uniform((1,) * 17, device=device),
        lambda: px.stack([x, x]),
    ]
    for call in calls:
        with pytest.raises(ShapeError, match="too many axes: got 17, expected at most 16"):
            call()


@each_device
@pytest.mark.parametrize("rank", [1, 5, 8, 16])
def test_tile_of_any_rank_is_that_of_numpy(device: Backend, rank: int) -> None:
    shape = (2, 3, 2, *(1,) * 12, 2)[:rank]
    counts = (2, 1, 3, 1, 2, *(1,) * 10, 2)[:rank]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = px.asarray(array, device=device)
    np.testing.assert_array_equal(px.tile(x, counts).numpy(), np.tile(array, counts))
    np.testing.assert_array_equal(px.tile(x, 2).numpy(), np.tile(array, 2))
    np.testing.assert_array_equal(px.tile(x[0], counts).numpy(), np.tile(array[0], counts))
    np.testing.assert_array_equal(x.repeat(3, axis=0).numpy(), np.repeat(array, 3, 0))


# Memory


@each_device
def test_what_was_read_cannot_be_made_writeable(device: Backend) -> None:
    for name in ("bfloat16", "bool", "float16", "float32", "int32"):
        if px.as_dtype(name) not in device.dtypes:
            continue
        source = np.ones((2, 3), px.as_dtype(name).numpy)
        x = px.from_numpy(source, device=device)
        for tensor in (x, x.T, x[0, 0], x[:, ::2], x[:0]):
            array = tensor.numpy()
            assert array.shape == tensor.shape
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
        source[...] = 0
        assert x.astype("int32").sum().item() == 6


@each_device
def test_asarray_shares_or_copies_as_it_is_told(device: Backend) -> None:
    x = px.asarray([1.0, 2.0], device=device)
    assert px.asarray(x, copy=False) is x
    assert px.asarray(x) is x
    copied = px.asarray(x, copy=True)
    assert copied is not x
    assert copied.tolist() == [1.0, 2.0]
    assert px.asarray(x > 1, copy=True).tolist() == [False, True]
    if isinstance(device, Cpu | Numpy):
        assert not np.shares_memory(copied.numpy(), x.numpy())
    for data, options in (
        ([1.0], {}),
        (1.0, {}),
        (np.ones(2, np.float32), {}),
        ([x[0], x[1]], {}),
        (x, {"dtype": "int32"}),
    ):
        with pytest.raises(ValueError, match="has to be copied"):
            px.asarray(data, device=device, copy=False, **options)


# Keys of calls

ATTRIBUTES: list[Any] = [
    *((value,) for value in (None, 0, 1, 0.0, -0.0, 1.0, float("nan"), "1")),
    *((value,) for value in (px.float32, px.int32, (), (1,), (1.0,), ((1,),), ((1.0,),))),
    (1, 1),
    ((1, 2), True),
]


@each_device
def test_attributes_that_compare_equal_have_keys_of_their_own(device: Backend) -> None:
    x = px.ones((2, 3), device=device).primitive
    keys = [device.key_of(px.ops.sum, attributes, x) for attributes in ATTRIBUTES]
    assert None not in keys
    assert len({*keys}) == len(ATTRIBUTES)
    assert keys == [device.key_of(px.ops.sum, (*each,), x) for each in ATTRIBUTES]


@each_device
def test_a_key_tells_operands_apart(device: Backend) -> None:
    a, b, c = (px.ones(shape, device=device).primitive for shape in ((2,), (2, 1), (2,)))
    i = px.ones((2,), dtype=device.default_int, device=device).primitive
    calls: list[Any] = [(a,), (b,), (i,), (a, b), (b, a), (a, None), ((a, b),), ((a,), b)]
    keys = [device.key_of(px.ops.sum, (), *operands) for operands in calls]
    assert len({*keys}) == len(calls)
    assert device.key_of(px.ops.sum, (), c) == keys[0]


@each_device
def test_what_may_change_or_hold_memory_is_in_no_key(device: Backend) -> None:
    x = px.ones((2, 3), device=device)
    odd: list[Any] = [[1], x, np.float32(1), np.int64(1), 1j, object(), (1, [2])]
    assert all(device.key_of(px.ops.sum, (item,), x.primitive) is None for item in odd)
