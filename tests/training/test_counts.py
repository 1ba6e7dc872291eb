"""State of whole numbers counts: what several forwards propose is added up."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_fusion as fusion
import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_autodiff import Autodiff, value_and_grad
from phlox_kernels import Cpu
from phlox_tensor import Numpy, Tensor

DEVICE = Autodiff(Numpy())
SIZES = (280, 140, 140)


class Counting(nn.Module):
    """A line that counts the rows that it saw, and keeps the share of the last batch."""

    line: nn.Linear
    seen: nn.Param
    share: nn.Param

    def forward(self, x: Tensor) -> Tensor:
        y = nn.propose(self.line(x), self.seen, self.seen.value + x.shape[0])
        return nn.propose(y, self.share, self.share.value * 0.0 + x.shape[0])


def counting(device: Any = DEVICE, dtype: str = "int64") -> Counting:
    states = [nn.State(pt.zeros((), dtype=t, device=device)) for t in (dtype, "float32")]
    return Counting(nn.Linear(1, 1, device=device), *states)


def loss_of(model: Counting, rows: int) -> Tensor:
    found: Tensor = model(pt.ones((rows, 1), device=model.line.weight.device)).square().mean()
    return found


def counts(model: Counting) -> list[float]:
    return [model.seen.value.item(), model.share.value.item()]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_summed_gradients_add_counts_and_take_the_mean_of_statistics(dtype: str) -> None:
    model, optimizer = counting(dtype=dtype), optim.SgdConfig().init()
    for step in (1, 2):
        found = [loss_of(model, rows // 20).backward() for rows in SIZES]
        model = optimizer.step(0.1, model, found[0] + found[1] + found[2], divide_by=3)
        assert counts(model) == [28 * step, pytest.approx(28 / 3)]
    assert model.seen.value.dtype.name == dtype


def test_several_forwards_of_one_loss_add_counts() -> None:
    model = counting()
    total = loss_of(model, 280) + loss_of(model, 280)
    assert counts(optim.SgdConfig().init().step(0.1, model, total.backward())) == [560, 280]
    with nn.collect() as updates:
        loss_of(model, 280)
        loss_of(model, 140)
    assert counts(updates.apply(model)) == [420, 210]


@pytest.mark.parametrize("device", [DEVICE, Numpy()], ids=repr)
def test_the_gradient_of_a_module_has_its_counts(device: Any) -> None:
    model = counting(device)
    _, grads = value_and_grad(lambda m: loss_of(m, 280) + loss_of(m, 140))(model)
    assert counts(optim.SgdConfig().init().step(0.1, model, grads)) == [420, 210]


def test_a_compiled_step_counts() -> None:
    def step(model: Counting, optimizer: Any) -> Counting:
        grads = loss_of(model, 3).backward() + loss_of(model, 4).backward()
        after: Counting = optimizer.step(0.1, model, grads)
        return after

    model, optimizer, run = (
        counting(Autodiff(Cpu())),
        optim.SgdConfig().init(),
        fusion.compile(step),
    )
    for _ in range(6):
        model = run(model, optimizer)
    assert counts(model)[0] == 42


@pytest.mark.parametrize("float", ["bfloat16", "float16", "float32"])
def test_batch_norm_counts_all_batches_in_narrow_types(float: str) -> None:
    device = Autodiff(Numpy(float=float))
    model, optimizer = nn.BatchNorm(1, momentum=None, device=device), optim.SgdConfig().init()
    assert model.num_batches_tracked is not None
    count = model.num_batches_tracked.with_value(
        pt.full((), 2048.0, dtype="float32", device=device)
    )
    model = model.replace(num_batches_tracked=count)
    x = pt.asarray([[1.0], [2.0]], dtype=float, device=device)
    model = optimizer.step(0.1, model, model(x).sum().backward())
    assert model.num_batches_tracked is not None
    assert model.num_batches_tracked.value.item() == 2049
    assert model.running_mean.dtype.name == float
