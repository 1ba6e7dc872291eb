"""Ops that a user declares have derivatives through their expansion, and errors without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import REGISTRY, Numpy, Op, Tensor
from phlox_tensor.ops import elementwise

DEVICE = Numpy(float="float64")


@pytest.fixture
def declared() -> Iterator[dict[str, Op]]:
    """Two ops that exist for one test."""
    before = set(REGISTRY)
    plus = elementwise(
        "square_plus_of_a_test",
        "x1: Float, x2: Float -> Float",
        expand=lambda x, y: (x + (x * x + y).sqrt()) / 2,
        doc="Square plus.",
    )
    opaque = elementwise(
        "opaque_of_a_test", "x: Float -> Float", numpy=np.cbrt, doc="The third root."
    )
    yield {"plus": plus, "opaque": opaque}
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
        delattr(Tensor, name)


def test_an_expansion_is_differentiated(declared: dict[str, Op]) -> None:
    plus = declared["plus"]
    x, y = pt.asarray([[0.5], [-2.0]], device=DEVICE), pt.asarray([4.0, 1.0], device=DEVICE)
    assert ad.rule_kind(plus) == "expansion"
    ad.gradcheck(plus, (x, y), order=2)
    ad.gradcheck(lambda x: plus(x, 4.0), (x,), order=2)
    value, moved = ad.jvp(plus, (x, y), (x, y))
    _, pull = ad.vjp(plus, x, y)
    ones = pt.ones(value.shape, device=DEVICE)
    weighted = sum(float((g * t).sum()) for g, t in zip(pull(ones), (x, y), strict=True))
    assert float(moved.sum()) == pytest.approx(weighted, rel=1e-14)


def test_an_expansion_blames_its_own_op(declared: dict[str, Op]) -> None:
    plus = declared["plus"]
    x = pt.ones((2,), device=ad.Autodiff(DEVICE)).require_grad()
    with pytest.raises(pt.ShapeError, match="square_plus_of_a_test"):
        plus(x, pt.ones((3,), device=x.device))


def test_an_op_without_rule_and_expansion_says_so(declared: dict[str, Op]) -> None:
    opaque: Any = declared["opaque"]
    x = pt.asarray([8.0], device=DEVICE)
    assert ad.rule_kind(opaque) == "none: no rule and no expansion"
    lifted = x.to_device(ad.Autodiff(DEVICE))
    assert opaque(lifted).tolist() == [2.0]
    with ad.no_grad():
        assert opaque(lifted.require_grad()).tolist() == [2.0]
    with pytest.raises(pt.GradientError, match="no derivative rule and no expansion") as error:
        opaque(lifted.require_grad())
    assert error.value.op == "opaque_of_a_test"
    with pytest.raises(pt.GradientError, match="no derivative rule and no expansion"):
        ad.jvp(opaque, (x,), (x,))
