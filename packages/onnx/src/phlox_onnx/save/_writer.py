"""Nodes and constants of a file as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from phlox_tensor import DType
from phlox_tensor.capture import shown

from .._errors import OnnxError

FREE: Final = None  # a size that another batch changes
OPSET: Final = 21


@final
@dataclass(frozen=True)
class Call:
    """An op that ran.

    Attributes:
        op: its name.
        inputs: names of values, numbers, lists of names, or None.
        attributes: as the device got them.
        shapes: of the inputs that are values, None for others.
        dtypes: likewise.
        outs: shape and element type of each result.
        wanted: whether somebody reads each result.
        batches: whether each free size of the first result is that of the batch.
        where: the module, or the line, that asked for it.
    """

    op: str
    inputs: tuple[Any, ...]
    attributes: tuple[Any, ...]
    shapes: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    outs: tuple[tuple[tuple[int | None, ...], DType], ...]
    wanted: tuple[bool, ...]
    batches: bool
    where: str

    def refuse(self, what: str) -> OnnxError:
        """The error that says what cannot be written."""
        got = f"{self.op}({', '.join(shown(a) for a in self.attributes)}) in {self.where}"
        hint = "px.onnx.save writes what nn computes; leave this op to what runs after the file"
        return OnnxError("save", what, got=got, expected="an op that ONNX can spell", hint=hint)


def type_of(dtype: DType) -> int:
    """The number that ONNX has for an element type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy)))


@final
class Writer:
    """Collects nodes; every value gets a name that is given once."""

    def __init__(self) -> None:
        """Start with none."""
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.names: set[str] = set()
        self._constants: dict[Any, str] = {}
        self.first = ""  # the input whose first axis is the batch

    def name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found, i = wanted, 1
        while found in self.names:
            i += 1
            found = f"{wanted}_{i}"
        self.names.add(found)
        return found

    def add(self, op: str, inputs: Sequence[str], count: int = 1, /, **attributes: Any) -> Any:
        """Write a node; return the name of its output, or those of several."""
        outputs = [self.name(op.lower()) for _ in range(count)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **kept))
        return outputs[0] if count == 1 else outputs

    def array(self, value: Any, name: str = "constant") -> str:
        """Write a constant, each once."""
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 else None
        if key is not None and name == "constant" and key in self._constants:
            return self._constants[key]
        found = self.name(name)
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), found))
        if key is not None and name == "constant":
            self._constants[key] = found
        return found

    def ints(self, *values: int) -> str:
        """Whole numbers, as shapes and axes are written."""
        return self.array(np.array(values, np.int64))

    def sizes(self, shape: Sequence[int | None]) -> str:
        """A shape whose free size is that of the batch."""
        if FREE not in shape:
            return self.ints(*(n for n in shape if n is not None))
        whole = self.add("Shape", [self.first], end=1)
        parts = [whole if n is None else self.ints(n) for n in shape]
        return str(self.add("Concat", parts, axis=0))

    def number(self, value: float, dtype: DType) -> str:
        """A number of an element type."""
        return self.array(np.array(value, dtype.numpy))

    def cast(self, name: str, dtype: DType) -> str:
        """A value as another element type."""
        return str(self.add("Cast", [name], to=type_of(dtype)))
