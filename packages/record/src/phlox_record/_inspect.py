"""Looking into files of any recorder, and turning one kind into another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phlox_tensor import RecordError
from phlox_tensor.tree import leaves_with_paths

from ._content import Content, Metadata
from ._errors import Malformed, located, shown
from ._files import map_file, not_found
from ._gather import numbered
from ._limits import Limits
from ._precision import PrecisionSettings
from ._recorder import PathLike, Recorder, by_extension, kinds, open_data, open_unnamed, recognize
from ._shards import INDEX
from ._tensors import DeviceLike, LoadDType, materialize
from ._tree import LEAF, Layout, RecordInput, TensorEntry, tensor_of


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What the header of a file says.

    Attributes:
        path: the file.
        recorder: the class that reads it.
        version: of the format.
        precision: name of the settings it was written with.
        metadata: the writer's notes.
        tree: the record with `TensorEntry` leaves; dicts of a compact file have numbers as keys.
        nbytes: size of the file.
        writer: the package that wrote it, with its version.
        checksums: whether damage to a tensor is seen.
        layout: of weights, as far as the file says; ``load_file`` goes by it.
        check_end: sees, after all tensors were read, that a compressed file ends there.
    """

    path: Path
    recorder: type[Recorder]
    version: int
    precision: str
    metadata: Metadata
    tree: Any
    nbytes: int
    writer: str = ""
    checksums: bool = True
    check_end: Callable[[], None] = lambda: None
    layout: Layout | None = "phlox"

    def tensors(self) -> Iterator[tuple[str, TensorEntry]]:
        """Yield the dotted path and the unread tensor, in file order, at each place."""
        for path, leaf in leaves_with_paths(self.tree, LEAF):
            tensor = tensor_of(leaf)
            if isinstance(tensor, TensorEntry):
                yield shown(path) or "the root", tensor


def inspect(path: PathLike, *, limits: Limits | None = None) -> FileInfo:
    """Read the header of a record file, whichever recorder wrote it.

    Args:
        path: the whole file name.
        limits: caps on what the file may ask for.

    Raises:
        FileNotFoundError: there is no such file.
        RecordError: not a record, or a damaged one.
    """
    place = Path(path)
    if "\0" in str(place):
        raise RecordError("inspect", "the path has a NUL character", got=repr(str(place)))
    if place.name.endswith(INDEX):
        return _inspect_shards(place, limits)
    with located("inspect", place.name):
        try:
            data = map_file(place)
        except FileNotFoundError as error:
            raise not_found(error, place) from None
        kind = recognize(data, place.name)
        if kind is None:
            got = f"{len(data):,} bytes that start with {bytes(data[:8])!r}"
            raise Malformed("not a phlox record, or cut short", got=got)
        opened = open_unnamed(kind(limits=limits), data, place.name)
    return _info(place, kind, opened, len(data))


def _inspect_shards(index: Path, limits: Limits | None) -> FileInfo:
    """What the files beside an index hold together."""
    name = index.name.removesuffix(INDEX)
    with located("inspect", index.name):
        kind = by_extension(name)
        map_file(index)
        if kind is None:
            raise Malformed("the index names no recorder", got=name, expected="NAME.mpk" + INDEX)
        opened = kind(limits=limits)._opened(index.with_name(name), None)
        files = sorted(index.parent.glob(f"{name.removesuffix(kind.extension)}-*{kind.extension}"))
    return _info(index, kind, opened, sum(file.stat().st_size for file in files))


def _info(path: Path, kind: type[Recorder], opened: Content, nbytes: int) -> FileInfo:
    return FileInfo(
        path=path,
        recorder=kind,
        version=opened.version,
        precision=opened.precision,
        metadata=opened.metadata,
        tree=numbered(opened.tree),
        nbytes=nbytes,
        writer=opened.writer,
        checksums=opened.checksums,
        check_end=_located(path.name, opened.check_end),
        layout=opened.layout,
    )


def _located(name: str, check: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        with located("inspect", name):
            check()

    return run


def load(
    path: PathLike,
    *,
    device: DeviceLike = None,
    dtype: LoadDType = "device",
    limits: Limits | None = None,
) -> Any:
    """Read a file of any recorder, and return its record with Tensors on `device`.

    Args:
        path: the whole file name; the bytes of the file say which recorder reads it.
        device: where to; None is the default device.
        dtype: of float tensors, as in `Recorder.load`.
        limits: caps on what the file may ask for.

    Raises:
        FileNotFoundError: there is no such file.
        RecordError: as `Recorder.load`; a compact file, which needs the structure to load into.
        DTypeError: the device lacks the dtype.

    >>> import tempfile
    >>> from phlox_record import NamedMsgpackRecorder, load
    >>> load(NamedMsgpackRecorder().record({"step": 3}, tempfile.mkdtemp() + "/a"))
    {'step': 3}
    """
    info = inspect(path, limits=limits)
    if info.recorder.needs_like:
        raise RecordError(
            "load",
            f"{shown(info.path.name)}: a compact file has no names",
            expected="the structure to load into",
            hint=f"px.record.{info.recorder.__name__}().load(path, like=model.into_record())",
        )
    tree = materialize(info.tree, device=device, dtype=dtype, op="load")
    info.check_end()
    return tree


def convert(
    source: PathLike,
    target: PathLike,
    *,
    precision: PrecisionSettings | None = None,
    like: RecordInput | os.PathLike[str] = None,
    limits: Limits | None = None,
) -> Path:
    """Write the record of one file into another kind of file, tensor by tensor.

    Args:
        source: the file to read; its bytes say which recorder wrote it.
        target: the file to write; its extension says which recorder writes it.
        precision: of floats in the target; None keeps every dtype.
        like: for a compact source, the structure, or the path of a file that has the structure.
        limits: caps for both files.

    Returns:
        The path of the target.

    Raises:
        RecordError: as `Recorder.load` and `Recorder.record`; an unknown extension.
        OSError: a file cannot be read or written.
    """
    place = Path(target)
    writer = by_extension(place.name)
    if writer is None or not writer.writes:
        raise RecordError(
            "convert",
            "the extension names no recorder that writes",
            got=shown(place.name),
            expected=", ".join(sorted(r.extension for r in kinds() if r.writes)),
        )
    info = inspect(source, limits=limits)
    tree = info.tree
    if info.recorder.needs_like:
        structure: Any = like
        if isinstance(like, str | os.PathLike):
            structure = inspect(like, limits=limits).tree
        with located("convert", info.path.name):
            reader = info.recorder(limits=limits)
            tree = open_data(reader, map_file(info.path), info.path.name, structure).tree
    kept = PrecisionSettings(info.precision, None) if precision is None else precision
    return writer(kept, limits=limits).record(tree, place, metadata=info.metadata)


def sized(count: int) -> str:
    """Return a number of bytes for people: 1000 B = 1 kB."""
    if count < 1000:
        return f"{count} B"
    size, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}"
