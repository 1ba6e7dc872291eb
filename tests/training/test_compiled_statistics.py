"""Running statistics beside gradients that a compiled function returns."""

from collections.abc import Callable
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Cpu, nn, optim
from phlox_tensor import tree

D = Autodiff(Cpu())
LAYERS: dict[str, Callable[[], Any]] = {
    "batch norm": lambda: nn.BatchNormConfig(2).init(D),
    "batch norm in a list": lambda: nn.Sequential(
        nn.Linear(2, 2, device=D), nn.BatchNorm(2, device=D)
    ),
}
GRADS: dict[str, Callable[[Any, Any], Any]] = {
    "value_and_grad": lambda m, x: px.value_and_grad(lambda m: m(x).square().mean())(m)[1],
    "grad": lambda m, x: px.grad(lambda m: m(x).square().mean())(m),
    "in a dict": lambda m, x: {"grads": px.grad(lambda m: m(x).square().mean())(m)},
    "scaled": lambda m, x: px.grad(lambda m: m(x).square().mean())(m).map(lambda _, p: p),
}


def trained(layer: str, how: str, wrap: Callable[[Any], Any]) -> list[Any]:
    px.seed(0)
    model, rule = LAYERS[layer](), optim.SgdConfig().init()
    grads_of = wrap(GRADS[how])
    for i in range(6):
        found = grads_of(model, px.full((8, 2), float(i), device=D))
        grads = found["grads"] if isinstance(found, dict) else found
        model = rule.step(0.1, model, grads)
    return [p.value.tolist() for p in model.params().values()]


@pytest.mark.parametrize("how", GRADS)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("check", [False, True])
def test_statistics_go_on(layer: str, how: str, check: bool) -> None:
    written = trained(layer, how, lambda f: f)
    assert trained(layer, how, lambda f: px.compile(f, check=check)) == written


def test_statistics_of_all_batches_read_no_number() -> None:
    device = Autodiff(px.Numpy())  # which has a kernel for statistics that move
    found = []
    for wrap in (lambda f: f, px.compile):
        model, forward = (
            nn.BatchNorm(2, momentum=None, device=device),
            wrap(lambda m, x: m(x).sum()),
        )
        for i in range(4):
            x = px.asarray([[float(i), 1.0], [2.0, float(i)]], device=device)
            model = optim.SgdConfig().init().step(0.1, model, forward(model, x).backward())
        found.append([p.value.tolist() for p in model.params().values()])
    assert found[0] == found[1]


def test_gradients_that_are_arguments_bring_their_proposals() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        px.seed(0)
        model, rule = LAYERS["batch norm"](), optim.SgdConfig().init()
        step = wrap(lambda model, grads: rule.step(0.1, model, grads))
        for i in range(6):
            grads = px.grad(lambda m, i=i: m(px.full((8, 2), float(i), device=D)).sum())(model)
            model = step(model, grads)
        return [p.value.tolist() for p in model.params().values()]

    assert run(px.compile) == run(lambda f: f)


class Kept:
    """A value with a tensor that is no part of it."""

    def __init__(self, x: Any, scale: Any) -> None:
        self.x, self.scale = x, scale


tree.register(
    Kept, lambda k: ([k.x], {"scale": k.scale}), lambda c, rest: Kept(*c, **rest), lambda rest: ()
)


def kept_in_a_cell(cell: px.Cell[Any], x: Any) -> Any:
    cell.set(Kept(x, x * 2))
    return x


@pytest.mark.parametrize("how", ["argument", "result", "cell"])
def test_a_tensor_that_nobody_compares_is_refused(how: str) -> None:
    cell: px.Cell[Any] = px.Cell(None)
    functions: dict[str, tuple[Any, Any]] = {
        "argument": (lambda kept: kept.x * kept.scale, Kept(px.ones(1), px.ones(1))),
        "result": (lambda x: Kept(x, x * 2), px.ones(1)),
        "cell": (lambda x: kept_in_a_cell(cell, x), px.ones(1)),
    }
    function, given = functions[how]
    with pytest.raises(px.CompileError, match="a Kept has a tensor which a replay would keep"):
        px.compile(function)(given)
