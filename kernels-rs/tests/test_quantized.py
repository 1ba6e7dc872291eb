"""Products with weights of 8 and 4 bits against float64, and products of bfloat16 by either way."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import Rejected, as_dtype

Array = np.ndarray[Any, Any]
DEVICE = Cpu()
CASES = (
    # rows, inputs, outputs, groups, bits
    (1, 4096, 1030, 32, 8),
    (3, 96, 33, 1, 8),
    (16, 64, 600, 4, 8),
    (17, 64, 40, 4, 8),
    (1, 4096, 1030, 32, 4),
    (5, 36, 20, 3, 4),
    (4, 12, 9, 4, 4),  # groups of three inputs, which share bytes
    (18, 32, 20, 2, 4),
)


def up(array: Array, dtype: str | None = None) -> Any:
    primitive = DEVICE.upload(array, as_dtype(array.dtype))
    return _native.cast(primitive, dtype) if dtype else primitive


def down(primitive: Any) -> Array:
    return DEVICE.read(_native.cast(primitive, "float64"))


def halves(weight: Array, bits: int) -> Array:
    """The integers that a weight holds."""
    if bits == 8:
        return weight
    low = ((weight & 15) ^ 8) - 8
    return np.stack([low, weight >> 4], axis=1).reshape(2 * weight.shape[0], -1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_a_product_with_integers_is_that_of_the_numbers(case: Any, dtype: str) -> None:
    rows, inputs, outputs, groups, bits = case
    rng = np.random.default_rng(0)
    weight = rng.integers(-128, 128, (inputs * bits // 8, outputs)).astype(np.int8)
    x = up(rng.standard_normal((rows, inputs)), dtype)
    scale = up(rng.uniform(0.5, 1.5, (groups, outputs)), dtype)
    bias = up(rng.standard_normal(outputs), dtype)
    got = _native.quantized_linear(x, up(weight), scale, bias, bits)
    numbers = halves(weight.astype(np.int64), bits) * np.repeat(
        down(scale), inputs // groups, axis=0
    )
    want = down(x) @ numbers + down(bias)
    size = np.abs(down(x)) @ np.abs(numbers) + 1
    unit = {"bfloat16": 2**-8, "float16": 2**-10, "float32": 2**-20, "float64": 2**-45}[dtype]
    assert np.abs(down(got) - want).max() <= (unit * size).max()
    assert (np.abs(down(got) - want) <= unit * size).all()


def test_integers_of_other_types_and_strided_operands_do_as_well() -> None:
    rng = np.random.default_rng(1)
    weight = rng.integers(-9, 9, (12, 10))
    x, scale = rng.standard_normal((3, 24))[:, ::2], rng.uniform(1, 2, (3, 10))
    want = x @ (weight * np.repeat(scale, 4, axis=0))
    for dtype in ("int8", "int16", "int32", "int64"):
        given = up(np.ascontiguousarray(weight.T).astype(dtype))
        turned = _native.permute_dims(given, (1, 0))
        got = _native.quantized_linear(up(x), turned, up(scale), None, 8)
        np.testing.assert_allclose(down(got), want, rtol=1e-12, atol=1e-12)


def test_few_rows_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(2)
    weight = up(rng.integers(-128, 128, (512, 3000)).astype(np.int8))
    x = up(rng.standard_normal((6, 512)).astype(np.float32))
    scale = up(rng.uniform(1, 2, (8, 3000)).astype(np.float32))
    before, seen = _native._num_threads(), []
    try:
        for count in (1, 2, 7, 64):
            _native._set_num_threads(count)
            out = _native.quantized_linear(x, weight, scale, None, 8)
            seen.append(DEVICE.read(out).tobytes())
    finally:
        _native._set_num_threads(before)
    assert len(set(seen)) == 1


def test_what_does_not_fit_is_rejected() -> None:
    x, scale = up(np.ones((2, 6), np.float32)), up(np.ones((2, 3), np.float32))
    for rows, bits in ((5, 8), (6, 4), (6, 2)):
        with pytest.raises(Rejected):
            _native.quantized_linear(x, up(np.ones((rows, 3), np.int8)), scale, None, bits)
    with pytest.raises(Rejected):
        _native.quantized_linear(x, up(np.ones((6, 3), np.float32)), scale, None, 8)


@pytest.mark.parametrize("level", ["avx512", "avx512_bf16"])
def test_bfloat16_is_right_by_pairs_and_widened(level: str) -> None:
    code = """
import numpy as np
from phlox_kernels import Cpu, _native
from phlox_tensor import as_dtype
rng, device = np.random.default_rng(0), Cpu()
for m, k, n in ((1, 64, 300), (8, 130, 70), (33, 65, 40), (70, 300, 130)):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    x, y = (_native.cast(device.upload(v, as_dtype(v.dtype)), "bfloat16") for v in (a, b))
    wide = [device.read(_native.cast(v, "float64")) for v in (x, y)]
    got = device.read(_native.cast(_native.matmul(x, y), "float64"))
    want = wide[0] @ wide[1]
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=2**-16 * k)
print("right")
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PHLOX_SIMD": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "right"
