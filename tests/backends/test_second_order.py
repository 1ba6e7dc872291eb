"""Gradients of first and second order of every op on the backends, beside those on the reference.

That the reference's are right is tested by central differences in phlox-autodiff; here the same
rules run on kernels. By default each op is called once on ``Cpu()``, and one in eight on
``Wgpu()``; all calls on both are long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
from phlox import REGISTRY, Cpu, Numpy, Tensor, Wgpu, asarray, use_device
from phlox_tensor import Backend, DType, as_dtype, tree
from phlox_tensor._device.backend import lacks
from phlox_tensor.testing import Sample, samples

REFERENCE = Numpy(float="float64")
LARGEST = 300  # elements of a call: the smallest ones are enough for a rule
PART = 8  # of the ops on the GPU, where each needs shaders of its own

DIFFERENTIABLE = sorted(n for n, op in REGISTRY.items() if not ad.rule_kind(op).startswith("none"))
ON_GPU = [name for name in DIFFERENTIABLE if not lacks(Wgpu(), REGISTRY[name])]
# Of each device: the type that is computed in, and how far sums of that type may be off, as parts
# of the largest element. Second derivatives of float32 pass a dozen roundings and differences.
FAR = {"float32": 2e-3, "float64": 1e-8}


def _is_float(item: object) -> bool:
    return isinstance(item, Tensor) and item.dtype.kind == "Float"


def _calls(name: str, dtype: DType) -> Iterator[Sample]:
    """Calls in this type, the same for each device, the smallest first."""
    op = REGISTRY[name]
    random = np.random.default_rng(7)

    def made(array: Any) -> Any:
        if array is not None and op.op_class.orders and array.dtype.kind == "f":
            # Ties have no derivative; sorting is sampled with many of them.
            order = random.permutation(array.size) * 0.1 + 0.05
            array = order.reshape(array.shape).astype(array.dtype)
        return array

    drawn = [
        Sample(tree.map(made, tuple(each.operands)), each.attributes)
        for each in samples(op, dtype, REFERENCE)
        if each.attributes.get("dtype", dtype) is dtype
    ]
    sizes = [sum(np.size(a) for a in tree.leaves(each.operands) if a is not None) for each in drawn]
    for size, each in sorted(zip(sizes, drawn, strict=True), key=lambda pair: pair[0]):
        if 0 < size <= LARGEST:
            yield each


def _weights(shape: tuple[int, ...], place: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(place).uniform(0.5, 1.5, shape)


def _weighed(out: Any, dtype: DType) -> Any:
    """One number of all results, each element of which counts differently."""
    total: Any = None
    for place, each in enumerate(item for item in tree.leaves(out) if _is_float(item)):
        weight = asarray(_weights(each.shape, place), dtype=dtype, device=each.device.base)
        part = (each * weight).sum()
        total = part if total is None else total + part
    return total


def _derivatives(name: str, sample: Sample, device: Backend, dtype: DType) -> list[Any]:
    """The gradients of a call, and those of their weighted sum, as arrays."""
    op = REGISTRY[name]

    def tensor(array: Any) -> Any:
        if array is None:
            return None
        kind = {"f": dtype, "i": device.default_int}.get(array.dtype.kind)
        return asarray(array, dtype=kind, device=device)

    with use_device(device):
        operands = tree.map(tensor, sample.operands)
        leaves = tree.leaves(operands)
        places = [at for at, leaf in enumerate(leaves) if _is_float(leaf)]

        def called(*floats: Any) -> Any:
            given = dict(zip(places, floats, strict=True))
            items = iter([given.get(at, leaf) for at, leaf in enumerate(leaves)])
            again = tree.map(lambda item: next(items), operands)
            return _weighed(op(*again, **sample.attributes), dtype)

        floats = tuple(leaves[at] for at in places)
        argnums = tuple(range(len(floats)))
        first = ad.grad(called, argnums)
        firsts = first(*floats)
        seconds = ad.grad(lambda *given: _weighed(first(*given), dtype), argnums)(*floats)
    return [each.numpy() for each in (*firsts, *seconds)]


def _assert_close(name: str, sample: Sample, device: Backend, dtype: DType) -> None:
    wanted = _derivatives(name, sample, REFERENCE, as_dtype("float64"))
    found = _derivatives(name, sample, device, dtype)
    part = FAR[dtype.name]
    for place, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.shape == b.shape
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
        np.testing.assert_allclose(
            a, b, rtol=part, atol=part * scale, equal_nan=True,
            err_msg=f"{name} {sample.attributes}, derivative {place}",
        )  # fmt: skip


def _smallest(name: str, device: Backend, dtype: DType) -> None:
    for sample in _calls(name, dtype):
        _assert_close(name, sample, device, dtype)
        return


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_both_orders_on_the_cpu(name: str) -> None:
    _smallest(name, Cpu(float="float64"), as_dtype("float64"))


@pytest.mark.parametrize("name", ON_GPU[::PART])
def test_gradients_of_both_orders_on_the_gpu(name: str) -> None:
    _smallest(name, Wgpu(), as_dtype("float32"))


@pytest.mark.long
@pytest.mark.parametrize("device", [Cpu(float="float64"), Cpu(), Wgpu()], ids=repr)
def test_gradients_of_both_orders_of_every_call(device: Backend) -> None:
    for name in DIFFERENTIABLE:
        if not lacks(device, REGISTRY[name]):
            for sample in _calls(name, device.default_float):
                _assert_close(name, sample, device, device.default_float)
