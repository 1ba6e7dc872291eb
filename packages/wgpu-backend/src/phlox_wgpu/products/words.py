"""Products with weights in blocks of llama.cpp, which lie on the device as words of four bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from phlox_tensor import DType
from phlox_tensor.shapes.blocks import FORMS

from .._array import GpuArray
from .._copy import concat, contiguous, copy
from .._runtime import GpuDevice
from ..wgsl import words as kernels
from .matmul import linear

if TYPE_CHECKING:
    from .._table import Entries

_MOST_FLOATS = 1 << 26  # bytes of floats that are made at once: software adapters bind twice that
Formula = Callable[..., GpuArray]


def dequantize_words(
    device: GpuDevice, formula: Formula, words: GpuArray, form: str, dtype: DType
) -> GpuArray:
    """Rows of words as numbers."""
    if not _has_kernel(words, form):
        return formula(words, form, dtype)
    words = contiguous(device, words)
    groups = _groups(words, form)
    out = device.empty((*words.shape[:-1], groups * kernels.GROUP), dtype)
    count = out.size // kernels.GROUP
    if count:
        params = (count, groups, words.shape[-1], words.offset)
        kernel = (kernels.dequantize, form, out.wgsl)
        device.launch(kernel, [words], [out], params, -(-kernels.SHARE * count // kernels.THREADS))
    return out


def words_linear(
    device: GpuDevice,
    formula: Formula,
    x: GpuArray,
    words: GpuArray,
    bias: GpuArray | None,
    form: str,
) -> GpuArray:
    """``x @ weight.mT + bias``: few rows by a kernel that reads words, more by floats of them."""
    if not _has_kernel(words, form):
        return formula(x, words, bias, form)
    rows = math.prod(x.shape[:-1])
    if rows > kernels.THICKNESS or not rows or not words.size:
        if words.shape[0] > 1 and _floats(x, words) > _MOST_FLOATS:
            return _in_parts(device, formula, x, words, bias, form)
        weight = dequantize_words(device, formula, words, form, x.dtype)
        return linear(device, x, weight.view(weight.shape[::-1], weight.strides[::-1], 0), bias)
    words, (n, wide) = contiguous(device, words), words.shape
    x = copy(device, x) if x.offset % 4 else contiguous(device, x)
    out = device.empty((*x.shape[:-1], n), x.dtype)
    inputs, count = [x, words], -(-n // kernels.ROWS)
    params = [count, n, _groups(words, form), wide, x.offset // 4, words.offset]
    if bias is not None:
        inputs.append(bias)
        params += [bias.offset, bias.strides[0]]
    kernel = (kernels.linear, form, x.wgsl, rows, bias is not None)
    device.launch(kernel, inputs, [out], params, count)
    return out


def _in_parts(
    device: GpuDevice,
    formula: Formula,
    x: GpuArray,
    words: GpuArray,
    bias: GpuArray | None,
    form: str,
) -> GpuArray:
    """Half of the results, and the others behind them."""
    n, half = words.shape[0], words.shape[0] // 2
    found = []
    for first, count in ((0, half), (half, n - half)):
        part = words.view(
            (count, words.shape[1]), words.strides, words.offset + first * words.strides[0]
        )
        more = bias
        if bias is not None:
            more = bias.view((count,), bias.strides, bias.offset + first * bias.strides[0])
        found.append(words_linear(device, formula, x, part, more, form))
    return concat(device, (*found,), len(x.shape) - 1)


def _floats(x: GpuArray, words: GpuArray) -> int:
    """The bytes that numbers of all words take."""
    return words.shape[0] * x.shape[-1] * x.item_bytes


def _has_kernel(words: GpuArray, form: str) -> bool:
    return form in kernels.FORMS and words.item_bytes == 4


def _groups(words: GpuArray, form: str) -> int:
    size, nbytes = FORMS[form]
    return 4 * words.shape[-1] // nbytes * size // kernels.GROUP


PARTIAL: Entries = {"dequantize_words": dequantize_words, "words_linear": words_linear}
