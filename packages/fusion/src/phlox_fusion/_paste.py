"""A program at fault as a test to paste: the program, values, strides and numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np

from phlox_tensor import DTYPES, Backend, PhloxError
from phlox_tensor.capture import Program, interpreted, same_bits

Array = np.ndarray[Any, Any]
_MOST_SHOWN: Final = 64  # elements of an operand that are written out
_SEEDS: Final = 3


class Operand(NamedTuple):
    """An input of a program as text of Python: its values, and how they lie."""

    values: str
    array: Array
    dtype: str
    strides: tuple[int, ...] | None

    def __str__(self) -> str:
        return f"strided({self.values}, {self.dtype!r}, {self.strides}, device)"


def pasted(
    device: Backend, program: Program, operands: Sequence[Any], numbers: Sequence[Any]
) -> str:
    """Return a test that fails as long as the kernel of a program parts from its ops.

    It has the values at hand where they are few; else drawn ones, or those of the first element
    or row that differs, as long as the kernel parts there too.

    Args:
        device: a base device.
        program: of which it has a kernel.
        operands: its primitives, on which the kernel gave other bits.
        numbers: what it takes besides.
    """
    tried: list[Operand] = []
    for given in _candidates(device, program, operands, numbers):
        tried = given
        if _parts(device, program, given, numbers):
            return _text(device, program, given, numbers)
    remark = "# It passes with these values: the fault needs those of the run.\n"
    return remark + _text(device, program, tried, numbers)


def _candidates(
    device: Backend, program: Program, operands: Sequence[Any], numbers: Sequence[Any]
) -> Iterator[list[Operand]]:
    arrays = [device.read(x) for x in operands]
    strides = [device.strides_of(x) for x in operands]
    small = all(array.size <= _MOST_SHOWN for array in arrays)
    if small:
        lying = zip(arrays, strides, strict=True)
        yield [_shown(array, steps) for array, steps in lying]
        yield [_shown(array, None) for array in arrays]
    else:
        yield from (
            [_drawn(seed, *x) for x in zip(arrays, strides, strict=True)] for seed in range(_SEEDS)
        )
    apart = _apart(device, program, operands, numbers)
    if apart is not None:
        parts = [array[_at(array.shape, apart)] for array in arrays]
        if all(part.size <= _MOST_SHOWN for part in parts):
            yield [_shown(part, None) for part in parts]
    if not small:
        yield [_drawn(0, array, None) for array in arrays]


def _shown(array: Array, strides: tuple[int, ...] | None) -> Operand:
    return Operand(repr(array.tolist()), array, array.dtype.name, strides)


def _drawn(seed: int, array: Array, strides: tuple[int, ...] | None) -> Operand:
    """Drawn values in the place of an array."""
    from phlox_tensor.testing import draw  # noqa: PLC0415 - only a failing check needs it

    dtype = DTYPES[array.dtype.name]
    made = draw(dtype, array.shape, (-4.0, 4.0), np.random.default_rng(seed))
    text = (
        f"draw(DTYPES[{dtype.name!r}], {array.shape}, (-4.0, 4.0), np.random.default_rng({seed}))"
    )
    return Operand(text, made, dtype.name, strides)


def _parts(
    device: Backend, program: Program, given: Sequence[Operand], numbers: Sequence[Any]
) -> bool:
    """Whether the test of these operands fails, as it should."""
    from phlox_tensor.testing import assert_program, strided  # noqa: PLC0415 - as above

    try:
        tensors = [strided(x.array, x.dtype, x.strides, device) for x in given]
        assert_program(program, tensors, numbers)
    except AssertionError:
        return True
    except PhloxError:  # no such strides, or a kernel that refuses the shapes
        return False
    return False


def _apart(
    device: Backend, program: Program, operands: Sequence[Any], numbers: Sequence[Any]
) -> tuple[slice, ...] | None:
    """Where the first element, or row, lies that differs, in the shape of all."""
    kernel = device.kernel(program)
    assert kernel is not None
    shape = np.broadcast_shapes(*[device.shape_of(x) for x in operands])
    outer = len(shape) - program.inner
    wanted = interpreted(program, device)(*operands, *numbers)
    for mine, own in zip(kernel(*operands, *numbers), wanted, strict=True):
        left, right = device.read(mine), device.read(own)
        if not same_bits(left, right, device.dtype_of(own), device):
            first = _furthest(left, right)
            return (
                *(slice(int(i), int(i) + 1) for i in first[:outer]),
                *[slice(None)] * program.inner,
            )
    return None


def _furthest(left: Array, right: Array) -> tuple[Any, ...]:
    """The place at which two arrays differ most."""
    mine, own = left.astype("float64"), right.astype("float64")
    with np.errstate(all="ignore"):
        gap = np.nan_to_num(abs(mine - own), nan=0.0, posinf=np.inf)
    gap = np.where(np.isnan(mine) != np.isnan(own), np.inf, gap)
    gap = np.where((gap == 0) & (np.signbit(mine) != np.signbit(own)), 1e-300, gap)
    return np.unravel_index(int(gap.argmax()), gap.shape)


def _at(shape: tuple[int, ...], place: tuple[slice, ...]) -> tuple[slice, ...]:
    """The same place in an operand, which may be broadcast there."""
    own = place[len(place) - len(shape) :]
    return tuple(slice(None) if n == 1 else at for n, at in zip(shape, own, strict=True))


def _text(
    device: Backend, program: Program, given: Sequence[Operand], numbers: Sequence[Any]
) -> str:
    values = "".join(f"        {x},\n" for x in given)
    instrs = "".join(f"            {instr!r},\n" for instr in program.instrs)
    drawn = any(x.values.startswith("draw(") for x in given)
    special = any(type(n) is float and not isfinite(n) for n in numbers) or any(
        not np.isfinite(x.array.astype("float64")).all() for x in given
    )
    testing = "assert_program, draw, strided" if drawn else "assert_program, strided"
    lines = [
        *(["from math import inf, nan", ""] if special else []),
        *(["import numpy as np", "", "from phlox_tensor import DTYPES"] if drawn else []),
        _import_of(device),
        "from phlox_tensor.capture import Instr, Program",
        f"from phlox_tensor.testing import {testing}",
        "",
        "",
        "def test_a_program_has_the_bits_of_its_ops() -> None:",
        f"    device = {device!r}",
        "    program = Program(",
        *(f"        {name}={getattr(program, name)!r}," for name in ("inputs", "numbers")),
        f"        instrs=(\n{instrs}        ),",
        *(
            f"        {n}={getattr(program, n)!r},"
            for n in ("outputs", "inner", "keepdims", "rows")
        ),
        "    )",
        f"    operands = [\n{values}    ]",
        f"    assert_program(program, operands, {[*numbers]!r})",
    ]
    return "\n".join(lines)


def _import_of(device: Backend) -> str:
    """The line that imports the class of a device, from where it is public."""
    cls = type(device)
    top = cls.__module__.partition(".")[0]
    public = getattr(sys.modules.get(top), cls.__name__, None) is cls
    return f"from {top if public else cls.__module__} import {cls.__name__}"
