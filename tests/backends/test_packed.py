"""Packed weights are kept beside the weights: counted, freed with them, never stale."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

from phlox_kernels import Cpu, _native
from phlox_tensor import float32

ROOT = Path(__file__).resolve().parents[2]
DEVICE = Cpu()
ROWS, DEEP, COLUMNS = 100, 512, 256
SIZE = 4 * DEEP * COLUMNS


def upload(array: np.ndarray) -> _native.RawTensor:
    return DEVICE.upload(np.ascontiguousarray(array, np.float32), float32)


def by_columns(array: np.ndarray) -> _native.RawTensor:
    """The matrix stored by columns, as PyTorch's `Linear` stores its weights: it is packed."""
    return _native.permute_dims(upload(array.T), (1, 0))


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, DEEP)), rng.normal(size=(DEEP, COLUMNS))


def product(x: _native.RawTensor, w: _native.RawTensor) -> np.ndarray:
    return np.array(_native.matmul(x, w))


def test_packed_weights_are_counted_and_freed_with_the_weights() -> None:
    a, b = operands()
    x, w = upload(a), by_columns(b)
    gc.collect()
    empty = DEVICE.memory().current
    first = product(x, w)
    assert DEVICE.memory().current == empty, "one use keeps nothing"
    second = product(x, w)
    kept = DEVICE.memory().current - empty
    assert SIZE <= kept <= 1.25 * SIZE
    third = product(x, w)
    assert DEVICE.memory().current - empty == kept
    assert first.tobytes() == second.tobytes() == third.tobytes()
    del w
    gc.collect()
    assert DEVICE.memory().current <= empty - SIZE


def test_pieces_of_data_that_are_read_once_are_not_kept() -> None:
    rng = np.random.default_rng(1)
    x, data = upload(rng.normal(size=(16, 128))), upload(rng.normal(size=(128 * 300, 128)))
    piece = _native.permute_dims(_native.slice(data, (0, 0), (128, 128), (1, 1)), (1, 0))
    gc.collect()
    before = DEVICE.memory().current
    for _ in range(2):
        for first in range(0, 128 * 300, 128):
            part = _native.slice(data, (first, 0), (128, 128), (1, 1))
            product(x, _native.permute_dims(part, (1, 0)))
            del part
    gc.collect()
    assert DEVICE.memory().current == before
    # One of them that is read again and again is.
    for _ in range(3):
        product(x, piece)
    assert DEVICE.memory().current > before


def test_a_training_loop_keeps_nothing_and_reads_new_weights() -> None:
    a, b = operands()
    x, g = upload(a), upload(np.ones((COLUMNS, DEEP)))
    stored, reference = upload(b.T), b.T.astype(np.float32)
    peak = DEVICE.memory().current
    for step in range(8):
        uses = 3 if step % 2 else 1
        for _ in range(uses):
            got = product(x, _native.permute_dims(stored, (1, 0)))
            np.testing.assert_allclose(got, a @ reference.T, rtol=2e-4, atol=2e-3)
        (stored,) = _native.sgd_step((stored,), (g,), (), 0.25, 0.0, 0.0, 0.0, False)
        reference = reference - np.float32(0.25)
        gc.collect()
        assert DEVICE.memory().current <= peak


def test_two_python_threads_share_packed_weights() -> None:
    a, b = operands()
    x, w = upload(a), by_columns(b)
    expected = product(upload(a), by_columns(b)).tobytes()
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(i for i in range(50) if product(x, w).tobytes() != expected)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import os, sys
from tests.backends.test_packed import by_columns, operands, product, upload
a, b = operands()
x, w = upload(a), by_columns(b)
expected = [product(x, w).tobytes() for _ in range(3)][-1]
child = os.fork()
if child == 0:
    other = by_columns(b)
    same = all(product(x, each).tobytes() == expected for each in (w, other, w, other, other))
    del w, other
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
same = product(x, w).tobytes() == expected
sys.exit(os.waitstatus_to_exitcode(status) + (0 if same else 2))
"""

LIMIT = """
from tests.backends.test_packed import DEVICE, by_columns, operands, product, upload
a, b = operands()
x, w = upload(a), by_columns(b)
before = DEVICE.memory().current
for _ in range(3):
    product(x, w)
print(DEVICE.memory().current - before)
"""


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


def test_a_forked_child_uses_and_frees_packed_weights() -> None:
    run(FORK)


def test_a_limit_of_bytes_holds() -> None:
    assert int(run(LIMIT)) >= SIZE
    assert int(run(LIMIT, PHLOX_PACKED_BYTES="0")) == 0
