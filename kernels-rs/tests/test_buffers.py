"""The buffer protocol answers every kind of request as it was asked, or raises BufferError."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import float32

# Requests of the C interface: https://docs.python.org/3/c-api/buffer.html#buffer-request-types
SIMPLE, WRITABLE, FORMAT, ND = 0, 1, 4, 8
STRIDES = 0x10 | ND
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES


class View(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


GET = ctypes.pythonapi.PyObject_GetBuffer
GET.argtypes = (ctypes.py_object, ctypes.POINTER(View), ctypes.c_int)
RELEASE = ctypes.pythonapi.PyBuffer_Release
RELEASE.argtypes = (ctypes.POINTER(View),)
RELEASE.restype = None


def upload(*shape: int) -> Any:
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    return Cpu().upload(array, float32)


def request(x: Any, flags: int) -> dict[str, Any]:
    view = View()
    GET(x, ctypes.byref(view), flags)
    rank = view.ndim
    found = {
        "len": view.len,
        "ndim": rank,
        "format": view.format,
        "shape": view.shape[:rank] if view.shape else None,
        "strides": view.strides[:rank] if view.strides else None,
        "readonly": view.readonly,
    }
    RELEASE(ctypes.byref(view))
    return found


ROWS = upload(2, 3)
COLUMNS = _native.permute_dims(upload(3, 2), (1, 0))
GAPS = _native.slice(upload(2, 6), (0, 0), (2, 3), (1, 2))
BACKWARD = _native.flip(upload(3), (0,))
REPEATED = _native.broadcast_to(upload(1), (4,))
LINE = upload(4)
EMPTY = _native.slice(upload(2, 6), (0, 0), (2, 0), (1, 2))

ANSWERED = {
    "rows": (ROWS, {SIMPLE, ND, STRIDES, C_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT}),
    "columns": (COLUMNS, {STRIDES, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT}),
    "gaps": (GAPS, {STRIDES, INDIRECT}),
    "backward": (BACKWARD, {STRIDES, INDIRECT}),
    "repeated": (REPEATED, {STRIDES, INDIRECT}),
    "line": (LINE, {SIMPLE, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT}),
    "empty": (EMPTY, {SIMPLE, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT}),
}
REQUESTS = (SIMPLE, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT)


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.parametrize("flags", REQUESTS, ids=hex)
def test_a_request_is_answered_or_refused_as_the_layout_is(name: str, flags: int) -> None:
    x, answered = ANSWERED[name]
    if flags not in answered:
        with pytest.raises(BufferError, match=r"\[buffer\]"):
            request(x, flags)
        return
    found = request(x, flags)
    assert (found["len"], found["readonly"]) == (4 * math.prod(x.shape), 1)
    assert found["shape"] == (list(x.shape) if flags & ND else None)
    steps = [4 * step for step in x.strides]
    assert found["strides"] == (steps if flags & STRIDES == STRIDES else None)
    assert found["ndim"] == (len(x.shape) if flags & ND else 1)


@pytest.mark.parametrize("flags", REQUESTS, ids=hex)
def test_write_access_is_refused(flags: int) -> None:
    with pytest.raises(BufferError, match="read-only"):
        request(LINE, flags | WRITABLE)


def test_a_format_comes_with_a_shape_alone() -> None:
    assert request(ROWS, ND | FORMAT)["format"] == b"f"
    assert request(ROWS, ND)["format"] is None
    with pytest.raises(BufferError, match="format"):
        request(ROWS, FORMAT)


def test_readers_of_python_see_the_values_of_any_layout() -> None:
    for x, _ in ANSWERED.values():
        expected = np.asarray(_native.contiguous(x))
        np.testing.assert_array_equal(np.asarray(x), expected)
        assert memoryview(x).tolist() == expected.tolist()
    assert bytes(ROWS) == np.arange(6, dtype=np.float32).tobytes()
    with pytest.raises(BufferError):
        _native.RawTensor.from_buffer(GAPS, (2, 3), "float32")
