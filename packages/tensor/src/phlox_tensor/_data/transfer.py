"""From device to device, and from host data to a device."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._call.operands import check_shape, lift, require_dtype
from .._device.backend import Backend, is_inside
from .._device.finding import as_device
from .._errors.called import rename
from .._errors.classes import (
    ArgumentError,
    DTypeError,
    GradientError,
    PhloxError,
    SharingError,
    WrongTypeError,
)
from .._op.attributes import is_recorded
from .._values.dlpack import no_data
from .._values.dtype import DType, as_dtype, iinfo
from .._values.tensor import Tensor
from ..reference.unary import cast

Array = np.ndarray[Any, Any]
_REAL: Final = frozenset({bool, float, int})


def to_device(tensor: Tensor[Any], device: Backend | str) -> Tensor[Any]:
    """Return ``tensor`` on ``device``.

    To a decorator over its device the tensor is lifted as a constant, to a backend inside its
    device it is lowered; anything else goes through the host.

    Raises:
        DTypeError: when the target lacks the element type, or integers do not fit.
        GradientError: when a gradient would flow to a tensor that goes to another base device, or
            to the device inside of the one that recorded it: its history stays behind.
    """
    target = as_device(device)
    if target is tensor.device:
        return tensor
    if is_inside(tensor.device, target):
        return lift(tensor, target)
    if is_inside(target, tensor.device):
        while tensor.device is not target:
            if tensor.requires_grad and tensor.device.is_followed(tensor.primitive):
                raise _history(tensor, target, "x.detach().to_device(device), or x.inner()")
            tensor = tensor.inner()
        return tensor
    if is_recorded(tensor):
        hint = "x.detach().to_device(device), and require_grad() there"
        raise _history(tensor, target, hint)
    base = target.base
    dtype = tensor.dtype
    array = tensor.numpy() if base.has_data else np.broadcast_to(dtype.numpy.type(), tensor.shape)
    if dtype.kind == "Int" and dtype not in base.dtypes:
        dtype = base.default_int
        array = fitted(array, dtype, "to_device")
    require_dtype(dtype, base, "to_device")
    return lift(Tensor(base.upload(array, dtype), base), target)


def _history(tensor: Tensor[Any], target: Backend, hint: str) -> GradientError:
    return GradientError(
        "to_device",
        "the history of a tensor does not follow it",
        got=f"a recorded tensor on {tensor.device!r}",
        expected=f"a constant, to be moved to {target!r}",
        hint=hint,
    )


def fitted(array: Array, dtype: DType, op: str) -> Array:
    """Return integers in the type ``dtype``, when all fit."""
    if array.size:
        low, high = int(array.min()), int(array.max())
        limits = iinfo(dtype)
        if low < limits.min or high > limits.max:
            raise DTypeError(
                op,
                "integers do not fit the device's type",
                got=f"{low}..{high}",
                expected=f"{dtype}: {limits.min}..{limits.max}",
            )
    return array.astype(dtype.numpy)


def upload(data: Any, dtype: DType | None, device: Backend, op: str = "asarray") -> Tensor[Any]:
    """Copy host data to a device.

    Python numbers take the device's default types, arrays keep their own. Integer arrays whose
    type the device lacks are converted when all values fit.

    Raises:
        DTypeError: when the device lacks the element type, or an integer type shall hold Python
            floats that it does not.
        ArgumentError: for an array with a mask.
    """
    base = device.base
    own = isinstance(data, np.ndarray | np.generic)
    if isinstance(data, np.ndarray) and type(data) is not np.ndarray:
        _refuse_mask(data, op)
    array = np.asarray(data) if own else from_python(data, op, dtype)
    found = as_dtype(array.dtype, op)
    if dtype is None:
        dtype = found
        if not own or (found.kind == "Int" and found not in base.dtypes):
            defaults = {"Float": base.default_float, "Int": base.default_int}
            dtype = defaults.get(found.kind, found)
    require_dtype(dtype, base, op)
    check_shape(array.shape, base, op)
    if found is not dtype:
        if not own and found.kind == "Float" and dtype.kind == "Int":
            _refuse_fractions(array, dtype, op)
        if found.kind == dtype.kind == "Int":
            array = fitted(array, dtype, op)
        else:
            array = cast(array, dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return lift(Tensor(base.upload(array, dtype), base), device)


def _refuse_fractions(array: Array, dtype: DType, op: str) -> None:
    """Refuse Python floats that an integer type would cut; arrays are cast as ``astype`` does."""
    limits = iinfo(dtype)
    # The end is exact as a float, the largest number of the type may not be.
    held = (array == np.trunc(array)) & (array >= float(limits.min)) & (array < limits.max + 1.0)
    if not held.all():
        raise DTypeError(
            op,
            "numbers that the type does not hold",
            got=f"{array[~held].flat[0]} as {dtype}",
            expected=f"whole numbers, {limits.min} to {limits.max}",
            hint=f"px.asarray(x).astype({dtype.name!r}), which cuts fractions off",
        )


def _refuse_mask(data: Array, op: str) -> None:
    # Only arrays of a class of their own come here: naming numpy.ma imports it.
    if isinstance(data, np.ma.MaskedArray):
        raise ArgumentError(
            op,
            "the mask of the array would be lost",
            got=f"{int(np.sum(data.mask))} masked elements",
            expected="an array without a mask",
            hint="px.asarray(x.filled(0.0)), and px.asarray(~x.mask) beside it",
        )


def from_python(data: Any, op: str, dtype: DType | None = None) -> Array:
    """Return nested lists of numbers, or what NumPy takes, as an array.

    Where ``dtype`` is a Float type, integers may be rounded to it; else none is.
    """
    try:
        array = np.asarray(data)
    except WrongTypeError as error:  # of what is no operand
        rename(error, op)
        raise
    except ValueError as error:
        raise DTypeError(op, "ragged or mixed data", got=type(data).__name__) from error
    except (RuntimeError, TypeError) as error:
        if isinstance(error, PhloxError):
            raise
        if not isinstance(data, list | tuple):
            raise no_data(data, op, error) from error
        raise SharingError(
            op,
            f"a part of the {type(data).__name__} lends no data",
            got=str(error),
            expected="numbers, or arrays that NumPy reads",
            hint="px.stack([px.asarray(part) for part in x])",
        ) from error
    if array.size == 0 and array.dtype == np.float64:
        return array
    if array.dtype == object:
        if dtype is None or dtype.kind != "Float" or not all(type(n) in _REAL for n in array.flat):
            raise _without_type(data, op)
        try:
            return array.astype(np.float64)  # of integers beyond 64 bits
        except OverflowError:
            raise _without_type(data, op) from None
    if (dtype is None or dtype.kind != "Float") and _rounds_integers(data, array):
        try:
            return np.asarray(data, dtype=np.uint64)
        except OverflowError:
            raise _without_type(data, op) from None
    return array


def _without_type(data: Any, op: str) -> DTypeError:
    return DTypeError(op, "no element type fits the data", got=type(data).__name__)


def _rounds_integers(data: Any, array: Array) -> bool:
    """Whether NumPy made floats of integers alone, since no type holds the first and the last."""
    if array.dtype != np.float64 or isinstance(data, np.ndarray | float) or not array.size:
        return False
    if not (np.abs(array) >= 2.0**63).any():
        return False
    return all(isinstance(each, int) for each in np.asarray(data, dtype=object).flat)
