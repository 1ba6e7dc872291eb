"""Norms are in range wherever their result is, however large the squares of the elements are."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import REGISTRY

SIZES = [1e30, 1e-30, 3.0]
ROOT = np.sqrt(2.0)


def expanded(name: str, *args: Any) -> Any:
    """An op by its formula, as devices without an entry run it."""
    formula = REGISTRY[name].expand
    assert formula is not None
    return formula(*args)


ONE = (1,)
NORMS: list[tuple[str, Callable[[Any], Any], float]] = [
    ("vector_norm", lambda x: expanded("vector_norm", x, (0,), False), ROOT),
    ("an order", lambda x: pt.linalg.vector_norm(x, ord=3), 2.0 ** (1 / 3)),
    ("an order below 0", lambda x: pt.linalg.vector_norm(x, ord=-2), 1 / ROOT),
    ("a small order", lambda x: pt.linalg.vector_norm(x, ord=0.5), 4.0),
    ("matrix_norm", lambda x: pt.linalg.matrix_norm(x[None]), ROOT),
    ("cdist", lambda x: expanded("cdist", x[None], pt.zeros((1, 2)), 2.0)[0, 0], ROOT),
    (
        "lp_pool1d",
        lambda x: expanded(
            "lp_pool1d", x[None, None], (2,), 3.0, ONE, ((0, 0),), False, ONE
        ).reshape(()),
        2.0 ** (1 / 3),
    ),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("norm", "wanted"), [row[1:] for row in NORMS], ids=[r[0] for r in NORMS])
def test_a_norm_is_in_range_where_squares_are_not(
    norm: Callable[[Any], Any], wanted: float, size: float
) -> None:
    assert norm(pt.asarray([size, -size])).item() == pytest.approx(wanted * size, rel=1e-5)


@pytest.mark.parametrize("value", [0.0, inf, np.nan])
def test_a_norm_of_what_has_no_scale_is_as_before(value: float) -> None:
    found = [expanded("vector_norm", pt.asarray([value, 0.0]), (0,), k) for k in (False, True)]
    assert [f.shape for f in found] == [(), (1,)]
    np.testing.assert_equal(found[0].item(), value)
    assert expanded("vector_norm", pt.zeros((0, 2)), (0,), False).tolist() == [0.0, 0.0]
    assert pt.linalg.vector_norm(pt.asarray([0.0, 3.0]), ord=0).item() == 1.0


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # in NumPy
@pytest.mark.parametrize("order", [-3, -2.0, -0.5, 0.5, 3])
@pytest.mark.parametrize(
    "values", [[1e-10, 1e20], [0.0, 3.0], [inf, inf], [inf, 2.0], [np.nan, 1.0], [2e-40, 1e-40]]
)
def test_norms_of_all_orders_are_those_of_numpy(values: list[float], order: float) -> None:
    got = pt.linalg.vector_norm(pt.asarray(values), ord=order).item()
    np.testing.assert_allclose(got, np.linalg.norm(np.asarray(values), ord=order), rtol=1e-3)


@pytest.mark.parametrize("size", SIZES)
def test_a_cosine_needs_no_range(size: float) -> None:
    a, b = pt.asarray([size, 2 * size]), pt.asarray([2 * size, size])
    found = expanded("cosine_similarity", a, b, 0, 0.0)
    assert found.item() == pytest.approx(0.8, rel=1e-6)
    assert pt.cosine_similarity(a, b, epsilon=0.0).item() == pytest.approx(0.8, rel=1e-6)
    ones = pt.ones(2)
    small = [
        expanded("cosine_similarity", x, ones, 0, 1e-2).item() for x in (ones * 1e-3, ones * 0)
    ]
    assert small == pytest.approx([0.1 * ROOT, 0.0], rel=1e-6)
    assert expanded("cosine_similarity", pt.ones((2, 0)), pt.ones((2, 0)), 1, 1e-8).tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("joint", [False, True])
def test_gradients_of_all_sizes_are_clipped(size: float, joint: bool) -> None:
    grads = [pt.asarray([3 * size, 4 * size]), pt.zeros((2, 0)), pt.zeros(1)]
    clipped = expanded("clip_norms", grads, 1.0, joint)
    wanted = min(1.0 / (5 * size + 1e-6), 1.0) * np.asarray([3 * size, 4 * size])
    np.testing.assert_allclose(clipped[0].numpy(), wanted, rtol=1e-6)
    assert [x.tolist() for x in clipped[1:]] == [[[], []], [0.0]]


def test_pools_leave_out_what_is_between_the_elements_of_a_window() -> None:
    x = pt.asarray([[[3.0, 1.0, 4.0, 1.0, 5.0]]])
    assert pt.lp_pool1d(x, 2, p=1.0, stride=1, dilation=2).tolist() == [[[7.0, 2.0, 9.0]]]


def test_a_norm_of_nothing_is_what_its_formula_says() -> None:
    for order, wanted in ((-1.0, inf), (-0.5, inf), (0.5, 0.0), (2.0, 0.0), (3.0, 0.0)):
        assert pt.linalg.vector_norm(pt.zeros(0), ord=order).item() == wanted
