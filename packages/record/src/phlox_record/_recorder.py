"""The base of recorders: two functions and an extension make one."""

from __future__ import annotations

import inspect
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from phlox_tensor import RecordError, WrongTypeError

from ._content import LAYOUT, Content, Metadata, check_metadata
from ._errors import Malformed, located, shown
from ._files import atomic_file, map_file, not_found, remove_left
from ._gather import with_names
from ._layout import stored
from ._limits import Limits
from ._precision import KeepPrecision, PrecisionSettings
from ._saving import Saving
from ._shards import INDEX, read_shards, remove_left_shards, remove_shards, write_shards
from ._source import Write
from ._tensors import DeviceLike, LoadDType, layout_of, materialize
from ._tree import Layout, Leaf, RecordInput, TensorEntry, check_tree, entries, map_tensors
from ._version import WRITER

PathLike: TypeAlias = str | os.PathLike[str]

_BYTES: Final = "<bytes>"


_EXAMPLE: Final = """Example:
    >>> import phlox as px, tempfile
    >>> recorder, tree = px.record.{}(), {{"x": px.ones(2)}}
    >>> path = recorder.record(tree, tempfile.mkdtemp() + "/model")
    >>> recorder.load(path, like=tree)["x"].tolist()
    [1.0, 1.0]
"""


class Recorder(ABC):
    """Writes records and reads them back.

    A recorder of one's own says its ``extension`` and defines ``write`` and ``read``; files, paths,
    precision, devices and errors are done here. A recorder holds settings only; it may be shared
    and used from several threads.

    Attributes:
        precision: the element type of floats in the file.
        limits: caps on what a file may ask for.
        checksums: whether each tensor is written with one.
        extension: of the file name; added when a path lacks it.
        aliases: other extensions that such files have.
        needs_like: whether loading needs the structure to load into.
        writes: whether files can be written, or only read.
    """

    extension: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    needs_like: ClassVar[bool] = False
    writes: ClassVar[bool] = True

    def __init__(
        self,
        precision: PrecisionSettings = KeepPrecision,
        *,
        limits: Limits | None = None,
        checksums: bool = True,
    ) -> None:
        """Keep the settings.

        Args:
            precision: the element type of floats in the file; by default what each one has.
            limits: caps on what a file may ask for.
            checksums: write one for each tensor, in the forms that have them. They cost about a
                second for each gigabyte, on writing and on reading.
        """
        if not isinstance(precision, PrecisionSettings):
            raise WrongTypeError(
                "recorder", "precision", got=precision, expected="settings such as HalfPrecision"
            )
        if not isinstance(limits, Limits | None):
            raise WrongTypeError("recorder", "limits", got=limits, expected="Limits(…)")
        self.precision: Final = precision
        self.limits: Final = Limits() if limits is None else limits
        self.checksums: Final = checksums

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse an extension that files of another recorder have.

        Raises:
            TypeError: also for one without a dot in front.
        """
        super().__init_subclass__(**options)
        extension = vars(cls).get("extension")
        if extension is None:
            return
        taken = [k.__name__ for k in kinds() if extension in k.extensions() and k is not cls]
        if not extension.startswith(".") or any(name != cls.__name__ for name in taken):
            why = f"is that of {taken[0]}" if taken else "has no dot in front"
            raise TypeError(f"[recorder] {cls.__name__}: the extension {extension!r} {why}")
        if cls.writes and cls.__module__.startswith(f"{__package__}."):
            cls.__doc__ = f"{cleandoc(cls.__doc__ or '')}\n\n{_EXAMPLE.format(cls.__name__)}"

    @abstractmethod
    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``, in as many calls as wanted.

        The tree is checked, and its tensors are `TensorEntry` in the precision of the recorder:
        ``numpy()`` reads one, ``pieces()`` yields its bytes some at a time.
        """

    @abstractmethod
    def read(self, data: memoryview) -> Content:
        """Return what the bytes of a file hold; a tensor may be read when it is asked for.

        Raises:
            Exception: of any kind for damaged bytes; a RecordError is best.
        """

    @classmethod
    def extensions(cls) -> tuple[str, ...]:
        """The extension and its aliases."""
        return (cls.extension, *cls.aliases)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool | None:
        """Whether bytes are a file of this recorder; None where only ``read`` can tell."""
        return None

    def record(
        self,
        tree: RecordInput,
        path: PathLike,
        *,
        metadata: Metadata | None = None,
        max_shard_size: int | None = None,
    ) -> Path:
        """Write `tree` to a file, whole or not at all, and return the file's path.

        Tensors are read, cast and written one after the other, so no second copy of a module
        exists in memory.

        Args:
            tree: see `Record` for what it may hold.
            path: the extension is added when absent.
            metadata: notes to keep in the header, text to text.
            max_shard_size: most bytes of tensors in a file. Then there are several beside an index,
                whose path is returned; ``load`` and ``open`` take the same path as without. A
                tensor that is larger has a file of its own.

        Raises:
            RecordError: a value that a record cannot hold; a float too large for the precision; a
                pattern of the precision that fits no tensor.
            OSError: the file cannot be written.
        """
        place = self.path_for(path, op="record")
        with located("record", place.name):
            return self._write_to(place, self._content(tree, metadata), max_shard_size)

    def record_async(
        self,
        tree: RecordInput,
        path: PathLike,
        *,
        metadata: Metadata | None = None,
        max_shard_size: int | None = None,
    ) -> Saving:
        """Begin what ``record`` does and return at once; ``wait()`` gives the path.

        The record is checked before this returns, and may be changed after. A tensor is read when
        it is written. Of two that go on for one path, the later one waits for the earlier.

        Raises:
            RecordError: a value that a record cannot hold.
        """
        place = self.path_for(path, op="record_async")
        with located("record_async", place.name):
            content = self._content(tree, metadata)

        def write() -> Path:
            with located("record_async", place.name):
                return self._write_to(place, content, max_shard_size)

        return Saving(write, place)

    def _write_to(self, place: Path, content: Content, most: int | None) -> Path:
        if most is not None:
            if self.needs_like:
                raise Malformed(
                    "a compact file has no names to find tensors by",
                    hint="NamedMsgpackRecorder, or no max_shard_size",
                )
            write = self._write_shard
            made = write_shards(content, place, self.extension, most, self.limits, write)
        else:
            made = place
            with atomic_file(place) as file:
                self._give(content, file.write)
            index = place.with_name(place.name + INDEX)
            if index.exists():
                remove_shards(index, self.limits)
        beside = os.listdir(place.parent)  # once: a folder may hold thousands of files
        remove_left(place.parent, beside)
        remove_left_shards(place, beside, self.extension, self.limits)
        return made

    def _write_shard(self, named: dict[str, TensorEntry], place: Path) -> None:
        content = Content(named, self.precision.name, writer=WRITER, checksums=self.checksums)
        with atomic_file(place) as file:
            self._give(content, file.write)

    def _give(self, content: Content, sink: Write) -> None:
        """Write, and see that something was written."""
        size = 0

        def counted(data: bytes | memoryview) -> object:
            nonlocal size
            size += len(data)
            return sink(data)

        call: Callable[..., object] = self.write
        result = call(content, counted)
        if not size:
            raise Malformed(
                f"{type(self).__name__}.write gave no bytes to its sink",
                got="nothing" if result is None else f"{type(result).__name__} it returned",
                expected="calls of sink",
                hint="def write(self, content, sink): sink(data)",
            )

    def to_bytes(self, tree: RecordInput, *, metadata: Metadata | None = None) -> bytes:
        """Return what `record` would write. Raises the same errors."""
        sink = io.BytesIO()
        with located("to_bytes", _BYTES):
            self._give(self._content(tree, metadata), sink.write)
        return sink.getvalue()

    def _content(self, tree: RecordInput, metadata: Metadata | None) -> Content:
        """What to write: checked, with tensors in the precision of the file."""
        checked, leaves = check_tree(tree, self.limits)
        _, notes = check_metadata("", {} if metadata is None else metadata)
        if _layout(leaves) == "pytorch":
            notes = {LAYOUT: "pytorch", **notes}
        check_tree(dict(notes), self.limits)
        self.precision.check_paths([leaf.where for leaf in leaves])
        found = iter([stored(leaf.tensor, leaf.where, self.precision) for leaf in leaves])
        same = map_tensors(checked, lambda _: next(found))
        return Content(same, self.precision.name, notes, writer=WRITER, checksums=self.checksums)

    def load(
        self,
        path: PathLike,
        *,
        device: DeviceLike = None,
        dtype: LoadDType = "device",
        like: RecordInput = None,
    ) -> Any:
        """Read a file and return its record with Tensors on `device`.

        Args:
            path: the extension is added when absent.
            device: where to; None is the default device.
            dtype: of float tensors: ``"device"`` (its default float), ``"stored"`` or a DType.
            like: the structure to load into, such as ``model.into_record()``. Compact files need
                it, since they hold no names; others do not look at it.

        Raises:
            FileNotFoundError: there is no such file.
            RecordError: damaged, cut short, too new, of another recorder, of another structure.
            DTypeError: the device lacks the dtype.
        """
        place = self.path_for(path, op="load")
        with located("load", place.name):
            opened = self._opened(place, like)
            return _materialized(opened, device, dtype)

    def from_bytes(
        self,
        data: bytes | bytearray | memoryview,
        *,
        device: DeviceLike = None,
        dtype: LoadDType = "device",
        like: RecordInput = None,
    ) -> Any:
        """Return the record in `data`; arguments and errors as in `load`."""
        with located("from_bytes", _BYTES):
            opened = open_data(self, memoryview(data).cast("B"), _BYTES, like)
            return _materialized(opened, device, dtype)

    def open(self, path: PathLike, *, like: RecordInput = None) -> Any:
        """Return the record of a file with unread `TensorEntry` leaves.

        Only the header is read. The file stays mapped while a leaf is in use: do not shorten it
        in place meanwhile (`record` never does; it replaces files). JSON is read whole. Of a
        gzip file the end is not seen until its last tensor is read.

        Raises:
            FileNotFoundError: there is no such file.
            RecordError: as `load`, as far as the header shows it.
        """
        place = self.path_for(path, op="open")
        with located("open", place.name):
            return self._opened(place, like).tree

    def _opened(self, place: Path, like: RecordInput) -> Content:
        """The content of a file, or of the files of an index that stands in its place."""
        index = place.with_name(place.name + INDEX)
        if place.exists() or not index.exists():
            return open_data(self, self._map(place), place.name, like)

        def read(shard: Path) -> Content:
            if not shard.exists():
                raise Malformed(
                    "a file of the record is missing",
                    got=f"no {shown(shard.name)}",
                    expected="all files that the index names beside it",
                )
            return open_data(self, self._map(shard), shard.name, None)

        opened = read_shards(index, bytes(map_file(index)), self.limits, read)
        return _of_file(opened, place.name) if LAYOUT in opened.metadata else opened

    def path_for(self, path: PathLike, *, op: str = "path_for") -> Path:
        """Return `path` with this recorder's extension.

        Raises:
            RecordError: the path has the extension of another recorder, or no file name.
        """
        place = Path(path)
        if place.name in {"", ".."} or "\0" in str(place):
            raise RecordError(
                op,
                "the path has no file name",
                got=repr(str(path)),
                expected="a folder and a name",
                hint=repr(os.path.join(path, f"model{self.extension}")),
            )
        if place.name.endswith(INDEX):
            place = place.with_name(place.name.removesuffix(INDEX))
        owner = by_extension(place.name)
        if owner is type(self):
            return place
        if owner is not None:
            raise RecordError(
                op,
                f"{shown(place.name)}: the extension belongs to another recorder",
                got=type(self).__name__,
                expected=owner.__name__,
                hint=f"{owner.__name__}({self.precision!r})",
            )
        return place.with_name(place.name + self.extension)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.precision!r})"

    def _map(self, place: Path) -> memoryview:
        try:
            return map_file(place)
        except FileNotFoundError as error:
            stem = place.name.removesuffix(self.extension)
            raise not_found(error, place, [stem + other.extension for other in kinds()]) from None


def _materialized(opened: Content, device: DeviceLike, dtype: LoadDType) -> Any:
    tree = materialize(opened.tree, device=device, dtype=dtype, op="load")
    opened.check_end()
    return tree


def kinds() -> list[type[Recorder]]:
    """The recorders that there are, by name; one's own too."""
    found: list[type[Recorder]] = []
    work = Recorder.__subclasses__()
    while work:
        kind = work.pop()
        work.extend(kind.__subclasses__())
        if hasattr(kind, "extension") and not inspect.isabstract(kind):
            found.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def by_extension(name: str) -> type[Recorder] | None:
    """Return the recorder whose extension `name` has; of two that fit, that of the longer one."""
    fitting = [(len(e), kind) for kind in kinds() for e in kind.extensions() if name.endswith(e)]
    return max(fitting, key=lambda pair: pair[0], default=(0, None))[1]


def recognize(data: memoryview, name: str = "") -> type[Recorder] | None:
    """Return the recorder that wrote `data`, by its first bytes, or else by the file's name.

    Raises:
        Malformed: written by a newer version, which may have other layouts.
    """
    found = next((kind for kind in kinds() if kind.recognizes(data)), None)
    named = by_extension(name)
    unsure = named is not None and named.recognizes(data) is None
    return named if unsure else found


def open_unnamed(recorder: Recorder, data: memoryview, name: str) -> Content:
    """Open what `recorder` wrote; dicts of a compact file stay `Positional`.

    Raises:
        Malformed: as `open_data`.
    """
    if recorder.recognizes(data) is False:
        raise _wrong_recorder(type(recorder), recognize(data), data)
    opened = recorder.read(data)
    return _of_file(opened, name)


def _layout(leaves: list[Leaf]) -> Layout | None:
    """The one layout of tensors that a file is to hold; what has one axis is alike in both.

    Raises:
        Malformed: some are in the layout of PyTorch, others are not.
    """
    several = [leaf for leaf in leaves if len(leaf.tensor.shape) > 1] or leaves
    said = {layout_of(leaf.tensor): leaf.where for leaf in several}
    if "pytorch" in said and len(said) > 1:
        others = ", ".join(where for layout, where in said.items() if layout != "pytorch")
        raise Malformed(
            "tensors are in two layouts, and a file is in one",
            got=f"{said['pytorch']} in that of PyTorch, {others} not",
            expected="one layout",
            hint="a file for each, or a module in between: model.load_record(record).into_record()",
        )
    return "pytorch" if "pytorch" in said else None


def _of_file(opened: Content, name: str) -> Content:
    """Tell the tensors of a file its name and its layout."""
    layout: Layout | None = "pytorch" if opened.metadata.get(LAYOUT) == "pytorch" else opened.layout
    for tensor in entries(opened.tree):
        tensor.of_file(name, layout)
    return replace(opened, layout=layout)


def open_data(recorder: Recorder, data: memoryview, name: str, like: RecordInput) -> Content:
    """Open what `recorder` wrote, with the names of `like` where the file has none.

    Raises:
        Malformed: damaged, cut short, too new, of another recorder, of another structure.
    """
    if not recorder.needs_like:
        return open_unnamed(recorder, data, name)
    if like is None:
        raise Malformed(
            "a compact file has no names",
            expected="the structure to load into",
            hint="like=model.into_record()",
        )
    structure, _ = check_tree(like, recorder.limits)
    return with_names(open_unnamed(recorder, data, name), structure)


def _wrong_recorder(
    used: type[Recorder], right: type[Recorder] | None, data: memoryview
) -> Malformed:
    if right is None:
        head = bytes(data[:8])
        return Malformed(
            "not a phlox record, or cut short" if head else "the file is empty",
            got=f"{len(data):,} bytes that start with {head!r}",
            expected=f"a file of {used.__name__}",
        )
    return Malformed(
        "written by another recorder",
        got=right.__name__,
        expected=used.__name__,
        hint=f"{right.__name__}().load(…)",
    )
