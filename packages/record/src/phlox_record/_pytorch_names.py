"""What the pickles of ``torch.save`` may ask for that is no tensor, and element types not read.

The names are those that ``torch.load(weights_only=True)`` of PyTorch 2.15 allows, and
``frozenset``, ``defaultdict`` and empty ``bytes``, which are containers and plain values too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from phlox_tensor import DType

from ._errors import Malformed, shown
from ._layout import DTYPES
from ._tree import TensorEntry, unsupported, unsupported_type

STORAGES: Final[dict[str, DType]] = {
    "torch.BFloat16Storage": DTYPES["bfloat16"],
    "torch.BoolStorage": DTYPES["bool"],
    "torch.ByteStorage": DTYPES["uint8"],
    "torch.CharStorage": DTYPES["int8"],
    "torch.DoubleStorage": DTYPES["float64"],
    "torch.FloatStorage": DTYPES["float32"],
    "torch.HalfStorage": DTYPES["float16"],
    "torch.IntStorage": DTYPES["int32"],
    "torch.LongStorage": DTYPES["int64"],
    "torch.ShortStorage": DTYPES["int16"],
    "torch.storage.UntypedStorage": DTYPES["uint8"],
} | {
    f"torch.{storage}Storage": unsupported_type(name, itemsize)
    for storage, name, itemsize in (
        ("ComplexDouble", "complex128", 16),
        ("ComplexFloat", "complex64", 8),
        ("QInt32", "qint32", 4),
        ("QInt8", "qint8", 1),
        ("QUInt2x4", "quint2x4", 1),
        ("QUInt4x2", "quint4x2", 1),
        ("QUInt8", "quint8", 1),
    )
}


def not_read(name: str, shape: tuple[int, ...] = (), itemsize: int = 0) -> TensorEntry:
    """Return the entry of a tensor or an object that a record cannot hold."""
    return unsupported(name, shape, itemsize=itemsize, hint=_advice(name))


def _advice(name: str) -> str:
    kinds = {
        "complex": "torch.view_as_real(x)",
        "sparse": "x.to_dense()",
        "qtensor": "x.dequantize()",
        "qint": "x.dequantize()",
        "quint": "x.dequantize()",
        "float8": "x.float()",
        "nested": "x.to_padded_tensor(0.0)",
        "torch.nn.": "model.state_dict()",
        "numpy.": "torch.as_tensor(x)",
    }
    found = next((then for kind, then in kinds.items() if kind in name), None)
    before = "" if found is None else f"{found} before torch.save in PyTorch, or here "
    return f"{before}px.record.PyTorchRecorder().open(path), which reads all else"


def _ordered(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    if not arguments:
        return {}
    pairs = arguments[0]
    if len(arguments) > 1 or not isinstance(pairs, list):
        raise _wrong("a dict", arguments)
    result = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or type(pair[0]) is not str:
            raise _wrong("a dict", pair)
        result[pair[0]] = pair[1]
    return result


def _counter(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    match arguments:
        case ():
            return {}
        case (dict() as counts,):
            return counts
    raise _wrong("a Counter", arguments)


def _items(arguments: tuple[Any, ...]) -> Any:
    """A set, as the list of what is in it: records have no sets."""
    match arguments:
        case ():
            return []
        case (list() | tuple() as items,):
            return items
    raise _wrong("a set", arguments)


def _bytes(arguments: tuple[Any, ...]) -> bytes:
    match arguments:
        case ():
            return b""
        case (bytes() as data,):
            return data
        case (str() as text, "latin1" | "latin-1"):
            try:
                return text.encode("latin-1")
            except UnicodeEncodeError:
                pass
    raise _wrong("bytes", arguments)


def _complex(arguments: tuple[Any, ...]) -> str:
    if len(arguments) != 2 or any(type(part) not in (int, float) for part in arguments):
        raise _wrong("a complex number", arguments)
    real, imaginary = (float(part) for part in arguments)
    return str(complex(real, imaginary))


def _device(arguments: tuple[Any, ...]) -> str:
    match arguments:
        case (str() as kind,):
            return kind
        case (str() as kind, int() as index):
            return f"{kind}:{index}"
    raise _wrong("a device", arguments)


def _size(arguments: tuple[Any, ...]) -> Any:
    if len(arguments) != 1 or not isinstance(arguments[0], list | tuple):
        raise _wrong("a size", arguments)
    return arguments[0]


def _layout(arguments: tuple[Any, ...]) -> str:
    if len(arguments) != 1 or type(arguments[0]) is not str:
        raise _wrong("a layout", arguments)
    return arguments[0]


def _wrong(what: str, got: Any) -> Malformed:
    return Malformed(f"{what} in the pickle is wrong", got=shown(got))


CALLS: Final[dict[str, Callable[[tuple[Any, ...]], Any]]] = {
    "_codecs.encode": _bytes,
    "builtins.bytearray": _bytes,
    "builtins.bytes": _bytes,
    "builtins.complex": _complex,
    "builtins.frozenset": _items,
    "builtins.set": _items,
    "collections.Counter": _counter,
    "collections.OrderedDict": _ordered,
    "collections.defaultdict": lambda arguments: {},  # filled item by item; of what is left out
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _layout,
}
