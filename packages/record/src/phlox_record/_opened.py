"""What every layout gives back when a file is opened, and the checks they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ._errors import Malformed, shown

Metadata: TypeAlias = dict[str, str]


@dataclass(slots=True)
class Positional:
    """A dict of a compact file: values in order, names unknown."""

    values: list[Any]


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose header was read and checked.

    Attributes:
        tree: the record with `TensorEntry` leaves, and `Positional` nodes in a compact file.
        layout: "named", "compact" or "json".
        version: of the format.
        precision: name of the settings it was written with.
        metadata: the writer's own notes.
        names: hash of the field names; empty unless compact.
        check_end: to be called after all tensors were read; a gzip file is only then known whole.
    """

    tree: Any
    layout: str
    version: int
    precision: str
    metadata: Metadata
    names: bytes
    check_end: Callable[[], None]


def check_version(found: object, known: int) -> None:
    """Raise Malformed for versions of the format that this package cannot read."""
    if type(found) is not int or found < 1:
        raise Malformed("wrong format version", got=shown(found), expected=f"1 to {known}")
    if found > known:
        raise Malformed(
            "written by a newer phlox-record",
            got=f"format {found}",
            expected=f"format {known} or older",
            hint="pip install --upgrade phlox-record",
        )


def check_metadata(precision: object, metadata: object) -> tuple[str, Metadata]:
    """Check the types of what people may read in a header."""
    if not isinstance(precision, str):
        raise Malformed("the precision is not text", got=shown(precision))
    if not isinstance(metadata, dict) or any(
        type(k) is not str or type(v) is not str for k, v in metadata.items()
    ):
        raise Malformed("metadata is not a map of text to text", got=shown(metadata))
    return precision, metadata
