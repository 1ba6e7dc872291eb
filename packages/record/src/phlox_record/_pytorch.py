"""Files of ``torch.save`` (``.pt``, ``.pth``): a zip file of a pickle and of storages, or older.

Nothing of the pickle is executed: it may ask for tensors and containers, which are made here. What
else it asks for is an entry that is refused by name when it is read, while the others are read.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DType

from ._content import Content, Form
from ._errors import Malformed, shown
from ._layout import DTYPES, Descriptor, as_array, descriptor
from ._limits import Limits, check_depth
from ._pickle import Global, Machine, Opaque
from ._pytorch_names import CALLS, STORAGES, not_read
from ._pytorch_old import MAGIC, module_of, old_file
from ._skeleton import nested
from ._source import Source, Write
from ._tree import INT_RANGE, TensorEntry, unsupported_type
from ._zip import Member, contents, members

# Classes of tensors that mean no other numbers than those they hold.
_TENSOR_CLASSES: Final = {
    "torch.Tensor",
    "torch.nn.parameter.Buffer",
    "torch.nn.parameter.Parameter",
}


_ROOM_OF_ENTRY: Final = 64  # bytes of an entry of a dict, at least


class _Storage(NamedTuple):
    """Elements that lie in one member of the file."""

    member: Member
    dtype: DType
    length: int


def _write(content: Content, limits: Limits, write: Write) -> NoReturn:
    raise Malformed(
        "files of PyTorch are read, not written",
        expected="a recorder that writes",
        hint="px.record.SafetensorsRecorder().record("
        'model.into_record(layout="pytorch"), "model"), which safetensors.torch.load_file reads',
    )


def _read(source: Source, limits: Limits) -> Content:
    """Read the pickle; elements stay unread.

    Raises:
        Malformed: no such file, damaged, or one that asks for more than tensors and containers.
    """
    data = source.read_all()
    if bytes(data[: len(MAGIC)]) == MAGIC:
        text, storages = old_file(data, STORAGES, limits)
        reader = _Reader(source, storages, "", limits, checked=False)
        return Content(reader.value(text), checksums=False, layout="pytorch")
    found = members(data, limits.tensors + 1000)
    pickles = [name for name in found if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1:
        got = shown(", ".join(list(found)[:4]))
        raise Malformed("not a file of torch.save", got=got, expected="one data.pkl")
    reader = _Reader(source, found, pickles[0].removesuffix("data.pkl"), limits, checked=True)
    return Content(reader.read(), layout="pytorch")


class _Reader:
    """Answers what the pickle asks for."""

    def __init__(
        self,
        source: Source,
        found: dict[str, Member],
        folder: str,
        limits: Limits,
        *,
        checked: bool,
    ) -> None:
        self._source = source
        self._checked = checked  # whether there are checksums
        self._data = source.read_all()
        self._found = found
        self._folder = folder
        self._limits = limits
        self._nodes = limits.nodes
        self._room = limits.header_bytes
        self._tensors = limits.tensors

    def read(self) -> Any:
        order = self._found.get(f"{self._folder}byteorder")
        if order is not None and bytes(contents(self._data, order, 64)) != b"little":
            raise Malformed("a PyTorch file of a big-endian machine")
        pickle = self._found[f"{self._folder}data.pkl"]
        return self.value(bytes(contents(self._data, pickle, self._limits.header_bytes)))

    def value(self, text: bytes) -> Any:
        """Return what the pickle of the value makes."""
        value = Machine(text, self._call, self._storage, 8 * self._limits.nodes).run()
        if isinstance(value, Opaque | Global):
            raise Malformed(
                "the file holds an object, and not what a record can hold",
                got=shown(value.name),
                expected="tensors, containers and plain values",
                hint="torch.save(model.state_dict(), path) in PyTorch",
            )
        return self._plain(value, 0)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """What a known name constructs from its arguments; nothing else is made."""
        name = name.replace("__builtin__.", "builtins.", 1)  # of Python 2, as in protocol 2
        if name in CALLS:
            return self._counted(CALLS[name](arguments))
        short = name.removeprefix("torch._utils._rebuild_")
        if short in ("tensor", "tensor_v2", "tensor_v3"):
            return self._tensor(arguments, typed=short != "tensor_v3")
        if short in ("parameter", "parameter_with_state") and arguments:
            if isinstance(arguments[0], TensorEntry | Opaque):
                return arguments[0]
            raise Malformed("a parameter in the pickle is no tensor")
        if name == "torch._tensor._rebuild_from_type_v2" and len(arguments) == 4:
            return self._of_type(*arguments)
        if short == "device_tensor_from_cpu_tensor" and len(arguments) == 4:
            data, dtype, *_ = arguments
            named = isinstance(data, TensorEntry) and isinstance(dtype, Global)
            if named and dtype.name == f"torch.{data.dtype.name}":
                return data
        return Opaque(name)

    def _counted(self, made: Any) -> Any:
        """What was made, of which a pickle may ask again and again with a few bytes."""
        if isinstance(made, bytes | dict):
            self._room -= len(made) * (1 if isinstance(made, bytes) else _ROOM_OF_ENTRY)
            if self._room < 0:
                raise Malformed("the pickle asks for too many copies", hint="limits=Limits(…)")
        return made

    def _of_type(self, function: Any, kind: Any, arguments: Any, state: Any) -> Any:
        """A tensor with attributes, which are left out, or of a class that may mean another."""
        if not (isinstance(function, Global) and isinstance(kind, Global)):
            raise Malformed("a tensor in the pickle is wrong", got=shown(function))
        if kind.name not in _TENSOR_CLASSES or type(arguments) is not tuple:
            return Opaque(kind.name)
        return self._call(function.name, arguments)

    def _storage(self, key: Any) -> _Storage | Global:
        module = None if self._checked else module_of(key)
        if module is not None:
            return module
        # The old form has a sixth for a view, which PyTorch ceased to write with 0.4.
        if isinstance(key, tuple) and len(key) == 6 and not self._checked and key[5] is None:
            key = key[:5]
        if not isinstance(key, tuple) or len(key) != 5 or key[0] != "storage":
            raise Malformed("a storage in the pickle is wrong", got=shown(key))
        _, kind, name, _, count = key
        if not isinstance(kind, Global) or kind.name not in STORAGES:
            known = ", ".join(STORAGES)
            raise Malformed("elements of a type that is not read", got=shown(kind), expected=known)
        member = self._found.get(f"{self._folder}data/{name}") if isinstance(name, str) else None
        if member is None:
            raise Malformed("a storage is not in the file", got=shown(name))
        dtype = STORAGES[kind.name]
        if type(count) is not int or member.size != count * dtype.itemsize:
            got = f"{member.size:,} bytes"
            raise Malformed(f"storage {shown(name)} has a wrong size", got=got, expected=count)
        return _Storage(member, dtype, count)

    def _tensor(self, arguments: tuple[Any, ...], *, typed: bool) -> TensorEntry:
        if len(arguments) < (4 if typed else 7) or not isinstance(arguments[0], _Storage):
            raise Malformed("a tensor in the pickle is wrong", got=shown(arguments))
        storage, offset, size, stride = arguments[:4]
        more = arguments[6:] if typed else arguments[7:]
        if not typed:
            storage = _retyped(storage, arguments[6])
        shape = list(size) if isinstance(size, tuple) else size
        # Of types that are not read, only the sizes count.
        what = descriptor("uint8", shape)._replace(dtype=storage.dtype)
        what = what._replace(nbytes=what.nbytes * storage.dtype.itemsize)
        steps = list(stride) if isinstance(stride, tuple) else []
        whole = [offset, *steps]
        if len(steps) != len(what.shape) or any(type(n) is not int or n < 0 for n in whole):
            raise Malformed("the strides of a tensor are wrong", got=shown(stride))
        last = offset + sum((n - 1) * step for n, step in zip(what.shape, steps, strict=True))
        if what.nbytes and last >= storage.length:
            raise Malformed(
                "a tensor reaches behind its storage", got=last, expected=storage.length
            )
        if what.nbytes > max(self._limits.inflated_bytes, storage.member.size):
            raise Malformed("a tensor repeats its elements too often", got=f"{what.nbytes:,} bytes")
        if self._tensors == 0:
            raise Malformed("too many tensors in the file", hint="limits=Limits(tensors=…)")
        self._tensors -= 1
        bits = more[0] if more else {}
        if not isinstance(bits, dict) or any(type(bit) is not bool for bit in bits.values()):
            raise Malformed("what is said of a tensor is wrong", got=shown(bits))
        asked = {name for name, bit in bits.items() if bit}
        if storage.dtype.name not in DTYPES or asked - {"neg"}:
            name = storage.dtype.name if storage.dtype.name not in DTYPES else shown(sorted(asked))
            return not_read(name, what.shape, storage.dtype.itemsize)
        return self._lazy(storage, offset, what, steps, negative=bool(asked))

    def _lazy(
        self, storage: _Storage, offset: int, what: Descriptor, steps: list[int], *, negative: bool
    ) -> TensorEntry:
        member = storage.member
        cap = self._limits.inflated_bytes if member.method else member.size

        def read() -> NDArray[Any]:
            raw = contents(self._data, member, cap, checked=self._checked)
            used = storage.length * storage.dtype.itemsize
            whole = Descriptor(storage.dtype, (storage.length,), used)
            flat = as_array(raw[:used], whole)[offset:]
            if not what.nbytes:
                return np.zeros(what.shape, what.dtype.numpy)
            strides = [step * flat.itemsize for step in steps]
            view = np.lib.stride_tricks.as_strided(flat, what.shape, strides, writeable=False)
            # The imaginary part of a conjugated tensor shares its bits, with the other sign.
            return np.negative(view) if negative else view

        def drop() -> None:
            self._source.drop(member.start, member.packed)

        return TensorEntry(what.shape, what.dtype, read, drop=drop)

    def _plain(self, value: Any, depth: int) -> Any:
        """The value as a record; one that stands at many places counts at each."""
        self._nodes -= 1
        if self._nodes < 0:
            raise Malformed("too many values in the file", expected=f"{self._limits.nodes:,}")
        if type(value) in (dict, list, tuple):
            check_depth(depth)
        if isinstance(value, TensorEntry):
            return value
        if isinstance(value, _Storage):
            return not_read("a storage without a tensor")
        if isinstance(value, dict):
            made = {_key(key): self._plain(child, depth + 1) for key, child in value.items()}
            if len(made) != len(value):
                raise Malformed("two keys of a dict read alike", got=shown(list(value)))
            flat = bool(made) and all(isinstance(child, TensorEntry) for child in made.values())
            return nested(made) if flat else made
        if isinstance(value, list | tuple):
            return [self._plain(child, depth + 1) for child in value]
        if isinstance(value, Global) and value.name.count(".") == 1 and value.name[:6] == "torch.":
            return value.name  # such as torch.float32
        if isinstance(value, Global | Opaque):
            return not_read(value.name)
        if type(value) is int and not INT_RANGE[0] <= value <= INT_RANGE[1]:
            return not_read(f"an integer of {value.bit_length()} bits")
        return value


def _key(key: Any) -> str:
    if isinstance(key, Global):
        return key.name
    if isinstance(key, tuple):
        return str(tuple(part.name if isinstance(part, Global) else part for part in key))
    return key if isinstance(key, str) else str(key)


def _retyped(storage: _Storage, dtype: Any) -> _Storage:
    """A storage of bytes, as one of the elements that a tensor on it has."""
    if not isinstance(dtype, Global):
        raise Malformed("the element type of a tensor is wrong", got=shown(dtype))
    name = dtype.name.removeprefix("torch.")
    known = DTYPES.get(name, _unknown(name))
    nbytes = storage.length * storage.dtype.itemsize
    return storage._replace(dtype=known, length=nbytes // known.itemsize)


def _unknown(name: str) -> DType:
    """A type that is not read, of elements of one byte unless its name says more."""
    bits = int("0" + "".join(re.findall(r"^(?:bits|complex|bcomplex|float)(\d+)", name)[:1]))
    return unsupported_type(shown(name), max(1, bits // 8))


PYTORCH: Final = Form(
    write=_write,
    read=_read,
    recognizes=lambda head: head.startswith((b"PK\3\4", MAGIC)) and b".npy" not in head,
    cap=lambda limits: limits.inflated_bytes,
)
