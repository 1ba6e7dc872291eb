"""The device without data runs everything that needs no value."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import DeviceError, Meta, Numpy, Spec
from phlox_tensor.testing import checks, samples


def _unknown(op: pt.Op, operands: list[Any], attributes: Any) -> bool:
    """Whether only values tell a size of the result."""
    found = op.infer(*operands, **attributes)
    return any(-1 in spec.shape for spec in (found if type(found) is tuple else (found,)))


def _place(operand: Any, device: pt.Backend) -> Any:
    if operand is None:
        return None
    if isinstance(operand, tuple):
        return [_place(o, device) for o in operand]
    return pt.asarray(operand, device=device)


@pytest.mark.parametrize("check", checks(Numpy()), ids=str)
def test_every_op_gives_the_shapes_and_types_of_numpy(check: Any) -> None:
    for sample in samples(check.op, check.dtype, Numpy()):

        def run(device: pt.Backend, sample: Any = sample) -> Any:
            operands = [_place(o, device) for o in sample.operands]
            with pt.use_device(device):
                out = check.op(*operands, **sample.attributes)
            return out if isinstance(out, tuple) else (out,)

        unknown = _unknown(
            check.op, [_place(o, Numpy()) for o in sample.operands], sample.attributes
        )
        assert unknown is check.op.traits.measured  # recordings ask that alone
        if unknown:
            with pytest.raises(DeviceError, match="size of the result depends on values"):
                run(Meta())
            continue
        got, expected = run(Meta()), run(Numpy())
        assert [(t.shape, t.dtype) for t in got] == [(t.shape, t.dtype) for t in expected]


def test_nothing_is_allocated() -> None:
    tracemalloc.start()
    try:
        x = pt.random.normal((10**6, 10**5), device=Meta())
        w = pt.zeros((10**5, 10**6), device=Meta())
        y = ((x @ w).relu() + 1).sum(axis=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (x.size, y.shape) == (10**11, (10**6,))
    assert peak < 1 << 20
    assert Meta().memory() == (0, 0)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: x.to_device(Numpy()),
    ],
)
def test_a_value_is_not_there_to_read(read: Any) -> None:
    with pytest.raises(DeviceError, match="the device has no values") as caught:
        read(pt.ones((2, 3), device=Meta()))
    assert caught.value.hint is not None
    assert "Cpu()" in caught.value.hint


def test_a_mask_is_refused_and_where_is_not() -> None:
    x: Any = pt.ones((5,), device=Meta())
    with pytest.raises(DeviceError, match="depends on values"):
        x[x > 0]
    assert (x > 0).where(x, 0.0).shape == (5,)


def test_a_tensor_prints_what_it_has() -> None:
    x = pt.zeros((10**9, 3), device=Meta())
    assert repr(x) == "Tensor(shape=(1000000000, 3), dtype=float32, device=Meta())"


def test_settings_print_and_come_back() -> None:
    device = Meta(float="float64", dtypes=["float64", "int64", "bool"])
    assert eval(repr(device)) is device
    assert pt.ones(2, device=device).dtype is pt.float64
    with pytest.raises(pt.DTypeError, match="lacks the element type"):
        pt.ones(2, dtype="float32", device=device)


def test_data_leaves_its_shape_alone() -> None:
    x = pt.asarray([[1, 2, 3]], device=Meta())
    assert x.primitive == Spec((1, 3), pt.int64)
    assert pt.ones((2, 2), device=Numpy()).to_device(Meta()).primitive == Spec((2, 2), pt.float32)


def test_slices_and_updates_have_their_shapes() -> None:
    x: Any = pt.zeros((6, 5), device=Meta())
    indices = pt.asarray([0, 2], device=Meta())
    assert x[1:4, ::2].shape == (3, 3)
    assert x[indices].shape == (2, 5)
    assert x.at[1:3].set(1.0).shape == (6, 5)
    assert [part.shape for part in pt.chunk(x, 3)] == [(2, 5)] * 3
