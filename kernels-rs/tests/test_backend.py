"""The `Cpu` backend object: interning, transfer, views, memory, errors, processes."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import phlox_tensor as pt
from phlox_kernels import Cpu, _native
from phlox_tensor import ArgumentError, DTypeError, as_dtype

Array = np.ndarray[Any, Any]
DEVICE = Cpu()


def up(array: Array) -> Any:
    return DEVICE.upload(array, as_dtype(array.dtype))


def down(primitive: Any) -> Array:
    return DEVICE.read(primitive)


def test_equal_settings_are_one_object() -> None:
    assert Cpu() is Cpu(float="float32", int="int64")
    assert Cpu(float="float64") is not Cpu()
    assert repr(Cpu(int="int32")) == "Cpu(int='int32')"
    with pytest.raises(DTypeError, match="wrong kind"):
        Cpu(float="int32")


def test_settings_reach_the_results() -> None:
    wide = Cpu(float="float64", int="int32")
    whole = up(np.array([1, 2]))
    assert wide.dtype_of(wide.ops.divide(whole, 2)) is pt.float64
    assert DEVICE.dtype_of(DEVICE.ops.divide(whole, 2)) is pt.float32
    assert wide.dtype_of(wide.ops.argmax(whole, 0, False)) is pt.int32
    assert DEVICE.dtype_of(DEVICE.ops.argmax(whole, 0, False)) is pt.int64


@pytest.mark.parametrize("name", sorted(d.name for d in DEVICE.dtypes))
def test_transfer_keeps_every_bit(name: str) -> None:
    dtype = as_dtype(name)
    rng = np.random.default_rng(3)
    for shape in [(), (1,), (0, 3), (5, 6), (2, 3, 4)]:
        raw = rng.integers(0, 256, (*shape, dtype.itemsize)).astype(np.uint8)
        array = (raw[..., 0] > 127) if name == "bool" else raw.view(dtype.numpy)[..., 0]
        primitive = DEVICE.upload(array, dtype)
        assert DEVICE.shape_of(primitive) == shape
        assert DEVICE.dtype_of(primitive) is dtype
        back = down(primitive)
        assert back.dtype == dtype.numpy
        assert back.tobytes() == array.tobytes()
        turned = DEVICE.upload(array.T, dtype)
        assert down(turned).tobytes() == array.T.tobytes()


def test_reading_shares_memory_and_is_read_only() -> None:
    primitive = up(np.arange(6.0).reshape(2, 3))
    array = down(primitive)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    view = down(_native.permute_dims(primitive, (1, 0)))
    assert np.shares_memory(array, view)
    del primitive, array
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(6.0).reshape(2, 3).T)


def test_views_equal_numpy_and_share_data() -> None:
    a = np.arange(120.0).reshape(4, 5, 6)
    p = up(a)
    cases = [
        (_native.permute_dims(p, (2, 0, 1)), a.transpose(2, 0, 1)),
        (_native.flip(p, (0, 2)), a[::-1, :, ::-1]),
        (_native.broadcast_to(p, (3, 4, 5, 6)), np.broadcast_to(a, (3, 4, 5, 6))),
        (_native.slice(p, (1, 4, 0), (2, 3, 3), (2, -2, 2)), a[1:4:2, 4::-2, ::2]),
        (_native.slice(p, (0, 0, 0), (4, 0, 6), (1, 1, 1)), a[:, :0]),
        (_native.reshape(p, (20, 6)), a.reshape(20, 6)),
        (_native.reshape(p, (2, 2, 5, 2, 3)), a.reshape(2, 2, 5, 2, 3)),
    ]
    for got, expected in cases:
        np.testing.assert_array_equal(down(got), expected)
        assert expected.size == 0 or np.shares_memory(down(got), down(p))


def test_reshape_copies_only_where_it_must() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    turned = _native.permute_dims(up(a), (1, 0, 2))
    np.testing.assert_array_equal(
        down(_native.reshape(turned, (6, 4))), a.transpose(1, 0, 2).reshape(6, 4)
    )
    split = _native.reshape(turned, (3, 2, 2, 2))
    assert np.shares_memory(down(split), down(turned))
    np.testing.assert_array_equal(down(split), a.transpose(1, 0, 2).reshape(3, 2, 2, 2))


def test_wrong_views_are_value_errors() -> None:
    p = up(np.zeros((2, 3)))
    calls: list[Callable[[], Any]] = [
        lambda: _native.reshape(p, (4,)),
        lambda: _native.permute_dims(p, (0, 0)),
        lambda: _native.slice(p, (0, 2), (2, 2), (1, 1)),
        lambda: _native.slice(p, (0, 2), (2, 4), (1, -1)),
        lambda: _native.flip(p, (2,)),
        lambda: _native.full((1,) * 17, 0, "float32"),
    ]
    for call in calls:
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(ArgumentError, match="byte count"):
        _native.RawTensor.from_buffer(b"1234567", (2,), "float32")


def test_memory_is_counted_and_given_back() -> None:
    gc.collect()
    before = DEVICE.memory().current
    p = _native.full((1 << 20,), 1.0, "float32")
    held = DEVICE.memory()
    assert held.current - before >= 4 << 20
    assert held.peak >= held.current
    del p
    assert DEVICE.memory().current - before < 1 << 20


def test_too_much_memory_is_an_error() -> None:
    with pytest.raises(MemoryError):
        _native.full((1 << 40, 1 << 10), 0, "float64")
    wide = _native.broadcast_to(up(np.zeros(1)), (1 << 55,))
    with pytest.raises(MemoryError):
        _native.add(wide, 1)


def test_python_threads_may_share_tensors() -> None:
    x = up(np.linspace(-3, 3, 200_000).astype(np.float32))
    expected = down(_native.tanh(x)).tobytes()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if down(_native.tanh(x)).tobytes() != expected:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _child(queue: Any) -> None:
    x = up(np.ones(200_000, np.float32))
    queue.put(float(down(_native.add(x, x)).sum()))


def test_a_forked_child_has_working_kernels() -> None:
    _native.exp(up(np.ones(200_000, np.float32)))  # the pool runs before the fork
    context = multiprocessing.get_context("fork")
    queue: Any = context.Queue()
    process = context.Process(target=_child, args=(queue,))
    process.start()
    assert queue.get(timeout=20) == 400_000
    process.join(timeout=20)
    assert process.exitcode == 0


def test_narrow_bits_pass_through_numpy() -> None:
    x = np.array([1.5, -2.25], ml_dtypes.bfloat16)
    assert np.asarray(up(x)).dtype == np.uint16
    half = np.array([1.5], np.float16)
    assert np.asarray(up(half)).dtype == np.float16


def test_parts_along_an_axis_are_views() -> None:
    x = up(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    whole = down(x)
    for parts, expected in [
        (DEVICE.ops.chunk(x, 2, 1), [whole[:, :2], whole[:, 2:]]),
        (DEVICE.ops.split(x, (1, 0, 3), 2), np.split(whole, [1, 1], 2)),
        (DEVICE.ops.unstack(x, 1), list(np.moveaxis(whole, 1, 0))),
    ]:
        assert len(parts) == len(expected)
        for part, wanted in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(down(part), wanted, strict=True)
            assert np.shares_memory(down(part), whole) or not wanted.size


_RESIDENT = """
import gc
import numpy as np
from phlox_kernels import Cpu, _native
from phlox_tensor import float32

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

_native._set_num_threads(3)
device = Cpu()
ones = np.ones(64 << 20 >> 2, np.float32)
few = np.ones(40 << 10 >> 2, np.float32)
kept = device.upload(few, float32)
device.trim()
empty = resident()
large = [device.upload(ones, float32) for _ in range(2)]  # 128 MiB in mappings of their own
small = [device.upload(few, float32) for _ in range(800)]  # 32 MiB from the C library
full = resident()
del large, small
gc.collect()
freed = resident()
device.trim()
trimmed = resident()
assert np.array_equal(device.read(kept), few)
print(full - empty, freed - empty, trimmed - empty, _native._memory()[2])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")
def test_trim_gives_freed_memory_back() -> None:
    done = subprocess.run([sys.executable, "-c", _RESIDENT], check=True, capture_output=True)
    full, freed, trimmed, cached = (int(number) / (1 << 20) for number in done.stdout.split())
    assert full > 150, f"{full} MiB in use"
    assert freed > 150, f"{freed} MiB kept for reuse"
    assert trimmed < 8, f"{trimmed} MiB after trim"
    assert cached == 0
