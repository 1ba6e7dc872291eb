"""Derivatives on every installed backend, against the same ones in float64 on NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import REGISTRY, Backend, Numpy, Tensor, tree
from phlox_tensor.testing import Check, checks, lacks, samples

REFERENCE = Numpy(float="float64")
DIFFERENTIABLE = sorted(n for n, op in REGISTRY.items() if not ad.rule_kind(op).startswith("none"))
# A derivative of an op is some ten float32 ops, of tens of ulps each, on sums of up to 2000.
TOLERANCE = 2e-4
SECOND = 80


def is_float(item: object) -> bool:
    return isinstance(item, Tensor) and item.dtype.kind == "Float"


def derivatives(device: Backend, name: str, sample: Any, order: int) -> list[Any]:
    """The gradient of a weighted sum of the results; then the gradient of such a sum of that."""
    wide = device is REFERENCE

    def tensor(array: Any) -> Any:
        if array is not None and wide and array.dtype == np.float32:
            array = array.astype(np.float64)
        return None if array is None else pt.asarray(array, device=device)

    def weights(item: Any) -> Any:
        if not is_float(item):
            return None
        values = np.random.default_rng(item.size).uniform(-1, 1, item.shape)
        return pt.asarray(values.astype(np.float32), dtype=item.dtype, device=item.device)

    attributes = dict(sample.attributes)
    if "dtype" in attributes and wide:
        attributes["dtype"] = pt.float64
    op = REGISTRY[name]
    operands = tree.map(tensor, tuple(sample.operands))

    def first(*xs: Any) -> Any:
        value, pull = ad.vjp(partial(op, **attributes), *xs)
        return pull(tree.map(weights, value))

    if order == 1:
        found = first(*operands)
    else:
        value, pull = ad.vjp(first, *operands)
        found = pull(tree.map(weights, value))
    return [t.numpy() for t in tree.leaves(found) if t is not None]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_agree_with_the_reference(backend: Backend, name: str, order: int) -> None:
    op = REGISTRY[name]
    if lacks(backend, op):
        given = next(samples(op, pt.float32, backend)).operands
        tensors = [None if a is None else pt.asarray(a, device=backend) for a in given]
        with pytest.raises(pt.BackendUnavailableError, match="to_device"):
            op(*tensors)
        return
    compared = 0
    for sample in samples(op, pt.float32, backend):
        if sample.attributes.get("dtype", pt.float32) is not pt.float32:
            continue
        size = sum(a.size for a in tree.leaves(sample.operands) if a is not None)
        if order > 1 and size > SECOND and compared:
            continue
        found = derivatives(backend, name, sample, order)
        expected = derivatives(REFERENCE, name, sample, order)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == np.float32
            scale = max(1.0, float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other))))
            np.testing.assert_allclose(
                one, other, rtol=0, atol=TOLERANCE * backend.slack * scale, err_msg=str(sample)
            )
        compared += 1
    assert compared


def test_a_network_trains(backend: Backend) -> None:
    """Two layers fitted by plain gradient descent, recorded on the backend."""
    device = ad.Autodiff(backend)
    random = np.random.default_rng(0)
    x = pt.asarray(random.standard_normal((64, 3)).astype(np.float32), device=device)
    target = (x[:, 0:1] * x[:, 1:2]).detach()
    weights = [
        pt.asarray((random.standard_normal(s) * 0.5).astype(np.float32), device=backend)
        for s in ((3, 16), (16,), (16, 1))
    ]
    losses = []
    for _ in range(60):
        w1, b1, w2 = (w.to_device(device).require_grad() for w in weights)
        loss = (((x @ w1 + b1).tanh() @ w2 - target) ** 2).mean()
        grads = loss.backward()
        found = [grads.get(w) for w in (w1, b1, w2)]
        weights = [w - 0.1 * g for w, g in zip(weights, found, strict=True) if g is not None]
        losses.append(float(loss))
    assert len(weights) == 3
    assert losses[-1] < 0.5 * losses[0]


# Recording must not change what is computed; the types that networks use stand for all.
SUITE = [
    check
    for check in checks(ad.Autodiff(Numpy()))
    if check.dtype in (pt.bool_, pt.float32, pt.int64)
]


@pytest.mark.parametrize("check", SUITE, ids=str)
def test_the_device_conforms(check: Check) -> None:
    check()
