"""``vmap`` on every backend, and over modules: gradients for each example, ensembles."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Numpy, Wgpu, nn
from phlox_tensor import REGISTRY, Backend, Tensor
from phlox_tensor.testing import samples

BACKENDS: list[Backend] = [Cpu(), Numpy()]
ROWS = sorted(
    name
    for name, op in REGISTRY.items()
    if op.signature.operands and not px.batching_kind(op).startswith("none")
)
# On software Vulkan a call costs milliseconds: one op for each rule, not each op.
RULES = [
    n for n in ROWS if px.batching_kind(REGISTRY[n]) == "rule" and not REGISTRY[n].op_class.hosted
]
CHOSEN = [*RULES, "argmax", "avg_pool2d", "cumsum", "softmax", "sum", "where"]
LANES = 3


def lanes(array: Any, *, matrices: bool) -> Any:
    if matrices:  # which stay as well conditioned as they are
        return np.stack([array * (1 + k) for k in range(LANES)])
    rows = [np.roll(array.ravel(), k).reshape(array.shape) for k in range(LANES)]
    return np.stack(rows)


def check(name: str, device: Backend) -> None:
    """All operands with lanes, against the reference of one lane after the other."""
    op = REGISTRY[name]
    sample = next(s for s in samples(op, px.float32, device) if s.operands)
    call = partial(op, **sample.attributes)
    with_lanes = partial(lanes, matrices=op.op_class.matrices)
    operands = px.tree.map(lambda a: None if a is None else with_lanes(a), list(sample.operands))

    def on(place: Backend, pick: Any) -> list[Any]:
        return [
            px.tree.map(lambda a: None if a is None else px.asarray(pick(a), device=place), x)
            for x in operands
        ]

    got = px.tree.leaves(px.vmap(call)(*on(device, lambda a: a)))
    rows = [px.tree.leaves(call(*on(Numpy(), lambda a, k=k: a[k]))) for k in range(LANES)]
    for found, *wanted in zip(got, *rows, strict=True):
        assert found.shape == (LANES, *wanted[0].shape)
        want = np.stack([w.numpy() for w in wanted])
        # Sums of other lengths are made in another order than those of one lane.
        np.testing.assert_allclose(found.numpy(), want, rtol=2e-4, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("name", ROWS)
def test_an_op_runs_over_lanes_on_the_cpu(name: str) -> None:
    check(name, Cpu())


@pytest.mark.parametrize("name", CHOSEN)
def test_an_op_runs_over_lanes_on_the_gpu(name: str) -> None:
    check(name, Wgpu())


class Network(nn.Module):
    """Products, a convolution, a norm and an embedding."""

    words: nn.Embedding
    first: nn.Linear
    norm: nn.LayerNorm
    images: nn.Conv2d
    last: nn.Linear

    def forward(self, x: Tensor, word: Tensor[Any]) -> Tensor:
        hidden = self.norm(self.first(x) + self.words(word)).gelu()
        seen = self.images(hidden.reshape(-1, 1, 4, 4))
        return self.last(seen.reshape(x.shape[0], -1))


def network(device: Backend) -> Network:
    return Network(
        words=nn.Embedding(5, 16, device=device),
        first=nn.Linear(6, 16, device=device),
        norm=nn.LayerNorm(16, device=device),
        images=nn.Conv2d(1, 2, 3, device=device),
        last=nn.Linear(8, 3, device=device),
    )


def data(device: Backend) -> tuple[Tensor, Tensor[Any], Tensor[Any]]:
    x = px.random.normal((8, 6), device=device)
    return (
        x,
        px.random.randint((8,), 0, 5, device=device),
        px.random.randint((8,), 0, 3, device=device),
    )


def loss(model: Network, x: Tensor, word: Tensor[Any], y: Tensor[Any]) -> Tensor:
    return px.ops.cross_entropy(model(x, word), y).mean()


def one(model: Network, x: Tensor, word: Tensor[Any], y: Tensor[Any]) -> Tensor:
    return loss(model, x[None], word[None], y[None])


@pytest.mark.parametrize("device", [*BACKENDS, Wgpu()], ids=str)
def test_the_mean_of_the_gradients_of_examples_is_the_gradient(device: Backend) -> None:
    px.seed(0)
    model, batch = network(device), data(device)
    each = px.vmap(px.grad(one), (None, 0, 0, 0))(model, *batch)
    whole = px.grad(loss)(model, *batch)
    pairs = list(zip(px.tree.leaves(each), px.tree.leaves(whole), strict=True))
    assert len(pairs) >= 9
    for many, single in pairs:
        assert many.shape == (8, *single.shape)
        np.testing.assert_allclose(many.numpy().mean(axis=0), single.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("device", [*BACKENDS, Wgpu()], ids=str)
def test_an_ensemble_is_one_module_with_lanes(device: Backend) -> None:
    px.seed(1)
    models = [network(device) for _ in range(3)]
    x, word, y = data(device)
    stacked = px.tree.map(lambda *weights: px.stack(list(weights)), *models)
    out = px.vmap(lambda m: m(x, word))(stacked)
    assert out.shape == (3, 8, 3)
    for got, model in zip(out.numpy(), models, strict=True):
        np.testing.assert_allclose(got, model(x, word).numpy(), rtol=1e-3, atol=1e-5)
    slopes = px.vmap(px.grad(lambda m: loss(m, x, word, y)))(stacked)
    for i, model in enumerate(models):
        want = px.tree.leaves(px.grad(loss)(model, x, word, y))
        for got, single in zip(px.tree.leaves(slopes), want, strict=True):
            np.testing.assert_allclose(got[i].numpy(), single.numpy(), rtol=1e-3, atol=1e-5)


def test_a_model_that_trains_gives_gradients_for_each_example() -> None:
    """The parameters of a model on ``Autodiff`` stay leaves for what runs in lanes."""
    px.seed(2)
    model = network(px.Autodiff(Cpu()))
    batch = [t.to_device(px.Autodiff(Cpu())) for t in data(Cpu())]
    losses = px.vmap(one, (None, 0, 0, 0))(model, *batch)
    grads = losses.mean().backward()
    whole = loss(model, *batch).backward()
    assert model.norm.weight is not None
    for p in (model.first.weight, model.images.weight, model.norm.weight, model.words.weight):
        got, want = p.value.grad(grads), p.value.grad(whole)
        assert got is not None
        assert want is not None
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-3, atol=1e-6)
