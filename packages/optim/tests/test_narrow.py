"""Parameters in float16 and bfloat16 step in float32 and are rounded afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_nn import Param
from phlox_tensor import Numpy, Tensor, tree

STEPS = 4
RULES: dict[str, optim.OptimizerConfig] = {
    "adafactor": optim.AdafactorConfig(weight_decay=0.1),
    "adagrad": optim.AdaGradConfig(lr_decay=0.1, weight_decay=0.1),
    "adam": optim.AdamConfig(),
    "adam-amsgrad": optim.AdamConfig(amsgrad=True, weight_decay=0.1),
    "adamw": optim.AdamWConfig(),
    "adamw-cautious": optim.AdamWConfig(cautious=True, cautious_weight_decay=True),
    "adan": optim.AdanConfig(weight_decay=0.1),
    "lion": optim.LionConfig(weight_decay=0.1),
    "muon": optim.MuonConfig(),
    "rmsprop": optim.RmsPropConfig(),
    "rmsprop-centered": optim.RmsPropConfig(momentum=0.5, centered=True, weight_decay=0.1),
    "sgd": optim.SgdConfig(weight_decay=0.1),
    "sgd-momentum": optim.SgdConfig(momentum=0.9, nesterov=True),
}
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
HERE = Numpy()


def gradient(dtype: str, turn: int) -> Tensor:
    """Squares of these leave float16 on both sides; the first is where epsilon alone divides."""
    values = np.roll([0.0, 1e-4, 1.0, -300.0], turn // 2).reshape(2, 2)
    return pt.asarray(values.astype(np.float32), device=HERE).astype(dtype)


def wide(state: Any) -> bool:
    found = [leaf.dtype for leaf in tree.leaves(state) if isinstance(leaf, Tensor)]
    return all(dtype is pt.float32 for dtype in found)


@pytest.mark.parametrize("dtype", sorted(EPS))
@pytest.mark.parametrize("name", sorted(RULES))
def test_each_step_is_that_of_float32_rounded(name: str, dtype: str) -> None:
    rule = RULES[name].rule()
    x: Tensor = pt.ones((2, 2), dtype=dtype, device=HERE)
    beside = x.astype("float32")
    state: Any = None
    far: Any = None
    most = 1.0
    for turn in range(STEPS):
        grad = gradient(dtype, turn)
        want, _ = rule.step(0.1, x.astype("float32"), grad.astype("float32"), state)
        x, state = rule.step(0.1, x, grad, state)
        beside, far = rule.step(0.1, beside, grad.astype("float32"), far)
        assert x.dtype.name == dtype
        assert np.array_equal(x.astype("float32").numpy(), want.astype(dtype).astype("float32"))
        assert wide(state)
        most = max(most, float(beside.abs().max()))
    away = np.abs(x.astype("float32").numpy() - beside.numpy()).max()
    assert away <= STEPS * EPS[dtype] * most


@pytest.mark.parametrize("dtype", sorted(EPS))
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_step_over_a_list_is_that_of_each_tensor(name: str, dtype: str) -> None:
    rule = RULES[name].rule()
    tensors: list[Any] = [pt.full((2, 2), value, dtype=dtype, device=HERE) for value in (1.0, -2.0)]
    states: list[Any] = [None, None]
    each: list[Any] = [(tensor, None) for tensor in tensors]
    for turn in range(STEPS):
        grads = [gradient(dtype, turn), gradient(dtype, turn + 2)]
        tensors, states = rule.step_list(0.1, tensors, grads, states)
        each = [rule.step(0.1, x, g, state) for (x, state), g in zip(each, grads, strict=True)]
        for got, state, (want, wanted) in zip(tensors, states, each, strict=True):
            assert got.dtype.name == dtype
            a, b = (t.astype("float32").numpy() for t in (got, want))
            assert np.allclose(a, b, rtol=EPS[dtype], atol=0)
            assert wide(state)
            for one, other in zip(tree.leaves(state), tree.leaves(wanted), strict=True):
                assert (one is None) == (other is None)
                a, b = (np.asarray(0 if leaf is None else leaf) for leaf in (one, other))
                assert np.allclose(a, b, rtol=1e-5, atol=1e-12)


class Net(nn.Module):
    a: Param
    b: Param


@pytest.mark.parametrize("dtype", sorted(EPS))
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_loaded_state_continues_bit_by_bit(name: str, dtype: str) -> None:
    config = RULES[name]
    optimizer = config.init()
    model = Net(*(Param(pt.ones((2, 2), dtype=dtype, device=HERE)) for _ in "ab"))

    def stepped(optimizer: optim.OptimizerAdaptor, model: Net, turn: int) -> Net:
        grads = {p.id: gradient(dtype, turn + i) for i, p in enumerate(model.param_list())}
        return optimizer.step(0.1, model, grads)

    for turn in range(2):
        model = stepped(optimizer, model, turn)
    writer = record.NamedMsgpackRecorder(record.FullPrecision)
    data = writer.to_bytes(optimizer.into_record())
    resumed = config.init().load_record(writer.from_bytes(data, device=HERE))
    again = model
    for turn in range(2, STEPS):
        model, again = stepped(optimizer, model, turn), stepped(resumed, again, turn)
    for one, other in zip(model.param_list(), again.param_list(), strict=True):
        assert one.dtype.name == dtype
        a, b = (p.value.astype("float32").numpy() for p in (one, other))
        assert np.isfinite(a).all()
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_gradient_of_another_type_becomes_that_of_the_step(name: str) -> None:
    rule = RULES[name].rule()
    x = pt.ones((2, 2), dtype="float32", device=HERE)
    for dtype in ("float16", "float64"):
        grad = gradient("float32", 0).astype(dtype)
        want, _ = rule.step(0.1, x, grad.astype("float32"), None)
        got, state = rule.step(0.1, x, grad, None)
        (listed,), _ = rule.step_list(0.1, [x], [grad], [None])
        assert got.dtype is pt.float32
        assert np.array_equal(got.numpy(), want.numpy())
        assert np.allclose(listed.numpy(), want.numpy(), rtol=1e-6)
        assert wide(state)


def test_scaled_gradients_are_divided_and_clipped_in_full_precision() -> None:
    model = nn.Linear(2, 1, bias=False, device=HERE)
    model = model.map(lambda _, p: Param(pt.zeros((2, 1), dtype="float16", device=HERE), id=p.id))
    grads: Any = {model.weight.id: pt.asarray([[2e-3], [0.5]], dtype="float16", device=HERE)}
    scaled = optim.AdamConfig(epsilon=0.0).init().step(0.1, model, grads, divide_by=65536.0)
    assert np.allclose(scaled.weight.value.numpy(), -0.1, rtol=1e-3)
    clipped = (
        optim.AdamConfig(epsilon=0.0, grad_clipping=optim.ClipByGlobalNorm(1e-7))
        .init()
        .step(0.1, model, grads)
    )
    assert np.allclose(clipped.weight.value.numpy(), -0.1, rtol=1e-3)
