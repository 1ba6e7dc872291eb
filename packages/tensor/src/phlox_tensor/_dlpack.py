"""DLPack capsules with bfloat16, which NumPy can neither give nor take.

NumPy makes and reads the capsule of the same bits as uint16; the code of the type in it is changed
here. The structures are those of dlpack.h, of versions before and since 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, final

import numpy as np

from ._dtype import bfloat16
from ._errors import SharingError

Array = np.ndarray[Any, Any]

_UINT: Final = 1
_BFLOAT: Final = 4


@final
class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


@final
class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


@final
class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor),)


@final
class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_STRUCTURES: Final = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_is_capsule: Final = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer: Final = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _relabelled(capsule: Any, old: int, new: int) -> bool:
    """Change the type of 16 bits in a capsule that nobody has taken yet, if it is ``old``."""
    for name, structure in _STRUCTURES.items():
        if _is_capsule(capsule, name):
            dtype = structure.from_address(_pointer(capsule, name)).tensor.dtype
            if (dtype.code, dtype.bits) == (old, 16):
                dtype.code = new
                return True
    return False


def capsule_of(array: Array, **options: Any) -> Any:
    """The capsule of an array of bfloat16."""
    capsule = array.view(np.uint16).__dlpack__(**options)
    _relabelled(capsule, _UINT, _BFLOAT)
    return capsule


@final
class _Lender:
    """What NumPy asks in place of a foreign array; says afterwards whether it was bfloat16."""

    def __init__(self, given: Any) -> None:
        self.given, self.is_bfloat = given, False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.given.__dlpack__(**options)
        self.is_bfloat = _relabelled(capsule, _BFLOAT, _UINT)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        place: tuple[int, int] = self.given.__dlpack_device__()
        return place


def array_of(given: Any, op: str) -> Array:
    """The data of an object that speaks DLPack, shared with it.

    Raises:
        SharingError: where it lends none: it lies on another device, or records gradients.
    """
    lender = _Lender(given)
    try:
        array = np.from_dlpack(lender)
    except (BufferError, RuntimeError, ValueError) as error:
        raise SharingError(
            op,
            "the array lends no data",
            got=f"{type(given).__name__}: {error}",
            expected="data in the memory of the host, of a type of phlox",
            hint="px.asarray(x.detach().cpu()), of a tensor of PyTorch",
        ) from error
    return array.view(bfloat16.numpy) if lender.is_bfloat else array
