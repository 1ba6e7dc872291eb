"""Random numbers by counter."""

from __future__ import annotations

from .._op import case
from ..reference import random as ref
from ._families import random

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
random_normal = random(
    "random_normal",
    f"; shape: Shape, mean: float, std: float, dtype: DType, {_STREAM} -> Float",
    numpy=ref.normal,
    ulp=16,
    atol=64,
    cases=(
        case(shape=(5, 3), mean=1.0, std=2.0, key=5, counter=0),
        case(shape=(0,), mean=0.0, std=1.0, key=5, counter=0),
    ),
    internal=True,
    doc="Normal numbers by Box and Muller from the Philox stream; ``pt.random.normal`` is the "
    "usual spelling.",
)
random_uniform = random(
    "random_uniform",
    f"; shape: Shape, low: float, high: float, dtype: DType, {_STREAM} -> Float",
    numpy=ref.uniform,
    cases=(
        case(shape=(5, 3), low=0.0, high=1.0, key=5, counter=9),
        case(shape=(7,), low=-2.0, high=2.0, key=2**40, counter=2**33),
    ),
    internal=True,
    doc="Uniform numbers in [low, high) from the Philox stream, the same on every backend; "
    "``pt.random.uniform`` is the usual spelling.",
)
