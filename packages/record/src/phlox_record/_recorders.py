"""Recorders: one class per kind of file, all with the same methods."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias, final

from phlox_tensor import RecordError

from ._binary import COMPACT, MAGIC, NAMED, VERSION, open_binary, write_binary
from ._errors import Malformed, located, shown
from ._files import atomic_file, map_file
from ._gather import with_names
from ._json import open_json, write_json
from ._limits import Limits
from ._opened import Metadata, Opened, check_metadata, check_version
from ._precision import FullPrecision, PrecisionSettings
from ._source import GZIP_MAGIC, BufferSource, GzipWriter, InflatingSource, Write
from ._tensors import DeviceLike, LoadDType, materialize
from ._tree import RecordInput, check_tree

PathLike: TypeAlias = "str | os.PathLike[str]"
Layout: TypeAlias = Literal["named", "compact", "json"]

_BYTES: Final = "<bytes>"


class Recorder:
    """Writes records and reads them back. Abstract: use one of the classes below.

    A recorder holds settings only; it may be shared and used from several threads.

    Attributes:
        precision: the element type of floats in the file.
        limits: caps on what a file may ask for.
        extension: of the file name; added when a path lacks it.
        needs_like: whether loading needs the structure to load into.
    """

    extension: ClassVar[str]
    needs_like: ClassVar[bool]
    _layout: ClassVar[Layout]
    _gzip: ClassVar[bool]

    def __init__(
        self, precision: PrecisionSettings = FullPrecision, *, limits: Limits | None = None
    ) -> None:
        """Keep the settings."""
        if type(self) is Recorder:
            raise TypeError("Recorder is abstract; use NamedMsgpackRecorder()")
        if not isinstance(precision, PrecisionSettings):
            raise TypeError(f"precision is a PrecisionSettings such as HalfPrecision: {precision}")
        self.precision: Final = precision
        self.limits: Final = Limits() if limits is None else limits

    def __init_subclass__(cls, *, layout: Layout, gzip: bool, extension: str) -> None:
        cls._layout = layout
        cls._gzip = gzip
        cls.extension = extension
        cls.needs_like = layout == "compact"

    def record(
        self, tree: RecordInput, path: PathLike, *, metadata: Metadata | None = None
    ) -> Path:
        """Write `tree` to a file, whole or not at all, and return the file's path.

        Tensors are read, cast and written one after the other, so no second copy of a module
        exists in memory.

        Args:
            tree: see `Record` for what it may hold.
            path: the extension is added when absent.
            metadata: notes to keep in the header, text to text.

        Raises:
            RecordError: a value that a record cannot hold; a float too large for the precision.
            OSError: the file cannot be written.
        """
        place = self.path_for(path, op="record")
        with located("record", place.name), atomic_file(place) as file:
            self._write(tree, metadata, file.write)
        return place

    def to_bytes(self, tree: RecordInput, *, metadata: Metadata | None = None) -> bytes:
        """Return what `record` would write. Raises the same errors."""
        sink = io.BytesIO()
        with located("to_bytes", _BYTES):
            self._write(tree, metadata, sink.write)
        return sink.getvalue()

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
            opened = open_data(self, self._map(place), place.name, like)
            return self._materialize(opened, device, dtype)

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
            return self._materialize(opened, device, dtype)

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
            return open_data(self, self._map(place), place.name, like).tree

    def path_for(self, path: PathLike, *, op: str = "path_for") -> Path:
        """Return `path` with this recorder's extension.

        Raises:
            RecordError: the path has the extension of another recorder.
        """
        place = Path(path)
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

    @property
    def _cap(self) -> int:
        """The most bytes behind the gzip layer."""
        json = self._layout == "json"
        return self.limits.json_bytes if json else self.limits.inflated_bytes

    def _open_unnamed(self, data: memoryview, name: str) -> Opened:
        if self._layout == "json":
            text = InflatingSource(data, self._cap).read_all() if self._gzip else data
            return open_json(text, name, self.limits)
        source = InflatingSource(data, self._cap) if self._gzip else BufferSource(data)
        layout = NAMED if self._layout == "named" else COMPACT
        return open_binary(source, layout, name, self.limits)

    def _map(self, place: Path) -> memoryview:
        try:
            return map_file(place)
        except FileNotFoundError as error:
            stem = place.name.removesuffix(self.extension)
            others = [place.with_name(stem + other.extension) for other in RECORDERS]
            found = [p.name for p in others if p.exists()]
            hint = f"; there is {', '.join(found)}" if found else ""
            text = f"{error.strerror}{hint}"
            raise FileNotFoundError(error.errno, text, str(place)) from None

    def _materialize(self, opened: Opened, device: DeviceLike, dtype: LoadDType) -> Any:
        tree = materialize(opened.tree, device=device, dtype=dtype, op="load")
        opened.check_end()
        return tree

    def _write(self, tree: RecordInput, metadata: Metadata | None, write: Write) -> None:
        checked, leaves = check_tree(tree, self.limits)
        _, notes = check_metadata("", {} if metadata is None else metadata)
        check_tree(dict(notes), self.limits)
        zipped = GzipWriter(write, self._cap) if self._gzip else None
        sink = write if zipped is None else zipped.write
        if self._layout == "json":
            write_json(checked, leaves, self.precision, notes, self.limits, sink)
        else:
            layout = NAMED if self._layout == "named" else COMPACT
            write_binary(layout, checked, leaves, self.precision, notes, self.limits, sink)
        if zipped is not None:
            zipped.close()


@final
class NamedMsgpackRecorder(Recorder, layout="named", gzip=False, extension=".mpk"):
    """The default: names, scalars and tensor table in a msgpack header, then aligned data.

    Reading is lazy and survives added, removed and reordered fields.
    """


@final
class NamedMsgpackGzRecorder(Recorder, layout="named", gzip=True, extension=".mpk.gz"):
    """`NamedMsgpackRecorder`, compressed. Reads in file order inflate it once."""


@final
class CompactMsgpackRecorder(Recorder, layout="compact", gzip=False, extension=".cmpk"):
    """Values by position, no names: smaller, and tied to the structure that wrote it."""


@final
class CompactMsgpackGzRecorder(Recorder, layout="compact", gzip=True, extension=".cmpk.gz"):
    """`CompactMsgpackRecorder`, compressed."""


@final
class JsonRecorder(Recorder, layout="json", gzip=False, extension=".json"):
    """The tree as JSON, tensors as base64: to look at and to pass on; held in memory whole."""


@final
class JsonGzRecorder(Recorder, layout="json", gzip=True, extension=".json.gz"):
    """`JsonRecorder`, compressed."""


RECORDERS: Final[tuple[type[Recorder], ...]] = (
    CompactMsgpackGzRecorder,
    CompactMsgpackRecorder,
    JsonGzRecorder,
    JsonRecorder,
    NamedMsgpackGzRecorder,
    NamedMsgpackRecorder,
)


def by_extension(name: str) -> type[Recorder] | None:
    """Return the recorder whose extension `name` has."""
    return next((r for r in RECORDERS if name.endswith(r.extension)), None)


def recognize(data: memoryview) -> type[Recorder] | None:
    """Return the recorder that wrote `data`, judged by its first bytes.

    Raises:
        Malformed: written by a newer version, which may have other layouts.
    """
    head = bytes(data[:16])
    zipped = head.startswith(GZIP_MAGIC)
    if zipped:
        try:
            head = bytes(InflatingSource(data, 16).read(0, 12))
        except Malformed:
            return None
    if head.startswith(MAGIC):
        check_version(int.from_bytes(head[8:10], "little"), VERSION)
        layout = {NAMED: "named", COMPACT: "compact"}.get(int.from_bytes(head[10:12], "little"))
    else:
        layout = "json" if head.lstrip().startswith(b"{") else None
    return next((r for r in RECORDERS if r._layout == layout and r._gzip == zipped), None)


def open_unnamed(recorder: Recorder, data: memoryview, name: str) -> Opened:
    """Open what `recorder` wrote; dicts of a compact file stay `Positional`.

    Raises:
        Malformed: as `open_data`.
    """
    right = recognize(data)
    if right is not type(recorder):
        raise _wrong_recorder(type(recorder), right, data)
    return recorder._open_unnamed(data, name)


def open_data(recorder: Recorder, data: memoryview, name: str, like: RecordInput) -> Opened:
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
