"""Compiled steps of rules: the bits of one parameter after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Tensor, nn, optim
from phlox.nn import Param

LARGE = 400, 500
SHAPES = LARGE, LARGE, (), (0, 3), LARGE


class Sign(optim.SimpleOptimizer):
    """A rule of a user's own with a state of lists and numbers."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        count, means = (0, [grad]) if state is None else state
        mean = means[0] * 0.9 + grad * 0.1 if count % 2 else grad
        return tensor - mean.sign() * (lr / (1 + count) ** 0.5), (count + 1, [mean, grad])


RULES: dict[str, Any] = {
    "AdaGrad": optim.AdaGradConfig(lr_decay=0.1, weight_decay=0.1).rule(),
    "AdamW": optim.AdamWConfig(cautious_weight_decay=True, amsgrad=True).rule(),
    "Adan": optim.AdanConfig(weight_decay=0.1, proximal=False).rule(),
    "Lion": optim.LionConfig(weight_decay=0.1).rule(),
    "RmsProp": optim.RmsPropConfig(momentum=0.9, centered=True).rule(),
    "own": Sign(),
}


class Net(nn.Module):
    weights: list[Param]


def drawn(seed: int, dtype: str = "float32") -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [px.asarray(rng.normal(size=s)).astype(getattr(px, dtype)) for s in SHAPES]


def bits(tensors: list[Tensor]) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in tensors]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_compiled_step_has_the_bits_of_one_for_each_parameter(name: str, dtype: str) -> None:
    rule = RULES[name]
    with px.use_device(Cpu()):
        optimizer = optim.OptimizerAdaptor(rule)
        compiled = px.compile(optimizer.step)
        model = Net([Param(x) for x in drawn(0, dtype)])
        ids = [param.id for param in model.params().values()]
        values, states = drawn(0, dtype), [None] * len(SHAPES)
        for at in range(5):
            grads, lr = drawn(at + 1, dtype), 0.1 / (1 + at)
            model = compiled(lr, model, dict(zip(ids, grads, strict=True)))
            pairs = [rule.step(lr, *each) for each in zip(values, grads, states, strict=True)]
            values, states = [value for value, _ in pairs], [state for _, state in pairs]
            stepped = [param.value for param in model.params().values()]
            assert [x.dtype.name for x in stepped] == [dtype] * len(SHAPES)
            assert bits(stepped) == bits(values), at
        assert compiled.fallbacks == 0
        held: Any = optimizer.into_record()["states"]
        for key, state in zip(ids, states, strict=True):
            mine, own = px.tree.leaves(held[key]), px.tree.leaves(state)
            tensors = [[x for x in each if isinstance(x, Tensor)] for each in (mine, own)]
            assert bits(tensors[0]) == bits(tensors[1])
