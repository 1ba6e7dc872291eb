"""How a tensor prints: its values as NumPy prints them, then type and device."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from html import escape
from math import inf
from typing import Any, Final, final

import numpy as np

from .._errors.classes import ArgumentError
from ..blocks import block
from .tensor import Tensor

Array = np.ndarray[Any, Any]

_CELLS: Final = 16  # of a heat map, along each side
_WARM, _COLD = (214, 96, 77), (67, 147, 195)


@final
@dataclass(frozen=True, slots=True)
class PrintOptions:
    """How tensors print.

    Attributes:
        precision: digits behind the point.
        threshold: tensors of more elements are not printed whole.
        edgeitems: elements printed at both ends of each axis of such a tensor.
        linewidth: characters on a line.
        suppress: small numbers are never written with an exponent.
    """

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 75
    suppress: bool = False


_DEFAULT: Final = PrintOptions()
_options: ContextVar[PrintOptions] = ContextVar("phlox_print_options", default=_DEFAULT)


# What PyTorch calls an option, and what to type here.
_OTHERS: Final = {"profile": "threshold=math.inf", "sci_mode": "suppress=True"}


def set_printoptions(**options: Any) -> None:
    """Change how tensors print from now on: the fields of ``PrintOptions``, by name.

    Raises:
        ArgumentError: for a name that is none of them, or a negative number.

    Example:
        >>> set_printoptions(precision=3)
    """
    _options.set(_changed(options))


@block
def printoptions(**options: Any) -> Iterator[PrintOptions]:
    """Change how tensors print inside a ``with`` block.

    Example:
        >>> with printoptions(precision=2):
        ...     print(asarray([0.12345]))
        Tensor([0.12], dtype=float32, device=Numpy())
    """
    token = _options.set(_changed(options))
    try:
        yield _options.get()
    finally:
        _options.reset(token)


def _changed(options: dict[str, Any]) -> PrintOptions:
    known = PrintOptions.__slots__
    for name, value in options.items():
        got = f"{name}={value!r}"
        if name not in known:
            expected = ", ".join(known)
            hint, what = _OTHERS.get(name), "no such option"
            raise ArgumentError("set_printoptions", what, got=got, expected=expected, hint=hint)
        if not (isinstance(value, int) or value == inf) or value < 0:
            expected = "an int >= 0"
            raise ArgumentError("set_printoptions", "not a count", got=got, expected=expected)
    return replace(_options.get(), **options)


def tensor_repr(tensor: Tensor[Any]) -> str:
    """Return ``Tensor([...], dtype=float32, device=Cpu())``; the shape where it is not seen."""
    if not tensor.device.is_readable(tensor.primitive):
        dtype = tensor.dtype.name
        return f"Tensor(shape={tensor.shape}, dtype={dtype}, device={tensor.device!r})"
    chosen = _options.get()
    values = tensor.numpy()
    if values.dtype.kind == "V":  # bfloat16, of which NumPy writes 1 for 1.0
        values = values.astype(np.float32)
    body = np.array2string(
        values,
        separator=", ",
        prefix="Tensor(",
        precision=chosen.precision,
        threshold=chosen.threshold,
        edgeitems=chosen.edgeitems,
        max_line_width=chosen.linewidth,
        suppress_small=chosen.suppress,
    )
    hidden = 0 in tensor.shape or tensor.size > chosen.threshold
    shape = f", shape={tensor.shape}" if hidden else ""
    tracked = ", requires_grad=True" if tensor.requires_grad else ""
    return f"Tensor({body}{shape}, dtype={tensor.dtype.name}, device={tensor.device!r}{tracked})"


def tensor_html(tensor: Tensor[Any]) -> str:
    """Return shape, type and device, and a heat map of the first rows, for notebooks."""
    head = f"Tensor {tensor.shape}, {tensor.dtype.name}, {tensor.device!r}"
    head = f"<div><code>{escape(head)}</code></div>"
    if not tensor.device.is_readable(tensor.primitive) or not tensor.size:
        return head
    array = tensor.numpy()
    matrix = array.reshape((-1, array.shape[-1] if array.ndim else 1))
    return head + _heat_map(matrix[:_CELLS, :_CELLS].astype(np.float64), matrix.shape)


def _heat_map(part: Array, whole: tuple[int, ...]) -> str:
    finite = np.abs(part[np.isfinite(part)])
    top = float(finite.max()) if finite.size else 0.0
    rows = "".join(f"<tr>{''.join(_cell(v, top) for v in row)}</tr>" for row in part.tolist())
    more = "" if part.shape == whole else f"<div>first {part.shape} of {whole} shown</div>"
    return f'<table style="border-collapse:collapse">{rows}</table>{more}'


def _cell(value: float, top: float) -> str:
    """Red above 0, blue below, gray where it is no finite number."""
    color = "rgb(160,160,160)"
    if np.isfinite(value):
        share = abs(value) / top if top else 0.0
        end = _WARM if value > 0 else _COLD
        color = f"rgb({','.join(str(round(255 + (c - 255) * share)) for c in end)})"
    style = f"background:{color};width:1em;height:1em;padding:0"
    return f'<td title="{value:.6g}" style="{style}"></td>'
