"""DLPack capsules with bfloat16, which NumPy can neither give nor take.

NumPy makes and reads the capsule of the same bits as uint16; the code of the type in it is changed
here. The structures are those of dlpack.h, of versions before and since 1.0.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, final

import numpy as np

from .._errors.classes import PhloxError, SharingError
from .dtype import DTYPES, as_dtype, bfloat16

Array = np.ndarray[Any, Any]

# Types of less than a byte or with few values, which are no types of phlox.
_NARROW: Final = {
    *("float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("int2", "int4", "uint2", "uint4"),
}
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
        return self.given.__dlpack_device__()


def array_of(given: Any, op: str) -> Array:
    """The data of an object that speaks DLPack, shared with it.

    Raises:
        SharingError: where it lends none: it lies on another device, or records gradients.
    """
    if getattr(given, "is_neg", bool)():  # PyTorch lends the bits of it, without the sign
        given = given.resolve_neg()
    lender = _Lender(given)
    try:
        array = np.from_dlpack(lender)
    except (BufferError, RuntimeError, ValueError) as error:
        if isinstance(given, np.ndarray) and given.dtype.name not in _NARROW:
            as_dtype(given.dtype, op)
        raise no_data(given, op, error) from error
    return array.view(bfloat16.numpy) if lender.is_bfloat else array


def array_in(given: Any, op: str) -> Array:
    """The data of an object that NumPy takes for an array.

    Raises:
        SharingError: where NumPy does not.
    """
    try:
        return np.asarray(given)
    except PhloxError:  # what is no array said so itself
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise no_data(given, op, error) from error


def no_data(given: Any, op: str, error: Exception) -> SharingError:
    """The error for an array that lends no data, with what to type instead."""
    return SharingError(
        op,
        "the array lends no data",
        got=f"{type(given).__name__}: {error}",
        expected="data in the memory of the host, of a type of phlox",
        hint=advice(given),
    )


def item_of(given: Any) -> Any:
    """The one element of an array of any library; None where it lends none, as keys of JAX."""
    try:
        return given.item()
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, PhloxError) and not isinstance(error, ValueError):
            raise  # a tensor that is recorded said why
        return None


def advice(given: Any) -> str:
    """What to type to take over an array that lends no data as it is."""
    named = str(getattr(given, "dtype", "")).rpartition(".")[2]
    if isinstance(given, np.ndarray) and given.dtype.name in DTYPES:
        return "px.asarray(x)"  # such as numbers of the other byte order
    if named.startswith("key"):
        return "px.asarray(jax.random.key_data(x))"
    if "complex" in named:
        return "px.fft.Spectrum(px.asarray(z.real), px.asarray(z.imag))"
    if not hasattr(given, "is_neg"):
        wider = "int8" if "int" in named else "float32"
        return (
            f'px.asarray(x.astype("{wider}"))' if named in _NARROW else "px.asarray(np.asarray(x))"
        )
    return _advice_of_pytorch(given, named)


def _advice_of_pytorch(given: Any, named: str) -> str:
    if given.is_meta:
        return 'px.asarray(torch.zeros_like(x, device="cpu")), which has numbers'
    steps = {
        ".detach()": given.requires_grad,
        ".dequantize()": given.is_quantized,
        ".to_dense()": "sparse" in str(given.layout),
        ".to_padded_tensor(0.0)": given.is_nested,
        ".float()": named in _NARROW,
        ".cpu()": given.device.type != "cpu",
    }
    return f"px.asarray(x{''.join(step for step, needed in steps.items() if needed)})"
