"""Arrays of the array API standard 2025.12: making, moving, indexing, handing on, asking."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import phlox_tensor as pt
from tests.array_api.drawn import ANY, FLOATS, NUMERIC, SHAPES, arrays, hold, often, same

xp: Any = pt

# A function and its parameters behind the arrays, as the standard spells them.
PARAMETERS = """
all axis keepdims
any axis keepdims
arange start stop step dtype device
argmax axis keepdims
argmin axis keepdims
argsort axis descending stable
asarray dtype device copy
astype dtype copy device
concat axis
count_nonzero axis keepdims
cumulative_prod axis dtype include_initial
cumulative_sum axis dtype include_initial
diff axis n prepend append
empty shape dtype device
empty_like dtype device
expand_dims axis
eye k dtype device
flip axis
from_dlpack device copy
full shape fill_value dtype device
full_like fill_value dtype device
isin invert
linspace num dtype device endpoint
max axis keepdims
mean axis keepdims
meshgrid indexing
min axis keepdims
ones shape dtype device
ones_like dtype device
permute_dims axes
prod axis dtype keepdims
repeat axis
reshape shape copy
roll shift axis
searchsorted side sorter
sort axis descending stable
squeeze axis
stack axis
std axis correction keepdims
sum axis dtype keepdims
take axis
take_along_axis axis
tensordot axes
tril k
triu k
unstack axis
var axis correction keepdims
vecdot axis
zeros shape dtype device
zeros_like dtype device
"""


@pytest.mark.parametrize("line", PARAMETERS.split("\n")[1:-1])
def test_parameters_have_the_names_of_the_standard(line: str) -> None:
    name, *wanted = line.split()
    taken = inspect.signature(getattr(xp, name)).parameters
    assert [p for p in wanted if p not in taken] == []


@often
def test_moves_of_elements(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        array = data.draw(arrays(data.draw(st.sampled_from(ANY))))
        x, rank = xp.asarray(array), array.ndim
        axes = st.integers(-rank, rank - 1) if rank else st.nothing()
        some = st.lists(axes, unique_by=lambda i: i % rank, max_size=rank).map(tuple)
        several = data.draw(some) if rank else ()
        same(xp.flip(x, axis=several), np.flip(array, several))
        same(xp.flip(x), np.flip(array))
        order = data.draw(st.permutations(range(rank))) if rank else []
        same(xp.permute_dims(x, axes=tuple(order)), np.transpose(array, order))
        same(
            xp.reshape(x, (-1,) if array.size else array.shape),
            array.reshape(-1) if array.size else array,
        )
        same(xp.reshape(x, (1, *array.shape), copy=True), array[None])
        shifts = tuple(data.draw(st.integers(-5, 5)) for _ in several)
        same(xp.roll(x, 2), np.roll(array, 2))
        if several:
            same(xp.roll(x, shifts, axis=several), np.roll(array, shifts, several))
            same(xp.roll(x, 1, axis=several), np.roll(array, 1, several))
        new = data.draw(st.lists(st.integers(0, rank + 1), unique=True, min_size=2, max_size=2))
        same(xp.expand_dims(x, axis=tuple(new)), np.expand_dims(array, tuple(new)))
        same(xp.squeeze(xp.expand_dims(x, axis=0), axis=0), array)
        same(xp.concat([x, x], axis=None), np.concatenate([array, array], axis=None))
        same(xp.tile(x, (2,) * max(rank, 1)), np.tile(array, (2,) * max(rank, 1)))
        if rank:
            axis = data.draw(axes)
            same(xp.concat((x, x), axis=axis), np.concatenate((array, array), axis=axis))
            same(xp.stack((x, x), axis=axis), np.stack((array, array), axis=axis))
            counts = data.draw(hnp.arrays(np.int64, array.shape[axis], elements=st.integers(0, 3)))
            same(xp.repeat(x, xp.asarray(counts), axis=axis), np.repeat(array, counts, axis=axis))
            same(xp.repeat(x, 2, axis=axis), np.repeat(array, 2, axis=axis))
            parts = xp.unstack(x, axis=axis)
            assert isinstance(parts, tuple)
            for got, want in zip(parts, np.moveaxis(array, axis, 0), strict=True):
                same(got, want)
            same(xp.moveaxis(x, 0, axis), np.moveaxis(array, 0, axis))
        same(xp.repeat(x, 3), np.repeat(array, 3))

    hold(examples, check, data=st.data())


@often
def test_differences(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
        array = data.draw(arrays(data.draw(st.sampled_from(NUMERIC)), shape))
        axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
        n = data.draw(st.integers(0, 3))
        x = xp.asarray(array)
        if n <= array.shape[axis]:
            same(xp.diff(x, axis=axis, n=n), np.diff(array, axis=axis, n=n))
        want = np.diff(array, axis=axis, prepend=array, append=array)
        same(xp.diff(x, axis=axis, prepend=x, append=x), want)

    hold(examples, check, data=st.data())


@often
def test_products(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(NUMERIC))
        n, m, k = (data.draw(st.integers(0, 3)) for _ in range(3))
        a, b = data.draw(arrays(dtype, (2, n, k), -3, 3)), data.draw(arrays(dtype, (k, m), -3, 3))
        x, y = xp.asarray(a), xp.asarray(b)
        same(xp.matmul(x, y), a @ b)
        same(x @ y, a @ b)
        same(xp.tensordot(x, y, axes=1), np.tensordot(a, b, axes=1))
        same(xp.tensordot(x, y, axes=((2,), (0,))), np.tensordot(a, b, axes=((2,), (0,))))
        same(xp.matrix_transpose(x), np.swapaxes(a, -1, -2))
        same(x.mT, np.swapaxes(a, -1, -2))
        want = np.sum(a * b.T[:, None] if m == 2 else a * a, axis=-1, dtype=a.dtype)
        same(xp.vecdot(x, xp.expand_dims(y.mT, axis=1) if m == 2 else x), want)

    hold(examples, check, data=st.data())


def test_a_contracted_axis_does_not_broadcast() -> None:
    for one, two in (((3,), (1,)), ((2, 3), (1,)), ((1,), (4,))):
        with pytest.raises(ValueError, match="sizes differ along the axis"):
            xp.vecdot(xp.ones(one), xp.ones(two))
    assert xp.vecdot(xp.ones((2, 3)), xp.ones((5, 2, 3)), axis=-2).shape == (5, 3)


@often
def test_indices(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        array = data.draw(arrays("float32"))
        x = xp.asarray(array)
        index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
        same(x[index], array[index])
        mask = data.draw(hnp.arrays("bool", array.shape))
        same(x[xp.asarray(mask)], array[mask])
        if array.ndim and array.size:
            places = data.draw(hnp.integer_array_indices(array.shape, dtype=np.dtype(np.int64)))
            same(x[tuple(map(xp.asarray, places))], array[places])
            some = data.draw(
                hnp.arrays(np.int64, (3,), elements=st.integers(0, array.shape[0] - 1))
            )
            same(xp.take(x, xp.asarray(some), axis=0), np.take(array, some, axis=0))
            along = np.argsort(array, axis=0)
            got = xp.take_along_axis(x, xp.asarray(along), axis=0)
            same(got, np.take_along_axis(array, along, axis=0))

    hold(examples, check, data=st.data())


def test_masks_on_0_d_arrays_and_no_writing() -> None:
    x = xp.asarray(5.0)
    assert x[xp.asarray(True)].tolist() == [5.0]
    assert x[xp.asarray(False)].shape == (0,)
    assert x[()].shape == ()
    with pytest.raises(TypeError, match=r"hint: x = x.at\[index\].set\(value\)"):
        x[...] = 1.0
    with pytest.raises(ValueError, match="no axes"):
        xp.nonzero(x)


@often
def test_ranges_and_constants(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dtype: Any = data.draw(st.sampled_from(FLOATS))
        shape = data.draw(SHAPES)
        kind = getattr(xp, dtype)
        same(xp.full(shape, 2.5, dtype=kind), np.full(shape, 2.5, dtype))
        same(xp.full_like(xp.zeros(shape), 3, dtype=kind), np.full(shape, 3, dtype))
        assert xp.empty(shape, dtype=kind).shape == xp.empty_like(xp.ones(shape)).shape == shape
        start, stop, num = (data.draw(st.integers(-9, 9)) for _ in range(3))
        ends = data.draw(st.booleans())
        want = np.linspace(start, stop, abs(num), dtype=dtype, endpoint=ends)
        same(xp.linspace(start, stop, num=abs(num), dtype=kind, endpoint=ends), want)
        step = data.draw(st.sampled_from([-3, -1, 1, 2]))
        same(xp.arange(start, stop, step), np.arange(start, stop, step))
        same(
            xp.arange(start, stop=stop, step=step / 2, dtype=kind),
            np.arange(start, stop, step / 2).astype(dtype),
        )
        rows, columns, k = abs(start), abs(stop), data.draw(st.integers(-3, 3))
        same(xp.eye(rows, columns, k=k, dtype=kind), np.eye(rows, columns, k=k, dtype=dtype))
        square = data.draw(arrays(dtype, (2, 3, 4)))
        same(xp.tril(xp.asarray(square), k=k), np.tril(square, k))
        same(xp.triu(xp.asarray(square), k=k), np.triu(square, k))
        lines = [np.arange(n, dtype=dtype) for n in (2, 3, rows % 3)]
        for indexing in ("xy", "ij"):
            grids = xp.meshgrid(*map(xp.asarray, lines), indexing=indexing)
            assert isinstance(grids, tuple)
            wanted = np.meshgrid(*lines, indexing=indexing)
            for got, want in zip(grids, wanted, strict=True):
                same(got, want)

    hold(examples, check, data=st.data())


def test_shapes_that_meet() -> None:
    assert xp.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert xp.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        xp.broadcast_shapes((2,), (3,))
    both = xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))
    assert isinstance(both, tuple)
    assert [x.shape for x in both] == [(2, 3), (2, 3)]
    assert xp.broadcast_to(xp.ones(3), (2, 3)).shape == (2, 3)


@pytest.mark.parametrize("name", ANY)
def test_data_is_handed_on_and_taken(name: str) -> None:
    array = np.asarray([[1, 0], [2, 3]]).astype(name)
    x = xp.asarray(array)
    for version in (None, (0, 8), (1, 0)):
        assert type(x.__dlpack__(max_version=version)).__name__ == "PyCapsule"
    theirs = np.from_dlpack(x)
    np.testing.assert_array_equal(theirs, array)
    theirs[...] = 1
    np.testing.assert_array_equal(x.numpy(), array)
    assert not np.from_dlpack(x, copy=False).flags.writeable
    assert x.__dlpack_device__() == (1, 0)
    same(xp.from_dlpack(array), array)
    same(xp.from_dlpack(array, copy=True, device=x.device), array)
    assert xp.from_dlpack(x, copy=False) is x
    with pytest.raises(BufferError, match="has to be copied"):
        xp.from_dlpack(array, copy=False)
    with pytest.raises(ValueError, match="order their work"):
        x.__dlpack__(stream=1)
    with pytest.raises(ValueError, match="order their work"):
        x.to_device(x.device, stream=1)
    assert x.to_device(x.device, stream=None) is x
    same(xp.asarray(np.ascontiguousarray(array).data), array)
    assert xp.astype(x, xp.float64, device=x.device, copy=False).dtype is xp.float64
    assert xp.astype(x, x.dtype) is x


def test_a_reshape_without_a_copy_is_refused_where_elements_move() -> None:
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.reshape(x, (3, 2), copy=False).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="has to be copied"):
        xp.reshape(x.mT, (6,), copy=False)
    assert xp.reshape(x.mT, (6,)).tolist() == [0, 3, 1, 4, 2, 5]


def test_what_a_namespace_says_of_itself() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 16,
    }
    device = info.default_device()
    assert device in info.devices()
    assert info.default_dtypes()["integral"] is xp.arange(3).dtype
    assert info.default_dtypes(device=device)["real floating"] is xp.ones(1).dtype
    assert info.default_dtypes()["indexing"] is xp.argsort(xp.ones(1)).dtype
    assert sorted(info.dtypes()) == sorted(ANY)
    assert [*info.dtypes(kind="real floating")] == [*FLOATS]
    assert sorted(info.dtypes(kind=("bool", "real floating"))) == ["bool", *FLOATS]
    assert info.dtypes(kind="complex floating") == {}
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="number")
    x = xp.ones(1)
    assert x.__array_namespace__(api_version="2025.12") is xp
    with pytest.raises(ValueError, match="unknown edition"):
        x.__array_namespace__(api_version="1999.12")


def test_objects_with_a_buffer_keep_their_type() -> None:
    assert xp.asarray(b"ab").tolist() == [97, 98]
    assert xp.asarray(bytearray(b"ab")).dtype is xp.uint8
