"""Whether a driver keeps the bits of ops that share a kernel, as their text asks it to."""

from __future__ import annotations

import numpy as np

from phlox_tensor import float32

from ._elementwise import Chained, run_program
from ._runtime import GpuDevice
from .wgsl.chain import Chain, Node

_C = 12582912.0  # 1.5·2^23, by which a float is rounded to a whole number
_X = np.array([0.3, 1.7, -2.4, np.inf, np.nan], np.float32)
_NODES = (
    *(Node("add", (0, 1), "float32"), Node("subtract", (2, 1), "float32")),
    *(Node("subtract", (0, 0), "float32"), Node("multiply", (0, 0), "float32")),
    *(Node("multiply", (0, 0), "float32"), Node("subtract", (5, 6), "float32")),
)


def keeps_ops_apart(device: GpuDevice) -> bool:
    """Whether ``(x + c) - c``, ``x - x`` and ``x·x - x·x`` are rounded and keep nan."""
    outputs = (3, 4, 7)
    chained = Chained(Chain(("float32",) * 2, _NODES, outputs), (float32,) * len(outputs))
    found = run_program(device, chained, (device.upload(_X, float32), _C))
    with np.errstate(invalid="ignore"):
        itself, products = _X - _X, _X * _X - _X * _X
    wanted = ((_X + np.float32(_C)) - np.float32(_C), itself, products)
    pairs = zip(found, wanted, strict=True)
    return all(np.array_equal(device.read(x), want, equal_nan=True) for x, want in pairs)
