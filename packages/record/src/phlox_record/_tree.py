"""The closed set of values a record is made of, and the walk that checks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DTYPES, DType, RecordError, Tensor, WrongTypeError, as_dtype
from phlox_tensor import tree as trees

from ._errors import Malformed, located, shown
from ._limits import MAX_DEPTH, MAX_RANK, Limits
from ._precision import byte_pieces

INT_RANGE: Final = (-(2**63), 2**64 - 1)

# Whose layout weights are in: PyTorch keeps those of linear maps the other way round.
# None is that of a file of another program which does not say.
Layout: TypeAlias = Literal["phlox", "pytorch"]


class Stored(NamedTuple):
    """The form that a tensor has in a file, where that is none of an element type.

    Attributes:
        name: of the form, such as ``"Q8_0"``.
        nbytes: how many bytes it has there.
        read: gives them.
    """

    name: str
    nbytes: int
    read: Callable[[], NDArray[np.uint8]]


@final
class TensorEntry:
    """A tensor that has not been read yet: shape and dtype now, elements on demand.

    Files opened with `Recorder.open` have these as leaves; a module may put one in its record
    where a tensor is costly to make. `read` is called each time the elements are needed and
    returns an array of just this shape and dtype.
    """

    __slots__ = ("_drop", "_file", "_pieces", "_read", "dtype", "layout", "shape", "stored")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DType,
        read: Callable[[], NDArray[Any]],
        pieces: Callable[[], Iterator[memoryview]] | None = None,
        drop: Callable[[], None] | None = None,
        layout: Layout | None = None,
        *,
        stored: Stored | None = None,
    ) -> None:
        """Keep the description; nothing is read.

        ``pieces`` is for what is made piece by piece; ``drop`` gives back memory of what was read
        and is used no more. ``layout`` says whose layout it is in, as far as is known; ``stored``
        the form in the file, where ``read`` makes the elements of another one.
        """
        self.shape: Final = tuple(shape)
        self.dtype: Final = dtype
        self._read: Final = read
        self._pieces: Final = pieces
        self._drop: Final = drop
        self._file: str | None = None
        self.layout: Layout | None = layout
        self.stored: Final = stored

    @classmethod
    def from_numpy(cls, array: NDArray[Any]) -> TensorEntry:
        """Return the entry of an array that is there already."""
        return cls(array.shape, as_dtype(array.dtype), lambda: array)

    def numpy(self) -> NDArray[Any]:
        """Read the elements. The array may be a read-only view of the mapped file.

        Raises:
            RecordError: damaged bytes in the file; `read` broke its promise.
        """
        if self._file is None:
            array = self._read()
        else:
            with located("read", self._file):
                array = self._read()
        if array.shape != self.shape or array.dtype != self.dtype.numpy:
            raise RecordError(
                "read",
                "a TensorEntry's read() does not keep its promise",
                got=f"{array.dtype}{list(array.shape)}",
                expected=f"{self.dtype.name}{list(self.shape)}",
            )
        return array

    def pieces(self) -> Iterator[memoryview]:
        """Yield the elements as bytes, little-endian in C order, some at a time.

        Raises:
            RecordError: as ``numpy``.
        """
        return byte_pieces(self.numpy(), self.dtype) if self._pieces is None else self._pieces()

    def of_file(self, name: str, layout: Layout | None) -> None:
        """Let errors of reading name the file that the tensor comes from; keep its layout."""
        self._file, self.layout = name, layout

    def drop(self) -> None:
        """Give back the memory that reading took; arrays that were read stay valid."""
        if self._drop is not None:
            self._drop()

    def __repr__(self) -> str:
        return f"TensorEntry({self.dtype.name}, {self.shape})"


def unsupported_type(name: str, itemsize: int) -> DType:
    """Return a type that is none of phlox, of which only the name and the size are known."""
    kind: Any = "Unsupported"
    return DType(name, kind, np.dtype((np.void, itemsize)))


def unsupported(
    name: str, shape: Sequence[int], *, itemsize: int = 0, hint: str | None = None
) -> TensorEntry:
    """Return the entry of what a file holds and a record cannot: only reading it is refused.

    Args:
        name: of its element type or class.
        shape: of a tensor; () for anything else.
        itemsize: bytes of an element, for people.
        hint: what to do in the program that wrote it.
    """

    def read() -> NDArray[Any]:
        raise Malformed(
            "an entry that is not read",
            got=shown(name),
            expected="tensors of the element types of phlox, containers and plain values",
            hint=hint,
        )

    return TensorEntry(shape, unsupported_type(name, itemsize), read)


TensorLike: TypeAlias = "Tensor[Any] | TensorEntry"


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParamEntry:
    """A parameter: its tensor and the id by which an optimizer finds it again.

    One object at two places is a tied parameter: it is written once, and is one again when read.
    """

    id: str
    tensor: TensorLike


# What trees of records have as leaves though it would come apart.
LEAF: Final = (ParamEntry, TensorEntry)


def map_tensors(tree: Any, change: Callable[[TensorLike], TensorLike]) -> Any:
    """Return the tree with its tensors changed; a parameter at two places is changed once."""
    seen: dict[int, ParamEntry] = {}

    def leaf(item: Any) -> Any:
        if isinstance(item, ParamEntry):
            if id(item) not in seen:
                seen[id(item)] = ParamEntry(item.id, change(item.tensor))
            return seen[id(item)]
        return change(item) if isinstance(item, Tensor | TensorEntry) else item

    return trees.map(leaf, tree, leaf=LEAF)


def tensor_of(leaf: Any) -> Any:
    """Return the tensor of a parameter, and any other leaf itself."""
    return leaf.tensor if isinstance(leaf, ParamEntry) else leaf


def entries(tree: Any) -> list[TensorEntry]:
    """Return the unread tensors of a tree in depth-first order, shared ones once."""
    found = [tensor_of(leaf) for leaf in trees.leaves(tree, LEAF)]
    return list({id(item): item for item in found if isinstance(item, TensorEntry)}.values())


def entries_with_paths(tree: Any) -> list[tuple[str, TensorEntry]]:
    """Return what `entries` does, each with the first of its dotted paths; this takes longer."""
    found: dict[int, tuple[str, TensorEntry]] = {}
    for path, leaf in trees.leaves_with_paths(tree, LEAF):
        tensor = tensor_of(leaf)
        if isinstance(tensor, TensorEntry):
            found.setdefault(id(tensor), (path, tensor))
    return list(found.values())


class Keyed(dict[str, "Record"]):
    """A dict whose keys are data (parameter ids), not field names.

    Compact files hold no names, and take them from the structure they are loaded into. From a
    `Keyed` down they are stored, since no structure can know them. Elsewhere it is a plain dict.
    """

    def __init__(self, entries: Mapping[str, Record] | None = None, /) -> None:
        """Copy the entries of a dict; without one, be empty.

        Raises:
            WrongTypeError: for what is no dict with text keys.
        """
        given: Any = {} if entries is None else entries
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise WrongTypeError(
                "keyed",
                "what is given is no dict with text keys",
                got=type(given).__name__,
                expected="entries by parameter id",
                hint="px.record.Keyed({param.id: tensor})",
            )
        super().__init__(given)

    def __repr__(self) -> str:
        return f"Keyed({super().__repr__()})"


Scalar: TypeAlias = "bool | int | float | str | bytes | None"
Record: TypeAlias = "Scalar | TensorLike | ParamEntry | list[Record] | dict[str, Record]"
# What arguments are typed as, so that a dict[str, Tensor] will do. Containers must still be
# lists and dicts; the check at run time says so.
RecordInput: TypeAlias = (
    "Scalar | TensorLike | ParamEntry | Sequence[RecordInput] | Mapping[str, RecordInput]"
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of a tree with the dotted path to it."""

    where: str
    tensor: TensorLike


def dotted(parts: Sequence[str | int]) -> str:
    """Return the path as shown to people; keys with control characters are escaped."""
    return ".".join(shown(p) if isinstance(p, str) else str(p) for p in parts) or "the root"


def check_tree(tree: RecordInput, limits: Limits) -> tuple[Record, list[Leaf]]:
    """Return `tree` and its tensors in depth-first order, after checking every value.

    A parameter that stands at two places as one object is one tensor.

    Raises:
        Malformed: a value outside the closed set, too deep (also a cycle), too many.
    """
    walk = _Walk(limits)
    checked = cast("Record", tree)
    walk.visit(checked, 0)
    return checked, walk.leaves


class _Walk:
    def __init__(self, limits: Limits) -> None:
        self.leaves: list[Leaf] = []
        self._params: set[int] = set()
        self._limits = limits
        self._nodes = 0
        self._parts: list[str | int] = []

    def visit(self, node: Record, depth: int) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise Malformed(
                "too many values in the record",
                expected=f"at most {self._limits.nodes:,}",
                hint="store long lists of numbers as one tensor",
            )
        kind = type(node)
        if kind is dict or kind is Keyed or kind is list:
            if depth == MAX_DEPTH:
                raise Malformed(
                    f"too deep at {dotted(self._parts[:6])}…",
                    expected=f"at most {MAX_DEPTH} levels",
                    hint="flatten the record; a container may not hold itself",
                )
            self._children(node, depth + 1)
        elif isinstance(node, Tensor | TensorEntry):
            self._leaf(node)
        elif kind is ParamEntry:
            assert isinstance(node, ParamEntry)
            self._param(node)
        else:
            self._scalar(node)

    def _children(self, node: Record, depth: int) -> None:
        if isinstance(node, list):
            for index, child in enumerate(node):
                self._parts.append(index)
                self.visit(child, depth)
                self._parts.pop()
            return
        assert isinstance(node, dict)
        for key, child in node.items():
            if type(key) is not str:
                raise self._alien(key, "str keys", f"{{str(key): …}} instead of {shown(key)}")
            self._parts.append(key)
            self._text(key)
            self.visit(child, depth)
            self._parts.pop()

    def _param(self, node: ParamEntry) -> None:
        if id(node) in self._params:
            return
        self._params.add(id(node))
        self._text(node.id)
        if not isinstance(node.tensor, Tensor | TensorEntry):
            raise self._alien(node.tensor, "a Tensor or TensorEntry in a ParamEntry", None)
        self._leaf(node.tensor)

    def _leaf(self, tensor: TensorLike) -> None:
        if len(self.leaves) == self._limits.tensors:
            raise Malformed(
                "too many tensors in the record",
                expected=f"at most {self._limits.tensors:,}",
                hint="Recorder(limits=Limits(tensors=…))",
            )
        if len(tensor.shape) > MAX_RANK:
            raise self._alien(tensor, f"a tensor of rank at most {MAX_RANK}", None)
        if tensor.dtype.name not in DTYPES:
            tensor.numpy()  # which says what it is
        self.leaves.append(Leaf(dotted(self._parts), tensor))

    def _scalar(self, node: object) -> None:
        kind = type(node)
        if kind is int:
            assert isinstance(node, int)
            if not INT_RANGE[0] <= node <= INT_RANGE[1]:
                raise self._alien(node, "an int in [-2**63, 2**64)", "str(value)")
        elif kind is str:
            assert isinstance(node, str)
            self._text(node)
        elif node is not None and kind not in (bool, float, bytes):
            raise self._alien(node, "a Record value", _advice(node))

    def _text(self, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self._alien(ascii(text), "text that UTF-8 can hold", None) from None

    def _alien(self, value: object, expected: str, hint: str | None) -> Malformed:
        got = value if isinstance(value, str | int) else f"{type(value).__name__} value"
        where = dotted(self._parts)
        return Malformed(f"cannot store {where}", got=shown(got), expected=expected, hint=hint)


def _advice(node: object) -> str:
    if hasattr(node, "into_record"):
        return "value.into_record()"
    if isinstance(node, tuple):
        return "list(value): a tuple would come back as a list"
    if isinstance(node, np.ndarray):
        return "phlox_tensor.asarray(value)"
    if isinstance(node, np.generic):
        return "value.item()"
    if isinstance(node, bytearray | memoryview):
        return "bytes(value)"
    if isinstance(node, set | frozenset):
        return "sorted(value)"
    for plain in (bool, int, float, str, dict, list):
        if isinstance(node, plain):
            return f"{plain.__name__}(value): subclasses would come back as the plain type"
    return "None, bool, int, float, str, bytes, Tensor, ParamEntry, list, dict"
