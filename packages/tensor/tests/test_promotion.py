"""Which element types meet in which, and how Python numbers join in."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import DTYPES, DType, DTypeError, KindError, Numpy
from phlox_tensor._device.numpy_backend import Arrays

# The array API's table, extended by bfloat16: rows meet columns in the type written there.
FLOATS = """
         float16  bfloat16 float32 float64
float16  float16  float32  float32 float64
bfloat16 float32  bfloat16 float32 float64
float32  float32  float32  float32 float64
float64  float64  float64  float64 float64
"""
INTS = """
       int8  int16 int32 int64 uint8  uint16 uint32 uint64
int8   int8  int16 int32 int64 int16  int32  int64  -
int16  int16 int16 int32 int64 int16  int32  int64  -
int32  int32 int32 int32 int64 int32  int32  int64  -
int64  int64 int64 int64 int64 int64  int64  int64  -
uint8  int16 int16 int32 int64 uint8  uint16 uint32 uint64
uint16 int32 int32 int32 int64 uint16 uint16 uint32 uint64
uint32 int64 int64 int64 int64 uint32 uint32 uint32 uint64
uint64 -     -     -     -     uint64 uint64 uint64 uint64
"""

# Of no kind that a type checker sees: what these tests write is wrong on purpose.
asarray: Any = pt.asarray


def cells(table: str) -> list[tuple[str, str, str]]:
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return [(name, a, b) for name, *row in rows for a, b in zip(head, row, strict=True)]


def one(dtype: str) -> Any:
    return pt.ones(1, dtype=dtype)


@pytest.mark.parametrize(("left", "right", "meet"), cells(FLOATS) + cells(INTS))
def test_types_of_one_kind_meet(left: str, right: str, meet: str) -> None:
    if meet == "-":
        with pytest.raises(DTypeError, match=r"\[add\] no integer type holds both"):
            _ = one(left) + one(right)
        return
    for out in (one(left) + one(right), pt.concat([one(left), one(right)])):
        assert out.dtype is DTYPES[meet]
    assert pt.where(pt.asarray([True]), one(left), one(right)).dtype is DTYPES[meet]


def test_the_table_is_complete() -> None:
    named = {a for a, _, _ in cells(FLOATS) + cells(INTS)}
    assert named == {d.name for d in DTYPES.values() if d.kind != "Bool"}


KINDS = {"Bool": "bool", "Float": "float32", "Int": "int64"}


@pytest.mark.parametrize(("left", "right"), [p for p in product(KINDS, KINDS) if p[0] != p[1]])
def test_kinds_do_not_mix(left: str, right: str) -> None:
    x, y = one(KINDS[left]), one(KINDS[right])
    with pytest.raises(KindError, match=rf"got {KINDS[left]} and {KINDS[right]}") as caught:
        pt.where(pt.asarray([True]), x, y)
    order = ("Bool", "Int", "Float")  # the hint loses nothing
    keeps_x = order.index(left) > order.index(right)
    hint = f'y.astype("{KINDS[left]}")' if keeps_x else f'x.astype("{KINDS[right]}")'
    assert caught.value.hint == hint
    for call in (pt.equal, pt.add, pt.divide):
        with pytest.raises(KindError):
            call(x, y)
    with pytest.raises(KindError):
        pt.concat([x, y])


def test_division_of_integers_is_of_the_default_float() -> None:
    assert (pt.asarray([1, 2]) / pt.asarray([2, 2])).tolist() == [0.5, 1.0]
    assert (pt.asarray([1], dtype="int8") / 2).dtype is pt.float32
    assert (1 / pt.asarray([2])).tolist() == [0.5]
    wide = pt.asarray([1], device=Numpy(float="float64"))
    assert (wide / 3).tolist() == [1 / 3]
    with pytest.raises(KindError):
        _ = asarray([1]) / asarray([2.0])


@given(st.sampled_from(sorted(DTYPES)), st.sampled_from([True, 1, 2.0, np.float64(2), np.int8(1)]))
def test_numbers_are_weak(name: str, number: Any) -> None:
    """A number takes the tensor's type, on either side, when its kind is not above it."""
    dtype: DType = DTYPES[name]
    ranks = {"Bool": 0, "Int": 1, "Float": 2}
    plain = number if isinstance(number, bool | int | float) else number.item()
    rank = 0 if isinstance(plain, bool) else 1 if isinstance(plain, int) else 2
    x = one(name)
    if rank <= ranks[dtype.kind]:
        assert pt.where(pt.asarray([True]), number, x).dtype is dtype
        if dtype.kind != "Bool":
            assert (x * number).dtype is dtype
            assert (number * x).dtype is dtype
            assert (x > number).dtype is pt.bool_
    else:
        with pytest.raises(KindError, match="of different kinds"):
            pt.where(pt.asarray([True]), number, x)
        with pytest.raises(KindError):
            _ = x * number


@pytest.mark.parametrize(
    ("name", "number"), [("int8", 128), ("uint8", -1), ("int64", 2**63), ("float32", 10**400)]
)
def test_numbers_out_of_range_are_refused(name: str, number: int) -> None:
    with pytest.raises(DTypeError, match=r"number out of range.*expected a value of " + name):
        _ = one(name) + number
    with pytest.raises(DTypeError):
        pt.full(2, number, dtype=name)


@pytest.mark.parametrize(
    ("call", "got"),
    [
        (lambda: pt.logical_and(1, 2), "Int"),  # type: ignore[arg-type]
        (lambda: pt.bitwise_left_shift(1.5, 2.0), "Float"),
        (lambda: pt.add(True, True), "Bool"),
        (lambda: pt.where(1, 2.0, 3.0), "Int"),  # type: ignore[arg-type]
        (lambda: asarray([True]).sin(), "Bool"),
        (lambda: asarray([1]).mean(), "Int"),
        (lambda: asarray([1.0]) & True, "Float"),
        (lambda: -asarray([True]), "Bool"),
        (lambda: pt.ops.nonzero(asarray([1.0, 2.0])), "Float"),
    ],
)
def test_a_kind_that_the_op_lacks_is_refused_at_the_call(call: Any, got: str) -> None:
    with pytest.raises(KindError, match=rf"got {got} \(\w+\), expected") as caught:
        call()
    assert caught.value.hint is not None
    assert '.astype("' in caught.value.hint


def test_numbers_alone_take_the_default_types() -> None:
    assert pt.add(1, 2).dtype is pt.int64
    assert pt.add(1, 2.0).dtype is pt.float32
    assert pt.exp(1).dtype is pt.float32  # type: ignore[arg-type]
    with pt.use_device(Numpy(float="float64", int="int32")):
        assert pt.add(1, 2).dtype is pt.int32
        assert pt.exp(1.0).dtype is pt.float64  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_sums_of_narrow_integers_are_wide(name: str) -> None:
    dtype = DTYPES[name]
    wide = dtype if dtype.kind == "Float" else pt.uint64 if name.startswith("uint") else pt.int64
    assert one(name).sum().dtype is wide
    if dtype.kind != "Bool":
        assert one(name).prod().dtype is one(name)[None].cumsum().dtype is wide
    assert one(name).sum(dtype="float32").dtype is pt.float32


def test_sums_hold_what_their_type_holds() -> None:
    for device in (Numpy(), Numpy(int="int32")):
        most = pt.asarray([127, 127], dtype="int8", device=device)
        for total in (most.sum(), most.cumsum()[1], most.sum(dtype="float32")):
            assert total.item() == 254
        assert most.prod(dtype="float32").item() == 127.0**2
        assert most.sum(dtype="int8").item() == -2
        assert pt.asarray([True, True], device=device).sum(dtype="float32").item() == 2.0
        huge = pt.asarray([2**62, 2**62], dtype="int64", device=device)
        assert huge.sum(dtype="float64").item() == 2.0**63
        assert pt.asarray([2**62, 3], dtype="int64", device=device).sum().item() == 2**62 + 3
        assert pt.asarray([2**63, 3], dtype="uint64", device=device).sum().item() == 2**63 + 3
    with pytest.raises(KindError):
        most.sum(dtype="bool")


def test_attributes_join_as_numbers_do() -> None:
    """Bounds and fill values neither wrap nor lose their fraction."""
    small = pt.asarray([1, 200], dtype="uint8")
    with pytest.raises(DTypeError):
        small.clip(max=300)
    with pytest.raises(KindError):
        small.clip(0.5, 2.5)
    with pytest.raises(DTypeError):
        small.pad(((1, 1),), 300)
    with pytest.raises(KindError):
        pt.full(2, 1.5, dtype="int64")
    assert small.clip(1.0, 100).tolist() == [1, 100]
    assert pt.zeros(2, dtype="int64").tolist() == [0, 0]
    assert pt.ones(2, dtype="bool").tolist() == [True, True]


@given(st.sampled_from(sorted(DTYPES)), st.sampled_from(sorted(DTYPES)))
def test_astype_reaches_every_type(source: str, target: str) -> None:
    out = one(source).astype(target)
    assert out.dtype is DTYPES[target]
    assert out.tolist() == [1]


def test_casts_follow_the_numeric_spec() -> None:
    special = pt.asarray([np.nan, np.inf, -np.inf, 1.9, -1.9, 300.0])
    assert special.astype("int8").tolist() == [0, 127, -128, 1, -1, 127]
    assert special.astype("uint8").tolist() == [0, 255, 0, 1, 0, 255]
    assert special.astype("bool").tolist() == [True] * 6
    assert pt.asarray([300, -1]).astype("uint8").tolist() == [44, 255]
    with pytest.raises(DTypeError, match="unknown element type: got 'float12'"):
        special.astype("float12")
    untyped: Any = None  # float64 to NumPy
    with pytest.raises(DTypeError, match="unknown element type: got None"):
        special.astype(untyped)


@pytest.mark.parametrize("spelling", ["float64", np.float64, np.dtype("float64"), float, ">f8"])
def test_types_have_several_spellings(spelling: Any) -> None:
    assert pt.as_dtype(spelling) is pt.float64
    assert pt.ones(1).astype(spelling).dtype is pt.float64


def test_limits_of_types() -> None:
    assert pt.finfo(pt.float16).eps == 2**-10
    assert pt.finfo("bfloat16").eps == 2**-7
    assert pt.iinfo(pt.uint8).max == 255
    with pytest.raises(KindError, match="expected float16"):
        pt.finfo(pt.int8)
    with pytest.raises(KindError, match="expected int8"):
        pt.iinfo(pt.float32)


def test_a_type_that_the_device_lacks_is_named_with_those_it_has() -> None:
    class Narrow(Arrays):
        name = "narrow"
        dtypes = frozenset({pt.float32, pt.int32, pt.bool_})
        default_float, default_int = pt.float32, pt.int32

        def entry(self, name: str) -> Any:
            return Numpy("float32", "int32").entry(name)

    device = Narrow()
    x = pt.ones(2, device=device)
    for call in (lambda: x.astype("float64"), lambda: pt.ones(2, dtype="float64", device=device)):
        with pytest.raises(DTypeError, match=r"got float64, expected bool, float32, int32"):
            call()
    assert pt.asarray(np.array([1, 2]), device=device).dtype is pt.int32
    assert pt.asarray([1, 2]).to_device(device).dtype is pt.int32
    for call in (
        lambda: pt.asarray(np.array([2**31]), device=device),
        lambda: pt.asarray([2**31]).to_device(device),
        lambda: pt.arange(2**31, 2**31 + 1, device=device),
    ):
        with pytest.raises(DTypeError, match=r"2147483648"):
            call()
    with pytest.raises(DTypeError):
        pt.asarray(np.ones(2), device=device)


def test_lists_of_large_integers_are_not_rounded_on_the_way() -> None:
    held = pt.asarray([2**63 + 1, 3], dtype="uint64", device=Numpy())
    assert held.tolist() == [2**63 + 1, 3]
    assert pt.asarray([2**63, -1], dtype="float64", device=Numpy()).tolist() == [2.0**63, -1.0]
    for data, dtype in (([2**63, -1], "int64"), ([2**63, 3], "int64"), ([2**63, -1], None)):
        with pytest.raises(DTypeError):
            pt.asarray(data, dtype=dtype, device=Numpy())


def test_a_type_is_equal_to_its_name() -> None:
    x = pt.ones(2, dtype="float32")
    assert x.dtype == "float32"
    assert "float32" == x.dtype  # noqa: SIM300 - both ways
    assert x.dtype != "float64"
    assert x.dtype in ("float16", "float32")
    assert len({pt.float32: 1, pt.float64: 2}) == 2
