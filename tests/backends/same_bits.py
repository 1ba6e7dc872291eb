"""A program: prints a digest of the result of every op, over shapes that threads share out.

`PHLOX_NUM_THREADS` decides on how many; tests/backends/test_threads.py compares the digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import phlox as px
from phlox import Cpu, Tensor
from phlox_tensor._call.dispatch import call_by_signature
from phlox_tensor.testing import LAYOUTS
from phlox_tensor.testing._conformance import _place
from tests.backends import large

DEVICE = Cpu()
# Around the sizes at which kernels cut their work.
LIMITS = (64, 1024, 4096, 16_384, 65_536, 131_072)
SIZES = sorted({limit + off for limit in LIMITS for off in (-1, 0, 1, 17)})


def digest(out: Any) -> str:
    results = out if isinstance(out, tuple) else (out,)
    total = hashlib.sha256()
    for tensor in results:
        total.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return total.hexdigest()[:16]


def every_op() -> Iterator[tuple[str, Any]]:
    for op in large.ops_of(DEVICE):
        calls = list(large.large_calls(op, DEVICE, most=2))
        # Two calls, one in each layout; an op with one case has it in both.
        for call, layout in zip(calls * 2, ("contiguous", "transposed"), strict=False):
            operands = tuple(_place(o, DEVICE, LAYOUTS[layout]) for o in call.sample.operands)
            out = call_by_signature(op, operands, dict(call.sample.attributes))
            yield f"{call} {layout}", out


def around_limits() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(11)
    for size in SIZES:
        x = px.asarray(rng.normal(size=size).astype(np.float32), device=DEVICE)
        yield from lines(x, f"({size},)")
        columns = int(rng.integers(2, 40))
        wide = px.asarray(rng.normal(size=(columns, size)).astype(np.float32), device=DEVICE)
        yield from lines(wide, wide.shape)
        yield from lines(wide.T, f"{wide.shape} turned")
        yield f"matmul {wide.shape}", wide @ wide.T
    for _ in range(20):
        m, k, n = (int(v) for v in rng.integers(1, 300, 3))
        a = px.asarray(rng.normal(size=(m, k)).astype(np.float32), device=DEVICE)
        b = px.asarray(rng.normal(size=(k, n)).astype(np.float32), device=DEVICE)
        yield f"matmul {m} {k} {n}", a @ b


def lines(x: Tensor[Any], shape: Any) -> Iterator[tuple[str, Any]]:
    for axis in range(len(x.shape)):
        for function in (px.sum, px.mean, px.max, px.argmax, px.cumsum, px.softmax, px.var):
            yield f"{function.__name__} {shape} {axis}", function(x, axis=axis)
    yield f"sum {shape}", x.sum()
    yield f"tanh {shape}", px.tanh(x)
    yield f"add {shape}", x + x[..., ::-1]


def main() -> None:
    large.BYTES = 1 << 20
    for name, out in (*every_op(), *around_limits()):
        print(digest(out), name)


if __name__ == "__main__":
    main()
