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
from ._batched import Batched, Spread

OPSET: Final = 21
# What is said of modules that are not the same for each batch.
EVERY: Final = "one way for all batches"
ONE: Final = "px.onnx.save(module, inputs, path), for the batch of the inputs alone"


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
        where: the module and the line that asked for it.
    """

    op: str
    inputs: tuple[Any, ...]
    attributes: tuple[Any, ...]
    shapes: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    outs: tuple[tuple[tuple[Any, ...], DType], ...]
    wanted: tuple[bool, ...]
    where: str

    def refuse(self, what: str) -> OnnxError:
        """The error that says what cannot be written."""
        hint = "px.onnx.save writes what nn computes; leave this op to what runs after the file"
        expected = "an op that ONNX can spell"
        return OnnxError("save", what, got=str(self), expected=expected, hint=hint)

    def refuse_batch(self, what: str) -> OnnxError:
        """The error that says what cannot be written for any batch."""
        return OnnxError("save", what, got=str(self), expected=EVERY, hint=ONE)

    def __str__(self) -> str:
        numbers = [i for i in self.inputs if i is not None and not isinstance(i, str | list)]
        given = ", ".join(map(shown, (*numbers, *self.attributes)))
        return f"{self.op}({given}) in {self.where}"


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
        self.places: list[str] = []  # who asked for each node
        self.place = ""  # who asks now
        self.first = ""  # the input whose first axis is the batch
        self._names: dict[str, int] = {}  # how often each was wanted
        self._constants: dict[Any, str] = {}

    def name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found = wanted
        while found in self._names:
            self._names[wanted] += 1
            found = f"{wanted}_{self._names[wanted]}"
        self._names[found] = 1
        return found

    def add(self, op: str, inputs: Sequence[str], count: int = 1, /, **attributes: Any) -> Any:
        """Write a node; return the name of its output, or those of several."""
        outputs = [self.name(op.lower()) for _ in range(count)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **kept))
        self.places.append(self.place)
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

    def sizes(self, shape: Sequence[Any]) -> str:
        """Whole numbers, of which some follow from the batch."""
        if not any(isinstance(n, Batched) for n in shape):
            return self.ints(*shape)
        parts = [self._line(n) if isinstance(n, Batched) else self.ints(n) for n in shape]
        return parts[0] if len(parts) == 1 else str(self.add("Concat", parts, axis=0))

    def _line(self, size: Batched) -> str:
        """A whole number that follows from the batch, as one element of an axis."""
        key = "batch", size.times, size.plus
        if key not in self._constants:
            found = self._once("Shape", self.first, end=1)
            if size.times != 1:
                found = self.add("Mul", [found, self.ints(int(size.times))])
            if size.plus:
                found = self.add("Add", [found, self.ints(int(size.plus))])
            self._constants[key] = found
        return self._constants[key]

    def _once(self, op: str, name: str, **attributes: Any) -> str:
        key = op, name
        if key not in self._constants:
            self._constants[key] = str(self.add(op, [name], **attributes))
        return self._constants[key]

    def count(self, value: Any) -> str:
        """A whole number of 64 bits, which may follow from the batch."""
        if isinstance(value, Batched):
            return self._once("Squeeze", self._line(value))
        return self.array(np.array(value, np.int64))

    def number(self, value: Any, dtype: DType) -> str:
        """A number of an element type."""
        if not isinstance(value, Batched):
            return self.array(np.array(value, dtype.numpy))
        if value.whole:
            return self.cast(self.count(value), dtype)
        return self._followed(np.float64(value.times), np.float64(value.plus), dtype.numpy)

    def spread(self, found: Spread, name: str) -> str:
        """A constant of several runs."""
        if found.times is None:
            made = self.array(found.plus, name)
        else:
            made = self._followed(found.times, found.plus, found.dtype)
        if found.shape is None:
            return made
        return str(self.add("Expand", [made, self.sizes(found.shape)]))

    def _followed(self, times: Any, plus: Any, dtype: Any) -> str:
        """``times * batch + plus``, reckoned in 64 bits and then rounded."""
        batch = self.count(Batched(1, 0))
        wide = np.asarray(times).dtype
        if wide.kind == "f":
            batch = str(self.add("Cast", [batch], to=int(helper.np_dtype_to_tensor_dtype(wide))))
        found = self.add("Add", [self.add("Mul", [self.array(times), batch]), self.array(plus)])
        to = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        return str(self.add("Cast", [found], to=to))

    def cast(self, name: str, dtype: DType) -> str:
        """A value as another element type."""
        return str(self.add("Cast", [name], to=type_of(dtype)))
