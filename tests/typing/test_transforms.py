"""What type checkers say of devices, gradients and transforms; nothing of them is Any."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, found
from tools.shell import ROOT

PROGRAM = """
from typing import assert_type

import phlox as px
from phlox import Autodiff, Cpu, Numpy, Tensor, Wgpu, nn, optim


def loss_of(model: nn.Linear, x: Tensor, *, scale: float = 1.0) -> Tensor:
    return model(x).square().mean() * scale


def cubes(x: Tensor) -> Tensor:
    return (x**3).sum()


def pair(x: Tensor) -> tuple[Tensor, int]:
    return x.sum(), x.ndim


@px.custom_gradient
def clipped(x: Tensor) -> tuple[Tensor, object]:  # wrong: no function
    return x, 1


def devices() -> None:
    assert_type(Autodiff(Cpu()), Autodiff)
    assert_type(Cpu(float="bfloat16"), Cpu)
    assert_type(Numpy(), Numpy)
    assert_type(Wgpu(0), Wgpu)
    Cpu(flot="float64")  # wrong
    Autodiff(3)  # wrong
    Wgpu(index="first")  # wrong


def gradients(model: nn.Linear, x: Tensor) -> None:
    grads = loss_of(model, x).backward()
    assert_type(grads[x], Tensor)
    assert_type(grads.get(x), Tensor | None)
    assert_type(grads.of(model), nn.Linear)
    rule = optim.SgdConfig().init()
    assert_type(rule.step(0.1, model, (grads + grads) * 0.5), nn.Linear)
    grads.nosuch()  # wrong


def transforms(model: nn.Linear, x: Tensor) -> None:
    assert_type(px.grad(loss_of)(model, x, scale=2.0), nn.Linear)
    assert_type(px.grad(lambda m: loss_of(m, x))(model), nn.Linear)
    assert_type(px.grad(pair, has_aux=True)(x), tuple[Tensor, int])
    assert_type(px.grad(px.grad(cubes))(x), Tensor)
    assert_type(px.value_and_grad(loss_of)(model, x), tuple[Tensor, nn.Linear])
    assert_type(px.value_and_grad(pair, has_aux=True)(x), tuple[tuple[Tensor, int], Tensor])
    assert_type(px.vmap(cubes)(x), Tensor)
    assert_type(px.vmap(px.grad(loss_of), (None, 0))(model, x), nn.Linear)
    assert_type(px.jvp(cubes, (x,), (x,)), tuple[Tensor, Tensor])
    assert_type(px.jvp(pair, (x,), (x,), has_aux=True), tuple[Tensor, Tensor, int])
    assert_type(px.vjp(cubes, x)[0], Tensor)
    assert_type(px.jacobian(cubes)(x), Tensor)
    assert_type(px.hessian(cubes)(x), Tensor)
    assert_type(px.hvp(cubes, (x,), (x,)), tuple[Tensor])
    assert_type(px.compile(px.value_and_grad(loss_of))(model, x), tuple[Tensor, nn.Linear])
    assert_type(nn.Sequential(model, nn.Activation("relu"))(x), Tensor)
    px.grad(pair)  # wrong: no loss
    px.vmap(cubes)("text")  # wrong
    px.grad(cubes)(x).nosuch()  # wrong
    nn.Sequential(model)(x).nosuch()  # wrong
"""
FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_devices_gradients_and_transforms_have_types(checker: str, tmp_path: Path) -> None:
    lines = PROGRAM.splitlines()
    wrong = {n for n, line in enumerate(lines, 1) if "# wrong" in line}
    errors = found(CHECKERS[checker], tmp_path, PROGRAM)
    # A decorator's error stands on the line of the decorator or of its function.
    errors = {n + ("@" in lines[n - 1]): text for n, text in errors.items()}
    missed = sorted(wrong - set(errors))
    assert not missed, "passed:\n" + "\n".join(f"{n}: {lines[n - 1]}" for n in missed)
    extra = {n: text for n, text in errors.items() if n not in wrong}
    assert not extra, "\n".join(f"{n}: {lines[n - 1]}\n  {text}" for n, text in extra.items())


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_the_example_of_the_readme_has_the_types_it_needs(checker: str, tmp_path: Path) -> None:
    (program,) = FENCE.findall((ROOT / "README.md").read_text())
    assert not found(CHECKERS[checker], tmp_path, program)
