"""A machine for the pickles of tensors: it makes plain values and asks about all else.

Every opcode is written out here, so that no class is ever looked up and nothing is called. What a
length or a memo index declares is never allocated: bytes are cut from those that are there.
Source: the documentation of CPython's ``pickletools``, protocols 0 to 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ._errors import Malformed, shown

_MOST_INT_BYTES: Final = 255  # one byte says how many; states of random streams have 16
_MOST_PARTS: Final = 8
_PLAIN: Final = (str, int, bool, float, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Global:
    """The name of a class or function in another program; nothing is looked up."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """What a call of such a name would make; what is put into it goes nowhere."""

    name: str


Call = Callable[[str, tuple[Any, ...]], Any]
Persistent = Callable[[Any], Any]


class Machine:
    """Runs one pickle.

    ``call(name, arguments)`` answers what the pickle would construct, ``persistent(id)`` what lies
    beside it; both refuse what they do not know.
    """

    def __init__(
        self, data: bytes, call: Call, persistent: Persistent, steps: int, start: int | None = None
    ) -> None:
        """Run at most ``steps`` opcodes of ``data``; from ``start``, where more may follow."""
        self._data = data
        self._alone = start is None
        self._at = start or 0
        self._call = call
        self._persistent = persistent
        self._steps = steps
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    @property
    def at(self) -> int:
        """Where the pickle ended."""
        return self._at

    def run(self) -> Any:
        """Return the value of the pickle.

        Raises:
            Malformed: cut short, an opcode that tensors do not need, too many steps.
        """
        for _ in range(self._steps):
            code = self._take(1)[0]
            if code == _STOP:
                value = self._pop()
                if self._stack or (self._alone and self._at != len(self._data)):
                    raise Malformed("something is left behind the pickle's value")
                return value
            step = _STEPS.get(code)
            if step is None:
                raise Malformed("the pickle has an opcode that tensors do not need", got=hex(code))
            step(self)
        raise Malformed("too many steps in the pickle", expected=f"at most {self._steps:,}")

    def _take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise Malformed("the pickle ends early", got=f"{len(self._data):,} bytes")
        self._at += count
        return piece

    def _skip(self, count: int) -> None:
        self._take(count)

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at)
        if end < 0:
            raise Malformed("the pickle ends early", got=f"{len(self._data):,} bytes")
        text = _text(self._data[self._at : end])
        self._at = end + 1
        return text

    def _size(self, width: int) -> int:
        return int.from_bytes(self._take(width), "little")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise Malformed("the pickle takes more than it has")
        return self._stack.pop()

    def _top(self, kind: type) -> Any:
        value = self._pop()
        if type(value) not in (kind, Opaque):
            raise Malformed("the pickle fills what is no container", got=type(value).__name__)
        self._stack.append(value)
        return value

    def _marked(self) -> list[Any]:
        if not self._marks:
            raise Malformed("the pickle takes more than it has")
        at = self._marks.pop()
        values = self._stack[at:]
        del self._stack[at:]
        return values

    def _recall(self, index: int) -> None:
        if index not in self._memo:
            raise Malformed("the pickle recalls what it never had", got=index)
        self._push(self._memo[index])

    def _remember(self, index: int) -> None:
        value = self._pop()
        self._memo[index] = value
        self._push(value)

    def _tuple(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(values)))

    def _construct(self) -> None:
        arguments, function = self._pop(), self._pop()
        if isinstance(function, Opaque):
            self._push(function)
            return
        if not isinstance(function, Global) or type(arguments) is not tuple:
            raise Malformed("the pickle calls what is no function", got=type(function).__name__)
        self._push(self._call(function.name, arguments))

    def _construct_by_name(self) -> None:
        """With arguments by name, which no tensor and no container has."""
        self._pop()
        self._pop()
        function = self._pop()
        self._push(Opaque(getattr(function, "name", type(function).__name__)))

    def _global(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise Malformed("the pickle names a class that is no text")
        self._push(Global(f"{module}.{name}"))

    def _global_below(self) -> None:
        name, module = self._pop(), self._pop()
        self._global(module, name)

    def _build(self) -> None:
        """Attributes of what was constructed; a dict of tensors loses nothing without them."""
        self._pop()
        self._top(dict)

    def _append(self, values: list[Any]) -> None:
        target = self._top(list)
        if isinstance(target, list):
            target.extend(values)

    def _set(self, values: list[Any]) -> None:
        target = self._top(dict)
        if len(values) % 2:
            raise Malformed("a key in the pickle has no value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            parts = key if type(key) is tuple else (key,)
            if any(type(part) not in (*_PLAIN, Global) for part in parts):
                raise Malformed("a key in the pickle is no plain value", got=type(key).__name__)
            # Text is a key as it is; other keys become text wherever they stand.
            sizes = [len(part) for part in parts if isinstance(part, str | bytes)]
            if type(key) is not str and (len(parts) > _MOST_PARTS or max(sizes, default=0) > 256):
                raise Malformed("a key in the pickle is too long", got=shown(key))
            if isinstance(target, dict):
                target[key] = value

    def _dict(self) -> None:
        values = self._marked()
        self._push({})
        self._set(values)

    def _set_one(self) -> None:
        value, key = self._pop(), self._pop()
        self._set([key, value])

    def _long(self, width: int) -> None:
        size = self._size(width)
        if size > _MOST_INT_BYTES:
            raise Malformed("an integer in the pickle is out of range", got=f"{size} bytes")
        self._push(int.from_bytes(self._take(size), "little", signed=True))

    def _mark(self) -> None:
        self._marks.append(len(self._stack))

    def _number(self, form: struct.Struct) -> None:
        self._push(form.unpack(self._take(form.size))[0])


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Malformed("text in the pickle is not UTF-8", got=shown(data)) from None


_STOP: Final = ord(".")
_FLOAT: Final = struct.Struct(">d")
_INT: Final = struct.Struct("<i")
_STEPS: Final[dict[int, Callable[[Machine], None]]] = {
    ord("("): Machine._mark,
    ord(")"): lambda m: m._push(()),
    ord("0"): lambda m: m._pop(),
    ord("B"): lambda m: m._push(m._take(m._size(4))),
    ord("C"): lambda m: m._push(m._take(m._size(1))),
    ord("G"): lambda m: m._number(_FLOAT),
    ord("J"): lambda m: m._number(_INT),
    ord("K"): lambda m: m._push(m._size(1)),
    ord("M"): lambda m: m._push(m._size(2)),
    ord("N"): lambda m: m._push(None),
    ord("Q"): lambda m: m._push(m._persistent(m._pop())),
    ord("R"): Machine._construct,
    ord("T"): lambda m: m._push(_text(m._take(m._size(4)))),
    ord("U"): lambda m: m._push(_text(m._take(m._size(1)))),
    ord("X"): lambda m: m._push(_text(m._take(m._size(4)))),
    ord("]"): lambda m: m._push([]),
    ord("a"): lambda m: m._append([m._pop()]),
    ord("b"): Machine._build,
    ord("c"): lambda m: m._global(m._line(), m._line()),
    ord("d"): Machine._dict,
    ord("e"): lambda m: m._append(m._marked()),
    ord("h"): lambda m: m._recall(m._size(1)),
    ord("j"): lambda m: m._recall(m._size(4)),
    ord("l"): lambda m: m._push(m._marked()),
    ord("q"): lambda m: m._remember(m._size(1)),
    ord("r"): lambda m: m._remember(m._size(4)),
    ord("s"): Machine._set_one,
    ord("t"): lambda m: m._push(tuple(m._marked())),
    ord("u"): lambda m: m._set(m._marked()),
    ord("}"): lambda m: m._push({}),
    0x80: lambda m: m._skip(1),
    0x81: Machine._construct,
    0x85: lambda m: m._tuple(1),
    0x86: lambda m: m._tuple(2),
    0x87: lambda m: m._tuple(3),
    0x88: lambda m: m._push(True),
    0x89: lambda m: m._push(False),
    0x8A: lambda m: m._long(1),
    0x8B: lambda m: m._long(4),
    0x8C: lambda m: m._push(_text(m._take(m._size(1)))),
    0x8D: lambda m: m._push(_text(m._take(m._size(8)))),
    0x8E: lambda m: m._push(m._take(m._size(8))),
    0x8F: lambda m: m._push([]),  # a set, which is read as a list
    0x90: lambda m: m._append(m._marked()),
    0x91: lambda m: m._push(m._marked()),
    0x92: Machine._construct_by_name,
    0x93: Machine._global_below,
    0x94: lambda m: m._remember(len(m._memo)),
    0x95: lambda m: m._skip(8),
    0x96: lambda m: m._push(m._take(m._size(8))),
}
