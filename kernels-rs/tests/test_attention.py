"""Attention of the CPU backend against the reference: views, masks, biases, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_kernels import Cpu
from phlox_tensor import Numpy, ShapeError, Tensor

CPU = Cpu()
Array = np.ndarray[Any, Any]


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(sum(map(len, shapes)))
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def close(got: Tensor[Any], want: Tensor[Any]) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("queries", [1, 2, 5, 40, 130])
@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_that_are_views_give_what_copies_give(queries: int, is_causal: bool) -> None:
    """[batch, sequence, heads, size], as a model projects them."""
    query, key, value, g = arrays(
        (2, queries, 6, 16), (2, 150, 2, 16), (2, 150, 2, 24), (2, queries, 6, 24)
    )

    def run(device: Any) -> list[Tensor[Any]]:
        q, k, v, cotangent = (
            pt.asarray(x, device=device).permute_dims(0, 2, 1, 3) for x in (query, key, value, g)
        )
        out = pt.attention(q, k, v, is_causal=is_causal)
        return [out, *pt.ops.attention_backward(cotangent, q, k, v, is_causal=is_causal)]

    for got, want in zip(run(CPU), run(Numpy(float="float32")), strict=True):
        close(got, want)


@pytest.mark.parametrize("shape", [(7,), (5, 1), (5, 7), (4, 5, 7), (2, 1, 5, 7), (2, 4, 1, 1)])
def test_mask_and_bias_broadcast(shape: tuple[int, ...]) -> None:
    query, key, value, g, bias = arrays(
        (2, 4, 5, 3), (2, 4, 7, 3), (2, 4, 7, 2), (2, 4, 5, 2), shape
    )

    def run(device: Any) -> list[Tensor[Any]]:
        q, k, v, cotangent, b = (pt.asarray(x, device=device) for x in (query, key, value, g, bias))
        mask = b > 0.5
        out = pt.attention(q, k, v, mask, b, softcap=3.0)
        return [out, *pt.ops.attention_backward(cotangent, q, k, v, mask, b, softcap=3.0)]

    for got, want in zip(run(CPU), run(Numpy(float="float32")), strict=True):
        close(got, want)


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    q, k, v = (pt.asarray(x, device=CPU) for x in arrays((1, 4, 3), (1, 2, 3), (1, 2, 3)))
    out = pt.attention(q, k, v, is_causal=True).numpy()
    # The last query sees both keys, the one before it one.
    assert (out[0, :2] == 0).all()
    np.testing.assert_array_equal(out[0, 2], v.numpy()[0, 0])


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        (((2, 3), (2, 3), (2, 3)), "operands without heads"),
        (((2, 1, 3, 4), (3, 1, 3, 4), (3, 1, 3, 4)), "batches differ"),
        (((1, 3, 4), (1, 5, 3), (1, 5, 4)), "sizes differ"),
        (((3, 3, 4), (2, 5, 4), (2, 5, 4)), "heads do not fit"),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    shapes: tuple[tuple[int, ...], ...], problem: str
) -> None:
    query, key, value = (pt.asarray(x, device=CPU) for x in arrays(*shapes))
    with pytest.raises(ShapeError, match=problem):
        pt.attention(query, key, value)


def test_a_mask_that_does_not_broadcast_is_refused() -> None:
    q, k, v = (pt.asarray(x, device=CPU) for x in arrays((2, 3, 4), (2, 5, 4), (2, 5, 4)))
    mask: pt.Tensor[pt.Bool] = pt.zeros((3, 4), dtype="bool", device=CPU).astype(pt.bool_)
    with pytest.raises(ShapeError, match=r"got \(3, 4\), expected \(2, 3, 5\)"):
        pt.attention(q, k, v, mask)
