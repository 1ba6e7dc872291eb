"""Tensor descriptors: what a file says about a tensor, checked before anything is read."""

from __future__ import annotations

import math
import zlib
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DType, as_dtype

from ._errors import Malformed, shown
from ._limits import MAX_RANK
from ._precision import PrecisionSettings, byte_pieces, cast_array, little_endian
from ._tree import TensorEntry, TensorLike

# The numbers are the format's; new dtypes go to the end.
_IN_ORDER: Final = (
    "bool float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)
DTYPE_CODES: Final = {name: code for code, name in enumerate(_IN_ORDER.split())}
DTYPES: Final = {name: as_dtype(name) for name in DTYPE_CODES}

_MAX_BYTES: Final = 2**63 - 1


class Descriptor(NamedTuple):
    """The dtype and shape of a stored tensor, and its size in bytes."""

    dtype: DType
    shape: tuple[int, ...]
    nbytes: int


def describe(tensor: TensorEntry) -> Descriptor:
    """Return how a tensor is stored."""
    return Descriptor(tensor.dtype, tensor.shape, math.prod(tensor.shape) * tensor.dtype.itemsize)


def descriptor(dtype: object, shape: object) -> Descriptor:
    """Check the dtype name and shape that a file states; Python ints cannot overflow."""
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise Malformed("unknown dtype in the file", got=shown(dtype), expected=", ".join(DTYPES))
    if not isinstance(shape, list) or len(shape) > MAX_RANK:
        raise Malformed(
            "a shape in the file is not valid", got=shown(shape), expected=f"≤ {MAX_RANK} sizes"
        )
    found = DTYPES[dtype]
    most = found.itemsize
    for size in shape:
        if type(size) is not int or size < 0:
            raise Malformed(
                "a shape in the file is not valid", got=shown(shape), expected="sizes ≥ 0"
            )
        # Zero sizes count as one: NumPy refuses shapes whose other sizes overflow.
        most *= size or 1
    if most > _MAX_BYTES:
        raise Malformed("a shape in the file is impossibly large", got=shown(shape))
    return Descriptor(found, tuple(shape), 0 if 0 in shape else most)


def stored(tensor: TensorLike, where: str, precision: PrecisionSettings) -> TensorEntry:
    """Return a tensor as a file holds it: read once when written, cast piece by piece."""
    target = precision.target(tensor.dtype, where)
    loose = precision.overflow
    return TensorEntry(
        tensor.shape,
        target,
        lambda: cast_array(tensor.numpy(), target, where, overflow=loose),
        lambda: byte_pieces(tensor.numpy(), target, where, overflow=loose),
    )


def as_array(raw: memoryview, what: Descriptor) -> NDArray[Any]:
    """Return stored bytes as an array that shares them.

    Raises:
        Malformed: a bool that is neither 0 nor 1.
    """
    flat = little_endian(np.frombuffer(raw, np.uint8).view(what.dtype.numpy))
    if what.dtype.kind == "Bool" and flat.size and int(flat.view(np.uint8).max()) > 1:
        raise Malformed("a bool tensor holds bytes other than 0 and 1")
    array = flat.view(what.dtype.numpy).reshape(what.shape)
    if not array.flags.aligned:  # other programs do not always align elements
        array = array.copy()
    array.flags.writeable = False
    return array


def check_sum(raw: memoryview, expected: int) -> None:
    """Raise Malformed when `raw` is not what was written."""
    if zlib.crc32(raw) != expected:
        raise Malformed("damaged tensor data", got="a wrong checksum", hint="copy the file again")
