"""In and out of tensors: NumPy, DLPack, buffers, pickling, printing."""

from __future__ import annotations

import copy
import gc
import operator
import re
from typing import Any, final

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import (
    DTYPES,
    ArgumentError,
    DTypeError,
    KindError,
    Numpy,
    SharingError,
    Tensor,
    WrongTypeError,
)


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_arrays_keep_their_type_both_ways(name: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(DTYPES[name].numpy)
    for x in (pt.asarray(array), pt.from_numpy(array), pt.asarray(pt.asarray(array))):
        assert x.dtype is DTYPES[name]
        assert x.numpy().dtype == array.dtype
        assert np.array_equal(x.numpy(), array)


def test_the_data_is_copied_in_and_read_only_out() -> None:
    array = np.zeros(3, np.float32)
    x = pt.asarray(array)
    array[0] = 5
    assert x.tolist() == [0, 0, 0]
    out = x.numpy()
    assert not out.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        out[0] = 1
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable


def test_array_protocol() -> None:
    x = pt.asarray([1.0, 2.0])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.array(x, copy=True).flags.writeable
    assert np.asarray(x, copy=False).base is not None
    with pytest.raises(ValueError, match="a copy is needed"):
        np.asarray(x, dtype=np.float64, copy=False)
    assert np.stack([np.asarray(x), np.asarray(x)]).shape == (2, 2)
    np.testing.assert_allclose(x, [1.0, 2.0])


def test_layouts_come_in_as_they_are_seen() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (array.T, array[::-1, ::2], np.broadcast_to(array[:1], (3, 4)), array[:, 1:1]):
        assert np.array_equal(pt.asarray(view).numpy(), view)
    assert pt.asarray(array.astype(">f4")).tolist() == array.tolist()


def test_dlpack_both_ways() -> None:
    x = pt.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(np.from_dlpack(x.T), x.T.numpy())
    assert x.__dlpack_device__() == (1, 0)
    y = pt.from_dlpack(np.arange(3))
    assert y.dtype is pt.int64
    assert pt.from_dlpack(x).tolist() == x.tolist()

    class Foreign:
        def __dlpack__(self, **options: Any) -> Any:
            return np.arange(3).__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    assert pt.asarray(Foreign()).tolist() == [0, 1, 2]


@final
class Lender:
    """An array of another library, as DLPack sees it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_bfloat16_crosses_by_dlpack_both_ways(version: tuple[int, int] | None) -> None:
    @final
    class Old:
        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__(max_version=version)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    x = pt.asarray([[1.5, -2.0], [float("nan"), 3.0]]).astype("bfloat16").T
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    for got in (
        pt.from_dlpack(Old()),
        pt.asarray(Old()),
        pt.from_dlpack(Lender(x[:, ::-1]))[:, ::-1],
    ):
        assert (got.dtype, got.shape) == (pt.bfloat16, (2, 2))
        assert got.numpy().tobytes() == x.numpy().tobytes()
    for other in ("uint16", "float16"):
        assert pt.from_dlpack(Lender(pt.asarray([1, 2]).astype(other))).dtype.name == other
    with pytest.raises(RuntimeError, match="Unsupported dtype"):  # NumPy has no such type
        np.from_dlpack(x)


def test_memory_lent_by_dlpack_is_given_back() -> None:
    freed: list[int] = []

    @final
    class Watched(np.ndarray[Any, Any]):
        def __del__(self) -> None:
            freed.append(1)

    array = np.zeros(3, np.uint16).view(Watched)
    got = pt.from_dlpack(Lender(array))
    del array
    gc.collect()
    assert (got.tolist(), freed) == ([0, 0, 0], [1])


def test_an_array_that_lends_nothing_is_refused_with_a_hint() -> None:
    class Recorded:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("Can't export tensors that require gradient")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    for call in (pt.asarray, pt.from_dlpack):
        with pytest.raises(SharingError, match="the array lends no data: got Recorded") as caught:
            call(Recorded())
        assert caught.value.hint == "px.asarray(np.asarray(x))"


def test_numpy_operators_do_not_take_tensors_off_their_device() -> None:
    x, array = pt.ones(2), np.ones(2, np.float32)
    calls: list[Any] = [
        lambda: x + array,
        lambda: array + x,
        lambda: x == array,
        lambda: array < x,
        lambda: array @ x,
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"a NumPy array beside a tensor") as caught:
            call()
        assert caught.value.hint == "px.asarray(y)"
    function: Any = np.exp
    with pytest.raises(TypeError):
        function(x)
    for call in (lambda: pt.exp(array), lambda: pt.add(x, array)):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="not a tensor: got ndarray"):
            call()
    numbers: list[Any] = [np.float32(2), np.float64(2), np.int64(2), np.array(2.0)]
    for number in numbers:
        assert isinstance(number * x, Tensor)
        assert (number * x).dtype is pt.float32
        assert (number**x).tolist() == [2.0, 2.0]


def test_objects_of_other_libraries_have_their_say() -> None:
    class Foreign:
        def __radd__(self, other: object) -> str:
            return "theirs"

    x: Any = pt.ones(1)
    assert x + Foreign() == "theirs"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = x + "a"
    assert (x == None) is False  # noqa: E711 - as Python has it for foreign objects
    assert (x != "a") is True


class ForeignArray:
    """An array of another library, which does not know our tensors."""

    def __dlpack__(self) -> None: ...


class ForeignSeries:
    """Numbers of another library, which knows how to add them."""

    def __array__(self) -> None: ...
    def __radd__(self, other: object) -> str:
        return "theirs"


def test_nothing_with_numbers_in_it_is_silently_unequal() -> None:
    x: Any = pt.ones(2)
    foreign: Any = ForeignArray()
    name = f"{__name__}.ForeignArray"
    for other, what in (
        (foreign, f"an array of another library beside a tensor: got {name},"),
        (ForeignSeries(), "an array of another library beside a tensor"),
        (range(2), "a range beside a tensor: got 2 elements"),
    ):
        for compare in (operator.eq, operator.ne):
            for pair in ((x, other), (other, x)):
                with pytest.raises(WrongTypeError, match=re.escape(what)):
                    compare(*pair)
    spectrum = pt.fft.Spectrum(x, x.zeros())
    assert (x == spectrum).tolist() == (spectrum == x).tolist() == [True, True]
    assert x + ForeignSeries() == "theirs"
    for operands in ((x, foreign), (foreign, x)):
        for call in (operator.add, operator.matmul):
            with pytest.raises(WrongTypeError, match=re.escape(name)) as caught:
                call(*operands)
            assert caught.value.hint == "px.asarray(y)"
    with pytest.raises(ArgumentError, match=re.escape(f"x2 is not a tensor: got {name}")) as added:
        pt.add(x, foreign)
    assert added.value.hint == "px.asarray(x2)"


@given(st.recursive(st.floats(-9, 9, width=32) | st.integers(-9, 9), st.lists, max_leaves=8))
def test_nested_lists_beside_numpy(data: Any) -> None:
    try:
        want = np.asarray(data)
    except ValueError:
        with pytest.raises(DTypeError, match="ragged"):
            pt.asarray(data)
        return
    got = pt.asarray(data)
    assert got.shape == want.shape
    assert got.dtype is (pt.int64 if want.dtype == np.int64 else pt.float32)
    assert np.array_equal(got.numpy(), want.astype(got.dtype.numpy))
    assert got.tolist() == want.astype(got.dtype.numpy).tolist()


def test_lists_may_hold_tensors() -> None:
    assert pt.asarray([pt.asarray(1.5), 2]).tolist() == [1.5, 2.0]
    assert pt.asarray([pt.asarray([1, 2]), [3, 4]]).shape == (2, 2)


@pytest.mark.parametrize(
    "data", ["a", None, {}, object(), 1j, 2**64, [2**63], [[1], [1, 2]], np.ones(1, complex)]
)
def test_data_without_a_type_is_refused(data: Any) -> None:
    with pytest.raises(DTypeError, match=r"^\[asarray\]"):
        pt.asarray(data)


def test_python_numbers_out() -> None:
    x = pt.asarray([[1.5, 2.0]])
    assert float(x[0, 0]) == 1.5
    assert int(x[0, 1]) == 2
    assert complex(x[0, 0]) == 1.5
    assert bool(pt.asarray(True)) is True
    assert x[0, :1].item() == 1.5
    assert isinstance(pt.asarray(3).item(), int)
    assert [10, 20, 30][pt.asarray(1)] == 20
    assert range(pt.asarray(3)) == range(3)
    calls: list[tuple[Any, str]] = [
        (x.item, r"\[item\] not one element"),
        (lambda: float(x), r"\[float\] not one number"),
        (lambda: bool(x), r"\[bool\] the truth value of a tensor of several elements"),
        (pt.zeros(0).item, r"\[item\] not one element"),
    ]
    for call, text in calls:
        with pytest.raises(ArgumentError, match=text):
            call()
    with pytest.raises(KindError, match="not an integer"):
        range(pt.asarray(1.0))


def test_printing() -> None:
    assert repr(pt.asarray([1.0, 2.5])) == ("Tensor([1. , 2.5], dtype=float32, device=Numpy())")
    assert repr(pt.asarray(3)) == "Tensor(3, dtype=int64, device=Numpy())"
    assert repr(pt.zeros((0, 2))) == "Tensor([], shape=(0, 2), dtype=float32, device=Numpy())"
    assert repr(pt.asarray([[True], [False]])) == (
        "Tensor([[ True],\n        [False]], dtype=bool, device=Numpy())"
    )
    assert repr(pt.ones(1, dtype="bfloat16")) == "Tensor([1.], dtype=bfloat16, device=Numpy())"
    assert "..." in repr(pt.zeros(2000))
    assert len(repr(pt.zeros((300, 300)))) < 600
    assert f"{pt.asarray(1.25):.1f}" == "1.2"
    assert f"{pt.asarray(7):03d}" == "007"
    assert f"{pt.asarray([1])}" == repr(pt.asarray([1]))
    assert repr(pt.float32) == "phlox_tensor.float32"
    assert str(pt.bool_) == "bool"


def test_copies_are_the_tensor_itself() -> None:
    x = pt.ones(2)
    assert copy.copy(x) is x
    assert copy.deepcopy({"x": x})["x"] is x
    assert copy.deepcopy(pt.bfloat16) is pt.bfloat16


def test_tensors_are_hashed_by_identity() -> None:
    x, y = pt.ones(1), pt.ones(1)
    assert {x: 1, y: 2}[x] == 1
    assert hash(x) != hash(y)


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    array = np.array([1.0, 3.140625], ml_dtypes.bfloat16)
    assert pt.asarray(array).dtype is pt.bfloat16
    assert pt.asarray(array).tolist() == [1.0, 3.140625]


def test_sizes() -> None:
    x = pt.zeros((2, 3), dtype="float16")
    assert (x.ndim, x.size, x.nbytes) == (2, 6, 12)
    assert pt.zeros(()).size == 1
    assert x.zeros((4,)).shape == (4,)
    assert x.zeros().dtype is pt.float16
    assert x.to_full_precision().dtype is pt.float32
    assert pt.ones(1, dtype="int8").to_full_precision().dtype is pt.int8
    assert x.device is Numpy()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64"])
def test_no_array_that_a_tensor_gives_can_be_made_writeable(dtype: str) -> None:
    row = pt.asarray([1, 2, 3], device=Numpy()).astype(dtype)
    for x in (row, row[1:], row[0], pt.broadcast_to(row, (2, 3)), pt.broadcast_to(row, (2, 3)).T):
        with pytest.raises(ValueError, match="WRITEABLE"):
            x.numpy().setflags(write=True)


def test_integers_beyond_64_bits_are_floats_where_a_float_type_is_asked_for() -> None:
    x = pt.asarray([[2**70, 1.5], [True, -(2**80)]], dtype="float32")
    assert x.tolist() == [[2.0**70, 1.5], [1.0, -(2.0**80)]]
    for data, dtype in (
        ([2**70], None),
        ([2**70], "int64"),
        ([None], "float32"),
        ([10**400], "float64"),
    ):
        with pytest.raises(DTypeError):
            pt.asarray(data, dtype=dtype)


def test_an_array_whose_sign_stands_beside_it_is_negated_first() -> None:
    """As tensors of PyTorch with the negative bit are."""

    lender: Any = Lender(np.asarray([2.0, -4.0]))
    lender.is_neg = lambda: True
    lender.resolve_neg = lambda: Lender(-lender.array)
    assert pt.asarray(lender).tolist() == pt.from_dlpack(lender).tolist() == [-2.0, 4.0]


def test_hints_for_arrays_that_lend_no_data() -> None:
    with pytest.raises(pt.SharingError) as caught:
        pt.from_dlpack(np.arange(3, dtype=">f4"))
    assert caught.value.hint == "px.asarray(x)"
    with pytest.raises(pt.SharingError) as caught:
        pt.from_dlpack(np.ones(3, ml_dtypes.float8_e4m3fn))
    assert caught.value.hint == 'px.asarray(x.astype("float32"))'
    with pytest.raises(pt.DTypeError, match="<U1"):
        pt.from_dlpack(np.asarray(["a"]))

    class Key:
        dtype = "key<fry>"

        def __array__(self, *args: Any, **options: Any) -> Any:
            raise TypeError("cannot be converted")

    for take in (pt.asarray, pt.from_dlpack):
        with pytest.raises((pt.SharingError, pt.WrongTypeError)) as other:
            take(Key())
        assert other.value.hint == "px.asarray(jax.random.key_data(x))"


def test_an_array_that_reads_as_no_number_is_refused_beside_a_tensor_and_in_a_list() -> None:
    class Odd:
        shape = ()
        dtype = "key<fry>"

        def item(self) -> Any:
            raise NotImplementedError("abstract")

        def __array__(self, *args: Any, **options: Any) -> Any:
            raise RuntimeError("negative bit")

        __dlpack__ = __array__

    odd: Any = Odd()
    for function in (operator.add, operator.mul, operator.lt, operator.eq):
        for pair in ((pt.ones(2), odd), (odd, pt.ones(2))):
            with pytest.raises(pt.WrongTypeError, match="an array of another library"):
                function(*pair)
    for call in (lambda: pt.add(pt.ones(2), odd), lambda: odd in pt.ones(2)):
        with pytest.raises(pt.ArgumentError, match=r"is not a tensor: got .*Odd") as refused:
            call()
        assert refused.value.hint == "px.asarray(jax.random.key_data(x))"
    with pytest.raises(pt.ArgumentError, match="fill_value"):
        pt.full((2,), odd)
    with pytest.raises(pt.SharingError, match="the array lends no data: got Odd"):
        pt.ones(2).at[0].set(odd)
    with pytest.raises(pt.SharingError, match="negative bit") as caught:
        pt.asarray([odd, odd])
    assert caught.value.hint == "px.stack([px.asarray(part) for part in x])"
