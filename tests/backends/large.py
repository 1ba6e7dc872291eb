"""Large operands for every op, made from the declared cases by growing first axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from phlox_tensor import REGISTRY, Backend, DType, PhloxError, float32, int64
from phlox_tensor import bool as bool_
from phlox_tensor._call.dispatch import prepare_attributes
from phlox_tensor._op.declaration import Op, Spec
from phlox_tensor._op.records import Case, IndexSample, MaskSample, SortedSample
from phlox_tensor._op.signature import REQUIRED
from phlox_tensor._values.kinds import KIND_SETS
from phlox_tensor.testing._samples import Sample, _cases, _values

BYTES = 12 << 20


@dataclass(frozen=True)
class Large:
    """A call of an op with an operand of about `BYTES`."""

    op: Op
    case: Case
    sample: Sample

    def __str__(self) -> str:
        shapes = [tuple(each.shape for each in o) for o in self.arrays()]
        return f"{self.op.name}({', '.join(map(str, shapes))}; {dict(self.case.attributes)})"

    def arrays(self) -> list[tuple[Any, ...]]:
        """The operands' arrays, a tuple for each operand."""
        return [
            o if isinstance(o, tuple) else () if o is None else (o,) for o in self.sample.operands
        ]


def large_calls(
    op: Op, backend: Backend, most: int, float_dtype: DType = float32
) -> Iterator[Large]:
    """The first cases of the op, each with as few operands grown as its shape rule allows."""
    dtype = float_dtype if "Float" in _kinds(op) else int64 if "Int" in _kinds(op) else bool_
    seen: set[str] = set()
    for case in _cases(op, backend):
        grown = next(_grown(op, case, dtype, backend), None)
        if grown is None or str(grown) in seen:
            continue
        if len(seen) == most:
            return
        seen.add(str(grown))
        rng = np.random.default_rng(len(seen))
        operands = tuple(
            tuple(_values(op, declared, each, dtype, backend, rng) for each in wanted or ())
            if declared.variadic
            else None
            if wanted is None
            else _values(op, declared, wanted, dtype, backend, rng)
            for declared, wanted in zip(op.signature.operands, grown.operands, strict=True)
        )
        yield Large(op, grown, Sample(operands, dict(grown.attributes)))


def _kinds(op: Op) -> set[str]:
    """Kinds of the operand that is no condition."""
    declared = [o.kind for o in op.signature.operands]
    return set(KIND_SETS[next((k for k in declared if k != "Bool"), "Bool")])


def _grown(op: Op, case: Case, dtype: DType, backend: Backend) -> Iterator[Case]:
    """Cases with a factor on the first axes of some operands that the shape rule accepts."""
    sizes = [_count(wanted) for wanted in case.operands]
    places = [i for i, n in enumerate(sizes) if n > 0 and _rank(case.operands[i]) > 0]
    for count in range(1, len(places) + 1):
        for chosen in itertools.combinations(places, count):
            largest = max(sizes[i] for i in chosen)
            factor = -(-BYTES // (largest * dtype.itemsize))
            for attributes in _attributes(case, factor):
                operands = tuple(
                    _times(wanted, factor) if i in chosen else wanted
                    for i, wanted in enumerate(case.operands)
                )
                grown = Case(operands, attributes)
                if _fits(op, grown, dtype, backend):
                    yield grown


def _attributes(case: Case, factor: int) -> Iterator[dict[str, Any]]:
    """The attributes as they are, then with those grown that name a shape."""
    plain = dict(case.attributes)
    yield plain
    shapes = [k for k, v in plain.items() if k.endswith("shape") and v]
    if shapes:
        yield plain | {k: (plain[k][0] * factor, *plain[k][1:]) for k in shapes}


def _count(wanted: Any) -> int:
    if wanted is None:
        return 0
    if isinstance(wanted, IndexSample | MaskSample | SortedSample):
        return int(np.prod(wanted.shape))
    if wanted and isinstance(wanted[0], tuple):
        return max(map(_count, wanted))
    return int(np.prod(wanted))


def _rank(wanted: Any) -> int:
    if isinstance(wanted, IndexSample | MaskSample | SortedSample):
        return len(wanted.shape)
    return len(wanted[0] if wanted and isinstance(wanted[0], tuple) else wanted)


def _times(wanted: Any, factor: int) -> Any:
    if isinstance(wanted, IndexSample):
        return IndexSample(_times(wanted.shape, factor), wanted.size)
    if isinstance(wanted, MaskSample | SortedSample):
        return type(wanted)(_times(wanted.shape, factor))
    if not wanted:  # absent, or a scalar, which stays one
        return wanted
    if isinstance(wanted[0], tuple):
        return tuple(_times(each, factor) for each in wanted)
    return (wanted[0] * factor, *wanted[1:])


def _fits(op: Op, case: Case, dtype: DType, backend: Backend) -> bool:
    """Whether the shape rule takes the case, and the results stay near the operands' size."""
    declared = zip(op.signature.operands, case.operands, strict=True)
    specs = [
        () if operand.variadic and wanted is None else _meta(wanted, dtype)
        for operand, wanted in declared
    ]
    names = [o.name for o in op.signature.operands]
    given = dict(zip(names, specs, strict=True)) | dict(case.attributes)
    given.setdefault("dtype", dtype)
    values = tuple(given.get(a.name, a.default) for a in op.signature.attributes)
    if REQUIRED in values:
        return False
    try:
        prepared = prepare_attributes(op, specs, values, backend)
        rule = op.shape
        shapes = rule(op, specs, prepared)
    except (PhloxError, IndexError):
        return False
    most = max(_count(wanted) for wanted in case.operands)
    return all(np.prod(shape, dtype=float) <= 4 * most for shape in shapes)


def _meta(wanted: Any, dtype: DType) -> Any:
    if wanted is None:
        return None
    if isinstance(wanted, IndexSample):
        return Spec(wanted.shape, int64)
    if isinstance(wanted, MaskSample):
        return Spec(wanted.shape, bool_)
    if isinstance(wanted, SortedSample):
        return Spec(wanted.shape, dtype)
    if wanted and isinstance(wanted[0], tuple):
        return tuple(Spec(each, dtype) for each in wanted)
    return Spec(wanted, dtype)


def ops_of(device: Backend) -> list[Op]:
    """All ops with operands that the device has an entry for; others expand into these."""
    ops = [op for _, op in sorted(REGISTRY.items()) if op.signature.operands]
    ops = [op for op in ops if not op.op_class.hosted]  # work grows with the cube of the size
    return [op for op in ops if device.entry(op.name) is not None]
