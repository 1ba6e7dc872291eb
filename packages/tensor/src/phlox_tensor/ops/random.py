"""Random numbers by counter."""

from __future__ import annotations

from math import pi, prod
from typing import Any

from .._device.backend import Backend
from .._op.records import case
from .._values.dtype import DType, float32, float64, uint32
from .._values.tensor import Tensor
from ..reference import random as ref
from . import movement
from ._families import random

# Bits of a word that a type cannot hold below 1.
_DROPPED = {"bfloat16": 24, "float16": 21, "float32": 8}
_STREAM = "key: int, counter: int"
random_bits = random(
    "random_bits",
    f"; count: int, {_STREAM}, dtype: DType = 'uint32' -> Int",
    numpy=lambda count, key, counter, dtype: ref.bits(count, key, counter).astype(dtype.numpy),
    cases=(
        case(count=7, key=0x1234567890ABCDEF, counter=3),
        case(count=6, key=1, counter=2**32 - 1),
        case(count=0, key=1, counter=0),
    ),
    internal=True,
    doc="Words of the Philox 4x32-10 stream of ``key`` from block ``counter`` on, as uint32. "
    "Salmon et al., SC 2011.",
)


@random.formula(
    f"; shape: Shape, mean: float, std: float, dtype: DType, {_STREAM} -> Float",
    numpy=ref.normal,
    ulp=16,
    atol=64,
    cases=(
        case(shape=(5, 3), mean=1.0, std=2.0, key=5, counter=0),
        case(shape=(0,), mean=0.0, std=1.0, key=5, counter=0),
    ),
    internal=True,
    source=True,
    doc="Normal numbers by Box and Muller from the Philox stream; ``pt.random.normal`` is the "
    "usual spelling.",
)
def random_normal(
    device: Backend,
    shape: tuple[int, ...],
    mean: float,
    std: float,
    dtype: DType,
    key: int,
    counter: int,
) -> Tensor:
    """Box and Muller, 1958, on pairs of uniforms."""
    count = prod(shape)
    pairs = (count + 1) // 2
    wide = float64 if dtype is float64 else float32
    unit = _unit(device, pairs * 2, wide, key, counter)
    radius = ((1 - unit[0::2]).log() * -2).sqrt()
    angle = unit[1::2] * (2 * pi)
    ends = [(radius * turn).reshape((pairs, 1)) for turn in (angle.cos(), angle.sin())]
    z = movement.concat(ends, axis=1).reshape((pairs * 2,))[:count]
    return (z * std + mean).astype(dtype).reshape(shape)


def _unit(device: Backend, count: int, dtype: DType, key: int, counter: int) -> Tensor:
    """Uniforms in [0, 1) that the type holds exactly, in float32 for narrow types."""
    wide = dtype if dtype.itemsize >= float32.itemsize else float32
    words = 2 if wide is float64 else 1
    drawn: Any = Tensor(device.ops.random_bits(count * words, key, counter, uint32), device)
    if wide is float64:
        high, low = (drawn >> 5)[0::2].astype(wide), (drawn >> 6)[1::2].astype(wide)
        return (high * 2.0**26 + low) * 2.0**-53
    drop = _DROPPED[dtype.name]
    return (drawn >> drop).astype(wide) * 2.0 ** (drop - 32)


@random.formula(
    f"; shape: Shape, low: float, high: float, dtype: DType, {_STREAM} -> Float",
    numpy=ref.uniform,
    cases=(
        case(shape=(5, 3), low=0.0, high=1.0, key=5, counter=9),
        case(shape=(7,), low=-2.0, high=2.0, key=2**40, counter=2**33),
    ),
    internal=True,
    source=True,
    doc="Uniform numbers in [low, high) from the Philox stream, the same on every backend; "
    "``pt.random.uniform`` is the usual spelling.",
)
def random_uniform(
    device: Backend,
    shape: tuple[int, ...],
    low: float,
    high: float,
    dtype: DType,
    key: int,
    counter: int,
) -> Tensor:
    unit = _unit(device, prod(shape), dtype, key, counter)
    return (unit * (high - low) + low).astype(dtype).reshape(shape)
