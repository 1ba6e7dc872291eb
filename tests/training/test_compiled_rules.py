"""Compiled steps of rules: the bits of one parameter after the other."""

from __future__ import annotations

from typing import Any

import pytest

import phlox as px
from phlox import Cpu, Tensor, optim
from phlox.nn import Param
from tests.training.rules import RULES, SHAPES, Net, bits, drawn


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
