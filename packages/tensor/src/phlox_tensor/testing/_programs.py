"""Programs compared with their ops, on operands with the strides of a call where they differed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._device.backend import Backend
from .._device.compare import disagreement, same_bits
from .._device.program import Program
from .._errors.classes import ArgumentError
from .._functions import functions
from .._programs.interpreter import interpreted
from .._values.dtype import as_dtype
from .._values.tensor import Tensor
from ._layouts import contiguous


def assert_program(
    program: Program, operands: Sequence[Tensor[Any]], numbers: Sequence[Any] = ()
) -> None:
    """Check that the kernel of a program gives what its ops give one by one.

    Args:
        program: the ops.
        operands: its inputs, on one base device.
        numbers: what it takes besides.

    Raises:
        AssertionError: saying which output differs, and where; or that there is no kernel.

    Example:
        >>> from phlox_tensor.capture import Instr, Program
        >>> chain = Program(("float32",), ("float32",), (Instr("add", (0, 1), "float32"),), (2,))
        >>> try:
        ...     assert_program(chain, [ones(3, device=Numpy())], [0.5])
        ... except AssertionError as error:
        ...     print(str(error).splitlines()[0])
        Numpy() has no kernel for
    """
    device = operands[0].device
    kernel = device.kernel(program)
    if kernel is None:
        raise AssertionError(f"{device!r} has no kernel for\n{program}")
    given = [x.primitive for x in operands]
    wanted = interpreted(program, device)(*given, *numbers)
    for at, (mine, own) in enumerate(zip(kernel(*given, *numbers), wanted, strict=True)):
        left, right = device.read(mine), device.read(own)
        if not same_bits(left, right, device.dtype_of(own), device):
            how = disagreement(left, right, ulp=0, atol=0, signed_zeros=True)
            raise AssertionError(f"output {at}: {how or 'other bits of NaN'}, in\n{program}")


def strided(values: Any, dtype: str, strides: Sequence[int] | None, device: Backend) -> Tensor[Any]:
    """Return a tensor whose neighbors lie so many elements apart; None: row by row.

    Args:
        values: an array, or nested lists; along axes of stride 0 the first one counts.
        dtype: the element type.
        strides: one for each axis; of those that have one element it has no say.
        device: a base device.

    Raises:
        ArgumentError: where views of one tensor cannot lie so: elements that overlap.

    Example:
        >>> x = strided([[1.0, 2.0], [3.0, 4.0]], "float32", (1, -4), Numpy())
        >>> (x.tolist(), Numpy().strides_of(x.primitive))
        ([[1.0, 2.0], [3.0, 4.0]], (1, -4))
    """
    array, kind = np.asarray(values, as_dtype(dtype).numpy), as_dtype(dtype)
    if strides is None or array.size == 0:
        return contiguous(array, kind, device)
    repeated = tuple(at for at, step in enumerate(strides) if step == 0)
    array = array[tuple(slice(0, 1) if at in repeated else slice(None) for at in range(array.ndim))]
    turned = tuple(at for at, step in enumerate(strides) if step < 0 and array.shape[at] > 1)
    order = sorted(range(array.ndim), key=lambda at: (array.shape[at] > 1, -abs(strides[at])))
    found = _spread(
        np.flip(array, turned).transpose(order), [strides[at] for at in order], kind, device
    )
    back = tuple(order.index(at) for at in range(array.ndim))
    found = functions.permute_dims(found, back)
    found = functions.flip(found, axis=turned) if turned else found
    shape = np.shape(values)
    found = functions.broadcast_to(found, shape) if repeated else found
    own = device.strides_of(found.primitive)
    if own is not None and any(
        a != b for a, b, n in zip(own, strides, shape, strict=True) if n > 1
    ):
        raise _cannot_lie(strides, shape)
    return found


def _spread(
    array: np.ndarray[Any, Any], strides: Sequence[int], kind: Any, device: Backend
) -> Tensor[Any]:
    """A view of falling strides, the axes of one element first."""
    steps = [abs(step) for step in strides]
    wide = [at for at, n in enumerate(array.shape) if n > 1]
    if not wide:
        return contiguous(array, kind, device)
    sizes = list(array.shape)
    for before, at in pairwise(wide):
        last = at == wide[-1]
        sizes[at] = steps[before] if last else steps[before] // max(steps[at], 1)
    step = steps[wide[-1]]
    if len(wide) == 1:
        sizes[wide[0]] = (array.shape[wide[0]] - 1) * step + 1
    if any(sizes[at] < (array.shape[at] - 1) * (step if at == wide[-1] else 1) + 1 for at in wide):
        raise _cannot_lie(strides, array.shape)
    places = tuple(
        slice(0, (n - 1) * step + 1, step) if at == wide[-1] else slice(0, n)
        for at, n in enumerate(array.shape)
    )
    base = np.ones(sizes, array.dtype)
    base[places] = array
    along = [step if at == wide[-1] else 1 for at in range(array.ndim)]
    return functions.slice(
        contiguous(base, kind, device), (0,) * array.ndim, array.shape, tuple(along)
    )


def _cannot_lie(strides: Sequence[int], shape: Sequence[int]) -> ArgumentError:
    return ArgumentError(
        "strided",
        "no views of one tensor lie so",
        got=f"strides {tuple(strides)} for shape {tuple(shape)}",
        expected="elements that do not overlap, of which one axis lies inside of the next",
        hint="None, for row by row",
    )
