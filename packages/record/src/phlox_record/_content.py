"""What a file holds besides its form: the tree and the words of the header, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from ._errors import Malformed, shown
from ._limits import Limits
from ._source import Source, Write
from ._tree import Layout

Metadata: TypeAlias = dict[str, str]

LAYOUT: Final = "phlox.layout"  # the note of a file whose tensors are in the layout of PyTorch


@dataclass(slots=True)
class Positional:
    """A dict of a compact file: values in order, names unknown."""

    values: list[Any]


def _nothing() -> None:
    """A file that is known whole when it is opened needs no check at its end."""


@dataclass(frozen=True, slots=True)
class Content:
    """What `Recorder.write` gets and `Recorder.read` returns.

    Attributes:
        tree: the record; its tensors are `TensorEntry`, of the element types that the file has.
        precision: name of the settings it was written with.
        metadata: the writer's own notes.
        version: of the form of the file.
        writer: the package that wrote the file and its version.
        checksums: whether each tensor is written with a checksum.
        names: hash of the field names, where a file has no names itself.
        layout: of weights; None where another program wrote the file and does not say.
        check_end: called after all tensors were read; a gzip file is only then known whole.
    """

    tree: Any
    precision: str = "keep"
    metadata: Metadata = field(default_factory=dict)
    version: int = 1
    writer: str = ""
    checksums: bool = True
    names: bytes = b""
    layout: Layout | None = "phlox"
    check_end: Callable[[], None] = _nothing


def check_version(found: object, known: int) -> int:
    """Return the version of a format; raise Malformed for one that this package cannot read."""
    if type(found) is not int or found < 1:
        raise Malformed("wrong format version", got=shown(found), expected=f"1 to {known}")
    if found > known:
        raise Malformed(
            "written by a newer phlox-record",
            got=f"format {found}",
            expected=f"format {known} or older",
            hint="pip install --upgrade phlox-record",
        )
    return found


def check_metadata(precision: object, metadata: object) -> tuple[str, Metadata]:
    """Check the types of what people may read in a header."""
    if not isinstance(precision, str):
        raise Malformed("the precision is not text", got=shown(precision))
    if not isinstance(metadata, dict) or any(
        type(k) is not str or type(v) is not str for k, v in metadata.items()
    ):
        raise Malformed("metadata is not a map of text to text", got=shown(metadata))
    return precision, metadata


def check_writer(writer: object) -> str:
    """Check the type of the writer's name."""
    if not isinstance(writer, str):
        raise Malformed("the writer is not text", got=shown(writer))
    return writer


def header_too_large(size: int, limits: Limits) -> Malformed:
    """Return the error of a header that is not read, or not written."""
    return Malformed(
        "the header is too large",
        got=f"{size:,} bytes",
        expected=f"at most {limits.header_bytes:,} bytes",
        hint="keep long bytes and lists in tensors; limits=Limits(header_bytes=…)",
    )


class Form(NamedTuple):
    """A form of files: what its recorders share, plain or compressed."""

    write: Callable[[Content, Limits, Write], None]
    read: Callable[[Source, Limits], Content]
    recognizes: Callable[[bytes], bool]  # by the first bytes
    cap: Callable[[Limits], int]  # the most bytes behind gzip
