"""Two integers of 4 bits in one of 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import DTypeError, ShapeError

ALL = np.arange(-8, 8)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_all_pairs_come_back_and_lie_low_one_first(dtype: str, axis: int) -> None:
    pairs = np.stack(np.meshgrid(ALL, ALL, indexing="ij"), -1).reshape(-1, 2)
    x = pairs.reshape(-1, 1) if axis == 0 else pairs
    packed = pt.pack_int4(pt.asarray(x, dtype=dtype), axis)
    assert packed.shape == (256, 1)
    assert packed.dtype.name == dtype
    want = ((pairs[:, 1] << 4) | (pairs[:, 0] & 15)).astype("int8")
    np.testing.assert_array_equal(packed.numpy().reshape(-1), want)
    np.testing.assert_array_equal(pt.unpack_int4(packed, axis).numpy(), x)


def zeros(dtype: str) -> Any:
    return pt.zeros((2, 3), dtype=dtype)


def test_what_has_no_pairs_is_refused() -> None:
    with pytest.raises(ShapeError, match="even along axis 1"):
        pt.pack_int4(zeros("int8"), 1)
    with pytest.raises(ShapeError, match="no such axis"):
        pt.unpack_int4(zeros("int8"), 2)
    for call in (pt.pack_int4, pt.unpack_int4):
        with pytest.raises(DTypeError, match="got uint8"):
            call(zeros("uint8"))


@pytest.mark.parametrize(
    ("shapes", "bits", "message"),
    [
        (((2, 4), (3, 5), (1, 5)), 8, "inner sizes differ"),
        (((2, 5), (2, 5), (1, 5)), 4, "inner sizes differ"),
        (((2, 4), (4, 5), (3, 5)), 8, "scale does not fit"),
        (((2, 4), (4, 5), (5,)), 8, "scale does not fit"),
        (((2, 4), (4, 5), (1, 5)), 6, "4 or 8"),
    ],
)
def test_products_that_do_not_fit_are_refused(
    shapes: tuple[tuple[int, ...], ...], bits: int, message: str
) -> None:
    x, weight, scale = shapes
    whole: Any = pt.zeros(weight, dtype="int8")
    with pytest.raises(pt.PhloxError, match=message):
        pt.quantized_linear(pt.ones(x), whole, pt.ones(scale), bits=bits)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_product_of_pairs_is_that_of_their_integers(groups: int) -> None:
    random = np.random.default_rng(0)
    whole = random.integers(-8, 8, (8, 3)).astype("int8")
    scale = random.uniform(0.5, 1.5, (groups, 3)).astype("float32")
    x, bias = (random.standard_normal(s).astype("float32") for s in ((2, 5, 8), (3,)))
    packed = pt.pack_int4(pt.asarray(whole), 0)
    given = pt.asarray(x), packed, pt.asarray(scale), pt.asarray(bias)
    want = x @ (whole * np.repeat(scale, 8 // groups, axis=0)) + bias
    np.testing.assert_allclose(
        pt.quantized_linear(*given, bits=4).numpy(), want, rtol=1e-4, atol=1e-4
    )


def test_products_of_integers_keep_the_sums_in_a_type_of_their_own() -> None:
    x = pt.asarray([[200, 255]], dtype="uint8")
    w = pt.asarray([[-128], [127]], dtype="int8")
    assert pt.matmul_integer(x, w).tolist() == [[200 * -128 + 255 * 127]]
    assert pt.matmul_integer(x, w).dtype == pt.int32
    assert pt.matmul_integer(x, w, dtype="int64").dtype == pt.int64
    assert pt.matmul_integer(x, w, dtype="int8").tolist() == [
        [(200 * -128 + 255 * 127 + 128) % 256 - 128]
    ]
    told = r'\[matmul_integer\] x2 is of a kind(.|\n)*expected Int\nhint: x2\.astype\("int64"\)'
    others: list[Any] = [pt.ones((2, 1)), w > 0]
    for wrong in others:
        with pytest.raises(pt.KindError, match=told):
            pt.matmul_integer(x, wrong)
    assert pt.matmul_integer(x, (w > 0).astype("int64")).tolist() == [[255]]
    with pytest.raises(pt.ShapeError, match=r"\[matmul_integer\] inner sizes differ"):
        pt.matmul_integer(x, w.mT)
    with pytest.raises(pt.ArgumentError, match=r"\[matmul_integer\] no integers: got float32"):
        pt.matmul_integer(x, w, dtype="float32")


def test_a_product_says_how_its_weight_is_packed() -> None:
    x, scale = pt.ones((17, 4)), pt.ones((1, 32))
    weight = pt.asarray(np.ones((4, 32), "int8"))
    with pytest.raises(ShapeError, match=r"hint: px\.pack_int4\(weight, axis=0\)"):
        pt.quantized_linear(x, pt.pack_int4(weight), scale, bits=4)
    assert pt.quantized_linear(x, pt.pack_int4(weight, axis=0), scale, bits=4).shape == (17, 32)
