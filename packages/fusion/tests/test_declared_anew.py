"""An op that a user declares anew: compiled functions and kernels take the new formula."""

from collections.abc import Iterator
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_tensor import REGISTRY
from phlox_tensor._op.declaration import declare
from phlox_tensor.ops import _families as families


@pytest.fixture(autouse=True)
def _undeclare() -> Iterator[None]:
    yield
    for name in ("times", "twice_times"):
        REGISTRY.pop(name, None)
        if hasattr(pt.Tensor, name):
            delattr(pt.Tensor, name)


def times(factor: float, name: str = "times") -> Any:
    return declare(
        families.elementwise,
        name,
        "x: Float -> Float",
        expand=lambda x: x * factor,
        doc="A product.",
    )


@pytest.mark.parametrize("wrap", [compile, kernel])
def test_the_new_formula_is_taken(wrap: Any) -> None:
    times(2.0)
    function = wrap(lambda x: REGISTRY["times"](x) + 1)
    x = pt.ones(2)
    assert [function(x).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    for factor in (3.0, 4.0, 2.0):
        times(factor)
        assert [function(x).tolist() for _ in range(3)] == [[factor + 1] * 2] * 3


@pytest.mark.parametrize("wrap", [compile, kernel])
def test_so_is_that_of_an_op_inside_of_another_one(wrap: Any) -> None:
    times(2.0)
    declare(
        families.elementwise,
        "twice_times",
        "x: Float -> Float",
        expand=lambda x: REGISTRY["times"](x) * 2,
        doc="Twice.",
    )
    function = wrap(lambda x: x.twice_times() * 1)
    x = pt.ones(2)
    assert [function(x).tolist() for _ in range(3)] == [[4.0, 4.0]] * 3
    times(5.0)
    assert REGISTRY["twice_times"](x).tolist() == [10.0, 10.0]
    assert [function(x).tolist() for _ in range(3)] == [[10.0, 10.0]] * 3


@pytest.mark.parametrize("wrap", [compile, kernel])
def test_a_method_is_that_of_the_new_op(wrap: Any) -> None:
    times(2.0)
    function = wrap(lambda x: x.times())
    assert [function(pt.ones(1)).item() for _ in range(3)] == [2.0] * 3
    times(7.0)
    assert [function(pt.ones(1)).item() for _ in range(3)] == [7.0] * 3


def test_an_op_that_is_new_keeps_what_there_is() -> None:
    times(2.0)
    function = compile(lambda x: x.times() * 1)
    for _ in range(3):
        function(pt.ones(1))
    times(2.0, "twice_times")
    function(pt.ones(1))
    assert function.versions == 1
