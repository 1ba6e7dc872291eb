"""Random numbers: Philox 4x32-10 (Salmon et al., SC 2011), the same bits as on every backend."""

from __future__ import annotations

from typing import Any

from phlox_tensor import DType, uint32

from ._array import WGSL_TYPES, GpuArray
from ._runtime import GpuDevice
from ._table import Entries
from .wgsl import random as kernels
from .wgsl.walk import WORKGROUP

_MASK = 0xFFFFFFFF


def _of_bounds(low: float, high: float) -> tuple[float, float]:
    return low, high - low


def _of_moments(mean: float, std: float) -> tuple[float, float]:
    return mean, std


# What kernels take of the two parameters of a law.
_AFFINE = {"random_normal": _of_moments, "random_uniform": _of_bounds}


def numbers_of(
    op: str, first: float, second: float, key: int, counter: int
) -> tuple[float | int, ...]:
    """What kernels take of the parameters of a law, key and counter: ``kernels.NUMBERS``."""
    return (*_AFFINE[op](first, second), *_words(key, counter), 0)


def _words(key: int, counter: int) -> tuple[int, int, int, int]:
    """Two numbers of 64 bits as words, the low ones first."""
    return key & _MASK, (key >> 32) & _MASK, counter & _MASK, (counter >> 32) & _MASK


def _fill(
    device: GpuDevice,
    kernel: tuple[Any, ...],
    out: GpuArray,
    stream: tuple[int, int],
    bounds: tuple[float, float],
) -> GpuArray:
    """Launch a thread per block of four words; the last may write past the array, in its buffer."""
    blocks = -(-out.size // 4)
    device.launch(
        kernel, [], [out], (blocks, *_words(*stream), 0, *bounds), -(-blocks // WORKGROUP)
    )
    return out


def random_bits(
    device: GpuDevice, count: int, key: int, counter: int, dtype: DType = uint32
) -> GpuArray:
    """The words of the stream of `key` from block `counter` on."""
    out = device.empty((count,), dtype)
    return _fill(device, (kernels.bits, out.wgsl), out, (key, counter), (0.0, 0.0))


def random_uniform(
    device: GpuDevice,
    shape: tuple[int, ...],
    low: float,
    high: float,
    dtype: DType,
    key: int,
    counter: int,
) -> GpuArray:
    """Uniforms: low + u * (high - low), with u of 24 bits (float16: 11)."""
    out = device.empty(shape, dtype)
    kernel = kernels.uniform, WGSL_TYPES[dtype.name]
    return _fill(device, kernel, out, (key, counter), (low, high - low))


def random_normal(
    device: GpuDevice,
    shape: tuple[int, ...],
    mean: float,
    std: float,
    dtype: DType,
    key: int,
    counter: int,
) -> GpuArray:
    """Normals: mean + std * z by Box and Muller, pairs of words to pairs of normals."""
    out = device.empty(shape, dtype)
    kernel = kernels.normal, WGSL_TYPES[dtype.name]
    return _fill(device, kernel, out, (key, counter), (mean, std))


ENTRIES: Entries = {
    "random_bits": random_bits,
    "random_normal": random_normal,
    "random_uniform": random_uniform,
}
