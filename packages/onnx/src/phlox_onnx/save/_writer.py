"""Nodes and constants of a file as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from phlox_tensor import DType
from phlox_tensor.capture import shown

from .._errors import OnnxError
from ._sizes import ONE, Followed, Product, Spread

OPSET: Final = 21
# What is said of modules that are not the same for all sizes.
EVERY: Final = "one way for all sizes"


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

    def refuse_followed(self, what: str, hint: str = ONE) -> OnnxError:
        """The error that says what cannot be written for all sizes."""
        return OnnxError("save", what, got=str(self), expected=EVERY, hint=hint)

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

    def __init__(self, opened: Mapping[str, tuple[str, int]]) -> None:
        """Start with none; ``opened`` says which axis of which input has each open size."""
        self._opened = opened
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.places: list[str] = []  # who asked for each node
        self.place = ""  # who asks now
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
        array = np.asarray(value, order="C")
        if name != "constant":
            found = self.name(name)
            self.initializers.append(numpy_helper.from_array(array, found))
            return found
        key = array.dtype.str, array.shape, blake2b(array.tobytes()).digest()
        if key not in self._constants:
            found = self._constants[key] = self.name(name)
            self.initializers.append(numpy_helper.from_array(array, found))
        return self._constants[key]

    def ints(self, *values: int) -> str:
        """Whole numbers, as shapes and axes are written."""
        return self.array(np.array(values, np.int64))

    def sizes(self, shape: Sequence[Any]) -> str:
        """Whole numbers, of which some follow from open sizes."""
        if not any(isinstance(n, Followed) for n in shape):
            return self.ints(*shape)
        parts = [self._line(n) if isinstance(n, Followed) else self.ints(n) for n in shape]
        return parts[0] if len(parts) == 1 else str(self.add("Concat", parts, axis=0))

    def _line(self, size: Followed) -> str:
        """A whole number that follows from open sizes, as one element of an axis."""
        if size.terms not in self._constants:
            found = ""
            for product, factor in size.terms:
                part = self._product(product) if product else self.ints(int(factor))
                if product and factor != 1:
                    part = self.add("Mul", [part, self.ints(int(factor))])
                found = str(self.add("Add", [found, part])) if found else part
            self._constants[size.terms] = found
        return self._constants[size.terms]

    def _product(self, names: Product) -> str:
        """The product of open sizes, as one element of an axis."""
        *rest, last = names
        if rest:
            key = "product", names
            if key not in self._constants:
                both = [self._product(tuple(rest)), self._product((last,))]
                self._constants[key] = str(self.add("Mul", both))
            return self._constants[key]
        word, axis = self._opened[last]
        return self._once("Shape", word, start=axis, end=axis + 1)

    def _once(self, op: str, name: str, **attributes: Any) -> str:
        key = op, name, *attributes.values()
        if key not in self._constants:
            self._constants[key] = str(self.add(op, [name], **attributes))
        return self._constants[key]

    def count(self, value: Any) -> str:
        """A whole number of 64 bits, which may follow from open sizes."""
        if isinstance(value, Followed):
            return self._once("Squeeze", self._line(value))
        return self.array(np.array(value, np.int64))

    def number(self, value: Any, dtype: DType) -> str:
        """A number of an element type."""
        if not isinstance(value, Followed):
            return self.array(np.array(value, dtype.numpy))
        if value.whole:
            return self.cast(self.count(value), dtype)
        terms = {product: np.float64(factor) for product, factor in value.terms}
        return self._followed(terms, dtype.numpy)

    def spread(self, found: Spread, name: str) -> str:
        """A constant of several runs."""
        if len(found.terms) == 1:
            made = self.array(found.terms[()], name)
        else:
            made = self._followed(found.terms, found.dtype)
        if found.shape is None:
            return made
        return str(self.add("Expand", [made, self.sizes(found.shape)]))

    def _followed(self, terms: Mapping[Product, Any], dtype: Any) -> str:
        """A sum of products of sizes, reckoned in 64 bits and then rounded."""
        found = ""
        for product, factor in terms.items():
            part = self.array(factor)
            if product:
                size, wide = self.count(Followed(((product, 1),))), np.asarray(factor).dtype
                if wide.kind == "f":
                    to = int(helper.np_dtype_to_tensor_dtype(wide))
                    size = self._once("Cast", size, to=to)
                part = str(self.add("Mul", [part, size]))
            found = str(self.add("Add", [found, part])) if found else part
        to = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        return str(self.add("Cast", [found], to=to))

    def cast(self, name: str, dtype: DType) -> str:
        """A value as another element type."""
        return str(self.add("Cast", [name], to=type_of(dtype)))
