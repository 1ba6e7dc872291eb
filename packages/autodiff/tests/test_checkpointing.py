"""Checkpointing: the same gradients, fewer bytes, and nothing computed twice without need."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import REGISTRY, Backend, DType, Numpy, Tensor, tree
from phlox_tensor.testing import samples

INNER = Numpy(float="float64")
PLAIN = ad.Autodiff(INNER)
BALANCED = ad.Autodiff(INNER, checkpointing=ad.BalancedCheckpointing())
DIFFERENTIABLE = sorted(n for n, op in REGISTRY.items() if not ad.rule_kind(op).startswith("none"))


class Counting(Backend):
    """NumPy, counting the calls of each op."""

    name = "counting"

    def __init__(self) -> None:
        self.dtypes = INNER.dtypes
        self.default_float = INNER.default_float
        self.default_int = INNER.default_int
        self.calls: Counter[str] = Counter()
        self.settings = (id(self),)

    def entry(self, name: str) -> Callable[..., Any] | None:
        inside = INNER.entry(name)
        if inside is None:
            return None

        def run(*args: Any) -> Any:
            self.calls[name] += 1
            return inside(*args)

        return run

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        return INNER.shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> DType:
        return INNER.dtype_of(primitive)

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Any:
        return INNER.upload(array, dtype)

    def read(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        return INNER.read(primitive)


def network(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    """Contractions, and elementwise ops between them that the next one has to see."""
    for _ in range(3):
        x = ((x @ w + 0.5).gelu() * 1.5).tanh().reshape(x.shape) * x.sigmoid()
    return x.sum()


def gradients(device: Backend, *arrays: Any) -> list[Any]:
    leaves = [pt.asarray(a, device=device).require_grad() for a in arrays]
    grads = network(*leaves).backward()
    found = [grads.get(leaf) for leaf in leaves]
    assert None not in found
    return [g.numpy() for g in found if g is not None]


def data(size: int) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal((size, size)), random.standard_normal((size, size)) / size]


def test_a_network_has_the_same_gradients() -> None:
    for one, other in zip(gradients(PLAIN, *data(5)), gradients(BALANCED, *data(5)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_every_op_has_the_same_gradients(name: str) -> None:
    """The op between elementwise ops, whose results it keeps or has to compute again."""
    op = REGISTRY[name]

    def run(device: Backend, operands: Any, attributes: Any) -> list[Any]:
        tensors = tree.map(lambda a: a if a is None else pt.asarray(a, device=device), operands)
        leaves: list[Tensor[Any]] = []

        def enter(t: Any) -> Any:
            if not isinstance(t, Tensor) or t.dtype.kind != "Float":
                return t
            leaves.append(t.require_grad())
            return leaves[-1] * 1.0 + 0.0

        out = op(*tree.map(enter, tensors), **attributes)
        floats = [t for t in tree.leaves(out) if t.requires_grad]
        if not floats:
            return []
        loss = floats[0].sin().sum()
        for t in floats[1:]:
            loss = loss + t.sin().sum()
        grads = loss.backward()
        return [grads.get(leaf) for leaf in leaves]

    compared = 0
    for sample in samples(op, pt.float64, INNER):
        both = [run(d, tuple(sample.operands), sample.attributes) for d in (PLAIN, BALANCED)]
        for one, other in zip(*both, strict=True):
            assert (one is None) == (other is None)  # as for an operand of which only signs count
            if one is not None:
                np.testing.assert_array_equal(one.numpy(), other.numpy())
                compared += 1
    assert compared


def held(device: Backend) -> int:
    """Bytes that a graph holds beside its leaves and its result."""
    x, w = (pt.asarray(a, device=device).require_grad() for a in data(200))
    network(x, w)  # entries are made on first use
    gc.collect()
    tracemalloc.start()
    try:
        loss = network(x, w)
        gc.collect()
        found, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert loss.requires_grad
    return found


def test_fewer_bytes_are_held() -> None:
    array = 200 * 200 * 8
    plain, balanced = held(PLAIN), held(BALANCED)
    # Per round the input of gelu, the results of tanh and sigmoid; after the first also its own x.
    assert plain == pytest.approx(11 * array, rel=0.02)
    # Per round the product alone: all that follows it is elementwise or a view.
    assert balanced == pytest.approx(3 * array, rel=0.05)


def test_a_recomputed_value_is_computed_once_per_pass() -> None:
    counting = Counting()
    device = ad.Autodiff(counting, checkpointing=ad.BalancedCheckpointing())
    x = pt.asarray([0.5, 1.0], device=device).require_grad()
    shared = x.sin()
    loss = (shared.exp() * shared.square() * shared.tanh()).sum()
    counting.calls.clear()
    loss.backward()
    assert counting.calls["sin"] == 1
    assert counting.calls["tanh"] == 1


def test_nothing_is_computed_again_without_checkpointing() -> None:
    counting = Counting()
    device = ad.Autodiff(counting)
    x = pt.asarray([0.5, 1.0], device=device).require_grad()
    loss = (x.sin().exp() * x.sin().tanh()).sum()
    counting.calls.clear()
    loss.backward()
    assert not {"sin", "exp", "tanh"} & set(counting.calls)


def test_products_and_random_numbers_are_not_computed_again() -> None:
    counting = Counting()
    device = ad.Autodiff(counting, checkpointing=ad.BalancedCheckpointing())
    x = pt.asarray(np.eye(3), device=device).require_grad()
    noise = pt.random.normal((3, 3), device=device)
    loss = ((x @ x) * noise).sin().sum()
    products = counting.calls["matmul"]
    loss.backward()
    assert counting.calls["random_normal"] == 1
    assert counting.calls["matmul"] == products + 2  # one for each side of the product


def test_norms_are_computed_again_and_sums_over_lines_are_kept() -> None:
    counting = Counting()
    device = ad.Autodiff(counting, checkpointing=ad.BalancedCheckpointing())
    x = pt.asarray(np.eye(4), device=device).require_grad()
    w = pt.asarray(np.eye(4), device=device).require_grad()
    labels = pt.asarray([0, 1, 2, 3], device=device)
    loss = (pt.layer_norm(x @ w, None, None) @ w).sum()
    loss = loss + pt.cross_entropy(x @ w, labels).square().sum()
    counting.calls.clear()
    loss.backward()
    assert counting.calls["layer_norm"] == 1
    assert counting.calls["cross_entropy"] == 0


def test_of_several_results_the_large_ones_are_computed_again() -> None:
    """What normalizes a batch also gives its mean and variance."""
    counting = Counting()
    device = ad.Autodiff(counting, checkpointing=ad.BalancedCheckpointing())
    images = np.random.default_rng(0).standard_normal((2, 3, 4, 4))
    x = pt.asarray(images, device=device).require_grad()
    ones = pt.ones((3,), device=device)
    y, mean, _ = pt.ops.batch_norm_train(x * 2.0, ones, ones)
    loss = y.sigmoid().square().sum() + mean.square().sum()
    kept = ad.graph(loss).kept()
    assert [k.name for k in kept if k.again and k.nbytes > 100] == ["x"]
    assert not [k for k in kept if not k.again and k.nbytes > 100]  # x is that of the user
    counting.calls.clear()
    grads = loss.backward()
    assert counting.calls["batch_norm_train"] == 1
    plain = pt.asarray(images, device=PLAIN).require_grad()
    units = pt.ones((3,), device=PLAIN)
    y, mean, _ = pt.ops.batch_norm_train(plain * 2.0, units, units)
    other = plain.grad((y.sigmoid().square().sum() + mean.square().sum()).backward())
    found = x.grad(grads)
    assert found is not None
    assert other is not None
    np.testing.assert_array_equal(found.numpy(), other.numpy())


def test_a_chain_of_recomputed_values_may_be_deep() -> None:
    x = pt.asarray([0.5], device=BALANCED).require_grad()
    y = x
    for _ in range(20_000):
        y = y.sin() + 0.5
    plain = pt.asarray([0.5], device=PLAIN).require_grad()
    z = plain
    for _ in range(20_000):
        z = z.sin() + 0.5
    assert x.grad(y.backward()).tolist() == plain.grad(z.backward()).tolist()


def test_second_derivatives_under_checkpointing() -> None:
    inner = ad.Autodiff(INNER, checkpointing=ad.BalancedCheckpointing())
    x = pt.asarray([0.3, 0.7], device=inner).require_grad()
    top = x.to_device(ad.Autodiff(inner, checkpointing=ad.BalancedCheckpointing())).require_grad()
    first = top.grad(((top * 2.0).sin().exp() * top).sum().backward())
    assert first is not None
    second = x.grad(first.sum().backward())
    plain = ad.hessian(lambda x: ((x * 2.0).sin().exp() * x).sum())(x.inner())
    assert second is not None
    np.testing.assert_allclose(second.numpy(), plain.numpy().sum(axis=0), rtol=1e-14)


def test_a_strategy_of_ones_own() -> None:
    class Everything(ad.Checkpointing):
        def recomputes(self, op: pt.Op) -> bool:
            return len(op.signature.results) == 1

    device = ad.Autodiff(INNER, checkpointing=Everything())
    for one, other in zip(gradients(PLAIN, *data(5)), gradients(device, *data(5)), strict=True):
        np.testing.assert_array_equal(one, other)
