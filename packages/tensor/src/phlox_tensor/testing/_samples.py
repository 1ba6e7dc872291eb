"""Operands for tests, made up from what the ops declare."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._device.backend import Backend
from .._op.declaration import Op
from .._op.records import Case, DefiniteSample, Given, IndexSample, MaskSample, SortedSample
from .._op.signature import REQUIRED, Operand
from .._values.dtype import DType
from .._values.kinds import KIND_SETS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Arrays for the operands of one call (None for an absent one) and its attributes."""

    operands: tuple[Any, ...]
    attributes: dict[str, Any]


def dtypes_for(op: Op, backend: Backend) -> list[DType]:
    """The element types to test an op with: those of its first operand or ``dtype`` attribute."""
    if op.signature.operands:
        # A condition in front (where) is no choice; the operands after it are.
        kinds = KIND_SETS[next((k for k in _kinds(op) if k != "Bool"), "Bool")]
    elif any(a.name == "dtype" and a.default is REQUIRED for a in op.signature.attributes):
        kinds = KIND_SETS[op.signature.results[0].kind]
    else:
        return [backend.default_int]
    return sorted((d for d in backend.dtypes if d.kind in kinds), key=lambda d: d.name)


def _kinds(op: Op) -> list[str]:
    return [o.kind for o in op.signature.operands]


def samples(op: Op, dtype: DType, backend: Backend) -> Iterator[Sample]:
    """All samples of an op for one element type; the same in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}/{dtype}".encode()))
    for case in _cases(op, backend):
        yield drawn(op, case, dtype, backend, rng)


def refused_samples(
    op: Op, dtype: DType, backend: Backend
) -> Iterator[tuple[type[Exception], Sample]]:
    """Calls that the op refuses, with the class of the error; the same in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}/{dtype}/refused".encode()))
    made = op.op_class.refuses
    for error, case in (*op.tested.refuses, *(made(op) if made is not None else ())):
        yield error, drawn(op, case, dtype, backend, rng)


def drawn(op: Op, case: Case, dtype: DType, backend: Backend, rng: Any) -> Sample:
    """A sample of a case."""
    operands = tuple(
        _operand(op, declared, wanted, dtype, backend, rng)
        for declared, wanted in zip(op.signature.operands, case.operands, strict=True)
    )
    attributes = dict(case.attributes)
    if any(a.name == "dtype" and a.default is REQUIRED for a in op.signature.attributes):
        attributes.setdefault("dtype", dtype)
    return Sample(operands, attributes)


def _cases(op: Op, backend: Backend) -> Iterator[Case]:
    """The declared cases, or those that the class makes up; for element types that are there."""
    made = op.tested.cases or (op.op_class.cases(op) if op.op_class.cases is not None else ())
    for case in made:
        if all(v in backend.dtypes for v in case.attributes.values() if isinstance(v, DType)):
            yield case


def _operand(
    op: Op, declared: Operand, wanted: Any, dtype: DType, backend: Backend, rng: Any
) -> Any:
    if wanted is None:
        return None
    if declared.variadic:
        return tuple(_values(op, declared, shape, dtype, backend, rng) for shape in wanted)
    return _values(op, declared, wanted, dtype, backend, rng)


def _values(
    op: Op, declared: Operand, wanted: Any, dtype: DType, backend: Backend, rng: Any
) -> Array:
    if isinstance(wanted, IndexSample):
        low, high = (-wanted.size, wanted.size) if wanted.size > 0 else (0, -wanted.size)
        found = rng.integers(low, high, wanted.shape) if high > low else np.zeros(wanted.shape)
        return np.asarray(found).astype(backend.default_int.numpy)
    if isinstance(wanted, Given):
        array = np.asarray(wanted.values)
        kinds = {"b": array.dtype, "i": backend.default_int.numpy}
        return np.asarray(array.astype(kinds.get(array.dtype.kind, dtype.numpy)))
    if isinstance(wanted, MaskSample):
        return np.asarray(rng.random(wanted.shape) < 0.5)
    if isinstance(wanted, DefiniteSample):
        rows = rng.uniform(-1, 1, wanted.shape)
        spread = rows @ np.swapaxes(rows, -1, -2) + np.diag(np.arange(wanted.shape[-1]) * 0.5 + 1.0)
        return np.asarray(spread).astype(dtype.numpy)
    if isinstance(wanted, SortedSample):
        values = _values(op, declared, wanted.shape, dtype, backend, rng)
        return np.asarray(np.sort(values.astype(np.float64)), values.dtype)
    own = dtype if dtype.kind in KIND_SETS[declared.kind] else _default(declared.kind, backend)
    # Where the result is a place among the elements, equal elements have to occur.
    few = op.op_class.orders or op.signature.results[0].kind == "Int"
    return draw(own, wanted, op.tested.interval(declared.name), rng, few=few)


def _default(kind: str, backend: Backend) -> DType:
    from .._values.dtype import bool_  # noqa: PLC0415 - the name is awkward at module level

    whole = backend.default_int
    return {"Float": backend.default_float, "Int": whole, "Whole": whole}.get(kind, bool_)


def draw(
    dtype: DType, shape: Any, interval: tuple[float, float], rng: Any, *, few: bool = False
) -> Array:
    """Values of a type inside an interval; ``few`` distinct ones where ties matter."""
    low, high = interval
    if dtype.kind == "Bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind == "Int":
        bottom = max(int(np.ceil(low)), 0 if not dtype.signed else int(np.ceil(low)))
        return np.asarray(rng.integers(bottom, int(high) + 1, shape)).astype(dtype.numpy)
    values = rng.uniform(low, high, shape)
    if few:
        values = np.round(values)
    return np.asarray(values).astype(dtype.numpy)
