"""What would do nothing, or lose something, is an error that says what to type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox as px
from phlox import nn, optim
from phlox_autodiff import Autodiff

X = px.ones((4, 3), device=Autodiff("numpy"))
MODEL = nn.Linear(3, 2, device=Autodiff("numpy"))


def gradients() -> Any:
    return MODEL(X).sum().backward()


def step(**options: Any) -> Any:
    return optim.SgdConfig().init().step(0.1, MODEL, gradients(), **options)


def assign(target: Any, name: str, value: Any) -> None:
    setattr(target, name, value)


def lost(_: str, __: nn.Param) -> Any:
    return None


NO_FUNCTION: Any = 3
SCHEDULE = optim.CosineSchedulerConfig(initial_lr=0.1, steps=2)
TABLE: list[tuple[str, Callable[[], Any], str]] = [
    ("a parameter lost by map", lambda: MODEL.map(lost), "weight becomes no parameter"),
    ("a constant for a weight", lambda: MODEL.replace(weight=X), r"model\.weight\.with_value\(x\)"),
    ("a rate on Adam", lambda: assign(optim.AdamConfig().init(), "lr", 0.1), r"step\(0\.1, model"),
    ("a rate on L-BFGS", lambda: assign(optim.LbfgsConfig().init(), "lr", 0.1), "to the config"),
    ("a place", lambda: assign(SCHEDULE.init(), "position", 5), r"load_record\(record\)"),
    ("a frozen parameter", lambda: assign(MODEL.weight, "frozen", True), r"model\.freeze\("),
    ("a wish for gradients", lambda: assign(X, "requires_grad", True), r"x\.require_grad\(\)"),
    ("a divisor of 0", lambda: step(divide_by=0), "divide_by"),
    ("a divisor that is NaN", lambda: step(divide_by=float("nan")), "divide_by"),
    ("grad of a number", lambda: px.grad(NO_FUNCTION), r"px\.grad\(loss_of\)\(model\)"),
    ("value_and_grad", lambda: px.value_and_grad(NO_FUNCTION), r"px\.value_and_grad\("),
    ("jacobian of a number", lambda: px.jacobian(NO_FUNCTION), r"px\.jacobian\(f\)\(x\)"),
    ("hessian of a number", lambda: px.hessian(NO_FUNCTION), r"px\.hessian\(f\)\(x\)"),
    ("vmap of a number", lambda: px.vmap(NO_FUNCTION), r"px\.vmap\(f\)\(xs\)"),
    ("checkpoint of a number", lambda: px.checkpoint(NO_FUNCTION), r"px\.checkpoint\(block\)"),
    ("compile of a number", lambda: px.compile(NO_FUNCTION), r"px\.compile\(step\)"),
    ("a gradient of a number", lambda: px.custom_gradient(NO_FUNCTION), r"@px\.custom_gradient"),
]


@pytest.mark.parametrize(("run", "text"), [pytest.param(c, m, id=i) for i, c, m in TABLE])
def test_what_would_do_nothing_says_what_to_type(run: Callable[[], Any], text: str) -> None:
    with pytest.raises(
        (px.PhloxError, AttributeError), match=rf"(?s)hint: .*{text}|{text}"
    ) as caught:
        run()
    assert str(caught.value).startswith("[")


def test_a_bias_may_be_taken_away() -> None:
    assert MODEL.replace(bias=None).bias is None


def test_a_step_of_two_groups_keeps_all_states_or_none() -> None:
    class Failing(optim.SimpleOptimizer):
        def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
            raise RuntimeError("mine")

    groups = [optim.Group("bias", Failing(), 1.0)]
    optimizer = optim.OptimizerAdaptor(optim.Adam(), groups=groups)
    with pytest.raises(RuntimeError, match="mine"):
        optimizer.step(0.1, MODEL, gradients())
    assert optimizer.into_record()["states"] == {}
