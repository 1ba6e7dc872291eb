"""Functions that create tensors: of one value, or of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any, Never, overload

import numpy as np

from .._call.operands import check_shape, require_dtype
from .._device.backend import Backend, is_inside
from .._device.finding import as_device
from .._errors.classes import ArgumentError, KindError, ShapeError
from .._op.attributes import NORMALIZERS
from .._values.dtype import DType, DTypeLike, as_dtype, bool_, number_for
from .._values.kinds import AnyKind, Bool, Float, Int
from .._values.number import Number, Scalar, plain
from .._values.tensor import Tensor
from .transfer import upload

Device = Backend | str | None


def sizes(shape: int | Sequence[int], op: str) -> tuple[int, ...]:
    """Return a shape as entries get it."""
    dims: tuple[int, ...] = NORMALIZERS["Shape"](shape, "shape", op, 0)
    if any(n < 0 for n in dims):
        raise ArgumentError(op, "negative size", got=dims)
    return dims


@overload
def full(  # type: ignore[overload-overlap] # pyright: ignore[reportOverlappingOverload]
    shape: int | Sequence[int], fill_value: bool, *, dtype: None = None, device: Device = None
) -> Tensor[Bool]: ...
@overload
def full(
    shape: int | Sequence[int], fill_value: int, *, dtype: None = None, device: Device = None
) -> Tensor[Int]: ...
@overload
def full(
    shape: int | Sequence[int], fill_value: float, *, dtype: None = None, device: Device = None
) -> Tensor[Float]: ...
@overload
def full(
    shape: int | Sequence[int],
    fill_value: Scalar | Tensor[Any],
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Any]: ...
def full(
    shape: int | Sequence[int],
    fill_value: Scalar | Tensor[Any],
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Any]:
    """Return a tensor of one value; its type follows the value's kind by default.

    A value that is a tensor of one element is repeated, on its own device by default; gradients
    flow to it.

    Raises:
        DTypeError: when the device lacks the type, or it does not hold the value.
        KindError: for a fraction in an Int tensor.

    Example:
        >>> full((2, 2), 0.5).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    return _filled("full", shape, fill_value, dtype, device)


def _filled(
    op: str, shape: Any, value: Any, dtype: DTypeLike | None, device: Device
) -> Tensor[Any]:
    """A tensor of one value, made by the function that errors name."""
    if isinstance(value, Tensor):
        return _repeated(op, value, sizes(shape, op), dtype, device)
    backend = as_device(device)
    plain_value = number(value, "fill_value", op)
    chosen = _dtype_for(plain_value, dtype, backend, op)
    dims = sizes(shape, op)
    check_shape(dims, backend, op)
    return Tensor(backend.ops.full(dims, number_for(plain_value, chosen, op), chosen), backend)


def with_numbers(data: Any, dtype: DType | None, device: Device) -> Any:
    """Return nested lists with tensors in the place of numbers of a recording.

    Beside what is no number they are their plain values, which a replay must find again.
    """
    leaves: list[Any] = []
    work: list[Any] = [data]
    while work:
        item = work.pop()
        if isinstance(item, list | tuple):
            work.extend(item)
        else:
            leaves.append(item)
    if not any(type(item) is Number for item in leaves):
        return data
    if any(isinstance(item, Tensor) for item in leaves):  # whose element type decides
        return data
    backend = as_device(device)
    alone = all(isinstance(item, Scalar) for item in leaves)
    whole = all(isinstance(plain(item), int) for item in leaves)
    chosen = dtype or (backend.default_int if whole else backend.default_float)

    def made(item: Any) -> Any:
        if isinstance(item, list | tuple):
            return [made(part) for part in item]
        if type(item) is Number:
            return full((), item, dtype=chosen, device=device) if alone else item.ask(plain)
        return item

    return made(data)


def _repeated(
    op: str, value: Tensor[Any], shape: tuple[int, ...], dtype: DTypeLike | None, device: Device
) -> Tensor[Any]:
    """A tensor of one element, seen with a shape."""
    if value.size != 1:
        raise ArgumentError(op, "fill_value is not one element", got=f"shape {value.shape}")
    out = value if dtype is None else value.astype(dtype)
    if device is not None and not is_inside(as_device(device), value.device):
        out = out.to_device(device)
    return out.reshape(()).broadcast_to(shape)


def number(value: Any, name: str, op: str) -> Scalar:
    """Return a plain number, read from a tensor where no derivative is lost."""
    return NORMALIZERS["Scalar"](value, name, op, 0)


def _plain(value: Any, name: str, op: str) -> bool | int | float:
    """Return a number that decides about sizes, so that a recording is for its very value."""
    found: Any = number(value, name, op)
    return found.ask(plain) if type(found) is Number else found


def _dtype_for(value: Scalar, dtype: DTypeLike | None, backend: Backend, op: str) -> DType:
    if dtype is not None:
        chosen = as_dtype(dtype, op)
    elif isinstance(value, bool):
        chosen = bool_
    else:
        whole = isinstance(plain(value), int)
        chosen = backend.default_int if whole else backend.default_float
    require_dtype(chosen, backend, op)
    return chosen


def _one_shape(shape: Any, more: tuple[Any, ...], op: str, *named: Any) -> None:
    """Refuse sizes that are not in one tuple, as the standard does; ``named``: type and device."""
    if more:
        given = ", ".join(map(repr, (shape, *more)))
        *sizes, last = shape, *more
        name = getattr(last, "name", None) or getattr(last, "__name__", last)
        one = tuple(sizes) if sizes[1:] else shape
        raise ArgumentError(
            op,
            "more than one argument for the shape",
            got=given,
            expected="one tuple of sizes; other arguments by name",
            hint=f"px.{op}(({given}){_said(*named)})"
            if isinstance(last, int)
            else f"px.{op}({one}, dtype={name!r}{_said(None, *named[1:])})",
        )


def _said(dtype: Any = None, device: Any = None) -> str:
    """The texts of an element type and a device that were given."""
    kind = "" if dtype is None else f", dtype={as_dtype(dtype, 'dtype').name!r}"
    return kind if device is None else f"{kind}, device={device!r}"


def zeros(
    shape: int | Sequence[int],
    *more: Never,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return zeros, of the device's default float type by default.

    Example:
        >>> zeros((3,)).tolist()
        [0.0, 0.0, 0.0]
    """
    _one_shape(shape, more, "zeros", dtype, device)
    return _filled("zeros", shape, 0.0, dtype, device)


def ones(
    shape: int | Sequence[int],
    *more: Never,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return ones, of the device's default float type by default.

    Example:
        >>> ones((2, 2)).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    _one_shape(shape, more, "ones", dtype, device)
    return _filled("ones", shape, 1.0, dtype, device)


def empty(
    shape: int | Sequence[int],
    *more: Never,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return a tensor whose values mean nothing; tensors never change, so it holds zeros.

    Example:
        >>> empty((2, 3)).shape
        (2, 3)
    """
    _one_shape(shape, more, "empty", dtype, device)
    return _filled("empty", shape, 0.0, dtype, device)


def full_like(
    x: Tensor[AnyKind],
    /,
    fill_value: Scalar | Tensor[Any],
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[AnyKind]:
    """Return a tensor of one value with the shape, type and device of ``x``.

    Example:
        >>> full_like(ones((2,)), 0.5).tolist()
        [0.5, 0.5]
    """
    return _filled_like("full_like", x, fill_value, dtype, device)


def zeros_like(
    x: Tensor[AnyKind], /, *, dtype: DTypeLike | None = None, device: Device = None
) -> Tensor[AnyKind]:
    """Return zeros with the shape, type and device of ``x``.

    Example:
        >>> zeros_like(asarray([3, 4])).tolist()
        [0, 0]
    """
    return _filled_like("zeros_like", x, 0, dtype, device)


def ones_like(
    x: Tensor[AnyKind], /, *, dtype: DTypeLike | None = None, device: Device = None
) -> Tensor[AnyKind]:
    """Return ones with the shape, type and device of ``x``.

    Example:
        >>> ones_like(asarray([3, 4])).tolist()
        [1, 1]
    """
    return _filled_like("ones_like", x, 1, dtype, device)


def empty_like(
    x: Tensor[AnyKind], /, *, dtype: DTypeLike | None = None, device: Device = None
) -> Tensor[AnyKind]:
    """Return a tensor with the shape, type and device of ``x`` whose values mean nothing.

    Example:
        >>> empty_like(ones((2, 3))).shape
        (2, 3)
    """
    return _filled_like("empty_like", x, 0, dtype, device)


def _filled_like(
    op: str, x: Tensor[Any], value: Any, dtype: DTypeLike | None, device: Device
) -> Tensor[Any]:
    """A tensor of one value like another."""
    chosen = x.dtype if dtype is None else dtype
    return _filled(op, x.shape, value, chosen, x.device if device is None else device)


@overload
def arange(
    start: int,
    /,
    stop: int | None = None,
    step: int = 1,
    *,
    dtype: None = None,
    device: Device = None,
) -> Tensor[Int]: ...
@overload
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Any]: ...
def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Any]:
    """Return evenly spaced values from ``start`` below ``stop``, 1-d.

    Integers give the device's default integer type, else its default float type.

    Raises:
        ArgumentError: when ``step`` is 0, or a number is not finite.
        DTypeError: when the type does not hold the values.
        KindError: for a fraction in a range of integers.
        ShapeError: for more than memory could ever hold.

    Example:
        >>> arange(1, 7, 2).tolist()
        [1, 3, 5]
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = (
        _plain(v, n, "arange") for v, n in ((start, "start"), (stop, "stop"), (step, "step"))
    )
    if step == 0 or any(isinstance(v, float) and not isfinite(v) for v in (start, stop, step)):
        raise ArgumentError(
            "arange", "no range", got=f"{start}, {stop}, step {step}", expected="finite, step not 0"
        )
    backend = as_device(device)
    whole = all(isinstance(v, int) for v in (start, stop, step))
    chosen = _dtype_for(0 if whole else 0.0, dtype, backend, "arange")
    count = _steps(start, stop, step, whole=whole)
    start, step = _bounds(start, step, count, chosen)
    check_shape((count,), backend, "arange")
    return Tensor(backend.ops.arange(start, step, count, chosen), backend)


def _steps(start: float, stop: float, step: float, *, whole: bool) -> int:
    """How many steps there are from ``start`` to before ``stop``."""
    if whole:
        return max(0, int(-((start - stop) // step)))
    try:
        return max(0, ceil((stop - start) / step))
    except OverflowError:  # of the ratio of finite numbers, or of an integer beyond floats
        got, expected = f"{start}, {stop}, step {step}", "a number of steps that memory holds"
        raise ShapeError("arange", "too many elements", got=got, expected=expected) from None


def _bounds(start: float, step: float, count: int, dtype: DType) -> tuple[float, float]:
    """Start and step of a range in its type, which holds both ends."""
    if dtype.kind == "Bool":
        raise KindError("arange", "no range of truth values", got=dtype, expected="Float or Int")
    if not count:
        return 0, 1
    number_for(start + (count - 1) * step, dtype, "arange")
    if dtype.kind == "Int" and isinstance(step, float):
        if not step.is_integer():
            raise KindError("arange", "step is not whole", got=step, expected=f"a value of {dtype}")
        step = int(step)
    if count == 1:  # a step that nobody takes may be larger than the type holds
        return number_for(start, dtype, "arange"), 1
    return number_for(start, dtype, "arange"), step


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    endpoint: bool = True,
) -> Tensor[Float]:
    """Return ``num`` evenly spaced values from ``start`` to ``stop``, 1-d.

    An integer type gets them rounded down, as in NumPy.

    Raises:
        ArgumentError: for a negative number of values.
        ShapeError: for more than memory could ever hold.

    Example:
        >>> linspace(0.0, 1.0, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    (num,) = sizes(num, "linspace")
    backend = as_device(device)
    check_shape((num,), backend, "linspace")
    chosen = _dtype_for(0.0, dtype, backend, "linspace")
    ends = _plain(start, "start", "linspace"), _plain(stop, "stop", "linspace")
    values = np.linspace(*ends, num, endpoint=endpoint)
    values = np.floor(values) if chosen.kind == "Int" else values
    return upload(values, chosen, backend, "linspace")


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor[Float]:
    """Return a matrix with ones on diagonal ``k`` and zeros elsewhere.

    Example:
        >>> eye(2, 3, k=1).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    backend = as_device(device)
    chosen = _dtype_for(0.0, dtype, backend, "eye")
    height, width = sizes((n_rows, n_rows if n_cols is None else n_cols), "eye")
    rows, columns = arange(height, device=backend), arange(width, device=backend)
    return (rows[:, None] + k == columns).astype(chosen)


def meshgrid(*arrays: Tensor[AnyKind], indexing: str = "xy") -> tuple[Tensor[AnyKind], ...]:
    """Return coordinate grids of 1-d tensors; ``indexing`` is ``"xy"`` or ``"ij"``.

    Example:
        >>> [x.tolist() for x in meshgrid(asarray([1, 2]), asarray([3, 4]), indexing="ij")]
        [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError("meshgrid", "unknown indexing", got=indexing, expected="'xy' or 'ij'")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(arrays)
    for place, array in zip(order, arrays, strict=True):
        shape[place] = array.size
    out = []
    for place, array in zip(order, arrays, strict=True):
        line = [1] * len(arrays)
        line[place] = array.size
        out.append(array.reshape(line).broadcast_to(shape))
    return tuple(out)


def tril(x: Tensor[AnyKind], /, *, k: int = 0) -> Tensor[AnyKind]:
    """Return the lower triangles of matrices: zeros above diagonal ``k``.

    Example:
        >>> tril(ones((2, 3))).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    return _triangle(x, k, lower=True)


def triu(x: Tensor[AnyKind], /, *, k: int = 0) -> Tensor[AnyKind]:
    """Return the upper triangles of matrices: zeros below diagonal ``k``.

    Example:
        >>> triu(ones((2, 3))).tolist()
        [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    return _triangle(x, k, lower=False)


def _triangle(x: Tensor[Any], k: int, *, lower: bool) -> Tensor[Any]:
    if x.ndim < 2:
        raise ShapeError(
            "tril" if lower else "triu", "not a matrix", got=x.shape, expected="(…, n, m)"
        )
    device = x.device
    rows, columns = (
        Tensor[Any](device.ops.arange(0, 1, n, device.default_int), device) for n in x.shape[-2:]
    )
    rows = rows.reshape((-1, 1)) + k
    keep = columns <= rows if lower else columns >= rows
    return keep.where(x, x.zeros())
