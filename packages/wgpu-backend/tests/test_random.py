"""Philox on the GPU gives the words of the reference."""

from __future__ import annotations

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu

# Random123 1.14, kat_vectors: philox4x32-10 with counter 0 and key 0.
KNOWN = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_the_published_vector(gpu: Wgpu) -> None:
    assert gpu.read(gpu.ops.random_bits(4, 0, 0, pt.uint32)).tolist() == KNOWN


@pytest.mark.parametrize("key", [0, 1, 0x1234567890ABCDEF, 2**64 - 1])
@pytest.mark.parametrize("counter", [0, 3, 2**32 - 2, 2**33 + 5])
def test_bits_are_the_reference_ones(gpu: Wgpu, key: int, counter: int) -> None:
    for count in (0, 1, 7, 1030):
        got = gpu.read(gpu.ops.random_bits(count, key, counter, pt.uint32))
        expected = pt.Numpy().ops.random_bits(count, key, counter, pt.uint32)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [pt.float32, pt.float16])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 2.5), (0.1, 0.3)])
def test_uniforms_are_the_reference_ones(
    gpu: Wgpu, dtype: pt.DType, low: float, high: float
) -> None:
    args = ((101, 7), low, high, dtype, 2**40 + 1, 9)
    np.testing.assert_array_equal(
        gpu.read(gpu.ops.random_uniform(*args)), pt.Numpy().ops.random_uniform(*args)
    )


@pytest.mark.parametrize("dtype", [pt.float32, pt.float16])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 10_001])
def test_normals_are_near_the_reference_ones(gpu: Wgpu, dtype: pt.DType, count: int) -> None:
    args = ((count,), 1.0, 2.0, dtype, 5, 0)
    got, expected = gpu.read(gpu.ops.random_normal(*args)), pt.Numpy().ops.random_normal(*args)
    eps = float(pt.finfo(dtype).eps)
    np.testing.assert_allclose(got, expected, rtol=4 * eps, atol=16 * eps)
