"""The NumPy backend: the reference, and the device of last resort."""

from __future__ import annotations

from functools import wraps
from typing import Any, final

import numpy as np

from .._op.declaration import REGISTRY, Op
from .._values.dtype import BY_NUMPY, DTYPES, DType, DTypeLike, default_dtype, float32, int64
from ..inference import result_dtype
from .backend import Backend
from .table import Entry

Array = np.ndarray[Any, Any]


class Arrays(Backend):
    """A device whose primitives are arrays; a subclass says what runs the ops."""

    dtypes = frozenset(DTYPES.values())
    default_float, default_int = float32, int64

    def shape_of(self, primitive: Array, /) -> tuple[int, ...]:
        """Return the shape of an array."""
        return primitive.shape

    def dtype_of(self, primitive: Array, /) -> DType:
        """Return the element type of an array."""
        return BY_NUMPY[primitive.dtype]

    def strides_of(self, primitive: Array, /) -> tuple[int, ...]:
        """Return how many elements lie between neighbors along each axis."""
        return tuple(step // primitive.itemsize for step in primitive.strides)

    def upload(self, array: Array, dtype: DType, /) -> Array:
        """Copy an array."""
        return np.array(array, dtype=dtype.numpy, order="C")

    def read(self, primitive: Array, /) -> Array:
        """Return a view of the array."""
        return primitive.view()


@final
class Numpy(Arrays):
    """NumPy arrays, computed by the references that the ops declare.

    Args:
        float: element type of new Float tensors.
        int: element type of new Int tensors.
    """

    name = "numpy"

    def __init__(self, float: DTypeLike = "float32", int: DTypeLike = "int64") -> None:
        """Choose the default element types."""
        self.default_float = default_dtype("float", float, "Numpy")
        self.default_int = default_dtype("int", int, "Numpy")
        self.settings = (self.default_float.name, self.default_int.name)

    def __repr__(self) -> str:
        given = [
            f"{key}={value!r}"
            for key, value, default in zip(
                ("float", "int"), self.settings, ("float32", "int64"), strict=True
            )
            if value != default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def entry(self, name: str) -> Entry | None:
        """Return the reference of the op, made to give the declared type."""
        op = REGISTRY[name]
        return None if op.numpy is None else _typed(op, op.numpy, self.default_int)


def _typed(op: Op, reference: Entry, default_int: DType) -> Entry:
    """Warnings off, 0-d results as arrays, results in the type that the declaration says."""
    count = len(op.signature.operands)
    kinds = [operand.kind for operand in op.signature.operands]
    results = op.signature.results

    @wraps(reference)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            out = reference(*(_placed(args, kinds) if op.op_class.takes_numbers else args))
        dtypes = [_dtype_of(arg) for arg in args[:count]]

        def finish(value: Any, kind: str) -> Array:
            dtype = result_dtype(op, kind, dtypes, args[count:], default_int)
            return np.asarray(value).astype(dtype.numpy, copy=False)

        if not op.signature.several:
            return finish(out, results[0].kind)
        declared = results * len(out) if results[0].variadic else results
        return tuple(finish(o, r.kind) for o, r in zip(out, declared, strict=True))

    return run


def _placed(args: tuple[Any, ...], kinds: list[str]) -> list[Any]:
    """Numbers, in the type of the arrays with them, which NumPy widens where it is bfloat16."""
    types = {k: x.dtype for k, x in zip(kinds, args, strict=False) if isinstance(x, np.ndarray)}
    placed = [
        x if isinstance(x, np.ndarray) or k not in types else np.asarray(x, types[k])
        for k, x in zip(kinds, args, strict=False)
    ]
    return [*placed, *args[len(kinds) :]]


def _dtype_of(operand: Any) -> DType | None:
    if isinstance(operand, tuple):
        operand = operand[0] if operand else None
    return BY_NUMPY[operand.dtype] if isinstance(operand, np.ndarray) else None
