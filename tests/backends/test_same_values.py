"""Asking for a derivative changes no value: recorded calls give the bits of plain ones."""

from __future__ import annotations

from math import copysign, inf
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Op, Tensor, Wgpu, tree
from phlox_tensor import REGISTRY
from phlox_tensor.testing import lacks
from phlox_tensor.testing._samples import Sample, dtypes_for, samples

DEVICES: list[Backend] = [Cpu(), Numpy(), Wgpu()]
OPS = sorted(n for n, op in REGISTRY.items() if any(r.kind == "Float" for r in op.signature.results)
             or any(o.kind in ("Num", "Any") for o in op.signature.operands))  # fmt: skip


def _bits(out: Any) -> list[bytes]:
    return [t.numpy().tobytes() for t in tree.leaves(out) if isinstance(t, Tensor)]


def _on(item: Any, device: Backend, *, recorded: bool) -> Any:
    if isinstance(item, tuple):
        return [_on(each, device, recorded=recorded) for each in item]
    if item is None:
        return None
    x = px.asarray(item, device=device)
    return x.require_grad() if recorded and x.dtype.kind == "Float" else x


def _call(op: Op, sample: Sample, device: Backend, *, recorded: bool) -> Any:
    given = [_on(item, device, recorded=recorded) for item in sample.operands]
    with px.use_device(device):
        return op(*given, **sample.attributes)


def _differing(device: Backend, name: str) -> list[str]:
    op, found = REGISTRY[name], []
    for dtype in () if lacks(device, op) else dtypes_for(op, device):
        if dtype.kind != "Float":
            continue
        for sample in samples(op, dtype, device):
            if not sample.operands:
                continue
            plain = _call(op, sample, device, recorded=False)
            if _bits(plain) != _bits(_call(op, sample, Autodiff(device), recorded=True)):
                found.append(f"{name} {dtype} {sample.attributes}")
    return found


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_a_recorded_call_gives_the_bits_of_a_plain_one(device: Backend) -> None:
    assert len(OPS) > 100
    assert not [line for name in OPS for line in _differing(device, name)]


def test_the_tangent_of_a_call_leaves_its_bits() -> None:
    for name in ("gelu_tanh", "softmax_backward", "fused_linear", "layer_norm_backward"):
        op = REGISTRY[name]
        for sample in samples(op, px.float16, Cpu()):
            given = _on(sample.operands, Cpu(), recorded=False)

            def call(*xs: Any, op: Op = op, given: Any = given, sample: Sample = sample) -> Any:
                left = iter(xs)
                full = [None if item is None else next(left) for item in given]
                return op(*full, **sample.attributes)

            points = tuple(item for item in given if item is not None)
            value, _ = px.jvp(call, points, points)
            assert _bits(value) == _bits(call(*points))


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_the_tail_of_gelu_tanh_stays_when_it_is_trained(device: Backend) -> None:
    x = px.asarray([-3.0, -4.5], device=Autodiff(device))
    points = np.array([-3.0, -4.5])
    bend = np.tanh(np.sqrt(2 / np.pi) * (points + 0.044715 * points**3))
    want = 0.5 * points * (1 + bend)
    np.testing.assert_allclose(x.require_grad().gelu_tanh().numpy(), want, rtol=2e-4)
    if px.bfloat16 in device.dtypes:
        narrow = px.asarray([-3.0], dtype="bfloat16", device=Autodiff(device)).require_grad()
        assert narrow.gelu_tanh().item() == pytest.approx(-0.00363, abs=2e-5)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_gates_end_in_a_negative_zero(device: Backend) -> None:
    x = px.asarray([-inf, -1e30], device=device)
    for gate in (x.silu(), x.gelu(), x.gelu_tanh()):
        assert [copysign(1.0, v) for v in gate.tolist()] == [-1.0, -1.0]
        assert gate.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_products_over_no_elements_have_gradients(device: Backend) -> None:
    recording = Autodiff(device)
    for left, right in (
        ((2, 2, 0), (0, 4)),
        ((2, 3, 0), (2, 0, 4)),
        ((3, 0), (0,)),
        ((2, 0, 3), (3, 4)),
    ):
        a = px.ones(left, device=recording).require_grad()
        b = px.ones(right, device=recording).require_grad()
        grads = (a @ b).sum().backward()
        for x in (a, b):
            g = x.grad(grads)
            assert g is not None
            assert g.shape == x.shape
            assert not g.numpy().any()
    x = px.ones((2, 2, 0), device=recording).require_grad()
    w = px.ones((0, 4), device=recording).require_grad()
    bias = px.ones(4, device=recording).require_grad()
    grads = px.linear(x, w, bias).sum().backward()
    found = [grads.get(t) for t in (x, w, bias)]
    assert [g.shape for g in found if g is not None] == [(2, 2, 0), (0, 4), (4,)]
    assert found[2] is not None
    assert found[2].tolist() == [4.0] * 4
