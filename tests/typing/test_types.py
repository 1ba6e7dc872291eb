"""What type checkers say: clean code is clean, and every wrong line of the list is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, found

# A line without a mark must be clean; one with `# wrong` must have an error from each checker,
# one with `# wrong but` from pyright alone: mypy binds `self` without looking at the kinds that
# a type variable is limited to.
PROGRAM = """
from typing import assert_type

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import Bool, Float, Int, Tensor


class Net(nn.Module):
    body: nn.Linear
    loss: nn.CrossEntropyLoss

    def forward(self, x: Tensor, labels: Tensor[Int]) -> tuple[Tensor, Tensor]:
        logits = self.body(x)
        return logits, self.loss(logits, labels)


def modules(net: Net, x: Tensor, n: Tensor[Int]) -> None:
    assert_type(nn.Linear(2, 3, bias=False, device="cpu"), nn.Linear)
    assert_type(nn.LinearConfig(2, 3).init("cpu"), nn.Linear)
    assert_type(nn.LinearConfig(2, 3).init(), nn.Linear)
    assert_type(net.body(x), Tensor[Float])
    assert_type(net.body.settings, nn.LinearConfig)
    assert_type(net.body.settings.bias, bool)
    assert_type(net(x, n), tuple[Tensor[Float], Tensor[Float]])
    assert_type(net(x, labels=n)[1], Tensor[Float])
    assert_type(nn.Embedding(5, 2)(n), Tensor[Float])
    assert_type(nn.relu(x), Tensor[Float])
    net(x)  # wrong: labels are missing
    net(n, n)  # wrong
    net.body(x, x)  # wrong
    nn.Linear(2)  # wrong
    nn.Linear(2, "3")  # wrong
    nn.MaxPool2d(2, padding="all")  # wrong
    nn.MaxPool2dConfig(2, padding="all")  # wrong
    y: Tensor[Int] = net.body(x)  # wrong
    del y


def kinds(x: Tensor, n: Tensor[Int], b: Tensor[Bool]) -> None:
    assert_type(x, Tensor[Float])
    assert_type(x + 1, Tensor[Float])
    assert_type(2.0 * x, Tensor[Float])
    assert_type(n * 2, Tensor[Int])
    assert_type(x > 0, Tensor[Bool])
    assert_type(x == x, Tensor[Bool])
    assert_type(n / 2, Tensor[Float])
    assert_type(~b & b, Tensor[Bool])
    assert_type(n << 1, Tensor[Int])
    assert_type(x @ x.T, Tensor[Float])
    assert_type(x.sin(), Tensor[Float])
    assert_type(pt.exp(x), Tensor[Float])
    assert_type(x.argmax(axis=0), Tensor[Int])
    assert_type(x.isnan(), Tensor[Bool])
    assert_type(x[0], Tensor[Float])
    assert_type(n[b], Tensor[Int])
    assert_type(x.mean(axis=0, keepdims=True), Tensor[Float])
    assert_type(x.reshape(2, -1).flatten(), Tensor[Float])
    assert_type(pt.where(b, x, 0.0), Tensor[Float])
    assert_type(pt.concat([x, x], axis=1), Tensor[Float])
    assert_type(pt.stack([n, n]), Tensor[Int])
    assert_type(pt.zeros((2, 3)), Tensor[Float])
    assert_type(pt.random.normal(3), Tensor[Float])
    assert_type(x.to_device("numpy"), Tensor[Float])
    assert_type(b.nonzero(), tuple[Tensor[Int], ...])
    assert_type(x.clip(0, 1).maximum(0.5), Tensor[Float])
    assert_type(pt.conv2d(x, x, None, stride=2, padding=(1, 1)), Tensor[Float])
    assert_type(pt.conv2d(x, weight=x, bias=x), Tensor[Float])
    assert_type(pt.layer_norm(x, weight=x), Tensor[Float])
    assert_type(float(x[0, 0]), float)
    assert_type(x.sum(axis=0), Tensor[Float])
    assert_type(n.sum(), Tensor[Int])
    assert_type(b.sum(), Tensor[Int])
    assert_type(pt.sum(x, keepdims=True), Tensor[Float])
    assert_type(pt.arange(3), Tensor[Int])
    assert_type(pt.asarray([1.0, 2.0]), Tensor[Float])
    assert_type(pt.asarray([[1, 2], [3, 4]]), Tensor[Int])
    assert_type(pt.asarray([True]), Tensor[Bool])
    assert_type(pt.asarray(x), Tensor[Float])
    assert_type(pt.full((2,), 1), Tensor[Int])
    assert_type(round(x), Tensor[Float])
    assert_type(divmod(n, 2), tuple[Tensor[Int], Tensor[Int]])
    device: pt.Device = x.device
    assert_type(pt.zeros(3, device=device), Tensor[Float])


def wrong(x: Tensor, n: Tensor[Int], b: Tensor[Bool]) -> None:
    b.sin()  # wrong: a method that Bool lacks
    n.sin()  # wrong: nor has Int
    n.sqrt()  # wrong
    pt.exp(n)  # wrong
    -b  # wrong but
    b + b  # wrong but
    x & x  # wrong but
    ~x  # wrong but
    x << 1  # wrong
    n + x  # wrong: two kinds
    x.mean(axis="a")  # wrong
    x.sum(axes=0)  # wrong
    x.sum(dim=0)  # wrong
    n.sum().sin()  # wrong
    pt.arange(3).sin()  # wrong
    pt.asarray([1, 2]).sin()  # wrong
    pt.ones(2, 3)  # wrong
    x.nosuch()  # wrong
    n.require_grad()  # wrong
    b.backward()  # wrong
    pt.where(x, x, x)  # wrong: the condition is no truth
    pt.zeros("ab", dtype=1.5)  # wrong
    pt.take(x, x)  # wrong: indices are integers
    x[1.5]  # wrong
    y: Tensor[Int] = x.floor()  # wrong
    z: Tensor[Int] = x > 0  # wrong
    del y, z
    x[0] = 1.0  # wrong: tensors never change
"""
MARK = re.compile(r"  # wrong(?P<pyright> but)?")
MARKS = {n: m for n, line in enumerate(PROGRAM.splitlines(), 1) if (m := MARK.search(line))}
WRONG = {
    "mypy": {n for n, mark in MARKS.items() if not mark["pyright"]},
    "pyright": set(MARKS),
}


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_every_wrong_line_is_found_and_no_other(checker: str, tmp_path: Path) -> None:
    errors = found(CHECKERS[checker], tmp_path, PROGRAM)
    lines = PROGRAM.splitlines()
    missed = sorted(WRONG[checker] - set(errors))
    assert not missed, "passed:\n" + "\n".join(f"{n}: {lines[n - 1]}" for n in missed)
    extra = {n: text for n, text in errors.items() if n not in WRONG[checker]}
    assert not extra, "\n".join(f"{n}: {lines[n - 1]}\n  {text}" for n, text in extra.items())
