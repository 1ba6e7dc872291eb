"""Replays take products of few rows together with what is around them, where a device does."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_tensor import Backend, Numpy, Tensor
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Program, ProgramLimits, RowProduct, interpreted


@final
class Products(Arrays):
    """NumPy that takes products of up to two rows together; it notes which."""

    name = "products"

    def __init__(self, refuses: tuple[int, ...] = ()) -> None:
        self.settings = (refuses,)
        self.limits = ProgramLimits(
            8, products=frozenset({"linear"}), product_rows=2, product_norm="rms_norm"
        )
        self.made: list[RowProduct] = []
        self.refuses = refuses

    def entry(self, name: str) -> Any:
        """The reference of the op."""
        return Numpy().entry(name)

    def kernel(self, program: Program, /) -> Any:
        """The interpreter."""
        return interpreted(program)

    def row_product(self, product: RowProduct, formula: Any, /) -> Any:
        """The formula, noted; there is none for some counts of matrices."""
        if product.matrices in self.refuses:
            return None

        def noted(*operands: Any) -> Any:
            assert len(operands) == product.arrays + len(
                () if not product.last else product.last.numbers
            )
            self.made.append(product)
            return formula(*operands)

        return noted


def tensors(device: Backend, *shapes: tuple[int, ...]) -> list[Tensor]:
    rng = np.random.default_rng(0)
    return [pt.asarray(rng.normal(size=s).astype(np.float32), device=device) for s in shapes]


def layer(
    x: Tensor, norm: Tensor, q: Tensor, k: Tensor, gate: Tensor, up: Tensor, down: Tensor
) -> Any:
    y = pt.rms_norm(x, norm)
    both = pt.linear(y, q) + 0.0, pt.linear(y, k).T
    z = pt.rms_norm(x, norm, epsilon=1e-3)
    a, b = pt.linear(z, gate), pt.linear(z, up)
    return both, x + pt.linear(a * a.sigmoid() * b, down)


SHAPES = ((1, 4), (4,), (4, 4), (4, 3), (4, 6), (4, 6), (6, 4))


def replayed(device: Products, function: Any, *args: Tensor) -> Any:
    """What the third call gives; those of the device are noted for it alone."""
    compiled = compile(function)
    for _ in range(2):
        compiled(*args)
    device.made.clear()
    return compiled(*args), compiled


def test_products_of_a_layer_are_three() -> None:
    device = Products()
    args = tensors(device, *SHAPES)
    (both, last), compiled = replayed(device, layer, *args)
    want, wanted = layer(*args)
    for got, expected in zip((*both, last), (*want, wanted), strict=True):
        assert np.array_equal(got.numpy(), expected.numpy())
    kinds = [(p.matrices, p.epsilon, p.last is not None) for p in device.made]
    assert kinds == [(2, 1e-5, False), (2, 1e-3, True), (1, None, True)]
    told = compiled.explain(*args)
    assert told.count("products of few rows in one kernel") == 3


def test_a_device_may_refuse_some() -> None:
    device = Products((2,))
    args = tensors(device, *SHAPES)
    (_, last), _ = replayed(device, layer, *args)
    assert np.array_equal(last.numpy(), layer(*args)[1].numpy())
    assert [p.matrices for p in device.made] == [1]


def test_many_rows_stay_apart() -> None:
    device = Products()
    args = tensors(device, (3, 4), *SHAPES[1:])
    replayed(device, layer, *args)
    assert not device.made


@pytest.mark.parametrize("kept", [True, False])
def test_a_norm_that_others_read_is_there_too(kept: bool) -> None:
    device = Products()

    def function(x: Tensor, norm: Tensor, weight: Tensor) -> Any:
        y = pt.rms_norm(x, norm)
        found = pt.linear(y, weight)
        return (found, y) if kept else (found, y.sum())

    args = tensors(device, (2, 4), (4,), (4, 5))
    (found, other), _ = replayed(device, function, *args)
    want, expected = function(*args)
    assert np.array_equal(found.numpy(), want.numpy())
    assert np.array_equal(other.numpy(), expected.numpy())
    assert [p.epsilon for p in device.made] == [1e-5]


def test_products_that_are_wanted_themselves_are_not_taken_into_what_reads_them() -> None:
    device = Products()

    def function(x: Tensor, norm: Tensor, weight: Tensor) -> Any:
        found = pt.linear(pt.rms_norm(x, norm), weight)
        return found, found + x

    args = tensors(device, (1, 4), (4,), (4, 4))
    got, _ = replayed(device, function, *args)
    for one, expected in zip(got, function(*args), strict=True):
        assert np.array_equal(one.numpy(), expected.numpy())
    assert [p.last for p in device.made] == [None]


def test_what_adds_products_of_several_rows_is_taken_by_one_of_them() -> None:
    device = Products()

    def function(x: Tensor, y: Tensor, weight: Tensor) -> Any:
        return pt.linear(x, weight) + pt.linear(y, weight)

    args = tensors(device, (1, 4), (1, 4), (4, 4))
    got, _ = replayed(device, function, *args)
    assert np.array_equal(got.numpy(), function(*args).numpy())
    assert [p.matrices for p in device.made] == [1]


def test_what_adds_more_products_than_a_kernel_takes() -> None:
    device = Products()

    def function(x: Tensor, *weights: Tensor) -> Any:
        a, b, c, d, e, f = (pt.linear(x, weight) for weight in weights)
        return a + b + c + d + e + f

    args = tensors(device, (1, 4), *[(4, 4)] * 6)
    got, _ = replayed(device, function, *args)
    assert np.array_equal(got.numpy(), function(*args).numpy())
    assert sorted((p.matrices, p.last is not None) for p in device.made) == [(2, False), (4, True)]


def test_a_matrix_that_depends_on_a_product_of_the_same_rows() -> None:
    device = Products()

    def function(x: Tensor, norm: Tensor, weight: Tensor) -> Any:
        y = pt.rms_norm(x, norm)
        first = pt.linear(y, weight)
        return first, pt.linear(y, weight * first)

    args = tensors(device, (1, 4), (4,), (4, 4))
    got, _ = replayed(device, function, *args)
    for one, expected in zip(got, function(*args), strict=True):
        assert np.array_equal(one.numpy(), expected.numpy())
    assert [p.matrices for p in device.made] == [1]


def test_what_reads_products_may_take_numbers() -> None:
    device = Products()

    def function(x: Tensor, weight: Tensor, factor: float) -> Any:
        return pt.linear(x, weight) * 3.0, pt.linear(x * 2.0, weight) * factor

    x, weight = tensors(device, (1, 4), (4, 4))
    compiled = compile(function)
    for factor in (1.0, 2.0, 5.0):
        got = compiled(x, weight, factor)
        for one, expected in zip(got, function(x, weight, factor), strict=True):
            assert np.array_equal(one.numpy(), expected.numpy())
    assert {p.last.numbers for p in device.made if p.last} == {("float32",)}
