"""The recorders of this package: three forms, each plain or compressed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final, final

from phlox_tensor import RecordError

from ._binary import COMPACT, NAMED
from ._content import Content
from ._errors import Malformed, shown
from ._form import Form
from ._json import JSON
from ._recorder import PathLike, Recorder, by_extension, kinds
from ._source import GZIP_MAGIC, BufferSource, GzipWriter, InflatingSource, Write


class _Plain(Recorder):
    """A form as it is."""

    form: ClassVar[Form]

    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``."""
        self.form.write(content, self.limits, sink)

    def read(self, data: memoryview) -> Content:
        """Return what the bytes hold, tensors unread."""
        return self.form.read(BufferSource(data), self.limits)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool:
        """Whether bytes are a file of this recorder."""
        return cls.form.recognizes(bytes(data[:16]))


class _Zipped(Recorder):
    """A form behind gzip."""

    form: ClassVar[Form]

    def write(self, content: Content, sink: Write) -> None:
        """Give the bytes of a file to ``sink``."""
        zipped = GzipWriter(sink, self.form.cap(self.limits))
        self.form.write(content, self.limits, zipped.write)
        zipped.close()

    def read(self, data: memoryview) -> Content:
        """Return what the bytes hold, tensors unread."""
        return self.form.read(InflatingSource(data, self.form.cap(self.limits)), self.limits)

    @classmethod
    def recognizes(cls, data: memoryview) -> bool:
        """Whether bytes are a file of this recorder."""
        if bytes(data[: len(GZIP_MAGIC)]) != GZIP_MAGIC:
            return False
        try:
            return cls.form.recognizes(bytes(InflatingSource(data, 16).read(0, 12)))
        except Malformed as bad:
            if bad.what.startswith("written by a newer"):
                raise
            return False


@final
class NamedMsgpackRecorder(_Plain):
    """The default: names, scalars and tensor table in a msgpack header, then aligned data.

    Reading is lazy and survives added, removed and reordered fields.
    """

    extension = ".mpk"
    form = NAMED


@final
class NamedMsgpackGzRecorder(_Zipped):
    """`NamedMsgpackRecorder`, compressed. Reads in file order inflate it once."""

    extension = ".mpk.gz"
    form = NAMED


@final
class CompactMsgpackRecorder(_Plain):
    """Values by position, no names: smaller, and tied to the structure that wrote it."""

    extension = ".cmpk"
    form = COMPACT
    needs_like = True


@final
class CompactMsgpackGzRecorder(_Zipped):
    """`CompactMsgpackRecorder`, compressed."""

    extension = ".cmpk.gz"
    form = COMPACT
    needs_like = True


@final
class JsonRecorder(_Plain):
    """The tree as JSON, tensors as base64: to look at and to pass on; held in memory whole."""

    extension = ".json"
    form = JSON


@final
class JsonGzRecorder(_Zipped):
    """`JsonRecorder`, compressed."""

    extension = ".json.gz"
    form = JSON


DEFAULT: Final = NamedMsgpackRecorder


def recorder_for(path: PathLike) -> Recorder:
    """Return the recorder that the extension of a path names, in full precision.

    A name without any extension is for `NamedMsgpackRecorder`, which adds its own.

    Raises:
        RecordError: the extension is that of no recorder.

    >>> from phlox_record import recorder_for
    >>> recorder_for("model.json"), recorder_for("model")
    (JsonRecorder(FullPrecision), NamedMsgpackRecorder(FullPrecision))
    """
    place = Path(path)
    kind = by_extension(place.name)
    if kind is None and place.suffix:
        raise RecordError(
            "recorder_for",
            "the extension names no recorder",
            got=shown(place.name),
            expected=", ".join(sorted(k.extension for k in kinds())),
            hint=f"{shown(place.name + DEFAULT.extension)!r}, or a recorder beside the path",
        )
    return (kind or DEFAULT)()
