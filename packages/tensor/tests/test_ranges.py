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


def test_pools_leave_out_what_is_between_the_elements_of_a_window() -> None:
    x = pt.asarray([[[3.0, 1.0, 4.0, 1.0, 5.0]]])
    assert pt.lp_pool1d(x, 2, 1.0, stride=1, dilation=2).tolist() == [[[7.0, 2.0, 9.0]]]
