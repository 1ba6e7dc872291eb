"""Weights packed by an explicit call: the same numbers on every device, and what is kept."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox_kernels import Cpu, _native
from phlox_tensor import Backend, Numpy, ShapeError, Tensor

DEVICES = [Cpu(), Numpy(), px.as_device("wgpu")]
IN, OUT = 300, 512


def matrix(device: Backend, rows: int, columns: int, seed: int) -> Tensor[Any]:
    rng = np.random.default_rng(seed)
    return px.asarray(rng.standard_normal((rows, columns)), dtype="float32", device=device)


def held_by(device: Cpu) -> int:
    """Bytes that are in use, without those that wait for the collector of cycles."""
    gc.collect()
    return device.memory().current


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_products_are_those_of_the_weight(device: Backend) -> None:
    x, plain = matrix(device, 70, IN, 0), matrix(device, IN, OUT, 1)
    weight = px.prepacked(matrix(device, IN, OUT, 1))
    assert np.array_equal(weight.numpy(), plain.numpy())
    assert np.array_equal((x @ weight).numpy(), (x @ plain).numpy())
    part = slice(128, 400)
    assert np.array_equal((x @ weight[:, part]).numpy(), (x @ plain[:, part]).numpy())


def test_columns_of_a_packed_weight_are_not_packed_again() -> None:
    device = Cpu()
    x, held = matrix(device, 70, IN, 0), matrix(device, OUT, IN, 1)
    before = held_by(device)
    weight = px.prepacked(held.mT)
    bytes_packed = device.memory().current - before
    assert bytes_packed >= 4 * IN * OUT
    parts = [weight, weight[:, :256], weight[:, 128:], held.mT]
    products = [x @ part for part in parts * 3]
    del products
    assert device.memory().current - before == bytes_packed
    del weight, held, parts
    assert device.memory().current <= before


def test_other_parts_are_kept_from_their_first_use_on() -> None:
    device = Cpu()
    x, weight = matrix(device, 70, IN, 0), px.prepacked(matrix(device, OUT, IN, 1).mT)
    before = held_by(device)
    out = x @ weight[:, 7:400]
    first = device.memory().current - before
    out = x @ weight[:, 7:400]
    assert device.memory().current - before == first > 4 * IN * 393
    assert out.shape == (70, 393)


def test_the_first_product_packs_nothing() -> None:
    device = Cpu()
    x, weight = matrix(device, 70, IN, 0), px.prepacked(matrix(device, OUT, IN, 1).mT)
    before = held_by(device)
    _native._reset_peak()
    out = x @ weight
    assert device.memory().peak - before < 2 * out.size * 4


def test_gradients_pass() -> None:
    device = px.Autodiff(Cpu())
    weight = matrix(device, 3, 4, 1).require_grad()
    grads = (matrix(device, 2, 3, 0) @ px.prepacked(weight)).sum().backward()
    want = matrix(device, 2, 3, 0).numpy().sum(0)[:, None].repeat(4, 1)
    assert np.allclose(weight.grad(grads).numpy(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_what_is_no_matrix_is_refused(device: Backend) -> None:
    with pytest.raises(ShapeError, match=r"expected \(in, out\)"):
        px.prepacked(px.ones((2, 3, 4), device=device))
