"""Special values: nan, infinities, zeros of both signs, limits of the types."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from .._device.backend import Backend
from .._op.declaration import Op
from .._values.dtype import DType, finfo
from ._samples import Sample

Array = np.ndarray[Any, Any]


def special_values(dtype: DType, *, extremes: bool) -> Array:
    """The special values of a type; ``extremes`` adds denormals and the largest numbers."""
    if dtype.kind == "Bool":
        return np.array([False, True])
    if dtype.kind == "Int":
        info = np.iinfo(dtype.numpy)
        values = [0, 1, 2, 3, info.max, info.max - 1, info.min, info.min + 1]
        if dtype.signed:
            values += [-1, -2, -3]
        return np.array(values, dtype.numpy)
    limits = finfo(dtype)
    floats = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.0, 3.0, -3.0]
    if extremes:
        floats += [
            float(limits.max),
            float(limits.min),
            float(limits.smallest_normal),
            float(limits.smallest_subnormal),
            -float(limits.smallest_subnormal),
        ]
    return np.array(floats).astype(dtype.numpy)


def special_samples(op: Op, dtype: DType, backend: Backend) -> Iterator[Sample]:
    """The grid of special values for an elementwise op, rows with them for a reduction."""
    values = special_values(dtype, extremes=backend.strict)
    required = [a for a in op.signature.attributes if a.name == "dtype"]
    chosen = [a for a in op.signature.attributes if a.type == "DType?"]
    if op.op_class.diagonal and not required:
        yield _grid(op, values)
    elif (op.op_class.reduces or op.op_class.orders or chosen) and dtype.kind != "Bool":
        rows = np.stack([np.roll(values, i) for i in range(4)])
        line = {a.name: 2 for a in op.signature.attributes if a.type == "int"} | {"axis": 1}
        if dtype.kind == "Float":
            plain = np.array([[1.0, -2.0, 3.0]] * 2).astype(dtype.numpy)
            infinite = np.array([[1.0, np.inf, 3.0], [-np.inf, -np.inf, -np.inf]])
            yield Sample((plain,), line)
            yield Sample((infinite.astype(dtype.numpy),), line)
        yield Sample((rows,), line)
        if dtype.kind == "Int" and chosen:
            for wanted in sorted(backend.dtypes, key=lambda d: d.name):
                if wanted.kind == "Int":  # sums of extremes wrap, in floats they cancel
                    yield Sample((rows,), line | {"dtype": wanted})


_VALUES: Final = (np.nan, np.inf, -np.inf, -0.0)
_PLACES: Final = 2
Place = tuple[int, int | None]  # an operand, and which of several tensors


def placed_samples(
    op: Op, drawn: Sequence[Sample], *, every: bool
) -> Iterator[tuple[int, float, Sample]]:
    """Samples with one special value in one operand, with the number of it and the value.

    ``every`` tries each value at some places of each operand of each sample; else they take turns.
    """
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    turn = 0
    for sample in drawn:
        for place, array in _floats(sample):
            values = _VALUES * _PLACES if every else (_VALUES[turn % len(_VALUES)],)
            turn += 1
            for value in values:
                at = int(rng.integers(array.size))
                yield place[0], value, _replaced(sample, place, at, value)


def _floats(sample: Sample) -> Iterator[tuple[Place, Array]]:
    for i, operand in enumerate(sample.operands):
        several = isinstance(operand, tuple)
        for j, array in enumerate(operand if several else (operand,)):
            if array is not None and array.size and array.dtype.kind not in "iub":
                yield (i, j if several else None), array


def _replaced(sample: Sample, place: Place, at: int, value: float) -> Sample:
    i, j = place
    operands = list(sample.operands)
    array = np.array(operands[i] if j is None else operands[i][j])
    array.reshape(-1)[at] = value
    operands[i] = array if j is None else (*operands[i][:j], array, *operands[i][j + 1 :])
    return Sample(tuple(operands), sample.attributes)


def _grid(op: Op, values: Array) -> Sample:
    operands = op.signature.operands
    if len(operands) == 1:
        return Sample((values,), {})
    if operands[0].kind == "Bool" and len(operands) > 2:
        condition = np.arange(len(values)) % 2 == 0
        return Sample((condition[:, None], values[:, None], values[None, :]), {})
    further = [np.roll(values, 5)[None, :]] * (len(operands) - 2)
    return Sample((values[:, None], values[None, :], *further), {})
