"""Files of ``torch.save`` (``.pt``, ``.pth``): a zip file of a pickle and of storages, or older.

Nothing of the pickle is executed: it may ask for tensors and containers, which are made here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DType

from ._content import Content
from ._errors import Malformed, shown
from ._form import Form
from ._layout import DTYPES, Descriptor, as_array, descriptor
from ._limits import MAX_DEPTH, Limits
from ._pickle import Global, Machine
from ._pytorch_old import MAGIC, old_file
from ._skeleton import nested
from ._source import Source, Write
from ._tree import TensorEntry
from ._zip import Member, contents, members

_STORAGES: Final = {
    "torch.BFloat16Storage": "bfloat16",
    "torch.BoolStorage": "bool",
    "torch.ByteStorage": "uint8",
    "torch.CharStorage": "int8",
    "torch.DoubleStorage": "float64",
    "torch.FloatStorage": "float32",
    "torch.HalfStorage": "float16",
    "torch.IntStorage": "int32",
    "torch.LongStorage": "int64",
    "torch.ShortStorage": "int16",
    "torch.storage.UntypedStorage": "uint8",
}


class _Storage(NamedTuple):
    """Elements that lie in one member of the file."""

    member: Member
    dtype: DType
    length: int


def _write(content: Content, limits: Limits, write: Write) -> NoReturn:
    raise Malformed(
        "files of PyTorch are read, not written",
        expected="a recorder that writes",
        hint="SafetensorsRecorder, whose files PyTorch's users load with safetensors.torch",
    )


def _read(source: Source, limits: Limits) -> Content:
    """Read the pickle; elements stay unread.

    Raises:
        Malformed: no such file, damaged, or one that asks for more than tensors and containers.
    """
    data = source.read_all()
    if bytes(data[: len(MAGIC)]) == MAGIC:
        text, storages = old_file(data, _STORAGES, limits)
        reader = _Reader(source, storages, "", limits, checked=False)
        return Content(reader.value(text), checksums=False)
    found = members(data, limits.tensors + 1000)
    pickles = [name for name in found if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1:
        got = shown(", ".join(list(found)[:4]))
        raise Malformed("not a file of torch.save", got=got, expected="one data.pkl")
    reader = _Reader(source, found, pickles[0].removesuffix("data.pkl"), limits, checked=True)
    return Content(reader.read())


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
        return self._plain(value, 0)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """What a known name constructs from its arguments; others are refused."""
        if name in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor"):
            return self._tensor(arguments)
        if name == "torch._utils._rebuild_parameter" and arguments:
            if isinstance(arguments[0], TensorEntry):
                return arguments[0]
            raise Malformed("a parameter in the pickle is no tensor")
        if name == "collections.OrderedDict":
            return self._ordered(arguments)
        if name in ("torch.Size", "torch.device") and len(arguments) == 1:
            return arguments[0]
        raise _refused(name)

    def _ordered(self, arguments: tuple[Any, ...]) -> dict[Any, Any]:
        if not arguments:
            return {}
        pairs = arguments[0]
        if len(arguments) > 1 or not isinstance(pairs, list):
            raise Malformed("a dict in the pickle is wrong")
        result = {}
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2 or type(pair[0]) is not str:
                raise Malformed("a dict in the pickle is wrong")
            result[pair[0]] = pair[1]
        return result

    def _storage(self, key: Any) -> _Storage:
        # The old form has a sixth for a view, which PyTorch ceased to write with 0.4.
        if isinstance(key, tuple) and len(key) == 6 and not self._checked and key[5] is None:
            key = key[:5]
        if not isinstance(key, tuple) or len(key) != 5 or key[0] != "storage":
            raise Malformed("a storage in the pickle is wrong", got=shown(key))
        _, kind, name, _, count = key
        if not isinstance(kind, Global) or kind.name not in _STORAGES:
            known = ", ".join(_STORAGES)
            raise Malformed("elements of a type that is not read", got=shown(kind), expected=known)
        member = self._found.get(f"{self._folder}data/{name}") if isinstance(name, str) else None
        if member is None:
            raise Malformed("a storage is not in the file", got=shown(name))
        dtype = DTYPES[_STORAGES[kind.name]]
        if type(count) is not int or member.size != count * dtype.itemsize:
            got = f"{member.size:,} bytes"
            raise Malformed(f"storage {shown(name)} has a wrong size", got=got, expected=count)
        return _Storage(member, dtype, count)

    def _tensor(self, arguments: tuple[Any, ...]) -> TensorEntry:
        if len(arguments) < 4 or not isinstance(arguments[0], _Storage):
            raise Malformed("a tensor in the pickle is wrong", got=shown(arguments))
        storage, offset, size, stride = arguments[:4]
        shape = list(size) if isinstance(size, tuple) else size
        what = descriptor(storage.dtype.name, shape)
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
        return self._lazy(storage, offset, what, steps)

    def _lazy(
        self, storage: _Storage, offset: int, what: Descriptor, steps: list[int]
    ) -> TensorEntry:
        member = storage.member
        cap = self._limits.inflated_bytes if member.method else member.size

        def read() -> NDArray[Any]:
            raw = contents(self._data, member, cap, checked=self._checked)
            whole = Descriptor(storage.dtype, (storage.length,), len(raw))
            flat = as_array(raw, whole)[offset:]
            if not what.nbytes:
                return np.zeros(what.shape, what.dtype.numpy)
            strides = [step * flat.itemsize for step in steps]
            return np.lib.stride_tricks.as_strided(flat, what.shape, strides, writeable=False)

        def drop() -> None:
            self._source.drop(member.start, member.packed)

        return TensorEntry(what.shape, what.dtype, read, drop=drop)

    def _plain(self, value: Any, depth: int) -> Any:
        """The value as a record; one that stands at many places counts at each."""
        self._nodes -= 1
        if self._nodes < 0:
            raise Malformed("too many values in the file", expected=f"{self._limits.nodes:,}")
        if isinstance(value, dict | list | tuple) and depth == MAX_DEPTH:
            raise Malformed("the tree is too deep", expected=f"at most {MAX_DEPTH} levels")
        if isinstance(value, TensorEntry):
            return value
        if isinstance(value, dict):
            made = {_key(key): self._plain(child, depth + 1) for key, child in value.items()}
            if len(made) != len(value):
                raise Malformed("two keys of a dict read alike", got=shown(list(value)))
            flat = bool(made) and all(isinstance(child, TensorEntry) for child in made.values())
            return nested(made) if flat else made
        if isinstance(value, list | tuple):
            return [self._plain(child, depth + 1) for child in value]
        if isinstance(value, Global) and value.name.startswith("torch."):
            return value.name  # such as torch.float32
        if isinstance(value, _Storage | Global):
            raise _refused(getattr(value, "name", "a storage without a tensor"))
        return value


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key)


def _refused(name: str) -> Malformed:
    return Malformed(
        "the file asks for more than tensors and containers",
        got=shown(name),
        hint="torch.save(model.state_dict(), path) in PyTorch",
    )


PYTORCH: Final = Form(
    write=_write,
    read=_read,
    recognizes=lambda head: head.startswith((b"PK\3\4", MAGIC)) and b".npy" not in head,
    cap=lambda limits: limits.inflated_bytes,
)
