"""Functions that give something beside their value: ``has_aux`` of every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import GradientError, Numpy, Tensor

DEVICE = Numpy(float="float64")
Run = Callable[[Callable[..., Any], Tensor[Any], bool], Any]


def vector(*values: float) -> Tensor[Any]:
    return pt.asarray(list(values), device=DEVICE)


def cubes(x: Tensor[Any]) -> Tensor[Any]:
    return (x**3).sum()


LOOSE: Any = ad  # its functions have other types with has_aux=True than without


def with_aux(x: Tensor[Any]) -> tuple[Tensor[Any], dict[str, Any]]:
    return cubes(x), {"double": x * 2, "size": x.size, "place": x.argmax()}


V = vector(1.0, 0.0)


def pushed(f: Any, x: Tensor[Any], has_aux: bool) -> Any:
    value, tangent, *aux = ad.jvp(f, (x,), (V,), has_aux=has_aux)
    return ((value, tangent), *aux) if has_aux else (value, tangent)


def pulled(f: Any, x: Tensor[Any], has_aux: bool) -> Any:
    value, pull, *aux = LOOSE.vjp(f, x, has_aux=has_aux)
    found = value, pull(value)
    return (found, *aux) if has_aux else found


def valued(f: Any, x: Tensor[Any], has_aux: bool) -> Any:
    value, slope = LOOSE.value_and_grad(f, has_aux=has_aux)(x)
    return ((value[0], slope), value[1]) if has_aux else (value, slope)


# Each gives (derivatives, aux), and the derivatives alone without ``has_aux``.
TRANSFORMS: dict[str, Run] = {
    "grad": lambda f, x, aux: LOOSE.grad(f, has_aux=aux)(x),
    "hessian": lambda f, x, aux: ad.hessian(f, has_aux=aux)(x),
    "hvp": lambda f, x, aux: LOOSE.hvp(f, (x,), (V,), has_aux=aux),
    "jacobian": lambda f, x, aux: ad.jacobian(f, has_aux=aux)(x),
    "jacobian by columns": lambda f, x, aux: ad.jacobian(f, mode="columns", has_aux=aux)(x),
    "jvp": pushed,
    "value_and_grad": valued,
    "vjp": pulled,
}


def lists(found: Any) -> Any:
    return pt.tree.map(lambda leaf: leaf.tolist() if isinstance(leaf, Tensor) else leaf, found)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_aux_comes_beside_the_same_derivatives(name: str) -> None:
    run, x = TRANSFORMS[name], vector(1.0, 2.0)
    found, aux = run(with_aux, x, True)
    assert lists(found) == lists(run(cubes, x, False))
    assert lists(aux) == {"double": [2.0, 4.0], "size": 2, "place": 1}
    assert aux["double"].device is DEVICE
    assert aux["place"].dtype is x.argmax().dtype


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_function_that_gives_no_pair_is_refused(name: str) -> None:
    with pytest.raises(GradientError, match=r"has_aux asks for(.|\n)*hint: return loss, pred"):
        TRANSFORMS[name](cubes, vector(1.0, 2.0), True)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_aux_comes_through_another_transform(name: str) -> None:
    def outer(x: Tensor[Any]) -> tuple[Tensor[Any], Tensor[Any]]:
        _, aux = TRANSFORMS[name](with_aux, x, True)
        return (aux["double"] ** 2).sum(), aux["double"]

    slope, double = ad.grad(outer, has_aux=True)(vector(1.0, 2.0))
    # What was beside the value inside is a value of the function outside, with its own derivative.
    assert slope.tolist() == [8.0, 16.0]
    assert double.tolist() == [2.0, 4.0]


def test_aux_has_lanes_under_vmap() -> None:
    xs, vs = vector(1.0, 2.0, 3.0), vector(1.0, 1.0, 2.0)

    def pushed(x: Tensor[Any], v: Tensor[Any]) -> Any:
        return ad.jvp(lambda x: (x**2, x + 1), (x,), (v,), has_aux=True)

    value, tangent, aux = ad.vmap(pushed)(xs, vs)
    assert value.tolist() == [1.0, 4.0, 9.0]
    assert tangent.tolist() == [2.0, 4.0, 12.0]
    assert aux.tolist() == [2.0, 3.0, 4.0]


def test_the_second_derivatives_of_several_arguments_have_one_aux() -> None:
    def function(x: Tensor[Any], y: Tensor[Any]) -> Any:
        return (x * y**2).sum(), x + y

    blocks, aux = ad.hessian(function, (0, 1), has_aux=True)(vector(2.0), vector(3.0))
    assert lists(blocks) == (([[0.0]], [[6.0]]), ([[6.0]], [[4.0]]))
    assert aux.tolist() == [5.0]
