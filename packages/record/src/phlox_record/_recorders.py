"""The recorders of this package: three forms, each plain or compressed."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final, final

from phlox_tensor import RecordError

from ._binary import COMPACT, NAMED
from ._content import Content, Form
from ._errors import Malformed, shown
from ._json import JSON
from ._npz import NPZ
from ._pytorch import PYTORCH
from ._recorder import PathLike, Recorder, by_extension, kinds
from ._safetensors import SAFETENSORS
from ._source import GZIP_MAGIC, BufferSource, GzipWriter, InflatingSource, Write

_HEAD: Final = 512  # what tells forms apart stands there


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
        return cls.form.recognizes(bytes(data[:_HEAD]))


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


@final
class NpzRecorder(_Plain):
    """NumPy's archive, which `numpy.load` reads: one array for each tensor, by dotted path.

    Archives of other programs are read too, except arrays of objects. bfloat16 is kept as its bits.
    """

    extension = ".npz"
    form = NPZ


@final
class PyTorchRecorder(_Plain):
    """Reads what ``torch.save`` wrote, without PyTorch and without running the pickle in it.

    Tensors, containers and plain values come back; a file that asks for anything else is refused.
    """

    extension = ".pt"
    aliases = (".pth", ".pth.tar", ".bin", ".ckpt")
    writes = False
    form = PYTORCH


@final
class SafetensorsRecorder(_Plain):
    """The format that other frameworks read: a JSON table of names, then the elements.

    What is no tensor goes into the metadata. Files of other programs are read too; their dotted
    names become a tree. The format has no checksums.
    """

    extension = ".safetensors"
    form = SAFETENSORS


DEFAULT: Final = NamedMsgpackRecorder


def recorder_for(path: PathLike) -> Recorder:
    """Return the recorder that the extension of a path names, which keeps element types.

    A name without any extension is for `NamedMsgpackRecorder`, which adds its own.

    Raises:
        RecordError: the extension is that of no recorder.

    >>> from phlox_record import recorder_for
    >>> recorder_for("model.json"), recorder_for("model")
    (JsonRecorder(KeepPrecision), NamedMsgpackRecorder(KeepPrecision))
    """
    place = Path(path)
    kind = by_extension(place.name)
    if kind is None and place.suffix:
        raise RecordError(
            "recorder_for",
            "the extension names no recorder",
            got=shown(place.name),
            expected=", ".join(sorted(e for k in kinds() for e in k.extensions())),
            hint=f"{shown(place.name + DEFAULT.extension)!r}, or a recorder beside the path",
        )
    return (kind or DEFAULT)()
