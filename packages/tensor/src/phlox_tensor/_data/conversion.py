"""Tensors of data of the host: numbers, lists, arrays, objects that speak DLPack."""

from __future__ import annotations

from array import array as PythonArray
from collections.abc import Sequence
from typing import Any, NoReturn, overload

import numpy as np

from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.classes import DTypeError, SharingError, WrongTypeError
from .._op.attributes import refuse_recorded
from .._op.declaration import REGISTRY
from .._values.cell import RECORDINGS
from .._values.dlpack import advice, array_in, array_of
from .._values.dtype import DTypeLike, as_dtype
from .._values.kinds import AnyKind, Bool, Float, Int
from .._values.number import Number
from .._values.tensor import Tensor
from .creation import full, with_numbers
from .spectrum import Spectrum
from .stacking import holds_tensor, stacked
from .transfer import upload

Device = Backend | str | None

# Nested lists of one kind, as deep as anybody writes them.
_Bools = bool | Sequence[bool] | Sequence[Sequence[bool]] | Sequence[Sequence[Sequence[bool]]]
_Ints = int | Sequence[int] | Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]]
_Floats = float | Sequence[float] | Sequence[Sequence[float]] | Sequence[Sequence[Sequence[float]]]


# To type checkers a bool is an int and an int a float, so the first that fits counts.
@overload
def asarray(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
    obj: _Bools, /, *, dtype: None = None, device: Device = None, copy: bool | None = None
) -> Tensor[Bool]: ...
@overload
def asarray(
    obj: _Ints, /, *, dtype: None = None, device: Device = None, copy: bool | None = None
) -> Tensor[Int]: ...
@overload
def asarray(
    obj: _Floats, /, *, dtype: None = None, device: Device = None, copy: bool | None = None
) -> Tensor[Float]: ...
@overload
def asarray(
    obj: Tensor[AnyKind], /, *, dtype: None = None, device: Device = None, copy: bool | None = None
) -> Tensor[AnyKind]: ...
@overload
def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    copy: bool | None = None,
) -> Tensor[Any]: ...
def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    copy: bool | None = None,
) -> Tensor[Any]:
    """Return a tensor of numbers, nested lists, a NumPy array, a tensor, or a DLPack object.

    Python numbers take the device's default types; arrays and tensors keep theirs. A list that
    holds tensors becomes one tensor on their device, with numbers in their type; gradients flow to
    them.

    Args:
        obj: the data.
        dtype: the element type; that of the data by default.
        device: where the tensor shall be.
        copy: False raises where the data has to be copied, True copies the elements of a tensor.
            Tensors never change, so they share by default.

    Raises:
        DTypeError: when the device lacks the element type, or the data has none; for Python floats
            that an integer ``dtype`` does not hold, such as 1.5. Arrays are cast as by ``astype``.
        ShapeError: when the items of a list differ in shape.
        ArgumentError: for an array with a mask.
        SharingError: with ``copy=False``, when the data has to be copied; it is a ValueError.

    Example:
        >>> asarray([[1.0, 2.0], [3.0, 4.0]]).shape
        (2, 2)
        >>> asarray([1, 2], dtype="uint8").tolist()
        [1, 2]
    """
    wanted = None if dtype is None else as_dtype(dtype, "asarray")
    if type(obj) is Number:
        return full((), obj, dtype=wanted, device=device)
    if isinstance(obj, Spectrum):
        hint = "z.abs(), or px.stack([z.real, z.imag])"
        expected = "real numbers"
        raise DTypeError(
            "asarray", "no tensor is complex", got="Spectrum", expected=expected, hint=hint
        )
    if RECORDINGS.count and isinstance(obj, list | tuple):
        obj = with_numbers(obj, wanted, device)
    if holds_tensor(obj):
        given = stacked(obj, "asarray")
        out = given if device is None else given.to_device(as_device(device))
        out = out if wanted is None else out.astype(wanted)
        if copy is False and out is not obj:
            refuse_sharing("asarray", f"{type(obj).__name__} with copy=False")
        return copied(out) if copy and out is obj else out
    if copy is False:
        refuse_sharing("asarray", f"{type(obj).__name__} with copy=False")
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray | np.generic):
        obj = array_of(obj, "asarray")
    elif hasattr(obj, "__array__") and not isinstance(obj, np.ndarray | np.generic):
        obj = array_in(obj, "asarray")
    elif isinstance(obj, bytes | bytearray | memoryview | PythonArray):
        obj = np.asarray(memoryview(obj))  # keeps the type of its elements, as arrays do
    return upload(obj, wanted, as_device(device))


def refuse_sharing(op: str, got: str) -> NoReturn:
    """Say that ``copy=False`` cannot be."""
    raise SharingError(
        op,
        "the data has to be copied",
        got=got,
        expected="a tensor of this type on this device",
        hint="copy=None",
    )


def copied(x: Tensor[Any]) -> Tensor[Any]:
    """The same elements in memory of their own; gradients flow through."""
    return x.logical_or(x) if x.dtype.kind == "Bool" else REGISTRY["positive"](x)


def from_numpy(array: np.ndarray[Any, Any], /, *, device: Device = None) -> Tensor[Any]:
    """Return a tensor with the data of an array (copied, so that later writes do not show).

    Example:
        >>> from_numpy(np.arange(3)).tolist()
        [0, 1, 2]
    """
    refuse_recorded(array, "array", "from_numpy")
    return upload(np.asarray(array), None, as_device(device), "from_numpy")


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Tensor[Any]:
    """Return a tensor with the data of any object that speaks DLPack.

    The data is copied, since others may write to it; a tensor of phlox is shared.

    Raises:
        SharingError: with ``copy=False``, when the data has to be copied, and where the object
            lends none; it is a BufferError.

    Example:
        >>> from_dlpack(np.arange(3)).tolist()
        [0, 1, 2]
    """
    if isinstance(x, Tensor):
        refuse_recorded(x, "x", "from_dlpack")
        return asarray(x, device=device, copy=copy)
    if copy is False:
        refuse_sharing("from_dlpack", f"{type(x).__name__} with copy=False")
    if not hasattr(x, "__dlpack__"):
        raise WrongTypeError(
            "from_dlpack",
            "the object speaks no DLPack",
            got=type(x).__name__,
            expected="an array with __dlpack__",
            hint=advice(x) if hasattr(x, "dtype") else "px.asarray(x)",
        )
    return upload(array_of(x, "from_dlpack"), None, as_device(device), "from_dlpack")
