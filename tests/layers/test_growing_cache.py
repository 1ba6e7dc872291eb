"""Caches of keys and values that grow: the same numbers, and few copies."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_kernels import Cpu, _native
from phlox_tensor import Backend, Numpy, Tensor

HEADS, SIZE = 2, 16


def heads(device: Backend, length: int, seed: int) -> Tensor[Any]:
    rng = np.random.default_rng(seed)
    return px.asarray(rng.standard_normal((1, HEADS, length, SIZE)), dtype="float32", device=device)


def held_by(device: Cpu) -> int:
    """Bytes that are in use, without those that wait for the collector of cycles."""
    gc.collect()
    return device.memory().current


def cache_of(device: Backend, length: int, seed: int) -> nn.KeyValues:
    return nn.KeyValues(heads(device, length, seed), heads(device, length, seed + 1))


@pytest.mark.parametrize("device", [Cpu(), Numpy(), px.as_device("wgpu")], ids=repr)
def test_a_cache_holds_what_was_added_and_old_ones_stay(device: Backend) -> None:
    cache = cache_of(device, 3, 0)
    seen, wanted = [cache], [cache.keys.numpy()]
    for step in range(6):
        new = cache_of(device, 1 + step % 2, 10 * step + 10)
        cache = cache.extended(new)
        seen.append(cache)
        wanted.append(np.concatenate([wanted[-1], new.keys.numpy()], axis=-2))
    for one, want in zip(seen, wanted, strict=True):
        assert one.length == want.shape[-2]
        assert np.array_equal(one.keys.numpy(), want)


def test_two_texts_go_on_from_one_cache() -> None:
    base = cache_of(Cpu(), 3, 0).extended(cache_of(Cpu(), 1, 2))
    one, other = cache_of(Cpu(), 1, 4), cache_of(Cpu(), 1, 6)
    found = [base.extended(one), base.extended(other)]
    for grown, new in zip(found, (one, other), strict=True):
        want = np.concatenate([base.values.numpy(), new.values.numpy()], axis=-2)
        assert np.array_equal(grown.values.numpy(), want)


def test_a_step_of_decoding_allocates_what_is_new() -> None:
    """Of 400 steps behind 1000 positions one may copy; the others take a view and no bytes."""
    device = Cpu()
    cache = cache_of(device, 1000, 0).extended(cache_of(device, 1, 2))
    new = cache_of(device, 1, 4)
    before = held_by(device)
    _native._reset_peak()
    for _ in range(400):
        cache = cache.extended(new)
    memory = device.memory()
    assert cache.length == 1401
    assert memory.peak == memory.current == before


def test_a_copy_would_be_seen() -> None:
    device = Cpu()
    keys = heads(device, 1000, 0)
    device.sync()
    before = held_by(device)
    _native._reset_peak()
    longer = px.concat([keys, heads(device, 1, 1)], axis=-2)
    assert device.memory().peak - before >= longer.size * 4


def test_attention_over_a_grown_cache_equals_that_over_a_copy() -> None:
    device = Cpu()
    cache = cache_of(device, 37, 0)
    for step in range(5):
        cache = cache.extended(cache_of(device, 1, 2 * step))
    query = heads(device, 1, 99)
    keys, values = (px.asarray(x.numpy().copy(), device=device) for x in cache)
    want = px.attention(query, keys, values, is_causal=True)
    found = px.attention(query, cache.keys, cache.values, is_causal=True)
    assert np.array_equal(found.numpy(), want.numpy())
