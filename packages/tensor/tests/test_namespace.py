"""The package as an array API namespace: which of its names are here, which are not, and why."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_tensor as pt

ns: Any = pt

# The 2025.12 edition, but for imag, complex64 and complex128; extensions have tests of their own.
NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_shapes broadcast_to can_cast ceil clip concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims
expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater
greater_equal hypot iinfo inf int16 int32 int64 int8 isdtype isfinite isin isinf isnan less
less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative
newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal
remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square
squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc uint16
uint32 uint64 uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where
zeros zeros_like __array_namespace_info__
"""
MEMBERS = """
T mT device dtype ndim shape size to_device __abs__ __add__ __and__ __array_namespace__ __bool__
__complex__ __dlpack__ __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__
__index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__
__or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__
__ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __truediv__ __xor__
"""


@pytest.mark.parametrize("name", [*NAMES.split(), "__array_api_version__"])
def test_names_of_the_standard(name: str) -> None:
    assert hasattr(pt, name)


@pytest.mark.parametrize("name", MEMBERS.split())
def test_members_of_the_standard(name: str) -> None:
    x: Any = pt.ones((2, 2))
    assert hasattr(x, name)


def test_a_tensor_finds_its_namespace() -> None:
    xp: Any = pt.ones(1).__array_namespace__()
    assert xp is pt
    assert xp.asarray([1.0, 2.0]).sum().item() == 3.0
    assert xp.__array_api_version__ == "2025.12"
    assert xp.astype(xp.ones(1), xp.int32).dtype is xp.int32
    assert xp.newaxis is None
    assert xp.bool is pt.bool_


@pytest.mark.parametrize("name", sorted(pt.REGISTRY))
def test_every_op_is_in_ops_and_a_function_unless_it_is_internal(name: str) -> None:
    op = pt.REGISTRY[name]
    assert getattr(pt.ops, name) is op
    assert name in dir(pt.ops)
    assert hasattr(pt, name) is (name in dir(pt)) is (not op.internal)
    assert not (op.internal and hasattr(pt.Tensor, name))


def test_helpers_of_gradients_and_optimizers_are_internal() -> None:
    helpers = {n for n in pt.REGISTRY if n.endswith(("_backward", "_step", "_grad"))}
    assert len(helpers) >= 16
    assert not [name for name in helpers if not pt.REGISTRY[name].internal]
    text = r"\[adam_step\] an op, but no name of phlox_tensor\nhint: pt.ops.adam_step"
    with pytest.raises(pt.UnknownNameError, match=text):
        _ = ns.adam_step
    with pytest.raises(
        pt.UnknownNameError, match=r"no such name in phlox_tensor.ops\nhint: px.ops.exp"
    ):
        _ = ns.ops.expp


def test_names_of_phlox_say_what_to_install() -> None:
    for name in ("Cpu", "grad", "nn"):
        with pytest.raises(pt.UnknownNameError, match=rf"hint: pip install phlox; .*px\.{name}$"):
            getattr(ns, name)


def test_an_op_declared_later_is_in_ops() -> None:
    made = pt.ops.elementwise("later_op", "x: Float -> Float", expand=lambda x: x, doc="A test.")
    try:
        assert pt.ops.later_op is made
        assert pt.ops.later_op(pt.asarray([1.5])).tolist() == [1.5]
    finally:
        del pt.REGISTRY["later_op"]
        del ns.Tensor.later_op
    assert not hasattr(pt.ops, "later_op")


OPERATORS: list[tuple[str, Any, Any]] = [
    ("__add__", 7, 2), ("__sub__", 7, 2), ("__mul__", 7, 2), ("__truediv__", 7, 2),
    ("__floordiv__", -7, 2), ("__mod__", -7, 2), ("__pow__", 7, 2), ("__lshift__", 7, 2),
    ("__rshift__", -7, 2), ("__and__", 7, 2), ("__or__", 7, 2), ("__xor__", 7, 2),
    ("__lt__", 7, 2), ("__le__", 7, 2), ("__gt__", 7, 2), ("__ge__", 7, 2), ("__eq__", 7, 2),
    ("__ne__", 7, 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "b"), OPERATORS)
def test_operators_are_those_of_python(name: str, a: int, b: int) -> None:
    want = getattr(a, name)(b)
    x, y = pt.asarray(a), pt.asarray(b)
    assert getattr(x, name)(y).item() == want
    assert getattr(x, name)(b).item() == want
    mirrored = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__"}
    reflected = mirrored.get(name, name.replace("__", "__r", 1))
    if name not in ("__eq__", "__ne__"):
        assert getattr(y, reflected)(a).item() == want
    assert abs(pt.asarray(-3)).item() == 3
    assert (-pt.asarray(3)).item() == (~pt.asarray(2)).item() == -3
    assert (+pt.asarray(3)).item() == 3


def test_arguments_that_the_standard_names_may_be_named() -> None:
    assert pt.isdtype(dtype=pt.float32, kind="real floating")


def test_the_second_power_is_a_square_of_the_same_kind() -> None:
    for x in (pt.asarray([-1.5, 0.1, 3.0]), pt.asarray([-2, 3]), pt.asarray([7], dtype="uint8")):
        assert (x**2).tolist() == x.square().tolist()
        assert (x**2).dtype == x.dtype
    truth: Any = pt.asarray([True])
    with pytest.raises(pt.KindError, match=r"\[pow\]"):
        _ = truth**2
