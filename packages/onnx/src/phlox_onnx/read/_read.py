"""Bytes to a model: the only file that knows protobuf. Everything is checked, nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from phlox_tensor import DTYPES, ArgumentError

from .._errors import OnnxError
from .._graph import Array, Function, Graph, Key, Model, Node, Reference, Value
from ._external import Opened, mapped
from ._limits import Limits
from ._types import TYPES, type_name

_T: Final = onnx.TensorProto
_PACKED: Final = {code: onnx.helper.tensor_dtype_to_np_dtype(code) for code in (_T.UINT4, _T.INT4)}
_FIELDS: Final = {
    _T.FLOAT: "float_data",
    _T.DOUBLE: "double_data",
    _T.INT64: "int64_data",
    _T.UINT32: "uint64_data",
    _T.UINT64: "uint64_data",
}
_A: Final = onnx.AttributeProto
_LARGEST: Final = 1 << 59  # elements that NumPy can count
NEWEST: Final = 28  # the opset that the rows were written for


Source = str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto


def bytes_of(source: object) -> bytes | None:
    """A file in memory; None for what is none, such as a path."""
    if isinstance(source, onnx.ModelProto):
        return bytes(source.SerializeToString())
    return bytes(source) if isinstance(source, bytes | bytearray | memoryview) else None


def read(source: object, limits: Limits) -> Model:
    """Return the model of a file, or of its bytes.

    Raises:
        OnnxError: when the bytes are no model, or go beyond a limit.
        OSError: when the file cannot be read.
    """
    folder = None
    data = bytes_of(source)
    if data is not None:
        if len(data) > limits.file_bytes:
            raise _bad("the file is too large", len(data), limits.file_bytes)
    elif not isinstance(source, str | os.PathLike):
        expected = "a path, bytes, or an onnx.ModelProto"
        raise ArgumentError("onnx", "this is no file", got=type(source).__name__, expected=expected)
    else:
        path = Path(source)
        folder = path.parent
        if path.stat().st_size > limits.file_bytes:
            raise _bad("the file is too large", path.stat().st_size, limits.file_bytes)
        data = path.read_bytes()
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception:  # protobuf's DecodeError: onnx does not export it
        raise _bad("not an ONNX file", f"{len(data)} bytes", "a ModelProto") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise _bad("not an ONNX model", f"{len(data)} bytes", "a graph and its opset")
    del data  # protobuf has a copy of it, and arrays will be another
    return _Reader(limits, folder).model(proto)


def _bad(what: str, got: object = None, expected: object = None) -> OnnxError:
    return OnnxError("onnx", what, got=got, expected=expected)


def _domain(text: str) -> str:
    return "" if text == "ai.onnx" else text


class _Reader:
    """What the parts of one file are read with: the caps, and what was counted so far."""

    def __init__(self, limits: Limits, folder: Path | None) -> None:
        self._limits, self._folder, self._nodes = limits, folder, 0
        self._opened: Opened = {}

    def model(self, proto: Any) -> Model:
        if proto.ir_version > onnx.IR_VERSION:
            raise _bad("a newer form of file", f"version {proto.ir_version}", onnx.IR_VERSION)
        opsets = self._opsets(proto.opset_import)
        functions: dict[Key, Function] = {}
        for each in proto.functions:
            found = self._function(each, opsets)
            if found.key in functions:
                raise _bad("a function is declared twice", found.key[1])
            functions[found.key] = found
        return Model(self._graph(proto.graph, opsets, 0), functions)

    def _opsets(self, entries: Iterable[Any]) -> dict[str, int]:
        found = {_domain(self._name(e.domain)): int(e.version) for e in entries}
        if not 1 <= found.get("", 1) <= NEWEST:
            raise _bad("an opset that is not known", found[""], f"1 to {NEWEST}")
        return found

    def _name(self, text: str | bytes) -> str:
        if isinstance(text, bytes):  # which protobuf gives where text is no UTF-8
            raise _bad("a name is no text", repr(text[:40]), "UTF-8")
        if len(text) > self._limits.name:
            raise _bad("a name is too long", f"{len(text)} characters", self._limits.name)
        return text

    def _function(self, proto: Any, around: dict[str, int]) -> Function:
        opsets = {**around, **self._opsets(proto.opset_import)}
        key = (_domain(self._name(proto.domain)), self._name(proto.name))
        defaults = {
            self._name(a.name): self._attribute(a, opsets, 0) for a in proto.attribute_proto
        }
        return Function(
            key,
            [self._name(n) for n in proto.input],
            [self._name(n) for n in proto.output],
            defaults,
            [self._node(n, opsets, 0) for n in proto.node],
        )

    def _graph(self, proto: Any, opsets: dict[str, int], depth: int) -> Graph:
        if depth > self._limits.depth:
            raise _bad("graphs nest too deep", depth, self._limits.depth)
        constants: dict[str, Array] = {}
        for name, found in self._constants(proto):
            if name in constants:
                raise _bad("two constants have one name", repr(name))
            constants[name] = found
        inputs = [self._value(v) for v in proto.input]
        return Graph(
            self._name(proto.name),
            [v for v in inputs if v.name not in constants],
            [self._value(v) for v in proto.output],
            [self._node(n, opsets, depth) for n in proto.node],
            constants,
        )

    def _constants(self, proto: Any) -> Iterator[tuple[str, Array]]:
        for dense in proto.initializer:
            yield self._name(dense.name), self.tensor(dense)
        for sparse in proto.sparse_initializer:
            yield self._name(sparse.values.name), self._sparse(sparse)

    def _value(self, proto: Any) -> Value:
        found = Value(self._name(proto.name))
        if not proto.type.HasField("tensor_type"):
            return found
        kind = proto.type.tensor_type
        found.dtype, found.code = type_name(kind.elem_type), kind.elem_type
        if kind.HasField("shape"):
            dims = kind.shape.dim
            found.shape = tuple(
                int(d.dim_value) if d.HasField("dim_value") else self._name(d.dim_param) or None
                for d in dims
            )
        return found

    def _node(self, proto: Any, opsets: dict[str, int], depth: int) -> Node:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise _bad("too many nodes", self._nodes, self._limits.nodes)
        if len(proto.attribute) > self._limits.attributes:
            raise _bad("too many attributes", len(proto.attribute), self._limits.attributes)
        domain = _domain(self._name(proto.domain))
        node = Node(
            self._name(proto.op_type),
            domain,
            [self._name(n) for n in proto.input],
            [self._name(n) for n in proto.output],
            {},
            self._name(proto.name),
            opsets.get(domain, 1),
        )
        for each in proto.attribute:
            if each.name in node.attributes:
                raise _bad("an attribute is given twice", f"{each.name} of {node.where()}")
            node.attributes[self._name(each.name)] = self._attribute(each, opsets, depth)
        return node

    def _attribute(self, proto: Any, opsets: dict[str, int], depth: int) -> Any:
        if proto.ref_attr_name:
            return Reference(self._name(proto.ref_attr_name))
        kind = proto.type or self._guess(proto)
        plain: dict[int, str] = {_A.FLOAT: "f", _A.INT: "i", _A.FLOATS: "floats", _A.INTS: "ints"}
        if kind in plain:
            found = getattr(proto, plain[kind])
            return found if kind in (_A.FLOAT, _A.INT) else tuple(found)
        if kind == _A.STRING:
            return self._text(proto.s)
        if kind == _A.STRINGS:
            return tuple(self._text(s) for s in proto.strings)
        if kind == _A.TENSOR:
            return self.tensor(proto.t)
        if kind == _A.GRAPH:
            return self._graph(proto.g, opsets, depth + 1)
        if kind == _A.SPARSE_TENSOR:
            return self._sparse(proto.sparse_tensor)
        if kind == _A.TYPE_PROTO:
            return type_name(proto.tp.tensor_type.elem_type)
        raise _bad("an attribute of a kind that has no use here", repr(proto.name))

    def _guess(self, proto: Any) -> int:
        """The kind of an attribute in files from before kinds were written."""
        fields = {"f": _A.FLOAT, "i": _A.INT, "s": _A.STRING, "t": _A.TENSOR, "g": _A.GRAPH}
        for name, kind in fields.items():
            if proto.HasField(name):
                return int(kind)
        lists = {"floats": _A.FLOATS, "ints": _A.INTS, "strings": _A.STRINGS}
        return next((int(kind) for name, kind in lists.items() if len(getattr(proto, name))), 0)

    def _text(self, data: bytes) -> str:
        try:
            return self._name(data.decode())
        except UnicodeDecodeError:
            raise _bad("text is not UTF-8", data[:20]) from None

    def _shape(self, dims: Iterable[int], name: str) -> tuple[int, ...]:
        shape = tuple(int(n) for n in dims)
        # Where a size is 0 the others are not counted, but have to be sizes of an array.
        beyond = prod(max(n, 1) for n in shape) > _LARGEST
        if len(shape) > self._limits.rank or any(n < 0 for n in shape) or beyond:
            raise _bad("a tensor has an impossible shape", f"{shape[:8]} of {name!r}")
        return shape

    def tensor(self, proto: Any) -> Array:
        """Return the elements of a tensor, whose number is checked before they are taken."""
        name = self._name(proto.name)
        shape = self._shape(proto.dims, name)
        if proto.HasField("segment"):
            raise _bad("a tensor is in segments", repr(name))
        count = prod(shape)
        if proto.data_type == _T.STRING:
            if len(proto.string_data) != count:
                raise _bad("a tensor lacks elements", len(proto.string_data), count)
            texts = [bytes(s).decode(errors="replace") for s in proto.string_data]
            return np.array(texts, dtype=object).reshape(shape)
        if proto.data_type not in TYPES:
            what = "a tensor has an element type that phlox lacks"
            raise _bad(what, f"{type_name(proto.data_type)} of {name!r}", "a type of phlox.DTYPES")
        dtype = np.dtype(DTYPES[TYPES[proto.data_type]].numpy)
        packed = proto.data_type in _PACKED
        stored = (count + 1) // 2 if packed else count * dtype.itemsize
        if proto.data_location == _T.EXTERNAL:
            entries = {e.key: e.value for e in proto.external_data}
            data: Any = mapped(self._folder, entries, stored, self._opened)
        elif proto.HasField("raw_data"):
            data = proto.raw_data
            if len(data) != stored:
                raise _bad("a tensor has other bytes than its shape", len(data), stored)
        else:
            return self._typed(proto, dtype, count).reshape(shape)
        if packed:
            return _unpacked(np.frombuffer(data, np.uint8), proto, count).reshape(shape)
        if dtype.kind == "b":
            return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)

    def _typed(self, proto: Any, dtype: Any, count: int) -> Array:
        packed = proto.data_type in _PACKED
        field = getattr(proto, _FIELDS.get(proto.data_type, "int32_data"))
        wanted = (count + 1) // 2 if packed else count
        if len(field) != wanted:
            raise _bad("a tensor lacks elements", f"{len(field)} of {proto.name!r}", wanted)
        values = np.array(field, dtype=None if len(field) else np.int64)
        if packed:
            return _unpacked(values.astype(np.uint8), proto, count)
        if proto.data_type in (_T.FLOAT16, _T.BFLOAT16):
            return values.astype(np.uint16).view(dtype)
        return values.astype(dtype)

    def _sparse(self, proto: Any) -> Array:
        values, indices = self.tensor(proto.values), self.tensor(proto.indices)
        shape = self._shape(proto.dims, proto.values.name)
        # What is not there has to be written too, so it may not outgrow what is.
        if prod(shape) > max(1 << 20, 100 * values.size):
            raise _bad("a sparse tensor is too large", prod(shape), max(1 << 20, 100 * values.size))
        if indices.shape not in ((values.size,), (values.size, len(shape))):
            got = f"indices {indices.shape} for {values.size} values of {shape}"
            raise _bad("a sparse tensor points outside of its shape", got)
        if indices.ndim == 2:
            inside = ((indices >= 0) & (indices < np.array(shape))).all()
            flat = indices @ np.array([prod(shape[i + 1 :]) for i in range(len(shape))])
        else:
            flat = indices
            inside = ((flat >= 0) & (flat < prod(shape))).all()
        if not inside or flat.shape != values.shape:
            raise _bad("a sparse tensor points outside of its shape", shape)
        out = np.zeros(prod(shape), values.dtype)
        out[flat.astype(np.int64)] = values
        return out.reshape(shape)


def _unpacked(data: Array, proto: Any, count: int) -> Array:
    """Two numbers of 4 bits from each byte, the low one first, as elements of four bits."""
    pairs = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[:count]
    return pairs.view(_PACKED[proto.data_type])
