"""A batch of 0 is a batch: where a declaration gives a shape for it, devices give that shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phlox import REGISTRY, Cpu, Numpy, PhloxError, asarray, conv2d, zeros
from phlox_tensor import Backend, Op, Spec, float32
from phlox_tensor.testing import lacks, samples

DEVICES = (Numpy(), Cpu())
# Windows over images, and what they are made of.
OPS = [op for op in REGISTRY.values() if op.op_class.windows or op.name in ("fold", "max_unpool")]


def emptied(op: Op, operand: Any, name: str, batch: int) -> Any:
    """The operand of a batch of 0; one that has no batch stays."""
    has = isinstance(operand, np.ndarray) and operand.ndim > 2 and len(operand) == batch
    return operand[:0] if has and name not in op.op_class.weights else operand


def calls(op: Op, device: Backend) -> list[tuple[list[Any], dict[str, Any]]]:
    found = []
    for sample in samples(op, float32, device):
        names = [operand.name for operand in op.signature.operands]
        batch = len(sample.operands[0])
        pairs = zip(sample.operands, names, strict=True)
        found.append(([emptied(op, o, name, batch) for o, name in pairs], sample.attributes))
    return found


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_windows_over_no_images_give_the_shape_that_is_inferred(op: Op, device: Backend) -> None:
    if lacks(device, op):
        pytest.skip(f"{device} leaves {op.name} to the host")
    for arrays, attributes in calls(op, device):
        operands = [a if a is None else asarray(a, device=device) for a in arrays]
        specs = [x if x is None else Spec(x.shape, x.dtype) for x in operands]
        try:
            inferred = op.infer(*specs, device=device, **attributes)
        except PhloxError:  # another operand tells the size of the batch
            continue
        got = op(*operands, **attributes)
        several = op.signature.several
        for x, spec in zip(*((got, inferred) if several else ((got,), (inferred,))), strict=True):
            assert x.numpy().shape == spec.shape


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_logsumexp_over_nothing_is_minus_infinity(device: Backend) -> None:
    assert zeros(0, device=device).logsumexp().item() == -np.inf
    x = zeros((2, 0, 3), device=device)
    assert x.logsumexp(axis=1).tolist() == [[-np.inf] * 3] * 2
    assert x.logsumexp(axis=(0, 1), keepdims=True).tolist() == [[[-np.inf] * 3]]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_a_convolution_of_one_pixel_takes_no_images(device: Backend) -> None:
    """Windows of one pixel are products, for as many channels as here."""
    weight = zeros((16, 8, 1, 1), device=device)
    assert conv2d(zeros((0, 8, 4, 4), device=device), weight, None).shape == (0, 16, 4, 4)
